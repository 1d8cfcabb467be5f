/** Image files as inputs: those that a browser writes, and one whose header says too much. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OpenPredictor } from '../../../src/predictor/run.ts'
import { openDigits } from './digits.ts'

const { signal } = new AbortController()

let digits: OpenPredictor

beforeAll(async () => {
  digits = await openDigits('wasm')
})

afterAll(() => digits.close())

/** A black bar on white, as in a one. */
function page(): OffscreenCanvas {
  const canvas = new OffscreenCanvas(64, 64)
  const context = canvas.getContext('2d')
  if (!context) throw new Error('No canvas.')
  context.fillStyle = 'white'
  context.fillRect(0, 0, 64, 64)
  context.fillStyle = 'black'
  context.fillRect(30, 8, 5, 48)
  return canvas
}

test.each(['image/png', 'image/jpeg', 'image/webp'])('a file is read as what was encoded: %s', async (type) => {
  const image = await page().convertToBlob({ type, quality: 1 })
  expect(image.type).toBe(type)
  const [drawn, read] = [await digits.predict({ image: page() }, signal), await digits.predict({ image }, signal)]
  expect(read.outputs['digit']).toBe(drawn.outputs['digit'])
})

test('a file that would decode to gigabytes is refused by its header', async () => {
  const header = new DataView(await (await page().convertToBlob()).arrayBuffer())
  header.setUint32(16, 30_000)
  header.setUint32(20, 23_000)
  await expect(digits.predict({ image: new Blob([header]) }, signal)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: 'inputs.image: the image has 30000 x 23000 pixels. Scale it down to at most 67108864.',
  })
})
