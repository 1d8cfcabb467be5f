/** The digits model on both devices, from what is drawn on a canvas to the name of a digit. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { PredictionResult } from '../../../src/types/index.ts'
import { digitsEntry, openDigits } from './digits.ts'
import { openEmbedded } from './embedded.ts'
import { hasHalves } from '../halves.ts'
import { type Drawing, images, plain, strokes } from './draw.ts'

const NAMES = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']
const { signal } = new AbortController()

let wasm: OpenPredictor
beforeAll(async () => {
  wasm = await openDigits('wasm')
})
afterAll(() => wasm.close())

afterEach(() => {
  vi.restoreAllMocks()
})

function scores({ outputs }: PredictionResult): Float32Array {
  return (outputs['scores'] as { data: Float32Array }).data
}

/** How many of the drawings are read right. */
async function right(drawings: Drawing[], ink?: string): Promise<number> {
  let count = 0
  for (const { digit, canvas } of drawings) {
    const { outputs } = await wasm.predict({ image: canvas, ink }, signal)
    if (outputs['digit'] === NAMES[digit]) count++
  }
  return count
}

test('what comes out is what the signature says', async () => {
  const [drawing] = strokes(plain)
  const result = await wasm.predict({ image: drawing?.canvas }, signal)
  expect(Object.keys(result.outputs)).toEqual(
    digitsEntry().signature.outputs.map(({ name }) => name),
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
    expect(await right(images({ ...plain, box: [0.2, 0.2, 0.6, 0.6] }))).toBeGreaterThanOrEqual(38)
  })

  test.each([
    ['in the middle', plain],
    ['small, in a corner', { ...plain, side: 400, box: [0.05, 0.62, 0.2, 0.3], pen: 0.02 }],
    ['large, with a thick pen', { ...plain, side: 200, box: [0.15, 0.08, 0.65, 0.84], pen: 0.09 }],
    ['with a thin pen', { ...plain, side: 600, pen: 0.012 }],
    ['blue on yellow', { ...plain, ink: 'navy', paper: 'lightyellow' }],
    ['white on black', { ...plain, ink: 'white', paper: 'black' }],
  ] as const)('what a mouse wrote, %s', async (_, look) => {
    expect(await right(strokes({ ...look, box: [...look.box] }))).toBeGreaterThanOrEqual(19)
  })

  test('light ink on paper that looks light, when told so', async () => {
    const drawings = strokes({ ...plain, ink: 'white', paper: '#999' })
    expect(await right(drawings)).toBeLessThan(10)
    expect(await right(drawings, 'light')).toBeGreaterThanOrEqual(19)
  })

  test('an empty page as anything, with little confidence', async () => {
    const blank = new OffscreenCanvas(100, 100)
    const result = await wasm.predict({ image: blank }, signal)
    expect(result.outputs['confidence']).toBeLessThan(0.5)
  })
})

test(
  'both devices give the same numbers, and no GPU buffers pile up',
  { tags: ['slow'] },
  async () => {
    const webgpu = await openDigits('webgpu')
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
