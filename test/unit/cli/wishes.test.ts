import { describe, expect, test } from 'vitest'
import { type BindingFlags, parseBindingFlags } from '../../../src/cli/add/binding-flags.ts'
import type { OnnxModel, Value } from '../../../src/draft/model.ts'
import { draftSignature } from '../../../src/draft/signature.ts'
import { applyWishes, toImageOption } from '../../../src/draft/wishes.ts'

const value = (name: string, shape: Value['shape'], type = 'float32'): Value => ({
  name,
  type,
  isTensor: true,
  shape,
  description: '',
})

/** A model with an image that its shape does not tell, sound, a state and two large outputs. */
const MODEL: OnnxModel = {
  irVersion: 8,
  opsets: new Map([['', 17]]),
  description: '',
  externalData: [],
  usesHalves: false,
  inputs: [value('x', ['n', 3, 'a', 'b']), value('wave', ['n', 'm']), value('h', [2, 'n', 64])],
  outputs: [value('y', ['n', 2]), value('side', ['n', 9]), value('hn', [2, 'n', 64])],
}

function draft(flags: BindingFlags) {
  const keep = (name: string) => `--tensor ${name}`
  const drafted = draftSignature(MODEL, { tensors: new Set(), keep, makeImage: toImageOption })
  return applyWishes(drafted, MODEL, parseBindingFlags(flags))
}

test('without options the draft stays', () => {
  const { signature, states, notes } = draft({})
  expect(signature.inputs.map(({ type }) => type)).toEqual(['float32', 'float32', 'float32'])
  expect(signature.outputs).toHaveLength(3)
  expect(states).toBeUndefined()
  expect(notes).toEqual([expect.stringContaining('--image x')])
})

test('an image is described by options', () => {
  const { signature, bindings, notes } = draft({
    image: ['x'],
    size: 'x48',
    'multiple-of': '8',
    channels: 'bgr',
    fit: 'pad',
    mean: '0.485,0.456,0.406',
    std: '0.5',
  })
  expect(signature.inputs[0]?.type).toBe('image')
  expect(bindings['x']).toEqual({
    tensor: 'x',
    shape: [null, 3, null, null],
    image: {
      height: 48,
      multipleOf: 8,
      channels: 'bgr',
      order: 'nchw',
      fit: 'pad',
      mean: [0.485, 0.456, 0.406],
      std: [0.5],
    },
  })
  expect(notes).toEqual([])
})

test('sound, a state and the wanted outputs are declared', () => {
  const { signature, bindings, states } = draft({
    audio: ['wave=16000'],
    window: '512',
    state: ['h=hn'],
    output: ['y'],
  })
  expect(bindings['wave']?.audio).toEqual({ rate: 16_000, window: 512 })
  expect(states).toEqual([{ input: 'h', output: 'hn' }])
  expect(signature.outputs.map(({ name }) => name)).toEqual(['y', 'hn'])
  expect(Object.keys(bindings)).toEqual(['x', 'wave', 'h', 'y', 'hn'])
})

test('steps and labels turn outputs into what a person reads, under names of their own', () => {
  const { signature, bindings } = draft({
    output: ['classes=y', 'side'],
    step: ['classes=softmax', 'classes=top-k,count=3,threshold=0.1', 'side=ctc,space,blank=8'],
    labels: ['classes=metadata:names', 'side=keys.txt'],
  })
  expect(signature.outputs).toEqual([
    { name: 'classes', type: 'list', description: 'The best classes.' },
    { name: 'side', type: 'list', description: 'Texts with scores.' },
  ])
  expect(bindings['classes']).toEqual({
    tensor: 'y',
    shape: [null, 2],
    steps: [
      { step: 'softmax' },
      { step: 'top-k', count: 3, threshold: 0.1, labels: { metadata: 'names' } },
    ],
  })
  expect(bindings['side']?.steps).toEqual([
    { step: 'ctc', space: true, blank: 8, labels: { file: 'keys.txt' } },
  ])
  expect(bindings).not.toHaveProperty('y')
})

test('sound has context, and its rate is the default of an input that takes it', () => {
  const model = { ...MODEL, inputs: [...MODEL.inputs, value('sr', [], 'int64')] }
  const options = { audio: ['wave=16000'], window: '512', context: '64' }
  const drafted = draftSignature(model, { tensors: new Set(), keep: (name) => name })
  const { signature, bindings } = applyWishes(drafted, model, parseBindingFlags(options))
  expect(bindings['wave']?.audio).toEqual({ rate: 16_000, window: 512, context: 64 })
  expect(signature.inputs.at(-1)).toMatchObject({
    name: 'sr',
    optional: true,
    defaultValue: 16_000,
  })
})

test('a factor is that of pixels, or that of samples beside sound', () => {
  expect(draft({ image: ['x'], scale: '1' }).bindings['x']?.image).toMatchObject({ scale: 1 })
  const { bindings } = draft({ audio: ['wave=16000'], scale: '32768' })
  expect(bindings['wave']?.audio).toEqual({ rate: 16_000, scale: 32_768 })
})

test('a state that could be an image needs no note', () => {
  const cache = value('cache', [2, 1, 33, 16])
  const model = { ...MODEL, inputs: [cache], outputs: [...MODEL.outputs, value('next', [2, 1])] }
  const keep = (name: string) => `--tensor ${name}`
  const drafted = draftSignature(model, { tensors: new Set(), keep, makeImage: toImageOption })
  expect(drafted.notes).toHaveLength(1)
  const flags = parseBindingFlags({ state: ['cache=next'] })
  expect(applyWishes(drafted, model, flags).notes).toEqual([])
})

describe('what is refused', () => {
  test.each<[BindingFlags, string]>([
    [{ image: ['z'] }, '--image z: the model has no tensor of that name. Expected: x, wave, h.'],
    [{ image: ['h'] }, '--image h: the input is no image.'],
    [{ mean: '0.5' }, 'No input is an image, but options describe one. Name it with --image.'],
    [{ output: ['z'] }, '--output z: the model has no tensor of that name. Expected: y, side, hn.'],
    [{ state: ['h=z'] }, '--state z:'],
    [{ state: ['h'] }, '--state takes input=output, not h'],
    [{ audio: ['wave=fast'] }, '--audio takes a number of at least 1, not fast'],
    [{ audio: ['wave=1'] }, '--audio takes 1000 to 768000 samples per second, not 1'],
    [{ window: '512' }, '--window needs --audio'],
    [{ image: ['x'], std: '0.2,0' }, '--std takes numbers greater than 0, not 0.2,0'],
    [{ image: ['x'], scale: '0' }, '--scale takes numbers greater than 0, not 0'],
    [{ image: ['x'], scale: '1,2' }, '--scale takes one number, not 1,2'],
    [{ output: ['a=y', 'a=side'] }, '--output names a twice'],
    [{ size: '48' }, '--size takes a width and a height such as 320x48 or x48, not 48'],
    [{ mean: '1,,2' }, '--mean takes numbers such as 0.5'],
    [{ context: '64' }, '--context needs --audio'],
    [{ resample: 'nearest' }, '--resample takes box, bilinear, bicubic, lanczos, not nearest'],
    [{ output: ['h=y'] }, '--output h=y: an input has that name.'],
    [{ step: ['z=softmax'] }, '--step z: there is no such output. Expected: y, side, hn.'],
    [{ step: ['y'] }, '--step takes output=step, such as y=softmax, not y'],
    [{ step: ['y=argmax'] }, '--step takes softmax, sigmoid, top-k, ctc, mask, not argmax'],
    [{ step: ['y=mask,count=2'] }, 'count=2 is unknown: mask takes threshold'],
    [{ step: ['y=softmax,x'] }, 'x is unknown: softmax takes no settings'],
    [{ step: ['y=top-k,count=0'] }, 'count=0 has an invalid value'],
    [{ step: ['y=top-k,toString=1'] }, 'toString=1 is unknown'],
    [{ step: ['y=ctc'] }, '--step y: ctc needs the characters of the classes.'],
    [{ step: ['y=mask', 'y=softmax'] }, '--step y: mask must be the last step.'],
    [{ step: ['hn=softmax'], state: ['h=hn'] }, '--step hn: the output is a state'],
    [{ labels: ['y=a.txt'] }, '--labels y: the output has no step.'],
    [{ labels: ['y=a.txt'], step: ['y=softmax'] }, '--labels y: its steps take no labels.'],
    [{ fit: 'fill' }, '--fit takes stretch, contain, cover, pad, not fill'],
  ])('%j', (flags, message) => {
    expect(() => draft(flags)).toThrow(message)
  })
})
