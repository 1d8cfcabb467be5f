import { describe, expect, test } from 'vitest'
import { selectCandidates } from '../../../src/engine/sampling/logits.ts'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import { createSampler } from '../../../src/engine/sampling/sampler.ts'

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
  // splitmix64(0): e220a8397b1dcdaf, 6e789e6aa1b965f4; xoshiro128** from those words, low
  // halves first.
  const random = createRandom(0)
  const second = 0xe220a839
  const rotated = Math.imul(second, 5)
  const first = Math.imul((rotated << 7) | (rotated >>> 25), 9) >>> 0
  expect(Math.floor(random() * 2 ** 27)).toBe(first >>> 5)
})

describe('seeds', () => {
  const PLAIN = { temperature: 1, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, suppress: [] }
  const row = new Float32Array(1_000)

  const run = async (seed?: number): Promise<number[]> => {
    const sampler = createSampler({ seed }, PLAIN, [])
    const ask = sampler.ask(null)
    const candidates = selectCandidates(row, ask)
    const tokens: number[] = []
    for (let index = 0; index < 24; index += 1)
      tokens.push(await sampler.choose(ask, candidates, async () => row))
    return tokens
  }

  test.each([0, 1, -1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, -(2 ** 53)])(
    'the same one gives the same tokens: %d',
    async (seed) => expect(await run(seed)).toEqual(await run(seed)),
  )

  test('different ones, and none, give different tokens', async () => {
    const runs = await Promise.all([1, 2, 2 ** 32 + 1, -1, undefined, undefined].map(run))
    expect(new Set(runs.map(String)).size).toBe(runs.length)
  })
})
