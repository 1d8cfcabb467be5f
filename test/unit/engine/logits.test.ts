import { describe, expect, test } from 'vitest'
import type { Adjustments } from '../../../src/engine/decoder.ts'
import { adjust, createCpuLogits, selectCandidates } from '../../../src/engine/sampling/logits.ts'
import { fromHalf, halfToFloat32, toHalf } from '../../../src/values/elements.ts'
import { rowOf } from '../../../src/engine/onnx/logits/gpu.ts'
import { computeLogprobs } from '../../../src/engine/run/decode-loop.ts'
import { createRandom } from '../../../src/engine/sampling/sampler.ts'

const random = createRandom(11)
const below = (limit: number): number => Math.floor(random() * limit)

/** Returns the candidates by the definition. */
function ranked(scores: Float32Array, count: number): { ids: number[]; scores: number[] } {
  const above = (a: number, b: number): number =>
    Number(Number.isNaN(b)) - Number(Number.isNaN(a)) || (a === b ? 0 : b - a)
  const ids = [...scores.keys()].sort(
    (a, b) => above(scores[a] as number, scores[b] as number) || a - b,
  )
  const best = ids.slice(0, count)
  return { ids: best, scores: best.map((id) => (scores[id] as number) + 0) }
}

function expectRanked(scores: Float32Array, count: number): void {
  const found = selectCandidates(scores, { count, temperature: 0 })
  expect({ ids: [...found.ids], scores: [...found.scores] }).toEqual(ranked(scores, count))
}

describe('the highest scores', () => {
  test.each([1e-6, 0.5, 4])('are in order, the lower id first; steps of %d', (step) => {
    for (let time = 0; time < 60; time += 1) {
      const scores = Float32Array.from(
        { length: 1 + below(3_000) },
        () => Math.round(((random() - 0.5) * 30) / step) * step,
      )
      for (const count of [1, 2, 7, 64, 5_000]) expectRanked(scores, count)
    }
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 1e-45, -3e38])(
    'may be %d',
    (odd) => {
      for (let time = 0; time < 40; time += 1) {
        const scores = Float32Array.from({ length: 200 }, () => below(9) - 4)
        for (let index = 0; index < 5; index += 1) scores[below(200)] = odd
        for (const count of [1, 3, 64, 200]) expectRanked(scores, count)
      }
    },
  )

  test('of views do not change them', async () => {
    const all = Float32Array.of(9, 1, 4, 2, 9)
    const logits = createCpuLogits([all.subarray(1, 4), all.subarray(2, 5)])
    const mask = Int32Array.of(0b011)
    const [first, second] = await logits.top([
      { count: 2, temperature: 1 },
      { count: 2, temperature: 2, adjustments: { mask } },
    ])
    expect([...(first?.ids ?? [])]).toEqual([1, 2])
    expect(first?.logSumExp).toBeCloseTo(Math.log(Math.exp(1) + Math.exp(4) + Math.exp(2)), 10)
    expect([...(second?.ids ?? [])]).toEqual([0, 1])
    expect(second?.logSumExp).toBeCloseTo(Math.log(Math.exp(2) + Math.exp(1)), 10)
    expect([...all]).toEqual([9, 1, 4, 2, 9])
    expect([...(await logits.row(1))]).toEqual([4, 2, 9])
    expect({ rows: logits.rows, vocabulary: logits.vocabulary }).toEqual({ rows: 2, vocabulary: 3 })
  })

  test.each([
    [Float32Array.of(1000, 999), 1, 1000 + Math.log(1 + Math.exp(-1))],
    [Float32Array.of(-1000, -1000), 1, -1000 + Math.log(2)],
    [Float32Array.of(1, 1), 0.5, 2 + Math.log(2)],
    [Float32Array.of(-Infinity, 3), 1, 3],
    [Float32Array.of(-Infinity, -Infinity), 1, -Infinity],
    [Float32Array.of(1, Infinity), 1, Infinity],
    [Float32Array.of(1, 2), 0, Number.NaN],
    [Float32Array.of(1, Number.NaN), 1, Number.NaN],
  ])('have a sum: %j at temperature %d', (scores, temperature, sum) => {
    const { logSumExp } = selectCandidates(scores, { count: 1, temperature })
    if (Number.isFinite(sum)) expect(logSumExp).toBeCloseTo(sum, 10)
    else expect(logSumExp).toBe(sum)
  })
})

describe('adjustments', () => {
  const row = Float32Array.of(4, -4, 2, 0, 1)

  test.each<[Adjustments, number[]]>([
    [{}, [4, -4, 2, 0, 1]],
    [{ repetition: { ids: [0, 1, 3], factor: 2 } }, [2, -8, 2, 0, 1]],
    [{ bias: { ids: [4, 1], amounts: [-3, 5] } }, [4, 1, 2, 0, -2]],
    [{ mask: Int32Array.of(0b10101) }, [4, -Infinity, 2, -Infinity, 1]],
    [{ mask: new Int32Array(0) }, [-Infinity, -Infinity, -Infinity, -Infinity, -Infinity]],
    [
      {
        repetition: { ids: [0, 9], factor: 2 },
        bias: { ids: [0, 2, 9], amounts: [-3, -Infinity, 1] },
        mask: Int32Array.of(~0b10),
      },
      [-1, -Infinity, -Infinity, 0, 1],
    ],
  ])('%j', (adjustments, expected) => {
    expect([...adjust(row, adjustments)]).toEqual(expected)
    expect([...row]).toEqual([4, -4, 2, 0, 1])
  })

  test('do not hide NaN', () => {
    const broken = Float32Array.of(1, Number.NaN)
    const adjustments = { mask: Int32Array.of(1) }
    const { scores } = selectCandidates(broken, { count: 1, temperature: 1, adjustments })
    expect(scores[0]).toBeNaN()
  })

  test('have masks of several words', () => {
    const mask = new Int32Array(4)
    mask[3] = 1 << 31
    const ask = { count: 1, temperature: 0, adjustments: { mask } }
    expect(selectCandidates(new Float32Array(128), ask).ids[0]).toBe(127)
  })
})

describe('half floats', () => {
  test('stay the same as a number and back', () => {
    const halves = Array.from({ length: 0x10000 }, (_, bits) => bits)
    const changed = halves.filter(
      (bits) => !Object.is(fromHalf(toHalf(fromHalf(bits))), fromHalf(bits)),
    )
    expect(changed).toEqual([])
  })

  test.each([
    [1, 0x3c00],
    [-2, 0xc000],
    [65504, 0x7bff],
    [65519.99, 0x7bff],
    [65520, 0x7c00],
    [1e9, 0x7c00],
    [-Infinity, 0xfc00],
    [2 ** -24, 0x0001],
    [2 ** -25, 0x0000],
    [1.5 * 2 ** -25, 0x0001],
    [2 ** -14, 0x0400],
    [-1e-30, 0x8000],
    [0.1, 0x2e66],
  ])('%f has the bits %i', (value, bits) => {
    expect(toHalf(value)).toBe(bits)
  })

  test('are rounded to the nearest, and to an even one of two', () => {
    const step = 2 ** -10
    expect(fromHalf(toHalf(1 + step * 0.49))).toBe(1)
    expect(fromHalf(toHalf(1 + step * 0.51))).toBe(1 + step)
    expect(fromHalf(toHalf(1 + step * 0.5))).toBe(1)
    expect(fromHalf(toHalf(1 + step * 1.5))).toBe(1 + 2 * step)
    expect(fromHalf(toHalf(2 - step * 0.25))).toBe(2)
  })

  test('have the values of their bits', () => {
    const all = Uint16Array.from({ length: 2 ** 16 }, (_, bits) => bits)
    const floats = halfToFloat32(all)
    const valueOf = (bits: number): number => {
      const sign = bits & 0x8000 ? -1 : 1
      const exponent = (bits >> 10) & 31
      const fraction = bits & 1023
      if (exponent === 31) return fraction > 0 ? Number.NaN : sign * Infinity
      if (exponent === 0) return sign * fraction * 2 ** -24
      return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
    }
    expect([...all].filter((bits) => !Object.is(floats[bits], valueOf(bits)))).toEqual([])
  })

  test('come as rows of tensors', () => {
    const tensor = (data: unknown) => ({ dims: [1, 2, 3], data }) as never
    const halves = Uint16Array.of(0, 0x3c00, 0xc000, 0x7bff, 1, 0xfc00)
    expect([...rowOf(tensor(halves), 1)]).toEqual([65504, 2 ** -24, -Infinity])
    expect([...rowOf(tensor(Float32Array.of(1, 2, 3, 4, 5, 6)), 1)]).toEqual([4, 5, 6])
    expect([...rowOf(tensor(Float64Array.of(1, 2, 3, 4, 5, 6)), 0)]).toEqual([1, 2, 3])
  })
})

describe('log probabilities', () => {
  const row = Float32Array.from([0.1, 0.6, 0.1, 0.2], Math.log)

  test('are of the token, and of the most probable ones', () => {
    const { logprob, top } = computeLogprobs(row, 0, 3)
    expect(Math.exp(logprob)).toBeCloseTo(0.1, 6)
    expect(top.map(({ id }) => id)).toEqual([1, 3, 0])
    const shares = [0.6, 0.2, 0.1].map((share) => expect.closeTo(share, 6))
    expect(top.map((each) => Math.exp(each.logprob))).toEqual(shares)
  })

  test('sum to one, and are finite', () => {
    const scores = Float32Array.from({ length: 300 }, () => random() * 20)
    scores[7] = Number.NEGATIVE_INFINITY
    const { top } = computeLogprobs(scores, 1, 300)
    expect(top.reduce((sum, each) => sum + Math.exp(each.logprob), 0)).toBeCloseTo(1, 6)
    expect(computeLogprobs(scores, 7, 0)).toEqual({ logprob: -9999, top: [] })
  })
})
