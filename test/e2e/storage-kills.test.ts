/**
 * A few of the downloads that `npm run test:long` kills.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import { killDownloads } from '../support/kills.ts'
import { CHUNK } from '../support/stored.ts'

test('a page or browser that ends during a download loses one chunk at most', async () => {
  const { losses, right } = await killDownloads(3, 1)
  for (const { way, told, kept } of losses) {
    expect(kept % CHUNK).toBe(0)
    expect(told - kept, way).toBeLessThanOrEqual(CHUNK)
  }
  expect(right).not.toContain(false)
})
