import type { InferenceSession } from 'onnxruntime-web'
import { describe, expect, test } from 'vitest'
import type { Implementation, ImageLayout, PredictorEntry } from '../../../src/catalog/schema.ts'
import { InoriginError } from '../../../src/error.ts'
import { bindSignature } from '../../../src/predictor/bind.ts'
import type { BoundSignature } from '../../../src/predictor/bind.ts'
import type { InputParameter, OutputParameter } from '../../../src/types/index.ts'
import { predictor } from '../catalog/entries.ts'

type Tensor = [type: string, ...shape: (number | string)[]]
type Tensors = Record<string, Tensor>

function metadata(tensors: Tensors): InferenceSession.ValueMetadata[] {
  return Object.entries(tensors).map(([name, [type, ...shape]]) => {
    const known = { name, isTensor: true, type, shape }
    return known as InferenceSession.ValueMetadata
  })
}

interface Case {
  inputs?: InputParameter[]
  outputs?: OutputParameter[]
  bindings?: Implementation['bindings']
  states?: PredictorEntry['states']
  /** Input tensors of the model. */
  takes?: Tensors
  /** Output tensors of the model. */
  gives?: Tensors
}

function bound({
  inputs = [],
  outputs = [],
  bindings,
  takes,
  gives,
  ...rest
}: Case): BoundSignature {
  const tag = '@test/case'
  const entry = predictor({ tag, signature: { inputs, outputs }, states: rest.states })
  const [implementation] = entry.implementations
  if (!implementation) throw new Error('no implementation')
  return bindSignature(
    entry,
    { ...implementation, bindings },
    { inputs: metadata(takes ?? {}), outputs: metadata(gives ?? {}) },
  )
}

const float: InputParameter = { name: 'x', type: 'float32' }
const layout = { width: 4, height: 2, channels: 'rgb', order: 'nchw' } as const

/** The input `x` with these fields, of a model that takes `tensor`. */
const given = (changes: Partial<InputParameter>, tensor: Tensor = ['float32']): Case => ({
  inputs: [{ ...float, ...changes }],
  takes: { x: tensor },
})
const image = (changes: Partial<ImageLayout> = {}, tensor?: Tensor): Case => ({
  ...given({ type: 'image' }, tensor),
  bindings: { x: { tensor: 'x', image: { ...layout, ...changes } } },
})
const text = (changes: object, ids: Tensor, others: Tensors = {}): Case => ({
  inputs: [{ name: 'x', type: 'string' }],
  bindings: { x: { tensor: 'x', text: { tokenizer: 'tokenizer.json', most: 8, ...changes } } },
  takes: { x: ids, ...others },
})
const sound = (audio: object, tensor: Tensor): Case => ({
  ...given({ type: tensor[0] as 'float32' }, tensor),
  bindings: { x: { tensor: 'x', audio: { rate: 8000, ...audio } } },
})
const state = (from: Tensor, to: Tensor): Case => ({
  ...given({}, from),
  outputs: [{ name: 'y', type: to[0] as 'float32' }],
  states: [{ input: 'x', output: 'y' }],
  gives: { y: to },
})
const free = { width: undefined, height: undefined }

describe('An input', () => {
  test('and an output are the tensors of their names', () => {
    const { inputs, outputs } = bound({
      ...given({}, ['float32', 'batch', 3]),
      outputs: [{ name: 'y', type: 'int64' }],
      gives: { y: ['int64'] },
    })
    expect(inputs[0]).toMatchObject({ tensor: 'x', spec: { type: 'float32', shape: [null, 3] } })
    expect(outputs[0]).toMatchObject({ tensor: 'y' })
  })

  test('may be bound to another tensor and shape', () => {
    const { inputs } = bound({
      inputs: [float],
      bindings: { x: { tensor: 'input.1', shape: [1, null] } },
      takes: { 'input.1': ['float32'] },
    })
    expect(inputs[0]).toMatchObject({ tensor: 'input.1', spec: { shape: [1, null] } })
  })

  test.each<[string, Case, object]>([
    ['a free length without a name', given({}, ['float32', 2 ** 32 - 1, 3]), { shape: [null, 3] }],
    ['no shape', given({ type: 'bool' }, ['bool']), { shape: null }],
    ['an image', image({}, ['float32', 1, 3, 2, 4]), { image: { layout } }],
    ['an image in halves', image({}, ['float16', 'batch', 3, 'h', 'w']), { image: { layout } }],
    ['an image in bytes', image({}, ['uint8', 3, 2, 4]), { image: { layout } }],
    [
      'an image with one fixed side',
      image({ width: undefined, height: 48, channels: 'bgr' }, ['float32', 'n', 3, 48, 'w']),
      { shape: [null, 3, 48, null], image: {} },
    ],
    [
      'an image of any size',
      image({ ...free, order: 'nhwc' }, ['float32', 1, 'h', 'w', 3]),
      { shape: [1, null, null, 3], image: {} },
    ],
  ])('may have %s', (_, fitting, spec) => {
    expect(bound(fitting).inputs[0]?.spec).toMatchObject(spec)
  })
})

test.each([
  ['the length of its tensor', [1, 576], 512],
  ['that length, also of a free batch', ['batch', 576], 512],
  ['all of it if the length is free', ['batch', 'samples'], null],
  ['all of it if only the channel is fixed', ['samples', 1], null],
])('A state begins with zeros of its shape, and sound has windows of %s', (_, shape, window) => {
  const fitting = bound({
    inputs: ['wave', 'h'].map((name) => ({ ...float, name })),
    outputs: [{ name: 'hn', type: 'float32' }],
    bindings: { wave: { tensor: 'wave', audio: { rate: 16_000, context: 64 } } },
    states: [{ input: 'h', output: 'hn' }],
    takes: { wave: ['float32', ...shape], h: ['float32', 2, 'batch', 64] },
    gives: { hn: ['float32', 2, 'batch', 64] },
  })
  expect(fitting.states).toEqual([{ input: 'h', output: 'hn', type: 'float32', shape: [2, 1, 64] }])
  expect(fitting.sound).toMatchObject({ tensor: 'wave', window })
})

describe('A signature that does not fit the model is refused', () => {
  test.each<[Case, string]>([
    [given({ type: 'null' }), 'inputs.x: type null is not supported by ONNX models.'],
    [given({ type: 'dict' }), 'inputs.x: is a dict, so its binding must have `keys`.'],
    [given({ type: 'image' }), 'inputs.x: is an image, so its binding must have `image`.'],
    [given({}, ['int32']), "inputs.x: is declared float32, but the model's x is int32."],
    [
      given({ optional: true }),
      'inputs.x: is optional and has no default value, but the model needs one.',
    ],
    [given({ defaultValue: 'one' }), 'inputs.x: defaultValue: must be a float32, not a string.'],
    [image({ padding: {} }), "inputs.x: `padding` needs `fit: 'pad'`."],
    [
      image({ fit: 'pad', padding: { value: [1, 2] } }),
      'inputs.x: `padding.value` must have 1 or 3 numbers.',
    ],
    [
      image({ multipleOf: 32 }),
      'inputs.x: `multipleOf` is for sides that are not set, but both are.',
    ],
    [
      image({ channels: 'rgba', resample: 'lanczos' }),
      'inputs.x: `resample` is not possible with `rgba`.',
    ],
    [image({ mean: [0, 0] }), 'inputs.x: `mean` must have 1 or 3 numbers.'],
    [
      image({ std: [1] }, ['uint8']),
      'inputs.x: the model takes raw bytes, so `std` is not allowed.',
    ],
    [
      image({ width: undefined }, ['float32', 1, 3, 2, 4]),
      'inputs.x: its layout has the shape [1, 3, 2, any], which x does not accept.',
    ],
    [
      image(free, ['float32', 1, 3, 'h', 4]),
      'inputs.x: its layout has the shape [1, 3, any, any], which x does not accept.',
    ],
    [
      image({}, ['float32', 1, 2, 4, 3]),
      'inputs.x: its layout has the shape [1, 3, 2, 4], which x does not accept.',
    ],
    [
      text({}, ['float32', 1, 'length']),
      "inputs.x: is declared string, but the model's x is float32.",
    ],
    [
      text({ mask: 'm' }, ['int64', 1, 'length'], { m: ['float32', 1, 'length'] }),
      'inputs.x: the model has no tensor m of type int64, the type of its tokens.',
    ],
    [text({}, ['int64', 1, 'length']), 'inputs.x: there is no tokenizer tokenizer.json.'],
    [
      sound({}, ['int32', 1, 'n']),
      'inputs.x: takes sound, so it must be float32 or float16 or float64 or int16.',
    ],
    [
      sound({ window: 5 }, ['float32', 1, 8]),
      'inputs.x: takes 8 samples, not 5 of window and context.',
    ],
    [state(['float32'], ['float32']), 'states.x: has no shape. Set `shape` in its binding.'],
    [
      state(['float32', 1], ['int32', 1]),
      'states.x: is float32, so the output y must be float32 without steps.',
    ],
    [{ inputs: [float], takes: { z: ['float32'] } }, 'inputs.x: the model has no tensor x.'],
    [
      {
        inputs: [float],
        bindings: { x: { tensor: '__proto__' } },
        takes: { ['__proto__']: ['float32'] },
      },
      'inputs.x: a tensor named __proto__ is not supported. Rename it.',
    ],
    [
      { inputs: [float], takes: { x: ['float32'], z: ['float32'] } },
      "inputs.z: the model's input must be bound to one parameter, not to 0.",
    ],
    [
      {
        inputs: [float, { ...float, name: 'w' }],
        bindings: { w: { tensor: 'x' } },
        takes: { x: ['float32'] },
      },
      "inputs.x: the model's input must be bound to one parameter, not to 2.",
    ],
    [{ outputs: [{ name: 'y', type: 'float32' }] }, 'outputs.y: the model has no tensor y.'],
    [
      { outputs: [{ name: 'y', type: 'image' }], gives: { y: ['float32'] } },
      'outputs.y: is an image, so its binding must have `image`.',
    ],
  ])('%#: %j', (unfit, why) => {
    const who = 'The predictor @test/case cannot run:'
    const message = `${who} ${why} Its catalog entry must be corrected.`
    const error = { kind: 'unavailable', code: 'predictor_unusable', message }
    expect(() => bound(unfit)).toThrow(InoriginError)
    expect(() => bound(unfit)).toThrow(expect.objectContaining(error))
  })
})

test('Steps take tensors of any type of number', () => {
  const steps = [{ step: 'softmax' } as const]
  const of = (type: string) =>
    bound({
      outputs: [{ name: 'y', type: 'float32' }],
      bindings: { y: { tensor: 'y', steps } },
      gives: { y: [type, 1, 3] },
    }).outputs[0]?.type
  expect(['float16', 'float32', 'int64'].map(of)).toEqual(['float16', 'float32', 'int64'])
  expect(() => of('string')).toThrow("is declared float32, but the model's y is string.")
})
