/** Image files as inputs: those that a browser writes, and one whose header says too much. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import { openDigits } from './digits.ts'
import { drawnOne } from './draw.ts'

const { signal } = new AbortController()

let digits: OpenPredictor

beforeAll(async () => {
  digits = await openDigits('wasm')
})

afterAll(() => digits.close())

test.each(['image/png', 'image/jpeg', 'image/webp'])(
  'a file is read as what was encoded: %s',
  async (type) => {
    const image = await drawnOne().convertToBlob({ type, quality: 1 })
    expect(image.type).toBe(type)
    const [drawn, read] = [
      await digits.predict({ image: drawnOne() }, signal),
      await digits.predict({ image }, signal),
    ]
    expect(read.outputs['digit']).toBe(drawn.outputs['digit'])
  },
)

test('a file that would decode to gigabytes is refused by its header', async () => {
  const header = new DataView(await (await drawnOne().convertToBlob()).arrayBuffer())
  header.setUint32(16, 30_000)
  header.setUint32(20, 23_000)
  await expect(digits.predict({ image: new Blob([header]) }, signal)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: 'inputs.image: the image has 30000 x 23000 pixels. Scale it down to at most 67108864.',
  })
})
