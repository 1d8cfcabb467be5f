/** Predictors of small graphs over the real runtime: values of every type, batches, states, sound, masks and GPU checks. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Binding, ImageLayout } from '../../../src/catalog/schema.ts'
import type { GpuComparison } from '../../../src/device/gpu-verdict.ts'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import { toTransferable } from '../../../src/predictor/transferable-inputs.ts'
import type {
  Device,
  InputParameter,
  ParameterType,
  TensorValue,
} from '../../../src/types/index.ts'
import { convolution, noise, SIDE } from '../../models/wrong-conv.ts'
import { onnxFile, type Element, type Port } from '../../support/onnx.ts'
import { type GraphPredictor, openGraph, tagsOf } from './open.ts'

const { signal } = new AbortController()

interface Echoed {
  name: string
  type: Element
  shape: Port['shape']
  /** Type of the parameter, if it is not that of the tensor. */
  as?: ParameterType
  image?: ImageLayout
  /** Shape that the binding gives instead of the model's. */
  open?: (number | null)[]
  enumeration?: InputParameter['enumeration']
}

/** Opens a predictor whose outputs are its inputs. */
function openEcho(...tensors: Echoed[]): Promise<OpenPredictor> {
  const ports = (side: 'in' | 'out') =>
    tensors.map(({ name, type, shape }) => ({ name: `${name}_${side}`, type, shape }))
  const parameters = tensors.map(({ name, type, as, enumeration }) => ({
    name,
    type: as ?? (type as ParameterType),
    enumeration,
  }))
  const outputs = parameters.map((each) => ({ ...each, name: `${each.name}_out` }))
  return openGraph({
    model: onnxFile({
      inputs: ports('in'),
      outputs: ports('out'),
      nodes: tensors.map(({ name }) => ({
        type: 'Identity',
        inputs: [`${name}_in`],
        outputs: [`${name}_out`],
      })),
    }),
    signature: { inputs: parameters, outputs },
    bindings: Object.fromEntries(
      tensors.flatMap(({ name, image, open }) => [
        [name, { tensor: `${name}_in`, image, shape: open }],
        [`${name}_out`, { tensor: `${name}_out`, image }],
      ]),
    ),
  })
}

describe('values of every type', () => {
  test.each<[Echoed['type'], unknown, unknown, unknown[], unknown]>([
    ['float16', 0.5, 0.5, [0.5, -2], new Float32Array([0.5, -2])],
    ['float32', 0.5, 0.5, [0.5, -2], new Float32Array([0.5, -2])],
    ['float64', 0.1, 0.1, [0.1, -2], new Float64Array([0.1, -2])],
    ['int8', -3, -3, [1, -128], new Int8Array([1, -128])],
    ['int16', -3, -3, [1, -32768], new Int16Array([1, -32768])],
    ['int32', -3, -3, [1, -3], new Int32Array([1, -3])],
    ['int64', -3, -3n, [1, 2n ** 62n], new BigInt64Array([1n, 2n ** 62n])],
    ['uint8', 255, 255, [1, 2], new Uint8Array([1, 2])],
    ['uint16', 65535, 65535, [1, 2], new Uint16Array([1, 2])],
    ['uint32', 3, 3, [1, 4294967295], new Uint32Array([1, 4294967295])],
    ['uint64', 3, 3n, [1, 2n ** 63n], new BigUint64Array([1n, 2n ** 63n])],
    ['bool', true, true, [true, false], new Uint8Array([1, 0])],
    ['string', 'é', 'é', ['a', ''], ['a', '']],
  ])('%s', async (type, scalar, scalarBack, list, listBack) => {
    const echo = await openEcho(
      { name: 'one', type, shape: [] },
      { name: 'many', type, shape: ['n', 2] },
    )
    const { outputs } = await echo.predict(
      { one: scalar, many: { data: list, shape: [1, 2] } },
      signal,
    )
    expect(outputs).toEqual({ one_out: scalarBack, many_out: { data: listBack, shape: [1, 2] } })
    await echo.close()
  })

  test('bytes, and members of enumerations', async () => {
    const enumeration = [
      { name: 'cat', value: 4 },
      { name: 'dog', value: 5 },
    ]
    const echo = await openEcho(
      { name: 'bytes', type: 'uint8', as: 'binary', shape: ['n'] },
      { name: 'animal', type: 'int64', shape: [1], enumeration },
    )
    const { outputs } = await echo.predict({ bytes: new Blob(['ab']), animal: 'dog' }, signal)
    expect(outputs).toEqual({ bytes_out: new Uint8Array([97, 98]), animal_out: 'dog' })
    await echo.close()
  })

  test.each<[Echoed['type'], Partial<ImageLayout>]>([
    ['float32', { order: 'nchw', mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4] }],
    ['float16', { order: 'nhwc' }],
    ['uint8', { order: 'nhwc' }],
  ])('images as %s %j', async (type, form) => {
    const image: ImageLayout = { width: 2, height: 2, channels: 'rgb', order: 'nchw', ...form }
    const shape = image.order === 'nchw' ? [1, 3, 2, 2] : [1, 2, 2, 3]
    const echo = await openEcho({ name: 'picture', type, as: 'image', shape, image })
    const colours = [
      [255, 0, 51],
      [0, 255, 102],
      [10, 20, 30],
      [255, 255, 255],
    ]
    const bytes = new Uint8ClampedArray(colours.flatMap((colour) => [...colour, 255]))
    const picture = new ImageData(bytes, 2, 2)
    const { outputs } = await echo.predict({ picture }, signal)
    const back = outputs['picture_out'] as ImageData
    expect(back).toBeInstanceOf(ImageData)
    expect([back.width, back.height]).toEqual([2, 2])
    expect(back.data).toEqual(picture.data)
    await echo.close()
  })
})

test('a shape that only the model knows to be wrong is an error of the caller', async () => {
  const echo = await openEcho({ name: 'x', type: 'float32', shape: ['n', 2], open: [null, null] })
  const given = { x: { data: [1, 2, 3], shape: [1, 3] } }
  await expect(echo.predict(given, signal)).rejects.toMatchObject({
    kind: 'invalid_request',
    param: 'inputs',
    message: expect.stringContaining('x_in'),
  })
  await echo.close()
})

test('outputs that the signature does not declare are not computed', async () => {
  const vector = { type: 'float32', shape: [4] } as const
  const predictWith = async (...outputs: string[]) => {
    const predictor = await openGraph({
      model: onnxFile({
        inputs: [{ name: 'x', ...vector }],
        // `side` has the shape that the positions of numbers in `x` make up, and never fits.
        outputs: [
          { name: 'y', ...vector },
          { name: 'side', type: 'float32', shape: ['n', 'm', 'o', 'p'] },
        ],
        nodes: [
          { type: 'Neg', inputs: ['x'], outputs: ['y'] },
          { type: 'NonZero', inputs: ['x'], outputs: ['positions'] },
          { type: 'Squeeze', inputs: ['positions', 'axis'], outputs: ['shape'] },
          { type: 'Reshape', inputs: ['x', 'shape'], outputs: ['side'] },
        ],
        weights: [{ name: 'axis', type: 'int64', shape: [1], data: new Uint8Array(8) }],
      }),
      signature: {
        inputs: [{ name: 'x', type: 'float32' }],
        outputs: outputs.map((name) => ({ name, type: 'float32' })),
      },
    })
    const result = predictor.predict({ x: Float32Array.of(1, 2, 3, 4) }, signal)
    return result.finally(() => predictor.close())
  }
  await expect(predictWith('y', 'side')).rejects.toThrow(/reshape/i)
  expect((await predictWith('y')).outputs).toEqual({
    y: { data: Float32Array.of(-1, -2, -3, -4), shape: [4] },
  })
})

/** Returns an image of one gray. */
function gray(level: number, width = 4, height = 2): ImageData {
  const data = new Uint8ClampedArray(width * height * 4).fill(level)
  for (let at = 3; at < data.length; at += 4) data[at] = 255
  return new ImageData(data, width, height)
}

/** Opens a predictor of a graph that `test/models/values.py` writes. */
async function openValues(name: string, rest: Omit<GraphPredictor, 'model'>) {
  const response = await fetch(`/test/models/values/${name}.onnx`)
  return openGraph({ model: await response.blob(), ...rest })
}

describe('a batch of images', () => {
  const image: ImageLayout = { width: 4, height: 2, channels: 'rgb', order: 'nchw' }
  let batch: OpenPredictor
  let pairs: OpenPredictor
  const signature = {
    inputs: [{ name: 'pictures', type: 'image' as const }],
    outputs: [
      { name: 'negatives', type: 'image' as const },
      { name: 'brightness', type: 'float32' as const },
    ],
  }
  const bindings = (count: number | null) => ({
    pictures: { tensor: 'pictures', image, shape: [count, 3, 2, 4] },
    negatives: { tensor: 'negatives', image },
  })

  beforeAll(async () => {
    batch = await openValues('batch', { signature, bindings: bindings(null) })
    pairs = await openValues('batch', { signature, bindings: bindings(2) })
  })
  afterAll(() => Promise.all([batch.close(), pairs.close()]))

  const levelsOf = (images: unknown): number[] =>
    (images as ImageData[]).map(({ data }) => data[0] ?? NaN)

  test('keeps its order', async () => {
    const pictures = [gray(0), await createImageBitmap(gray(51)), gray(255, 8, 4)]
    const { outputs } = await batch.predict({ pictures }, signal)
    expect(levelsOf(outputs['negatives'])).toEqual([255, 204, 0])
    const { data, shape } = outputs['brightness'] as { data: Float32Array; shape: number[] }
    expect(shape).toEqual([3])
    expect([...data].map((value) => Math.round(value * 255))).toEqual([0, 51, 255])
  })

  test('of one is the same as one image', async () => {
    const alone = await batch.predict({ pictures: gray(51) }, signal)
    const { outputs } = await batch.predict({ pictures: [gray(51)] }, signal)
    expect(outputs).toEqual(alone.outputs)
    expect(levelsOf([outputs['negatives']])).toEqual([204])
    expect(outputs['brightness']).toBeCloseTo(0.2)
  })

  test('lies on the background of its layout where it is transparent, whatever its size', async () => {
    const [ready, larger] = [gray(255), gray(255, 8, 4)]
    for (const { data } of [ready, larger]) {
      for (let alpha = data.length / 2 + 3; alpha < data.length; alpha += 4) data[alpha] = 0
    }
    const { outputs } = await batch.predict({ pictures: [ready, larger] }, signal)
    const rows = (outputs['negatives'] as ImageData[]).map(({ data }) => [
      data[0],
      data[4 * 4 * 2 - 4],
    ])
    expect(rows).toEqual([
      [0, 255],
      [0, 255],
    ])
  })

  test.each<[string, () => unknown, string]>([
    ['none', () => [], 'inputs.pictures: must be at least 1 at a time for this model, not 0.'],
    ['no image', () => [gray(1), 5], 'inputs.pictures[1]: must be an image'],
  ])('%s is refused', async (_, pictures, message) => {
    const refused = batch.predict({ pictures: pictures() }, signal)
    await expect(refused).rejects.toMatchObject({
      kind: 'invalid_request',
      message: expect.stringContaining(message),
    })
  })

  test('is of as many as the model takes', async () => {
    await expect(pairs.predict({ pictures: gray(1) }, signal)).rejects.toMatchObject({
      message: 'inputs.pictures: must be 2 at a time for this model, not 1.',
    })
    const { outputs } = await pairs.predict({ pictures: [gray(0), gray(255)] }, signal)
    expect(levelsOf(outputs['negatives'])).toEqual([255, 0])
  })
})

describe('a type without values in JavaScript is an error of the entry', () => {
  test.each<[string, ParameterType, string]>([
    ['bfloat16', 'float32', "the model's x is bfloat16, which the runtime does not"],
    ['int4', 'float32', "the model's x is int4, which the runtime does not"],
    ['complex64', 'float32', "the model's x is complex64, which the runtime does not"],
    ['sequence', 'list', "the model's x is not a tensor"],
  ])('%s', async (name, type, message) => {
    const signature = { inputs: [{ name: 'x', type }], outputs: [] }
    await expect(openValues(name, { signature })).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'predictor_unusable',
      param: 'inputs.x',
      message: expect.stringContaining(message),
    })
  })
})

/** A model that adds the sum of a window to its state, as a voice detector would. */
const SUMMING: GraphPredictor = {
  model: onnxFile({
    inputs: [
      { name: 'x', type: 'float32', shape: [1, 'n'] },
      { name: 'h', type: 'float32', shape: ['batch', 1] },
    ],
    outputs: [
      { name: 'y', type: 'float32', shape: [1, 1] },
      { name: 'hn', type: 'float32', shape: [1, 1] },
    ],
    nodes: [
      { type: 'ReduceSum', inputs: ['x'], outputs: ['s'], attributes: { keepdims: 1 } },
      { type: 'Add', inputs: ['s', 'h'], outputs: ['hn'] },
      { type: 'Identity', inputs: ['hn'], outputs: ['y'] },
    ],
  }),
  signature: {
    inputs: [
      { name: 'x', type: 'float32' },
      { name: 'h', type: 'float32' },
    ],
    outputs: [
      { name: 'y', type: 'float32' },
      { name: 'hn', type: 'float32' },
    ],
  },
  states: [{ input: 'h', output: 'hn' }],
}

const listening = (window?: number): GraphPredictor => ({
  ...SUMMING,
  bindings: { x: { tensor: 'x', audio: { rate: 8000, window } } },
})

describe('a state', () => {
  test('begins with zeros, is carried by a session, and travels as a tensor without one', async () => {
    const model = await openGraph(SUMMING)
    const first = await model.predictNext({ x: [1, 2] }, null, signal)
    expect(first.outputs).toEqual({ y: { data: Float32Array.of(3), shape: [1, 1] } })
    const second = await model.predictNext(
      { x: [4] },
      structuredClone(first.state as never),
      signal,
    )
    expect(second.outputs).toEqual({ y: { data: Float32Array.of(7), shape: [1, 1] } })
    const { outputs } = await model.predict({ x: [1] }, signal)
    expect(outputs['hn']).toEqual({ data: Float32Array.of(1), shape: [1, 1] })
    const next = await model.predict({ x: [1], h: outputs['hn'] }, signal)
    expect(next.outputs['y']).toEqual({ data: Float32Array.of(2), shape: [1, 1] })
    await model.close()
  })

  test('of an unknown output is refused', async () => {
    const wrong = { ...SUMMING, states: [{ input: 'h', output: 'z' }] }
    await expect(openGraph(wrong)).rejects.toMatchObject({
      code: 'predictor_unusable',
      param: 'states.h',
      message: expect.stringContaining('there is no output z'),
    })
  })
})

describe('sound', () => {
  test('of a whole clip has an output for each window, and the last state', async () => {
    const model = await openGraph(listening(2))
    const { outputs } = await model.predict({ x: Float32Array.of(1, 1, 1, 1, 1) }, signal)
    expect(outputs).toEqual({
      y: { data: Float32Array.of(2, 4, 5), shape: [3, 1, 1] },
      hn: { data: Float32Array.of(5), shape: [1, 1] },
    })
    await model.close()
  })

  for (const used of ['wasm', 'webgpu'] as const) {
    const options = { tags: tagsOf(used), timeout: 300_000 }
    test(`of a stream fills windows over several calls on ${used}`, options, async () => {
      const model = await openGraph({ ...listening(2), device: used })
      const first = await model.predictNext({ x: Float32Array.of(1) }, null, signal)
      expect(first.outputs['y']).toMatchObject({ data: new Float32Array(0) })
      const chunk = { x: Float32Array.of(1, 1, 1, 1) }
      const second = await model.predictNext(chunk, first.state as never, signal)
      expect(second.outputs['y']).toEqual({ data: Float32Array.of(2, 4), shape: [2, 1, 1] })
      // The fifth sample of the first two calls fills a window with this one.
      const third = await model.predictNext(
        { x: Float32Array.of(0.5) },
        structuredClone(second.state as never),
        signal,
      )
      expect(third.outputs['y']).toEqual({ data: Float32Array.of(5.5), shape: [1, 1, 1] })
      expect(third.device).toBe(used)
      await model.close()
    })
  }

  test('of an AudioBuffer is mixed and converted', async () => {
    const buffer = new AudioBuffer({ length: 4800, numberOfChannels: 2, sampleRate: 48_000 })
    buffer.getChannelData(0).fill(0.5)
    const plain = await toTransferable({ x: buffer })
    expect(plain['x']).toEqual({ data: new Float32Array(4800).fill(0.25), sampleRate: 48_000 })
    const model = await openGraph(listening())
    const { outputs } = await model.predict(structuredClone(plain), signal)
    const { data } = outputs['y'] as { data: Float32Array }
    // 800 samples of 0.25 at 8 kHz.
    expect(data[0]).toBeCloseTo(200, 0)
    await model.close()
  })

  test('of AudioData is read, and it stays open', async () => {
    const data = Float32Array.of(1, 2, 3, 4)
    const audio = new AudioData({
      format: 'f32-planar',
      sampleRate: 8000,
      numberOfFrames: 4,
      numberOfChannels: 1,
      timestamp: 0,
      data,
    })
    const model = await openGraph(listening())
    const { outputs } = await model.predict({ x: audio }, signal)
    expect(outputs['y']).toEqual({ data: Float32Array.of(10), shape: [1, 1] })
    expect(audio.format).toBe('f32-planar')
    audio.close()
    await expect(model.predict({ x: audio }, signal)).rejects.toThrow('was closed')
    await model.close()
  })
})

test('a batch of images with a fixed height is padded to the widest', async () => {
  const image: ImageLayout = {
    height: 2,
    channels: 'bgr',
    order: 'nhwc',
    scale: 1,
    fit: 'pad',
    resample: 'bilinear',
    padding: { value: [9] },
  }
  const port = { type: 'float32', shape: ['n', 2, 'w', 3] } as const
  const model = await openGraph({
    model: onnxFile({
      inputs: [{ name: 'x', ...port }],
      outputs: [{ name: 'y', ...port }],
      nodes: [{ type: 'Identity', inputs: ['x'], outputs: ['y'] }],
    }),
    signature: {
      inputs: [{ name: 'x', type: 'image' }],
      outputs: [{ name: 'y', type: 'float32' }],
    },
    bindings: { x: { tensor: 'x', image } },
  })
  const filled = (width: number, height: number): ImageData => {
    const pixels = new ImageData(width, height)
    for (let at = 0; at < pixels.data.length; at += 4) pixels.data.set([1, 2, 3, 255], at)
    return pixels
  }
  const { outputs } = await model.predict({ x: [filled(4, 4), filled(3, 2)] }, signal)
  const [pixel, padding] = [
    [3, 2, 1],
    [9, 9, 9],
  ]
  const narrow = [pixel, pixel, padding, pixel, pixel, padding].flat()
  const wide = Array.from({ length: 6 }, () => pixel).flat()
  const { data, shape } = outputs['y'] as { data: Float32Array; shape: number[] }
  expect(shape).toEqual([2, 2, 3, 3])
  expect([...data].map(Math.round)).toEqual([...narrow, ...wide])
  await model.close()
})

test('a mask is an image', async () => {
  const port = { type: 'float32', shape: [1, 1, 1, 3] } as const
  const model = await openGraph({
    model: onnxFile({
      inputs: [{ name: 'x', ...port }],
      outputs: [{ name: 'y', ...port }],
      nodes: [{ type: 'Sigmoid', inputs: ['x'], outputs: ['y'] }],
    }),
    signature: {
      inputs: [{ name: 'x', type: 'float32' }],
      outputs: [{ name: 'y', type: 'image' }],
    },
    bindings: { y: { tensor: 'y', steps: [{ step: 'mask', threshold: 0.5 }] } },
  })
  const { outputs } = await model.predict({ x: [-1, 0, 1] }, signal)
  const mask = outputs['y'] as ImageData
  expect([mask.width, mask.height]).toEqual([3, 1])
  expect([...mask.data]).toEqual([0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255])
  await model.close()
})

describe('An image of its own size', () => {
  /** Two columns: the left one is red, and the right one blue. */
  const picture = (): ImageData => {
    const image = new ImageData(4, 2)
    for (let pixel = 0; pixel < 8; pixel++)
      image.data.set(pixel % 4 < 2 ? [255, 0, 0, 255] : [0, 0, 127, 255], pixel * 4)
    return image
  }
  const LAYOUT = { width: 2, height: 1, channels: 'rgb', order: 'nchw', resample: 'box' } as const

  /** Opens a graph that returns the pixels of the image, or the sum of each one's channels. */
  const openPicture = (steps: NonNullable<Binding['steps']>, type: ParameterType, isSum = false) =>
    openGraph({
      model: onnxFile({
        inputs: [
          { name: 'x', type: 'float32', shape: [1, 3, 1, 2] },
          { name: 'mask', type: 'int64', shape: [1, 'h', 'w'] },
        ],
        outputs: [
          { name: 'y', type: 'float32', shape: [1, isSum ? 1 : 3, 1, 2] },
          { name: 'classes', type: 'float32', shape: [1, 3, 3] },
        ],
        nodes: [
          { type: 'Cast', inputs: ['mask'], outputs: ['ones'], attributes: { to: 1 } },
          { type: 'Mul', inputs: ['x', 'ones'], outputs: ['kept'] },
          isSum
            ? { type: 'ReduceSum', inputs: ['kept', 'axes'], outputs: ['y'] }
            : { type: 'Identity', inputs: ['kept'], outputs: ['y'] },
        ],
        weights: [
          { name: 'axes', type: 'int64', shape: [1], data: { integers: [1] } },
          {
            name: 'classes',
            type: 'float32',
            shape: [1, 3, 3],
            data: new Uint8Array(Float32Array.of(0.95, 0.05, 0, 0.1, 0.9, 0, 0.08, 0.92, 0).buffer),
          },
        ],
      }),
      signature: { inputs: [{ name: 'x', type: 'image' }], outputs: [{ name: 'y', type }] },
      bindings: {
        x: { tensor: 'x', image: { ...LAYOUT, mask: 'mask' } },
        y: { tensor: steps[0]?.step === 'panoptic' ? 'classes' : 'y', steps },
      },
    })
  const LEFT = [255, 255, 0, 0, 255, 255, 0, 0]
  const grays = ({ data }: ImageData): number[] => [...data].filter((_, at) => at % 4 === 0)
  const names = { names: ['red', 'green', 'blue'] }

  test('has the parts whose class is the best, with masks of its size', async () => {
    const model = await openPicture([{ step: 'segments', labels: names }], 'list')
    const { outputs } = await model.predict({ x: picture() }, signal)
    const [left, right] = outputs['y'] as { label: string; index: number; mask: ImageData }[]
    expect([left?.label, left?.index, right?.label, right?.index]).toEqual(['red', 0, 'blue', 2])
    expect([left?.mask.width, left?.mask.height]).toEqual([4, 2])
    expect(grays(left?.mask as ImageData)).toEqual(LEFT)
    await model.close()
  })

  test('has the parts of masks that are no background and left by others', async () => {
    const labels = { names: ['sky', 'sea'] }
    const model = await openPicture([{ step: 'panoptic', masks: 'y', labels }], 'list')
    const { outputs } = await model.predict({ x: picture() }, signal)
    // The mask of blue has a higher score outside of red.
    const parts = outputs['y'] as { label: string; score: number; mask: ImageData }[]
    expect(parts.map(({ label, score }) => [label, score])).toEqual([
      ['sky', expect.closeTo(0.95, 5)],
      ['sea', expect.closeTo(0.92, 5)],
    ])
    expect(grays(parts[0]?.mask as ImageData)).toEqual(LEFT)
    await model.close()
  })

  test('has a depth between black and white', async () => {
    const steps = [{ step: 'resize', by: 'bilinear' }, { step: 'depth' }] as const
    const model = await openPicture([...steps], 'image', true)
    const { outputs } = await model.predict({ x: picture() }, signal)
    expect(grays(outputs['y'] as ImageData)).toEqual([255, 191, 63, 0, 255, 191, 63, 0])
    await model.close()
  })

  test('is cut out with its own pixels', async () => {
    const steps = [{ step: 'resize', by: 'bilinear' }, { step: 'cutout' }] as const
    const model = await openPicture([...steps], 'image', true)
    const { outputs } = await model.predict({ x: picture() }, signal)
    const expected = picture()
    for (let pixel = 0; pixel < 8; pixel++)
      expected.data[pixel * 4 + 3] = [255, 223, 159, 127][pixel % 4] ?? 0
    expect([...(outputs['y'] as ImageData).data]).toEqual([...expected.data])
    await model.close()
  })
})

/** Opens a convolution, with what its check concludes. */
async function openConvolution(channels: 8 | 9, device: Device = 'webgpu') {
  const comparisons: GpuComparison[] = []
  const signature = {
    inputs: [{ name: 'x', type: 'float32' as const }],
    outputs: [
      { name: 'y', type: 'float32' as const },
      { name: 'best', type: 'int64' as const },
    ],
  }
  const predictor = await openGraph(
    { model: convolution(channels), signature, device },
    (comparison) => comparisons.push(comparison),
  )
  const run = async (data: Float32Array) => {
    const shape = [1, channels, SIDE, SIDE]
    const { outputs, device: used } = await predictor.predict({ x: { data, shape } }, signal)
    const { data: numbers } = outputs['y'] as TensorValue
    return { used, largest: Math.max(...(numbers as Float32Array)) }
  }
  return { run, comparisons, close: () => predictor.close() }
}

describe('on a GPU', { tags: tagsOf('webgpu'), timeout: 300_000 }, () => {
  test('a kernel that computes wrong numbers answers no caller', async () => {
    const { run, comparisons, close } = await openConvolution(9)
    const expected = { code: 'gpu_untrusted', details: { comparison: { agrees: false } } }
    await expect(run(noise(9, 2))).rejects.toMatchObject(expected)
    await expect(run(noise(9, 3))).rejects.toMatchObject(expected)
    expect(comparisons).toEqual([
      {
        agrees: false,
        why: expect.stringMatching(/^y\[\d+\] is \S+ on the GPU and \S+ on the CPU$/),
      },
    ])
    await close()
  })

  test('silence, on which a wrong kernel is right, is no evidence', async () => {
    const { run, comparisons, close } = await openConvolution(9)
    const silence = noise(9, 2).fill(0)
    for (let count = 0; count < 4; count += 1) expect((await run(silence)).largest).toBe(0)
    expect(comparisons).toEqual([])
    await expect(run(noise(9, 2))).rejects.toMatchObject({ code: 'gpu_untrusted' })
    await close()
  })

  test('a right kernel is trusted after two inputs that differ from each other', async () => {
    const { run, comparisons, close } = await openConvolution(8)
    const onCpu = await openConvolution(8, 'wasm')
    const first = noise(8, 2)
    const { largest } = await onCpu.run(first)
    await onCpu.close()
    for (const used of [await run(first), await run(first)]) {
      expect(used.used).toBe('webgpu')
      expect(used.largest).toBeCloseTo(largest, 3)
    }
    expect(comparisons).toEqual([])
    await run(noise(8, 3))
    expect(comparisons).toEqual([{ agrees: true, why: expect.stringContaining('first inputs') }])
    expect((await run(noise(8, 4))).used).toBe('webgpu')
    await close()
  })
})
