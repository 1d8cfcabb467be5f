import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sequence } from '../../../src/engine/decoder.ts'
import {
  argmax,
  maxDifference,
  greedy,
  openDecoder,
  prefill,
  takeRow,
  type OpenedDecoder,
} from '../../models/layouts.ts'
import { CASES, FIRST_SCORES } from '../../models/tiny.ts'

const EXACT = 2e-5

const [ONE, DOZEN, LONG] = CASES.map(({ prompt }) => prompt) as [number[], number[], number[]]

/** What a conversation of these tokens predicts, computed afresh. */
async function fresh({ decoder }: OpenedDecoder, tokens: readonly number[]): Promise<Float32Array> {
  const sequence = decoder.open()
  const scores = await prefill(sequence, tokens, decoder.maxChunkTokens)
  sequence.close()
  return scores
}

async function expectToContinue(
  opened: OpenedDecoder,
  sequence: Sequence,
  tokens: readonly number[],
  next: number,
): Promise<void> {
  const scores = await takeRow(await sequence.forward([next]))
  expect(maxDifference(scores, await fresh(opened, [...tokens, next]))).toBeLessThan(EXACT)
  expect(sequence.length).toBe(tokens.length + 1)
}

const SETTINGS = [
  { device: 'wasm', folder: 'onnx', count: 16, chunks: [256, 64, 7], isBrief: false },
  { device: 'wasm', folder: 'older', count: 16, chunks: [256, 64], isBrief: false },
  { device: 'webgpu', folder: 'onnx', count: 8, chunks: [256, 100], isBrief: false },
  { device: 'webgpu', folder: 'older', count: 4, chunks: [256], isBrief: true },
] as const

type Setting = (typeof SETTINGS)[number]

describe.each(SETTINGS.filter(({ device }) => device === 'wasm'))(
  '$device, $folder',
  (setting) => void suite(setting),
)
// A GPU made of software compiles the shaders of a model for seconds.
describe.each(SETTINGS.filter(({ device }) => device === 'webgpu'))(
  '$device, $folder',
  { tags: ['slow'] },
  (setting) => void suite(setting),
)

/** `isBrief` leaves out what does not depend on the operators of a graph. */
function suite({ device, folder, count, chunks, isBrief }: Setting): void {
  let opened: OpenedDecoder
  beforeAll(async () => {
    opened = await openDecoder({ device, model: `tiny/${folder}/model.onnx` })
  })
  afterAll(() => opened.close())

  test('computes the scores of the reference', async () => {
    const sequence = opened.decoder.open()
    const scores = await takeRow(await sequence.forward(DOZEN))
    FIRST_SCORES.forEach((score, index) => expect(scores[index]).toBeCloseTo(score, 3))
    expect(sequence.length).toBe(DOZEN.length)
    sequence.close()
  })

  test('steps several at once, while some join, leave, and are cut', async () => {
    const { decoder } = opened
    expect(decoder.maxBatchSize).toBeGreaterThan(3)
    const texts = new Map<Sequence, number[]>()
    const begin = async (prompt: number[]): Promise<Sequence> => {
      const sequence = decoder.open()
      await prefill(sequence, prompt)
      texts.set(sequence, [...prompt])
      return sequence
    }
    let token = 1
    const step = async (...sequences: Sequence[]): Promise<void> => {
      const entries = sequences.map((sequence) => ({ sequence, token: (token += 1) }))
      const logits = await decoder.step(entries)
      expect(logits.rows).toBe(entries.length)
      for (const [row, entry] of entries.entries()) {
        const text = texts.get(entry.sequence) as number[]
        text.push(entry.token)
        const scores = await logits.row(row)
        expect(maxDifference(scores, await fresh(opened, text))).toBeLessThan(EXACT)
      }
      logits.release()
    }

    const a = await begin(DOZEN)
    const b = await begin(ONE)
    await step(a, b)
    await step(b, a)
    const c = await begin(LONG.slice(0, 60))
    await step(a, b, c)
    await step(c)
    await step(a, b, c)
    await b.truncate(2)
    texts.get(b)?.splice(2)
    await step(a, b, c)
    const d = await b.fork(3)
    texts.set(d, texts.get(b)?.slice(0, 3) ?? [])
    await step(a, d, b, c)
    // Closed by whoever no longer wants it, while the others are computed.
    const computed = step(a, d, b)
    c.close()
    await computed
    await step(a, d, b)
    a.close()
    b.close()
    await step(d)
    d.close()
  })
  if (isBrief) return

  test.each(CASES.map((each) => ({ ...each, length: each.prompt.length })))(
    'chooses the tokens of the reference after $length tokens',
    async ({ prompt, greedy: expected }) => {
      for (const chunk of prompt.length > 100 ? chunks : [256]) {
        const sequence = opened.decoder.open()
        expect(await greedy(sequence, prompt, count, chunk)).toEqual(expected.slice(0, count))
        sequence.close()
      }
    },
  )

  test('keeps two conversations apart', async () => {
    const [first, second] = [opened.decoder.open(), opened.decoder.open()]
    const tokens = [
      argmax(await takeRow(await first.forward(ONE))),
      argmax(await takeRow(await second.forward(DOZEN))),
    ]
    tokens.push(
      argmax(await takeRow(await first.forward(tokens.slice(0, 1)))),
      argmax(await takeRow(await second.forward(tokens.slice(1, 2)))),
    )
    const [one, other] = [CASES[0]?.greedy, CASES[1]?.greedy]
    expect(tokens).toEqual([one?.[0], other?.[0], one?.[1], other?.[1]])
    first.close()
    second.close()
  })

  test('gives a row of scores for each of the last tokens', async () => {
    const sequence = opened.decoder.open()
    const logits = await sequence.forward(DOZEN, 3)
    expect(logits.rows).toBe(3)
    for (const row of [0, 1, 2]) {
      const expected = await fresh(opened, DOZEN.slice(0, DOZEN.length - 2 + row))
      expect(maxDifference(await logits.row(row), expected)).toBeLessThan(EXACT)
    }
    logits.release()
    sequence.close()
  })

  test('goes on from a length it is cut to', async () => {
    const sequence = opened.decoder.open()
    await prefill(sequence, LONG.slice(0, 40))
    expect(sequence.reusableLength(11)).toBe(11)
    await sequence.truncate(11)
    await expectToContinue(opened, sequence, LONG.slice(0, 11), 5)
    await sequence.truncate(2)
    await sequence.extend(DOZEN)
    await expectToContinue(opened, sequence, [...LONG.slice(0, 2), ...DOZEN], 6)
    await sequence.truncate(0)
    await sequence.extend(ONE)
    await expectToContinue(opened, sequence, ONE, 7)
    await expect(sequence.truncate(5)).rejects.toMatchObject({ kind: 'internal' })
    sequence.close()
  })

  test('grows beyond the room it began with, and is cut far back', async () => {
    const sequence = opened.decoder.open()
    await prefill(sequence, LONG.slice(0, 250))
    const before = sequence.bytes
    await sequence.extend(LONG.slice(250, 290))
    expect(sequence.bytes).toBeGreaterThan(before)
    await expectToContinue(opened, sequence, LONG.slice(0, 290), 9)
    await sequence.truncate(20)
    await expectToContinue(opened, sequence, LONG.slice(0, 20), 9)
    sequence.close()
  })

  test('forks, and both go their own way', async () => {
    const sequence = opened.decoder.open()
    await prefill(sequence, LONG.slice(0, 30))
    const other = await sequence.fork(20)
    const whole = await sequence.fork(30)
    expect([other.length, whole.length]).toEqual([20, 30])
    await expectToContinue(opened, sequence, LONG.slice(0, 30), 3)
    await expectToContinue(opened, other, LONG.slice(0, 20), 4)
    sequence.close()
    await expectToContinue(opened, whole, LONG.slice(0, 30), 8)
    await expectToContinue(opened, other, [...LONG.slice(0, 20), 4], 5)
    other.close()
    whole.close()
  })
}
