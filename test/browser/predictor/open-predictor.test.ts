/** Predictors over the real runtime: every type both ways, refusals, turns, cancelling, closing. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ImageLayout, PredictorEntry } from '../../../src/catalog/schema.ts'
import { IMAGE_CLASSES } from '../../../src/predictor/image.ts'
import { openPredictor, type OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { InputParameter, OutputParameter, ParameterType } from '../../../src/types/index.ts'
import { digitsEntry, openDigits } from './digits.ts'
import { drawnOne } from './draw.ts'
import { runtime } from './embedded.ts'
import { identityModel, type Pair } from './identity.ts'

const { signal } = new AbortController()

interface Echoed extends Pair {
  as?: ParameterType
  image?: ImageLayout
  /** The shape that the binding gives instead of the model's. */
  open?: (number | null)[]
  enumeration?: InputParameter['enumeration']
}

/** A predictor whose outputs are its inputs. */
function openEcho(pairs: readonly Echoed[]): Promise<OpenPredictor> {
  const parameters = pairs.map(({ name, type, as, enumeration }) => ({
    name,
    type: as ?? type,
    enumeration,
  }))
  const outputs: OutputParameter[] = parameters.map((parameter) => ({
    ...parameter,
    name: `${parameter.name}_out`,
  }))
  const bindings = Object.fromEntries(
    pairs.flatMap(({ name, image, open }) => [
      [name, { tensor: `${name}_in`, image, shape: open }],
      [`${name}_out`, { tensor: `${name}_out`, image }],
    ]),
  )
  const resource = {
    type: 'onnx',
    url: 'm',
    name: 'deep/m.onnx',
    bytes: 1,
    sha256: '0'.repeat(64),
  } as const
  const implementation = {
    id: 'echo',
    engine: 'onnx',
    device: 'wasm',
    resources: [resource],
    bindings,
  } as const
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@test/echo',
    name: 'Echo',
    created: '2026-01-01T00:00:00Z',
    signature: { inputs: parameters, outputs },
    implementations: [{ ...implementation, resources: [resource] }],
  }
  const files = new Map([['deep/m.onnx', identityModel(pairs)]])
  return openPredictor({
    entry,
    implementation: { ...implementation, resources: [resource] },
    files,
    device: 'wasm',
    runtime,
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
    const echo = await openEcho([
      { name: 'one', type, shape: [] },
      { name: 'many', type, shape: ['n', 2] },
    ])
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
    const echo = await openEcho([
      { name: 'bytes', type: 'uint8', as: 'binary', shape: ['n'] },
      { name: 'animal', type: 'int64', shape: [1], enumeration },
    ])
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
    const echo = await openEcho([{ name: 'picture', type, as: 'image', shape, image }])
    const colours = [
      [255, 0, 51],
      [0, 255, 102],
      [10, 20, 30],
      [255, 255, 255],
    ]
    const picture = new ImageData(
      new Uint8ClampedArray(colours.flatMap((colour) => [...colour, 255])),
      2,
      2,
    )
    const { outputs } = await echo.predict({ picture }, signal)
    const back = outputs['picture_out'] as ImageData
    expect(back).toBeInstanceOf(ImageData)
    expect([back.width, back.height]).toEqual([2, 2])
    expect(back.data).toEqual(picture.data)
    await echo.close()
  })
})

test("a shape that only the model knows to be wrong is the caller's fault", async () => {
  const echo = await openEcho([{ name: 'x', type: 'float32', shape: ['n', 2], open: [null, null] }])
  const given = { x: { data: [1, 2, 3], shape: [1, 3] } }
  await expect(echo.predict(given, signal)).rejects.toMatchObject({
    kind: 'invalid_request',
    param: 'inputs',
    message: expect.stringContaining('x_in'),
  })
  await echo.close()
})

describe('with the digits', () => {
  let digits: OpenPredictor
  beforeAll(async () => {
    digits = await openDigits('wasm')
  })
  afterAll(() => digits.close())

  test('every kind of image is the same image', async () => {
    const canvas = drawnOne()
    const pixels = canvas.getContext('2d')?.getImageData(0, 0, 64, 64)
    const bitmap = await createImageBitmap(canvas)
    const frame = new VideoFrame(canvas, { timestamp: 0 })
    const kinds = [pixels, bitmap, await canvas.convertToBlob({ type: 'image/png' }), frame]
    const { outputs } = await digits.predict({ image: canvas }, signal)
    expect(outputs['digit']).toBe('one')
    for (const image of kinds) {
      const other = (await digits.predict({ image }, signal)).outputs
      expect(other['digit']).toBe('one')
      expect(other['confidence']).toBeCloseTo(outputs['confidence'] as number, 2)
    }
    expect(bitmap.width, "a bitmap stays its owner's").toBe(64)
    frame.close()
  })

  test.each<[string, () => unknown, string]>([
    ['nothing', () => ({}), 'inputs.image: is required.'],
    [
      'a wrong type',
      () => ({ image: 5 }),
      `inputs.image: must be an image (${IMAGE_CLASSES.join(', ')}), not 5.`,
    ],
    [
      'an unknown name',
      () => ({ image: drawnOne(), pen: 1 }),
      'inputs.pen: unknown input. Expected: image, ink.',
    ],
    [
      'no member by name',
      () => ({ image: drawnOne(), ink: 'red' }),
      'inputs.ink: must be one of auto, dark, light, not "red".',
    ],
    [
      'no member by value',
      () => ({ image: drawnOne(), ink: 3 }),
      'inputs.ink: must be one of auto, dark, light, not 3.',
    ],
    [
      'a file that is no image',
      () => ({ image: new Blob(['text'], { type: 'text/plain' }) }),
      'inputs.image: this is not an image that can be read (text/plain). Send PNG, JPEG, GIF, WebP or BMP.',
    ],
  ])('%s is refused', async (_, inputs, message) => {
    await expect(digits.predict(inputs(), signal)).rejects.toMatchObject({
      kind: 'invalid_request',
      message,
    })
  })

  test('a bitmap that was closed is refused', async () => {
    const image = await createImageBitmap(drawnOne())
    image.close()
    const message = 'inputs.image: the image has no pixels; was it closed or transferred?'
    await expect(digits.predict({ image }, signal)).rejects.toMatchObject({
      kind: 'invalid_request',
      message,
    })
  })

  test('predictions asked for at once take turns, and a refused one holds up nobody', async () => {
    const image = drawnOne()
    const asked = [{ image }, { image: new Blob(['text']) }, { image, ink: 'dark' }]
    const results = await Promise.allSettled(asked.map((inputs) => digits.predict(inputs, signal)))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('giving up ends the wait at once, and the next prediction works', async () => {
    const image = drawnOne()
    const quitter = new AbortController()
    const running = digits.predict({ image }, signal)
    const given = digits.predict({ image }, quitter.signal)
    quitter.abort()
    await expect(given).rejects.toMatchObject({ kind: 'aborted' })
    await expect(digits.predict({ image }, quitter.signal)).rejects.toMatchObject({
      kind: 'aborted',
    })
    expect((await running).outputs['digit']).toBe('one')
    expect((await digits.predict({ image }, signal)).outputs['digit']).toBe('one')
  })

  test('a closed predictor says so, after it ended what it had begun', async () => {
    const own = await openDigits('wasm')
    const begun = own.predict({ image: drawnOne() }, signal)
    const closing = own.close()
    await expect(own.predict({ image: drawnOne() }, signal)).rejects.toMatchObject({
      kind: 'unavailable',
      message: '@inorigin/digits has been unloaded. Load it again.',
    })
    expect((await begun).outputs['digit']).toBe('one')
    await closing
    await own.close()
  })
})

describe('what cannot be opened', () => {
  const open = (files: Map<string, Blob>, aborted?: AbortSignal): Promise<OpenPredictor> => {
    const entry = digitsEntry()
    const implementation = entry.implementations.find(({ device }) => device === 'wasm')
    if (!implementation) throw new Error('No implementation for wasm.')
    return openPredictor({ entry, implementation, files, device: 'wasm', runtime }, aborted)
  }

  test('a missing file', async () => {
    await expect(open(new Map())).rejects.toMatchObject({
      kind: 'unavailable',
      param: 'resources.model.onnx',
    })
  })

  test('a file that is no model', async () => {
    const files = new Map([['model.onnx', new Blob(['not a model'])]])
    await expect(open(files)).rejects.toMatchObject({ kind: 'unavailable', code: 'model_unusable' })
  })

  test('a signature that the model does not have', async () => {
    const opened = openDigits('wasm', (entry) => {
      const outputs: OutputParameter[] = [{ name: 'digit', type: 'int64' }]
      return { ...entry, signature: { ...entry.signature, outputs } }
    })
    await expect(opened).rejects.toMatchObject({ kind: 'unavailable', param: 'outputs.digit' })
  })

  test('one that is no longer wanted', async () => {
    await expect(open(new Map(), AbortSignal.abort())).rejects.toMatchObject({ kind: 'aborted' })
  })
})
