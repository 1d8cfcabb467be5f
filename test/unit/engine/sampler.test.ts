import { describe, expect, test } from 'vitest'
import { createRandom } from '../../../src/engine/onnx/sampling/random.ts'
import { best, createSampler } from '../../../src/engine/onnx/sampling/sampler.ts'
import type { Sampling } from '../../../src/types/index.ts'

const PLAIN = { temperature: 1, topP: 1, topK: 0 }
const logs = (...probabilities: number[]): Float32Array =>
  Float32Array.from(probabilities, Math.log)

/** How often each token is chosen, as a share. */
function shares(logits: Float32Array, sampling: Sampling, draws = 40_000): number[] {
  const sample = createSampler({ seed: 42, ...sampling }, PLAIN)
  const counts = Array.from(logits, () => 0)
  for (let index = 0; index < draws; index += 1) {
    const id = sample(logits)
    counts[id] = (counts[id] ?? 0) + 1
  }
  return counts.map((count) => count / draws)
}

function expectShares(actual: number[], expected: number[]): void {
  expected.forEach((share, id) => {
    if (share === 0) expect(actual[id]).toBe(0)
    // Four standard deviations of 40,000 draws at most.
    else expect(Math.abs((actual[id] ?? 0) - share)).toBeLessThan(0.01)
  })
}

describe('greedy', () => {
  test.each([{ temperature: 0 }, { topK: 1 }, { temperature: 0, topP: 0.5, seed: 3 }])(
    '%j',
    (sampling) => {
      expect(createSampler(sampling, PLAIN)(Float32Array.of(1, 5, 5, 2))).toBe(1)
    },
  )

  test('is the default of a model that does not sample', () => {
    const sample = createSampler({ seed: 1, topP: 0.9 }, { ...PLAIN, temperature: 0 })
    for (let index = 0; index < 50; index += 1) expect(sample(Float32Array.of(1, 1.01, 1))).toBe(1)
  })

  test('passes over what is not a number', () => {
    expect(best(Float32Array.of(Number.NaN, 1, 3, Number.NaN))).toBe(2)
    expect(best(Float32Array.of(-Infinity, -Infinity))).toBe(0)
  })
})

describe('sampling', () => {
  test('follows the probabilities', () => {
    expectShares(shares(logs(0.5, 0.3, 0.15, 0.05), {}), [0.5, 0.3, 0.15, 0.05])
  })

  test('sharpens and flattens with temperature', () => {
    // Temperature 0.5 squares the probabilities, 2 takes their roots.
    expectShares(shares(logs(0.6, 0.3, 0.1), { temperature: 0.5 }), [
      0.36 / 0.46,
      0.09 / 0.46,
      0.01 / 0.46,
    ])
    const roots = [0.6, 0.3, 0.1].map(Math.sqrt)
    const total = roots.reduce((sum, root) => sum + root, 0)
    expectShares(
      shares(logs(0.6, 0.3, 0.1), { temperature: 2 }),
      roots.map((root) => root / total),
    )
  })

  test('keeps the k most likely', () => {
    expectShares(shares(logs(0.1, 0.4, 0.2, 0.3), { topK: 2 }), [0, 4 / 7, 0, 3 / 7])
    expectShares(shares(logs(0.25, 0.25, 0.25, 0.25), { topK: 2 }), [0.5, 0.5, 0, 0])
    expectShares(shares(logs(0.7, 0.3), { topK: 9 }), [0.7, 0.3])
  })

  test('keeps the smallest set that reaches p', () => {
    expectShares(shares(logs(0.5, 0.3, 0.15, 0.05), { topP: 0.7 }), [5 / 8, 3 / 8, 0, 0])
    expectShares(shares(logs(0.5, 0.3, 0.15, 0.05), { topP: 0.4 }), [1, 0, 0, 0])
    expectShares(shares(logs(0.05, 0.15, 0.3, 0.5), { topP: 0.9 }), [
      0,
      0.15 / 0.95,
      0.3 / 0.95,
      0.5 / 0.95,
    ])
  })

  test('takes p of what k leaves', () => {
    // Of 0.4, 0.3 and 0.2 the first two are 7 ninths, which is above 0.75.
    expectShares(shares(logs(0.4, 0.3, 0.2, 0.1), { topK: 3, topP: 0.75 }), [4 / 7, 3 / 7, 0, 0])
  })

  test('finds the nucleus among many tokens', () => {
    const logits = new Float32Array(50_000).fill(-20)
    logits[17] = 2
    logits[40_000] = 1
    const sample = createSampler({ seed: 1, topP: 0.95 }, PLAIN)
    for (let index = 0; index < 200; index += 1) expect([17, 40_000]).toContain(sample(logits))
  })

  test('keeps exactly k of many', () => {
    const random = createRandom(9)
    const logits = Float32Array.from({ length: 5_000 }, () => random() * 4)
    const kept = [...logits.keys()].sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0)).slice(0, 40)
    const sample = createSampler({ seed: 1, topK: 40 }, PLAIN)
    const seen = new Set<number>()
    for (let index = 0; index < 4_000; index += 1) seen.add(sample(logits))
    expect([...seen].sort()).toEqual(kept.sort())
  })

  test.each([
    [Float32Array.of(1, Number.POSITIVE_INFINITY, 2), 1],
    [Float32Array.of(-Infinity, -Infinity), 0],
    [Float32Array.of(-Infinity, 3, -Infinity), 1],
    [Float32Array.of(1e30, -1e30), 0],
    [Float32Array.of(Number.NaN, 2, Number.NaN), 1],
  ])('chooses a token whatever the scores: %j', (logits, id) => {
    for (const sampling of [
      {},
      { topP: 0.9 },
      { topK: 2 },
      { temperature: 1e-30 },
      { temperature: 1e30 },
    ]) {
      const chosen = createSampler({ seed: 1, ...sampling }, PLAIN)(logits)
      if (sampling.temperature === 1e30) expect(chosen).toBeLessThan(logits.length)
      else expect(chosen).toBe(id)
    }
  })
})

describe('seeds', () => {
  const run = (seed?: number): number[] => {
    const sample = createSampler({ seed }, PLAIN)
    return Array.from({ length: 64 }, () => sample(new Float32Array(1_000)))
  }

  test.each([0, 1, -1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, -(2 ** 53)])(
    'the same one gives the same tokens: %d',
    (seed) => {
      expect(run(seed)).toEqual(run(seed))
    },
  )

  test('different ones, and none, give different tokens', () => {
    const runs = [run(1), run(2), run(2 ** 32 + 1), run(-1), run(), run()].map(String)
    expect(new Set(runs).size).toBe(runs.length)
  })

  test('numbers are spread evenly from 0 to 1', () => {
    const random = createRandom(7)
    const counts = Array.from({ length: 10 }, () => 0)
    for (let index = 0; index < 100_000; index += 1) {
      const at = Math.floor(random() * 10)
      counts[at] = (counts[at] ?? 0) + 1
    }
    expect(counts.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0)).toBeLessThan(
      27.9,
    )
  })

  test('follow the published generators', () => {
    // splitmix64(0): e220a8397b1dcdaf, 6e789e6aa1b965f4; xoshiro128** from those words, low
    // halves first.
    const random = createRandom(0)
    const state = [0x7b1dcdaf, 0xe220a839, 0xa1b965f4, 0x6e789e6a]
    const [, second = 0] = state
    const rotated = Math.imul(second, 5)
    const first = Math.imul((rotated << 7) | (rotated >>> 25), 9) >>> 0
    expect(Math.floor(random() * 2 ** 27)).toBe(first >>> 5)
  })
})
