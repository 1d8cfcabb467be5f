/** The digits model, from what is drawn on a canvas to the name of a digit, on both devices. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { PredictionResult } from '../../../src/types/index.ts'
import { hasHalves } from '../halves.ts'
import fixtures from './digits.json'
import { entryOf, openEmbedded } from './open.ts'

const NAMES = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']
const { signal } = new AbortController()

interface Drawing {
  digit: number
  canvas: OffscreenCanvas
}

interface Look {
  /** Edges of the canvas in pixels. */
  side: number
  /** Where the digit's box begins, and its edges, in shares of the side. */
  box: [x: number, y: number, width: number, height: number]
  /** Width of the pen in shares of the side. */
  pen: number
  ink?: string
  paper?: string
}

/** Black on white, in the middle. */
const plain: Look = { side: 280, box: [0.25, 0.2, 0.45, 0.6], pen: 0.045 }

function sheet({
  side,
  ink = 'black',
  paper = 'white',
}: Look): [OffscreenCanvas, OffscreenCanvasRenderingContext2D] {
  const canvas = new OffscreenCanvas(side, side)
  const context = canvas.getContext('2d')
  if (!context) throw new Error('No canvas.')
  context.fillStyle = paper
  context.fillRect(0, 0, side, side)
  context.strokeStyle = ink
  return [canvas, context]
}

/** Draws twenty digits, each in two ways of writing, as a person with a mouse would. No drawing was seen in training. */
function strokes(look: Look): Drawing[] {
  const [left, top, width, height] = look.box
  return fixtures.strokes.map((written) => {
    const [canvas, context] = sheet(look)
    context.lineWidth = look.pen * look.side
    context.lineCap = context.lineJoin = 'round'
    for (const path of written.strokes) {
      context.beginPath()
      for (const [x = 0, y = 0] of path) {
        context.lineTo(
          Math.round((left + x * width) * look.side),
          Math.round((top + y * height) * look.side),
        )
      }
      context.stroke()
    }
    return { digit: written.digit, canvas }
  })
}

/** Draws forty images of 8 x 8 grays by people, enlarged. */
function images(look: Look): Drawing[] {
  const [left, top, width, height] = look.box.map((share) => share * look.side) as Look['box']
  return fixtures.images.map(({ digit, rows }) => {
    const [canvas, context] = sheet(look)
    const small = new ImageData(8, 8)
    rows.flat().forEach((dark, pixel) => {
      small.data.fill(Math.round(255 * (1 - dark / 16)), pixel * 4, pixel * 4 + 3)
      small.data[pixel * 4 + 3] = 255
    })
    const source = new OffscreenCanvas(8, 8)
    source.getContext('2d')?.putImageData(small, 0, 0)
    context.imageSmoothingQuality = 'high'
    context.drawImage(source, left, top, width, height)
    return { digit, canvas }
  })
}

/** Draws a black bar on white, as in a one, on 64 x 64 pixels. */
function drawOne(): OffscreenCanvas {
  const [canvas, context] = sheet({ ...plain, side: 64 })
  context.fillStyle = 'black'
  context.fillRect(30, 8, 5, 48)
  return canvas
}

let wasm: OpenPredictor
beforeAll(async () => {
  wasm = await openEmbedded('digits', 'fp32-wasm')
})
afterAll(() => wasm.close())

afterEach(() => {
  vi.restoreAllMocks()
})

function scores({ outputs }: PredictionResult): Float32Array {
  return (outputs['scores'] as { data: Float32Array }).data
}

/** Resolves with the number of drawings that are read right. */
async function countRight(drawings: Drawing[], ink?: string): Promise<number> {
  let count = 0
  for (const { digit, canvas } of drawings) {
    const { outputs } = await wasm.predict({ image: canvas, ink }, signal)
    if (outputs['digit'] === NAMES[digit]) count++
  }
  return count
}

test('a result has the outputs of the signature', async () => {
  const [drawing] = strokes(plain)
  const result = await wasm.predict({ image: drawing?.canvas }, signal)
  expect(Object.keys(result.outputs)).toEqual(
    entryOf('digits').signature.outputs.map(({ name }) => name),
  )
  expect(result).toMatchObject({
    tag: '@inorigin/digits',
    device: 'wasm',
    outputs: { digit: 'zero', scores: { shape: [10] } },
  })
  expect(scores(result)).toBeInstanceOf(Float32Array)
  expect(scores(result).reduce((sum, score) => sum + score)).toBeCloseTo(1, 5)
  expect(result.outputs['confidence']).toBe(Math.max(...scores(result)))
  expect(result.latency).toBeGreaterThan(0)
})

describe('reads', () => {
  test('images that people drew', async () => {
    expect(
      await countRight(images({ ...plain, box: [0.2, 0.2, 0.6, 0.6] })),
    ).toBeGreaterThanOrEqual(38)
  })

  test.each([
    ['in the middle', plain],
    ['small, in a corner', { ...plain, side: 400, box: [0.05, 0.62, 0.2, 0.3], pen: 0.02 }],
    ['large, with a thick pen', { ...plain, side: 200, box: [0.15, 0.08, 0.65, 0.84], pen: 0.09 }],
    ['with a thin pen', { ...plain, side: 600, pen: 0.012 }],
    ['blue on yellow', { ...plain, ink: 'navy', paper: 'lightyellow' }],
    ['white on black', { ...plain, ink: 'white', paper: 'black' }],
  ] as const)('what a mouse wrote, %s', async (_, look) => {
    expect(await countRight(strokes({ ...look, box: [...look.box] }))).toBeGreaterThanOrEqual(19)
  })

  test('light ink on paper that looks light, when told so', async () => {
    const drawings = strokes({ ...plain, ink: 'white', paper: '#999' })
    expect(await countRight(drawings)).toBeLessThan(10)
    expect(await countRight(drawings, 'light')).toBeGreaterThanOrEqual(19)
  })

  test('an empty page as anything, with little confidence', async () => {
    const blank = new OffscreenCanvas(100, 100)
    const result = await wasm.predict({ image: blank }, signal)
    expect(result.outputs['confidence']).toBeLessThan(0.5)
  })
})

test('a hundred runs on WASM dispose their tensors and grow no memory', async () => {
  const { Tensor } = await import('onnxruntime-web/wasm')
  const [drawing] = strokes(plain)
  const predict = () => wasm.predict({ image: drawing?.canvas }, signal)
  for (let count = 0; count < 10; count++) await predict()
  const dispose = vi.spyOn(Tensor.prototype, 'dispose')
  const grow = vi.spyOn(WebAssembly.Memory.prototype, 'grow')
  for (let count = 0; count < 100; count++) await predict()
  // Inputs and outputs are five.
  expect(dispose).toHaveBeenCalledTimes(100 * 5)
  expect(grow).not.toHaveBeenCalled()
})

test(
  'both devices give the same numbers, and no GPU buffers pile up',
  { tags: ['slow'] },
  async () => {
    const webgpu = await openEmbedded('digits', 'fp32-webgpu')
    const drawings = [...strokes(plain).slice(4, 10), ...images(plain).slice(0, 6)]
    const created = vi.spyOn(GPUDevice.prototype, 'createBuffer')
    const destroyed = vi.spyOn(GPUBuffer.prototype, 'destroy')
    const left: number[] = []
    for (const { canvas } of drawings) {
      const [one, other] = await Promise.all([
        wasm.predict({ image: canvas }, signal),
        webgpu.predict({ image: canvas }, signal),
      ])
      expect(other.device).toBe('webgpu')
      expect(other.outputs['digit']).toBe(one.outputs['digit'])
      scores(one).forEach((score, digit) => {
        expect(Math.abs((scores(other)[digit] ?? NaN) - score)).toBeLessThan(1e-4)
      })
      left.push(created.mock.calls.length - destroyed.mock.calls.length)
    }
    // Those that are kept for other runs are there after the third.
    expect((left.at(-1) ?? NaN) - (left[2] ?? NaN)).toBeLessThan(6)
    await webgpu.close()
  },
)

test('every kind of image is the same image', async () => {
  const canvas = drawOne()
  const pixels = canvas.getContext('2d')?.getImageData(0, 0, 64, 64)
  const bitmap = await createImageBitmap(canvas)
  const frame = new VideoFrame(canvas, { timestamp: 0 })
  const files = ['image/png', 'image/jpeg', 'image/webp'].map(async (type) => {
    const file = await canvas.convertToBlob({ type, quality: 1 })
    expect(file.type).toBe(type)
    return file
  })
  const kinds = [pixels, bitmap, frame, ...(await Promise.all(files))]
  const { outputs } = await wasm.predict({ image: canvas }, signal)
  expect(outputs['digit']).toBe('one')
  for (const image of kinds) {
    const other = (await wasm.predict({ image }, signal)).outputs
    expect(other['digit']).toBe('one')
    expect(other['confidence']).toBeCloseTo(outputs['confidence'] as number, 2)
  }
  // A bitmap stays its owner's.
  expect(bitmap.width).toBe(64)
  frame.close()
})

test('predictions at once take turns, and a rejected one blocks no other', async () => {
  const image = drawOne()
  const inputs = [{ image }, { image: new Blob(['text']) }, { image, ink: 'dark' }]
  const results = await Promise.allSettled(inputs.map((each) => wasm.predict(each, signal)))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('an abort ends the wait at once, and the next prediction works', async () => {
  const image = drawOne()
  const canceling = new AbortController()
  const running = wasm.predict({ image }, signal)
  const canceled = wasm.predict({ image }, canceling.signal)
  canceling.abort()
  await expect(canceled).rejects.toMatchObject({ kind: 'aborted' })
  await expect(wasm.predict({ image }, canceling.signal)).rejects.toMatchObject({
    kind: 'aborted',
  })
  expect((await running).outputs['digit']).toBe('one')
  expect((await wasm.predict({ image }, signal)).outputs['digit']).toBe('one')
})

test('a closed predictor says so, after it ended what it had begun', async () => {
  const own = await openEmbedded('digits', 'fp32-wasm')
  const begun = own.predict({ image: drawOne() }, signal)
  const closing = own.close()
  await expect(own.predict({ image: drawOne() }, signal)).rejects.toMatchObject({
    kind: 'unavailable',
    message: '@inorigin/digits has been unloaded. Load it again.',
  })
  expect((await begun).outputs['digit']).toBe('one')
  await closing
  await own.close()
})

test.each<[string, () => unknown, string]>([
  [
    'a file that is no image',
    () => new Blob(['text'], { type: 'text/plain' }),
    'inputs.image: this is not an image that can be read (text/plain). Send PNG, JPEG, GIF, WebP or BMP.',
  ],
  [
    'a bitmap that was closed',
    async () => {
      const image = await createImageBitmap(drawOne())
      image.close()
      return image
    },
    'inputs.image: the image has no pixels; was it closed or transferred?',
  ],
  [
    'a file whose header has gigabytes of pixels',
    async () => {
      const header = new DataView(await (await drawOne().convertToBlob()).arrayBuffer())
      header.setUint32(16, 30_000)
      header.setUint32(20, 23_000)
      return new Blob([header])
    },
    'inputs.image: the image has 30000 x 23000 pixels. Scale it down to at most 67108864.',
  ],
])('%s is rejected', async (_, createImage, message) => {
  const image = await createImage()
  await expect(wasm.predict({ image }, signal)).rejects.toMatchObject({
    kind: 'invalid_request',
    message,
  })
})

describe('a predictor cannot be opened with', () => {
  const withoutDigit = (entry: PredictorEntry): PredictorEntry => ({
    ...entry,
    signature: { ...entry.signature, outputs: [{ name: 'digit', type: 'int64' }] },
  })
  test.each<[string, Parameters<typeof openEmbedded>[2], object]>([
    ['a missing file', { files: new Map() }, { param: 'resources.model.onnx' }],
    [
      'a file that is no model',
      { files: new Map([['model.onnx', new Blob(['not a model'])]]) },
      { code: 'model_unusable' },
    ],
    [
      'a signature that the model does not have',
      { change: withoutDigit },
      { param: 'outputs.digit' },
    ],
    ['an aborted signal', { signal: AbortSignal.abort() }, { kind: 'aborted' }],
  ])('%s', async (_, opening, error) => {
    const opened = openEmbedded('digits', 'fp32-wasm', opening)
    await expect(opened).rejects.toMatchObject({ kind: 'unavailable', ...error })
  })
})

const devices = hasHalves ? (['wasm', 'webgpu'] as const) : (['wasm'] as const)
test.each(devices)('half precision reads as single precision does, %s', async (device) => {
  const half = await openEmbedded('digits', 'fp16-webgpu', { device })
  for (const { canvas } of strokes(plain)) {
    const [one, other] = await Promise.all([
      wasm.predict({ image: canvas }, signal),
      half.predict({ image: canvas }, signal),
    ])
    expect(other.outputs['digit']).toBe(one.outputs['digit'])
    scores(one).forEach((score, digit) => {
      expect(Math.abs((scores(other)[digit] ?? NaN) - score)).toBeLessThan(0.02)
    })
  }
  await half.close()
})
