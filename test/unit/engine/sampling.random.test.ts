import { expect, test } from 'vitest'
import { createRandom } from '../../../src/engine/onnx/sampling/random.ts'

test('numbers are spread evenly from 0 to 1', () => {
  const random = createRandom(7)
  const counts = Array.from({ length: 10 }, () => 0)
  for (let index = 0; index < 100_000; index += 1) {
    const at = Math.floor(random() * 10)
    counts[at] = (counts[at] ?? 0) + 1
  }
  // The 99.9th percentile of chi-square with nine degrees of freedom.
  expect(counts.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0)).toBeLessThan(27.9)
})

test('numbers follow the published generators', () => {
  // splitmix64(0): e220a8397b1dcdaf, 6e789e6aa1b965f4; xoshiro128** from those words, low halves first.
  const random = createRandom(0)
  const second = 0xe220a839
  const rotated = Math.imul(second, 5)
  const first = Math.imul((rotated << 7) | (rotated >>> 25), 9) >>> 0
  expect(Math.floor(random() * 2 ** 27)).toBe(first >>> 5)
})
