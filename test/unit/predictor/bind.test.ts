import type { InferenceSession } from 'onnxruntime-web'
import { describe, expect, test } from 'vitest'
import type { Implementation, PredictorEntry } from '../../../src/catalog/schema.ts'
import { InoriginError } from '../../../src/error.ts'
import { bindSignature } from '../../../src/predictor/bind.ts'
import type { BoundSignature } from '../../../src/predictor/bound.ts'
import type { InputParameter, OutputParameter } from '../../../src/types/index.ts'

type Tensors = Record<string, [type: string, ...shape: (number | string)[]]>

function metadata(tensors: Tensors): InferenceSession.ValueMetadata[] {
  return Object.entries(tensors).map(([name, [type, ...shape]]) => {
    const known = { name, isTensor: true, type, shape }
    return known as InferenceSession.ValueMetadata
  })
}

interface Case {
  inputs: InputParameter[]
  outputs?: OutputParameter[]
  bindings?: Implementation['bindings']
  states?: PredictorEntry['states']
  model: { inputs: Tensors; outputs?: Tensors }
}

function bound({ inputs, outputs = [], bindings, states, model }: Case): BoundSignature {
  const implementation: Implementation = {
    id: 'only',
    engine: 'onnx',
    device: 'wasm',
    resources: [{ type: 'onnx', url: 'm', name: 'm', bytes: 1, sha256: '0'.repeat(64) }],
    bindings,
  }
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@test/case',
    name: 'Case',
    created: '2026-01-01T00:00:00Z',
    signature: { inputs, outputs },
    states,
    implementations: [implementation],
  }
  return bindSignature(entry, implementation, {
    inputs: metadata(model.inputs),
    outputs: metadata(model.outputs ?? {}),
  })
}

const layout = { width: 4, height: 2, channels: 'rgb', order: 'nchw' } as const

describe('what fits', () => {
  test('a parameter is the tensor of its name, with the lengths that the model fixes', () => {
    const { inputs, outputs } = bound({
      inputs: [{ name: 'x', type: 'float32' }],
      outputs: [{ name: 'y', type: 'int64' }],
      model: { inputs: { x: ['float32', 'batch', 3] }, outputs: { y: ['int64'] } },
    })
    expect(inputs[0]).toMatchObject({ tensor: 'x', spec: { type: 'float32', shape: [null, 3] } })
    expect(outputs[0]).toMatchObject({ tensor: 'y' })
  })

  test('a free length without a name is open', () => {
    const { inputs } = bound({
      inputs: [{ name: 'x', type: 'float32' }],
      model: { inputs: { x: ['float32', 2 ** 32 - 1, 3] } },
    })
    expect(inputs[0]?.spec.shape).toEqual([null, 3])
  })

  test('a binding names another tensor and its shape', () => {
    const { inputs } = bound({
      inputs: [{ name: 'x', type: 'float32' }],
      bindings: { x: { tensor: 'input.1', shape: [1, null] } },
      model: { inputs: { 'input.1': ['float32'] } },
    })
    expect(inputs[0]).toMatchObject({ tensor: 'input.1', spec: { shape: [1, null] } })
  })

  test('a model that says no shape leaves it open', () => {
    const { inputs } = bound({
      inputs: [{ name: 'x', type: 'bool' }],
      model: { inputs: { x: ['bool'] } },
    })
    expect(inputs[0]?.spec.shape).toBeNull()
  })

  test.each<[string, ...(string | number)[]]>([
    ['float32', 1, 3, 2, 4],
    ['float16', 'batch', 3, 'h', 'w'],
    ['uint8', 3, 2, 4],
  ])('an image is a tensor of %s', (...tensor) => {
    const { inputs } = bound({
      inputs: [{ name: 'x', type: 'image' }],
      bindings: { x: { tensor: 'x', image: layout } },
      model: { inputs: { x: tensor } },
    })
    expect(inputs[0]?.spec.image?.layout).toEqual(layout)
  })
})

test('an image with one side needs a length that the model leaves open', () => {
  const { inputs } = bound({
    inputs: [{ name: 'x', type: 'image' }],
    bindings: { x: { tensor: 'x', image: { height: 48, channels: 'bgr', order: 'nchw' } } },
    model: { inputs: { x: ['float32', 'n', 3, 48, 'w'] } },
  })
  expect(inputs[0]?.spec).toMatchObject({ shape: [null, 3, 48, null], image: {} })
})

test('an image without a size needs lengths that the model leaves open', () => {
  const { inputs } = bound({
    inputs: [{ name: 'x', type: 'image' }],
    bindings: { x: { tensor: 'x', image: { channels: 'rgb', order: 'nhwc' } } },
    model: { inputs: { x: ['float32', 1, 'h', 'w', 3] } },
  })
  expect(inputs[0]?.spec).toMatchObject({ shape: [1, null, null, 3], image: {} })
})

test.each([
  ['the length of its tensor', [1, 576], 512],
  ['that length, also of a free batch', ['batch', 576], 512],
  ['all of it if the length is free', ['batch', 'samples'], null],
  ['all of it if only the channel is fixed', ['samples', 1], null],
])('a state begins with zeros of its shape, and sound has %s', (_, shape, window) => {
  const { states, sound } = bound({
    inputs: [
      { name: 'wave', type: 'float32' },
      { name: 'h', type: 'float32' },
    ],
    outputs: [{ name: 'hn', type: 'float32' }],
    bindings: { wave: { tensor: 'wave', audio: { rate: 16_000, context: 64 } } },
    states: [{ input: 'h', output: 'hn' }],
    model: {
      inputs: { wave: ['float32', ...shape], h: ['float32', 2, 'batch', 64] },
      outputs: { hn: ['float32', 2, 'batch', 64] },
    },
  })
  expect(states).toEqual([{ input: 'h', output: 'hn', type: 'float32', shape: [2, 1, 64] }])
  expect(sound).toMatchObject({ tensor: 'wave', window })
})

describe('what does not fit', () => {
  const x = (changes: Partial<InputParameter>): Case['inputs'] => [
    { name: 'x', type: 'float32', ...changes },
  ]
  const image = (changes: object): Case['bindings'] => ({
    x: { tensor: 'x', image: { ...layout, ...changes } },
  })

  const text = (changes: object): Case['bindings'] => ({
    x: { tensor: 'x', text: { tokenizer: 'tokenizer.json', most: 8, ...changes } },
  })

  test.each<[Case, string]>([
    [
      { inputs: x({ type: 'null' }), model: { inputs: { x: ['float32'] } } },
      'inputs.x: type null is not supported by ONNX models.',
    ],
    [
      { inputs: x({ type: 'dict' }), model: { inputs: { x: ['float32'] } } },
      'inputs.x: is a dict, so its binding must have `keys`.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ width: undefined }),
        model: { inputs: { x: ['float32', 1, 3, 2, 4] } },
      },
      'inputs.x: its layout has the shape [1, 3, 2, any], which x does not accept.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ padding: {} }),
        model: { inputs: { x: ['float32'] } },
      },
      "inputs.x: `padding` needs `fit: 'pad'`.",
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ fit: 'pad', padding: { value: [1, 2] } }),
        model: { inputs: { x: ['float32'] } },
      },
      'inputs.x: `padding.value` must have 1 or 3 numbers.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ multipleOf: 32 }),
        model: { inputs: { x: ['float32'] } },
      },
      'inputs.x: `multipleOf` is for sides that are not set, but both are.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ channels: 'rgba', resample: 'lanczos' }),
        model: { inputs: { x: ['float32'] } },
      },
      'inputs.x: `resample` is not possible with `rgba`.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ width: undefined, height: undefined }),
        model: { inputs: { x: ['float32', 1, 3, 'h', 4] } },
      },
      'inputs.x: its layout has the shape [1, 3, any, any], which x does not accept.',
    ],
    [
      {
        inputs: x({ type: 'string' }),
        bindings: text({}),
        model: { inputs: { x: ['float32', 1, 'length'] } },
      },
      "inputs.x: is declared string, but the model's x is float32.",
    ],
    [
      {
        inputs: x({ type: 'string' }),
        bindings: text({ mask: 'm' }),
        model: { inputs: { x: ['int64', 1, 'length'], m: ['float32', 1, 'length'] } },
      },
      'inputs.x: the model has no tensor m of type int64, the type of its tokens.',
    ],
    [
      {
        inputs: x({ type: 'string' }),
        bindings: text({}),
        model: { inputs: { x: ['int64', 1, 'length'] } },
      },
      'inputs.x: there is no tokenizer tokenizer.json.',
    ],
    [
      {
        inputs: x({ type: 'int32' }),
        bindings: { x: { tensor: 'x', audio: { rate: 8000 } } },
        model: { inputs: { x: ['int32', 1, 'n'] } },
      },
      'inputs.x: takes sound, so it must be float32 or float16 or float64 or int16.',
    ],
    [
      {
        inputs: x({}),
        bindings: { x: { tensor: 'x', audio: { rate: 8000, window: 5 } } },
        model: { inputs: { x: ['float32', 1, 8] } },
      },
      'inputs.x: takes 8 samples, not 5 of window and context.',
    ],
    [
      {
        inputs: x({}),
        outputs: [{ name: 'y', type: 'float32' }],
        states: [{ input: 'x', output: 'y' }],
        model: { inputs: { x: ['float32'] }, outputs: { y: ['float32'] } },
      },
      'states.x: has no shape. Set `shape` in its binding.',
    ],
    [
      {
        inputs: x({}),
        outputs: [{ name: 'y', type: 'int32' }],
        states: [{ input: 'x', output: 'y' }],
        model: { inputs: { x: ['float32', 1] }, outputs: { y: ['int32', 1] } },
      },
      'states.x: is float32, so the output y must be float32 without steps.',
    ],
    [
      { inputs: x({}), model: { inputs: { z: ['float32'] } } },
      'inputs.x: the model has no tensor x.',
    ],
    [
      {
        inputs: x({}),
        bindings: { x: { tensor: '__proto__' } },
        model: { inputs: { ['__proto__']: ['float32'] } },
      },
      'inputs.x: a tensor named __proto__ is not supported. Rename it.',
    ],
    [
      { inputs: x({}), model: { inputs: { x: ['int32'] } } },
      "inputs.x: is declared float32, but the model's x is int32.",
    ],
    [
      { inputs: x({ type: 'image' }), model: { inputs: { x: ['float32'] } } },
      'inputs.x: is an image, so its binding must have `image`.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ mean: [0, 0] }),
        model: { inputs: { x: ['float32'] } },
      },
      'inputs.x: `mean` must have 1 or 3 numbers.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({ std: [1] }),
        model: { inputs: { x: ['uint8'] } },
      },
      'inputs.x: the model takes raw bytes, so `std` is not allowed.',
    ],
    [
      {
        inputs: x({ type: 'image' }),
        bindings: image({}),
        model: { inputs: { x: ['float32', 1, 2, 4, 3] } },
      },
      'inputs.x: its layout has the shape [1, 3, 2, 4], which x does not accept.',
    ],
    [
      { inputs: x({ optional: true }), model: { inputs: { x: ['float32'] } } },
      'inputs.x: is optional and has no default value, but the model needs one.',
    ],
    [
      { inputs: x({ defaultValue: 'one' }), model: { inputs: { x: ['float32'] } } },
      'inputs.x: defaultValue: must be a float32, not a string.',
    ],
    [
      { inputs: x({}), model: { inputs: { x: ['float32'], z: ['float32'] } } },
      "inputs.z: the model's input must be bound to one parameter, not to 0.",
    ],
    [
      {
        inputs: [...x({}), ...x({ name: 'w' })],
        bindings: { w: { tensor: 'x' } },
        model: { inputs: { x: ['float32'] } },
      },
      "inputs.x: the model's input must be bound to one parameter, not to 2.",
    ],
    [
      { inputs: [], outputs: [{ name: 'y', type: 'float32' }], model: { inputs: {} } },
      'outputs.y: the model has no tensor y.',
    ],
    [
      {
        inputs: [],
        outputs: [{ name: 'y', type: 'image' }],
        model: { inputs: {}, outputs: { y: ['float32'] } },
      },
      'outputs.y: is an image, so its binding must have `image`.',
    ],
  ])('%#: %j', (given, why) => {
    let thrown: unknown
    try {
      bound(given)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(InoriginError)
    const who = 'The predictor @test/case cannot run:'
    const message = `${who} ${why} Its catalog entry must be corrected.`
    expect(thrown).toMatchObject({ kind: 'unavailable', code: 'predictor_unusable', message })
  })
})
