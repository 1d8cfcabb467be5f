import { describe, expect, test } from 'vitest'
import type { Candidates } from '../../../src/engine/decoder.ts'
import { adjust, selectCandidates } from '../../../src/engine/sampling/logits.ts'
import { createRandom, Sampler, type SamplingRange } from '../../../src/engine/sampling/sampler.ts'
import type { Sampling } from '../../../src/types/index.ts'
import { runs } from '../../support/runs.ts'

const PLAIN = { temperature: 1, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, suppress: [] }
/** Draws with which shares are measured. */
const DRAWS = runs(2_000, 20_000)

const logs = (...probabilities: number[]): Float32Array =>
  Float32Array.from(probabilities, Math.log)

interface Choice {
  token: number
  /** `true` if the candidates did not settle the choice. */
  read: boolean
}

/** Chooses from a row. Sums have an error, as those of a GPU. */
async function choose(
  sampler: Sampler,
  row: Float32Array,
  { mask = null, error = 0 }: { mask?: Int32Array | null; error?: number } = {},
): Promise<Choice> {
  const ask = sampler.ask(mask)
  const found = selectCandidates(row, ask)
  const candidates: Candidates = { ...found, logSumExp: found.logSumExp + error }
  let read = false
  const token = await sampler.choose(ask, candidates, async () => {
    read = true
    return row
  })
  return { token, read }
}

/** Expects that each token is chosen with this probability. */
async function expectShares(row: Float32Array, sampling: Sampling, expected: number[]) {
  const sampler = new Sampler({ seed: 42, ...sampling }, PLAIN, [])
  const counts = Array.from(row, () => 0)
  for (let index = 0; index < DRAWS; index += 1) {
    const { token } = await choose(sampler, row)
    counts[token] = (counts[token] ?? 0) + 1
  }
  const actual = counts.map((count) => count / DRAWS)
  expected.forEach((share, id) => {
    if (share === 0) expect(actual[id]).toBe(0)
    else expect(Math.abs((actual[id] ?? 0) - share)).toBeLessThan(4 * Math.sqrt(0.25 / DRAWS))
  })
}

/** Returns the token by the definition, step by step over all scores in order. */
function defined(scores: Float32Array, range: SamplingRange, at: number): number {
  const { temperature, topK, topP, minP } = range
  const ids = [...scores.keys()].sort(
    (a, b) => (scores[b] as number) - (scores[a] as number) || a - b,
  )
  const best = scores[ids[0] as number] as number
  const weigh = (score: number): number => Math.exp((score - best) / temperature)
  let kept = ids.map((id) => ({ id, weight: weigh(scores[id] as number) }))
  if (topK > 0) kept = kept.slice(0, topK)
  const sum = (): number => kept.reduce((total, { weight }) => total + weight, 0)
  const wanted = topP * sum()
  let reached = 0
  const last = kept.findIndex(({ weight }) => (reached += weight) >= wanted)
  if (topP < 1) kept = kept.slice(0, last + 1)
  kept = kept.filter(({ weight }) => weight >= minP)
  let left = at * sum()
  return (kept.find(({ weight }) => (left -= weight) < 0) ?? (kept.at(-1) as { id: number })).id
}

describe('greedy', () => {
  test.each([
    { temperature: 0 },
    { topK: 1 },
    { temperature: 0, topP: 0.5, seed: 3 },
    { temperature: 1e-9 },
  ])('%j', async (sampling) => {
    const sampler = new Sampler(sampling, PLAIN, [])
    expect(sampler.ask(null)).toMatchObject({ count: 1, temperature: 0 })
    expect(await choose(sampler, Float32Array.of(1, 5, 5, 2))).toEqual({ token: 1, read: false })
  })

  test('is the default of a model that does not sample', async () => {
    const sampler = new Sampler({ seed: 1, topP: 0.9 }, { ...PLAIN, temperature: 0 }, [])
    for (let index = 0; index < 50; index += 1)
      expect((await choose(sampler, Float32Array.of(1, 1.01, 1))).token).toBe(1)
  })
})

describe('a draw', () => {
  const random = createRandom(3)
  const oneOf = <T>(...all: T[]): T => all[Math.floor(random() * all.length)] as T

  test('follows the definition, from candidates or the row', async () => {
    let reads = 0
    const times = runs(400, 2_000)
    for (let time = 0; time < times; time += 1) {
      const spread = oneOf(1, 6, 20)
      const step = oneOf(1e-6, 0.5)
      const row = Float32Array.from(
        { length: oneOf(3, 64, 65, 700) },
        () => Math.round((random() * spread) / step) * step,
      )
      const sampling = {
        temperature: oneOf(0.2, 0.7, 1, 2),
        topK: oneOf(0, 0, 2, 40, 64, 100),
        topP: oneOf(1, 1, 0.95, 0.5, 1e-9),
        minP: oneOf(0, 0, 0.02, 0.5, 1),
      }
      const seed = Math.floor(random() * 1e9)
      const sampler = new Sampler({ ...sampling, seed }, PLAIN, [])
      const error = (random() - 0.5) * 4e-6
      const { token, read } = await choose(sampler, row, { error })
      const at = createRandom(seed)()
      const what = JSON.stringify({ sampling, seed, length: row.length })
      expect(token, what).toBe(defined(row, sampling, at))
      if (read) reads += 1
      // Top-k and a row of fewer than 64 tokens need no more than the candidates.
      if ((sampling.topK > 0 && sampling.topK <= 64) || row.length < 64) expect(read).toBe(false)
    }
    expect(reads).toBeGreaterThan(times / 40)
    expect(reads).toBeLessThan(times * 0.3)
  })

  test('does not need the row if few tokens are probable', async () => {
    const row = Float32Array.from({ length: 20_000 }, (_, id) => 18 - 3 * Math.log(1 + id))
    const sampler = new Sampler({ seed: 1, topP: 0.95 }, PLAIN, [])
    let reads = 0
    for (let time = 0; time < 200; time += 1) reads += Number((await choose(sampler, row)).read)
    expect(reads).toBe(0)
  })

  test('reaches every token of a flat row', async () => {
    const row = new Float32Array(10_000)
    const sampler = new Sampler({ seed: 1 }, PLAIN, [])
    const tokens: number[] = []
    for (let time = 0; time < 60; time += 1) tokens.push((await choose(sampler, row)).token)
    expect(Math.max(...tokens)).toBeGreaterThan(9_000)
    expect(Math.min(...tokens)).toBeLessThan(1_000)
    expect(new Set(tokens).size).toBeGreaterThan(55)
  })

  const HALVING = logs(0.5, 0.3, 0.15, 0.05)
  const SHARP = logs(0.6, 0.3, 0.1)
  const roots = [0.6, 0.3, 0.1].map(Math.sqrt)
  const sumOfRoots = roots.reduce((sum, root) => sum + root, 0)

  test.each<[Sampling, Float32Array, number[]]>([
    [{}, HALVING, [0.5, 0.3, 0.15, 0.05]],
    // A temperature of 0.5 squares the probabilities, 2 takes their roots.
    [{ temperature: 0.5 }, SHARP, [0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46]],
    [{ temperature: 2 }, SHARP, roots.map((root) => root / sumOfRoots)],
    [{ topK: 2 }, logs(0.1, 0.4, 0.2, 0.3), [0, 4 / 7, 0, 3 / 7]],
    [{ topK: 2 }, logs(0.25, 0.25, 0.25, 0.25), [0.5, 0.5, 0, 0]],
    [{ topP: 0.7 }, HALVING, [5 / 8, 3 / 8, 0, 0]],
    [{ topP: 0.9 }, logs(0.05, 0.15, 0.3, 0.5), [0, 0.15 / 0.95, 0.3 / 0.95, 0.5 / 0.95]],
    // Of 0.4, 0.3 and 0.2 the first two are 7 ninths, which is above 0.75.
    [{ topK: 3, topP: 0.75 }, logs(0.4, 0.3, 0.2, 0.1), [4 / 7, 3 / 7, 0, 0]],
    [{ minP: 0.31 }, HALVING, [5 / 8, 3 / 8, 0, 0]],
    [{ minP: 1 }, HALVING, [1, 0, 0, 0]],
  ])('has the probabilities of %j', async (sampling, row, expected) => {
    await expectShares(row, sampling, expected)
  })
})

describe('penalties', () => {
  /** Returns the scores with the adjustments of the sampler. */
  const adjusted = (sampler: Sampler, row: Float32Array, drafted?: number[]): number[] => [
    ...adjust(row, sampler.ask(null, drafted).adjustments),
  ]
  const row = Float32Array.of(4, -4, 2, 1)

  test('for frequency and presence depend on the answer, not on the prompt', () => {
    const sampler = new Sampler({ frequencyPenalty: 0.5, presencePenalty: 1 }, PLAIN, [0, 0, 1])
    expect(adjusted(sampler, row)).toEqual([4, -4, 2, 1])
    for (const token of [2, 1, 2]) sampler.accept(token)
    expect(adjusted(sampler, row)).toEqual([4, -5.5, 0, 1])
    // Drafted tokens count for the tokens after them only.
    expect(adjusted(sampler, row, [2, 3])).toEqual([4, -5.5, -0.5, -0.5])
    expect(adjusted(sampler, row)).toEqual([4, -5.5, 0, 1])
  })

  test('can reward', () => {
    const sampler = new Sampler({ frequencyPenalty: -2 }, PLAIN, [])
    sampler.accept(3)
    expect(adjusted(sampler, row)).toEqual([4, -4, 2, 3])
  })

  test('for repetition depend on prompt and answer', () => {
    const sampler = new Sampler({ repetitionPenalty: 2 }, PLAIN, [0, 0])
    expect(adjusted(sampler, row)).toEqual([2, -4, 2, 1])
    sampler.accept(1)
    sampler.accept(1)
    expect(adjusted(sampler, row)).toEqual([2, -8, 2, 1])
    expect(adjusted(sampler, row, [2, 2, 0])).toEqual([2, -8, 1, 1])
  })

  test('are those of the model if the request has none', () => {
    const defaults = { ...PLAIN, repetitionPenalty: 2, suppress: [3] }
    expect(adjusted(new Sampler({}, defaults, [0]), row)).toEqual([2, -4, 2, -Infinity])
    const own = new Sampler({ repetitionPenalty: 1 }, defaults, [0])
    expect(adjusted(own, row)).toEqual([4, -4, 2, -Infinity])
  })

  test('are added to the logit bias', () => {
    const logitBias = { 1: 9, 2: -100, 99: 5 }
    const sampler = new Sampler({ logitBias, presencePenalty: 2 }, PLAIN, [])
    sampler.accept(1)
    expect(adjusted(sampler, row)).toEqual([4, 3, -98, 1])
  })

  test('change a greedy choice', async () => {
    const sampler = new Sampler({ temperature: 0, presencePenalty: 2 }, PLAIN, [])
    const close = Float32Array.of(3, 2, 1.5)
    const tokens: number[] = []
    for (let index = 0; index < 4; index += 1) {
      tokens.push((await choose(sampler, close)).token)
      sampler.accept(tokens.at(-1) as number)
    }
    expect(tokens).toEqual([0, 1, 2, 0])
  })

  test('are the same for candidates and row', async () => {
    const random = createRandom(8)
    const wide = Float32Array.from({ length: 3_000 }, () => random() * 4)
    const prompt = Array.from({ length: 400 }, () => Math.floor(random() * 3_000))
    const sampling = { repetitionPenalty: 1.3, frequencyPenalty: 0.4, logitBias: { 5: 3 }, seed: 6 }
    const sampler = new Sampler(sampling, PLAIN, prompt)
    const at = createRandom(6)
    for (let time = 0; time < 60; time += 1) {
      const mask = Int32Array.from({ length: 94 }, () => Math.floor(random() * 2 ** 32))
      const scores = adjust(wide, sampler.ask(mask).adjustments)
      const { token } = await choose(sampler, wide, { mask })
      expect(token).toBe(defined(scores, { temperature: 1, topK: 0, topP: 1, minP: 0 }, at()))
      expect(((mask[token >>> 5] as number) >>> (token & 31)) & 1).toBe(1)
      sampler.accept(token)
    }
  })
})

describe('unusable scores', () => {
  const rows = [
    [Number.NaN, 1],
    [1, Infinity],
    [-Infinity, -Infinity],
  ]
  test.each(rows.map((row) => [row]))('%j', async (scores) => {
    for (const sampling of [{}, { temperature: 0 }, { topP: 0.5 }]) {
      const sampler = new Sampler(sampling, PLAIN, [])
      const refused = { kind: 'unavailable', code: 'invalid_numbers' }
      await expect(choose(sampler, Float32Array.from(scores))).rejects.toMatchObject(refused)
    }
  })

  test('are another error than a constraint that allows nothing', async () => {
    const sampler = new Sampler({}, { ...PLAIN, suppress: [1] }, [])
    const mask = Int32Array.of(0b10)
    const refused = { kind: 'internal' }
    await expect(choose(sampler, Float32Array.of(1, 2), { mask })).rejects.toMatchObject(refused)
  })

  test.each([
    [[-Infinity, 3, -Infinity], {}, 1],
    [[1e30, -1e30], { temperature: 2 }, 0],
    [[3e38, 2e38], { temperature: 1e-5 }, 0],
    [[-3e38, -3.1e38], { topP: 0.9 }, 0],
  ])('are not those that are far apart: %j %j', async (scores, sampling, token) => {
    const sampler = new Sampler(sampling, PLAIN, [])
    expect((await choose(sampler, Float32Array.from(scores))).token).toBe(token)
  })
})

test('random numbers are spread evenly from 0 to 1', () => {
  const random = createRandom(7)
  const counts = Array.from({ length: 10 }, () => 0)
  for (let index = 0; index < 100_000; index += 1) {
    const at = Math.floor(random() * 10)
    counts[at] = (counts[at] ?? 0) + 1
  }
  // The 99.9th percentile of chi-square with nine degrees of freedom.
  expect(counts.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0)).toBeLessThan(27.9)
})

test('random numbers are those of the published generators', () => {
  // splitmix64(0): e220a8397b1dcdaf, 6e789e6aa1b965f4; xoshiro128** from those words, low
  // halves first.
  const random = createRandom(0)
  const second = 0xe220a839
  const rotated = Math.imul(second, 5)
  const first = Math.imul((rotated << 7) | (rotated >>> 25), 9) >>> 0
  expect(Math.floor(random() * 2 ** 27)).toBe(first >>> 5)
})

describe('seeds', () => {
  const row = new Float32Array(1_000)

  const run = async (seed?: number): Promise<number[]> => {
    const sampler = new Sampler({ seed }, PLAIN, [])
    const ask = sampler.ask(null)
    const candidates = selectCandidates(row, ask)
    const tokens: number[] = []
    for (let index = 0; index < 24; index += 1)
      tokens.push(await sampler.choose(ask, candidates, async () => row))
    return tokens
  }

  test.each([0, 1, -1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, -(2 ** 53)])(
    'are repeatable: %d',
    async (seed) => expect(await run(seed)).toEqual(await run(seed)),
  )

  test('that differ, and none, give different tokens', async () => {
    const seeds = [1, 2, 2 ** 32 + 1, -1, undefined, undefined]
    const texts = (await Promise.all(seeds.map(run))).map(String)
    expect(new Set(texts).size).toBe(seeds.length)
  })
})
