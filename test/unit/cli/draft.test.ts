/** Signatures that are drafted from the tensors of a model, and the options that change them. */
import { describe, expect, test } from 'vitest'
import { type BindingFlags, parseBindingFlags } from '../../../src/cli/commands/add.ts'
import { checkModel, type OnnxModel, type Value } from '../../../src/draft/model.ts'
import { draftSignature, findImage } from '../../../src/draft/signature.ts'
import { applyWishes, toImageOption } from '../../../src/draft/wishes.ts'

const value = (name: string, shape: Value['shape'] = [], type = 'float32'): Value => ({
  name,
  type,
  isTensor: true,
  shape,
  description: '',
})
const sequence = (name: string, type: string): Value => ({
  ...value(name, [], type),
  isTensor: false,
})

const model = (changes: Partial<OnnxModel>): OnnxModel => ({
  irVersion: 8,
  opsets: new Map([['', 17]]),
  description: '',
  operators: new Map(),
  externalData: [],
  usesHalves: false,
  inputs: [value('x')],
  outputs: [value('y')],
  ...changes,
})

type DraftOptions = Parameters<typeof draftSignature>[1]
const draft = (changes: Partial<OnnxModel>, options: Partial<DraftOptions> = {}) => {
  const keep = (name: string) => `--tensor ${name}`
  const tensors = new Set<string>()
  return draftSignature(model(changes), { tensors, keep, makeImage: toImageOption, ...options })
}

describe('An image', () => {
  const nchw = { channels: 'rgb', order: 'nchw' }
  test.each<[Value['shape'], object | null]>([
    [[1, 3, 224, 224], { width: 224, height: 224, ...nchw }],
    // A recognizer of text has a fixed height.
    [['N', 3, 48, 'any'], { height: 48, ...nchw }],
    [[1, 1, 'h', 'w'], { channels: 'gray', order: 'nchw' }],
    // An embedding of a wake word, and a spectrogram.
    [['N', 76, 32, 1], null],
    [['N', 1, 28, 32], null],
    [[1, 300, 400, 4], { width: 400, height: 300, channels: 'rgba', order: 'nhwc' }],
    [[1, 3, 'height', 'width'], nchw],
    [[null, 'in_h', 'in_w', 3], { channels: 'rgb', order: 'nhwc' }],
    [[1, 3, 'a', 'b'], null],
    [[8, 3, 224, 224], null],
    [[1, 3, 7, 7], null],
    [[1, 64, 56, 56], null],
    [[3, 224, 224], null],
    [[1, 3, null, null], null],
    [null, null],
  ])('is found by the shape %j: %j', (shape, layout) => {
    expect(findImage(value('x', shape))?.layout ?? null).toEqual(layout)
    expect(findImage(value('x', shape, 'int64'))).toBeNull()
  })

  test('is found by its name, and the note has the evidence', () => {
    expect(findImage(value('pixel_values', ['n', 1, 28, 28]))?.evidence).toBe('its name')
    expect(findImage(value('x', [1, 3, 32, 32]))?.evidence).toBe('3 channels and its sides')
    const { signature, notes } = draft({ inputs: [value('x', ['N', 76, 32, 1])] })
    expect(signature.inputs[0]?.type).toBe('float32')
    expect(notes).toEqual([expect.stringContaining('--image x')])
  })

  test('has to be confirmed, and stays a tensor on request', () => {
    const inputs = [value('pixels', [1, 3, 32, 32])]
    const { signature, notes } = draft({ inputs })
    const description = expect.stringMatching(/^To be confirmed/)
    expect(signature.inputs[0]).toMatchObject({ type: 'image', description })
    expect(notes[0]).toMatch(/"mean" and "std".*--tensor pixels/)
    const kept = draft({ inputs }, { tensors: new Set(['pixels']) })
    const tensor = { type: 'float32', description: 'Shape [1, 3, 32, 32].' }
    expect(kept.signature.inputs[0]).toMatchObject(tensor)
    expect(kept.bindings['pixels']).toEqual({ tensor: 'pixels', shape: [1, 3, 32, 32] })
    expect(kept.notes).toEqual([])
  })
})

test('Free lengths are described by their names, and bound as free', () => {
  const points = { ...value('x', ['batch', null, 3]), description: 'Points' }
  const { signature, bindings } = draft({ inputs: [points] })
  expect(signature.inputs[0]?.description).toBe('Points. Shape [batch, any, 3].')
  expect(bindings['x']).toEqual({ tensor: 'x', shape: [null, null, 3] })
})

test('Outputs that no page can read are left out with a note', () => {
  const outputs = [value('label', [], 'int64'), sequence('map', 'a sequence')]
  const { signature, notes } = draft({ outputs })
  expect(signature.outputs.map(({ name }) => name)).toEqual(['label'])
  expect(notes).toEqual([expect.stringContaining('map is a sequence')])
})

test('Tokens are made of one text if there is a tokenizer', () => {
  const names = ['input_ids', 'attention_mask', 'extra']
  const inputs = names.map((name) => value(name, ['batch', 'n'], 'int64'))
  const tokenizer = { name: 'tokenizer.json', most: 256 }
  const { signature, bindings } = draft({ inputs }, { tokenizer })
  const drafted = signature.inputs.map(({ name, type }) => `${name} ${type}`)
  expect(drafted).toEqual(['text string', 'extra int64'])
  expect(bindings['text']).toEqual({
    tensor: 'input_ids',
    text: { tokenizer: 'tokenizer.json', mask: 'attention_mask', types: undefined, most: 256 },
  })
})

test.each<[Partial<OnnxModel>, RegExp]>([
  [
    { opsets: new Map([['', 6]]) },
    /version 6, .* supports versions 7 to 26\. Export it with opset_version/,
  ],
  [{ opsets: new Map([['', 27]]) }, /version 27/],
  [{ irVersion: 14 }, /version 14 of the ONNX format/],
  [{ inputs: [value('x', [], 'bfloat16')] }, /input x of m\.onnx is of type bfloat16/],
  [{ inputs: [sequence('x', 'an optional value')] }, /is an optional value/],
  [{ outputs: [value('z', [], 'complex64')] }, /No output .*z \(complex64\)/],
  [
    { outputs: [value('y'), value('z', [], 'bfloat16')] },
    /output z of m\.onnx is bfloat16.* Cast it/,
  ],
  [{ outputs: [value('__proto__')] }, /named __proto__/],
])('A model that cannot run is refused with a remedy: %j', (changes, why) => {
  expect(() => checkModel(model(changes), 'm.onnx')).toThrow(why)
  expect(() => checkModel(model({}), 'm.onnx')).not.toThrow()
})

test('An output may have the name of a member of every object', () => {
  const { bindings } = draft({ outputs: [value('constructor', [2])] })
  const binding = { tensor: 'constructor', shape: [2] }
  expect(Object.entries(bindings)).toContainEqual(['constructor', binding])
})

describe('Options', () => {
  /** An image that its shape does not show, sound, a state and two large outputs. */
  const MODEL = {
    inputs: [value('x', ['n', 3, 'a', 'b']), value('wave', ['n', 'm']), value('h', [2, 'n', 64])],
    outputs: [value('y', ['n', 2]), value('side', ['n', 9]), value('hn', [2, 'n', 64])],
  }
  const apply = (flags: BindingFlags, changes: Partial<OnnxModel> = {}) => {
    const given = { ...MODEL, ...changes }
    return applyWishes(draft(given), model(given), parseBindingFlags(flags))
  }

  test('that are left out leave the draft', () => {
    const { signature, states, notes } = apply({})
    expect(signature.inputs.map(({ type }) => type)).toEqual(['float32', 'float32', 'float32'])
    expect(signature.outputs).toHaveLength(3)
    expect(states).toBeUndefined()
    expect(notes).toEqual([expect.stringContaining('--image x')])
  })

  test('describe an image', () => {
    const sizes = { size: 'x48', 'multiple-of': '8', fit: 'pad' }
    const numbers = { mean: '0.485,0.456,0.406', std: '0.5' }
    const { signature, bindings, notes } = apply({
      image: ['x'],
      channels: 'bgr',
      ...sizes,
      ...numbers,
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

  test('declare sound, a state and the wanted outputs', () => {
    const sound = { audio: ['wave=16000'], window: '512' }
    const { signature, bindings, states } = apply({ ...sound, state: ['h=hn'], output: ['y'] })
    expect(bindings['wave']?.audio).toEqual({ rate: 16_000, window: 512 })
    expect(states).toEqual([{ input: 'h', output: 'hn' }])
    expect(signature.outputs.map(({ name }) => name)).toEqual(['y', 'hn'])
    expect(Object.keys(bindings)).toEqual(['x', 'wave', 'h', 'y', 'hn'])
  })

  test('add steps and labels to outputs under names of their own', () => {
    const { signature, bindings } = apply({
      output: ['classes=y', 'side'],
      step: ['classes=softmax', 'classes=top-k,count=3,threshold=0.1', 'side=ctc,space,blank=8'],
      labels: ['classes=metadata:names', 'side=keys.txt'],
    })
    expect(signature.outputs).toEqual([
      { name: 'classes', type: 'list', description: 'The best classes.' },
      { name: 'side', type: 'list', description: 'Texts with scores.' },
    ])
    const best = { step: 'top-k', count: 3, threshold: 0.1, labels: { metadata: 'names' } }
    const steps = [{ step: 'softmax' }, best]
    expect(bindings['classes']).toEqual({ tensor: 'y', shape: [null, 2], steps })
    const text = { step: 'ctc', space: true, blank: 8, labels: { file: 'keys.txt' } }
    expect(bindings['side']?.steps).toEqual([text])
    expect(bindings).not.toHaveProperty('y')
  })

  test('give sound context, and the default of an input that takes its rate', () => {
    const flags = { audio: ['wave=16000'], window: '512', context: '64' }
    const inputs = [...MODEL.inputs, value('sr', [], 'int64')]
    const { signature, bindings } = apply(flags, { inputs })
    expect(bindings['wave']?.audio).toEqual({ rate: 16_000, window: 512, context: 64 })
    const rate = { name: 'sr', optional: true, defaultValue: 16_000 }
    expect(signature.inputs.at(-1)).toMatchObject(rate)
  })

  test('scale pixels, or samples of sound', () => {
    expect(apply({ image: ['x'], scale: '1' }).bindings['x']?.image).toMatchObject({ scale: 1 })
    const { bindings } = apply({ audio: ['wave=16000'], scale: '32768' })
    expect(bindings['wave']?.audio).toEqual({ rate: 16_000, scale: 32_768 })
  })

  test('remove the note about a state that could be an image', () => {
    const inputs = [value('cache', [2, 1, 33, 16])]
    const outputs = [...MODEL.outputs, value('next', [2, 1])]
    expect(draft({ inputs, outputs }).notes).toHaveLength(1)
    expect(apply({ state: ['cache=next'] }, { inputs, outputs }).notes).toEqual([])
  })

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
    [
      { resample: 'mitchell' },
      '--resample takes nearest, box, bilinear, hamming, bicubic, lanczos',
    ],
    [{ output: ['h=y'] }, '--output h=y: an input has that name.'],
    [{ step: ['z=softmax'] }, '--step z: there is no such output. Expected: y, side, hn.'],
    [{ step: ['y'] }, '--step takes output=step, such as y=softmax, not y'],
    [
      { step: ['y=argmax'] },
      '--step takes softmax, sigmoid, top-k, ctc, mask, pool, normalize, entities, span, zero-shot, fill-mask, objects, segments, panoptic, resize, depth, cutout, not',
    ],
    [{ step: ['y=pool'] }, '--step takes `by` for pool, such as y=pool,by=mean'],
    [{ step: ['y=pool,by=sum'] }, 'by=sum has an invalid value'],
    [{ step: ['y=mask,count=2'] }, 'count=2 is unknown: mask takes threshold'],
    [{ step: ['y=softmax,x'] }, 'x is unknown: softmax takes no settings'],
    [{ step: ['y=top-k,count=0'] }, 'count=0 has an invalid value'],
    [{ step: ['y=top-k,toString=1'] }, 'toString=1 is unknown'],
    [
      { step: ['y=ctc'] },
      '--step y: ctc needs the names of the classes. Name their file with --labels y=names.txt.',
    ],
    [{ step: ['y=mask', 'y=softmax'] }, '--step y: mask must be the last step.'],
    [{ step: ['hn=softmax'], state: ['h=hn'] }, '--step hn: the output is a state'],
    [{ labels: ['y=a.txt'] }, '--labels y: the output has no step.'],
    [{ labels: ['y=a.txt'], step: ['y=softmax'] }, '--labels y: its steps take no labels.'],
    [{ fit: 'fill' }, '--fit takes stretch, contain, cover, pad, not fill'],
  ])('are refused: %j', (flags, message) => {
    expect(() => apply(flags)).toThrow(message)
  })
})
