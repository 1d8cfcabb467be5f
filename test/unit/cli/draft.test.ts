import { expect, test } from 'vitest'
import { checkModel } from '../../../src/draft/check.ts'
import { draftSignature, findImage } from '../../../src/draft/signature.ts'
import type { OnnxModel, Value } from '../../../src/draft/model.ts'

const value = (given: Partial<Value>): Value => ({
  name: 'x',
  type: 'float32',
  isTensor: true,
  shape: [],
  description: '',
  ...given,
})

const keep = (name: string) => `--tensor ${name}`

const model = (given: Partial<OnnxModel>): OnnxModel => ({
  irVersion: 8,
  opsets: new Map([['', 17]]),
  description: '',
  externalData: [],
  usesHalves: false,
  inputs: [value({})],
  outputs: [value({ name: 'y' })],
  ...given,
})

test.each<[Value['shape'], object | null]>([
  [[1, 3, 224, 224], { width: 224, height: 224, channels: 'rgb', order: 'nchw' }],
  // A recognizer of text has a fixed height.
  [['N', 3, 48, 'any'], { height: 48, channels: 'rgb', order: 'nchw' }],
  [[1, 1, 'h', 'w'], { channels: 'gray', order: 'nchw' }],
  // An embedding of a wake word, and a spectrogram.
  [['N', 76, 32, 1], null],
  [['N', 1, 28, 32], null],
  [[1, 300, 400, 4], { width: 400, height: 300, channels: 'rgba', order: 'nhwc' }],
  [[1, 3, 'height', 'width'], { channels: 'rgb', order: 'nchw' }],
  [[null, 'in_h', 'in_w', 3], { channels: 'rgb', order: 'nhwc' }],
  [[1, 3, 'a', 'b'], null],
  [[1, 3, 224, 'width'], { height: 224, channels: 'rgb', order: 'nchw' }],
  [[8, 3, 224, 224], null],
  [[1, 3, 7, 7], null],
  [[1, 64, 56, 56], null],
  [[3, 224, 224], null],
  [[1, 3, null, null], null],
  [null, null],
])('takes %j for an image as its shape says: %j', (shape, layout) => {
  expect(findImage(value({ shape }))?.layout ?? null).toEqual(layout)
  expect(findImage(value({ shape, type: 'int64' }))).toBeNull()
})

test('a name is evidence of an image, and the note says the evidence', () => {
  const named = value({ name: 'pixel_values', shape: ['n', 1, 28, 28] })
  expect(findImage(named)?.evidence).toBe('its name')
  expect(findImage(value({ shape: [1, 3, 32, 32] }))?.evidence).toBe('3 channels and its sides')
  const drafted = draftSignature(model({ inputs: [value({ shape: ['N', 76, 32, 1] })] }), {
    tensors: new Set(),
    keep,
    makeImage: (name) => `--image ${name}`,
  })
  expect(drafted.signature.inputs[0]?.type).toBe('float32')
  expect(drafted.notes).toEqual([expect.stringContaining('--image x')])
})

test('an image is marked to be confirmed, and stays a tensor when that is said', () => {
  const given = model({ inputs: [value({ name: 'pixels', shape: [1, 3, 32, 32] })] })
  const drafted = draftSignature(given, { tensors: new Set(), keep })
  expect(drafted.signature.inputs[0]).toMatchObject({
    type: 'image',
    description: expect.stringMatching(/^To be confirmed/),
  })
  expect(drafted.notes[0]).toMatch(/"mean" and "std".*--tensor pixels/)
  const kept = draftSignature(given, { tensors: new Set(['pixels']), keep })
  expect(kept.signature.inputs[0]).toMatchObject({
    type: 'float32',
    description: 'Shape [1, 3, 32, 32].',
  })
  expect(kept.bindings['pixels']).toEqual({ tensor: 'pixels', shape: [1, 3, 32, 32] })
  expect(kept.notes).toEqual([])
})

test('free lengths are told by their names, and bound as free', () => {
  const { signature, bindings } = draftSignature(
    model({ inputs: [value({ shape: ['batch', null, 3], description: 'Points' })] }),
    { tensors: new Set(), keep },
  )
  expect(signature.inputs[0]?.description).toBe('Points. Shape [batch, any, 3].')
  expect(bindings['x']).toEqual({ tensor: 'x', shape: [null, null, 3] })
})

test('outputs that no page can read are left out, and that is said', () => {
  const outputs = [
    value({ name: 'label', type: 'int64' }),
    value({ name: 'map', type: 'a sequence', isTensor: false }),
  ]
  const { signature, notes } = draftSignature(model({ outputs }), { tensors: new Set(), keep })
  expect(signature.outputs.map(({ name }) => name)).toEqual(['label'])
  expect(notes).toEqual([expect.stringContaining('map is a sequence')])
})

test('tokens are made of one text where there is a tokenizer', () => {
  const shape = ['batch', 'n']
  const inputs = ['input_ids', 'attention_mask', 'extra'].map((name) =>
    value({ name, type: 'int64', shape }),
  )
  const tokenizer = { name: 'tokenizer.json', most: 256 }
  const { signature, bindings } = draftSignature(model({ inputs }), {
    tensors: new Set(),
    keep,
    tokenizer,
  })
  expect(signature.inputs.map(({ name, type }) => [name, type])).toEqual([
    ['text', 'string'],
    ['extra', 'int64'],
  ])
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
  [{ inputs: [value({ type: 'bfloat16' })] }, /input x of m\.onnx is of type bfloat16/],
  [{ inputs: [value({ type: 'an optional value', isTensor: false })] }, /is an optional value/],
  [{ outputs: [value({ name: 'z', type: 'complex64' })] }, /No output .*z \(complex64\)/],
  [
    { outputs: [value({ name: 'y' }), value({ name: 'z', type: 'bfloat16' })] },
    /output z of m\.onnx is bfloat16.* Cast it/,
  ],
  [{ outputs: [value({ name: '__proto__' })] }, /named __proto__/],
])('says what to do with a model that cannot run: %j', (given, says) => {
  expect(() => checkModel(model(given), 'm.onnx')).toThrow(says)
  expect(() => checkModel(model({}), 'm.onnx')).not.toThrow()
})

test('an output may be called what every object has', () => {
  const { bindings } = draftSignature(
    model({ outputs: [value({ name: 'constructor', shape: [2] })] }),
    { tensors: new Set(), keep },
  )
  expect(Object.entries(bindings)).toContainEqual([
    'constructor',
    { tensor: 'constructor', shape: [2] },
  ])
})
