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

describe('what is refused', () => {
  test.each<[BindingFlags, string]>([
    [{ image: ['z'] }, '--image z: the model has no tensor of that name. Expected: x, wave, h.'],
    [{ image: ['h'] }, '--image h: the input is no image.'],
    [{ mean: '0.5' }, 'No input is an image, but options describe one. Name it with --image.'],
    [{ output: ['z'] }, '--output z: the model has no tensor of that name. Expected: y, side, hn.'],
    [{ state: ['h=z'] }, '--state z:'],
    [{ state: ['h'] }, '--state takes input=output, not h'],
    [{ audio: ['wave=fast'] }, '--audio takes a number of at least 1, not fast'],
    [{ window: '512' }, '--window needs --audio'],
    [{ size: '48' }, '--size takes a width and a height such as 320x48 or x48, not 48'],
    [{ mean: '1,,2' }, '--mean takes numbers such as 0.5'],
    [{ fit: 'fill' }, '--fit takes stretch, contain, cover, pad, not fill'],
  ])('%j', (flags, message) => {
    expect(() => draft(flags)).toThrow(message)
  })
})
