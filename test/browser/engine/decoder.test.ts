/** Decoders of every layout of exports, alone and under the scheduler, against what the reference computes. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Sequence } from '../../../src/engine/decoder.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import { runDecodeLoop } from '../../../src/engine/run/decode-loop.ts'
import { Scheduler } from '../../../src/engine/run/scheduler.ts'
import { Sampler } from '../../../src/engine/sampling/sampler.ts'
import type { Device } from '../../../src/types/index.ts'
import {
  greedy,
  maxDifference,
  openDecoder,
  openRuntime,
  prefill,
  readFiles,
  takeRow,
  type DecoderSource,
  type OpenedDecoder,
  type OpenedRuntime,
} from '../../models/layouts.ts'
import layouts from '../../models/layouts/expected.json'
import { CASES as tiny, FIRST_SCORES, runtimeFolder } from '../../models/tiny.ts'
import { createGgufDecoder, METADATA } from '../../support/gguf-decoder.ts'
import { hasHalves } from '../halves.ts'

const EXACT = 2e-5

interface Case {
  prompt: number[]
  greedy: number[]
}

interface Layout extends Omit<DecoderSource, 'device'> {
  cases: readonly Case[]
  /** `true` for layouts whose states cannot be taken back. */
  hasStates?: true
  isBatched?: true
  /** Half precision rounds otherwise where more is computed at once. */
  isHalf?: true
  /** `true` to run the scheduler on it, too. */
  isScheduled?: true
}

const of = (folder: keyof typeof layouts, file: string) => ({
  model: `layouts/${folder}/onnx/${file}.onnx`,
  cases: layouts[folder],
})
const branch = { firstPosition: 1, heads: 4 }
const split: Layout = {
  ...of('split', 'decoder_model_merged'),
  embed: 'layouts/split/onnx/embed_tokens.onnx',
  isBatched: true,
}
const q4: Layout = { ...of('q4', 'model_q4'), isBatched: true }

/** Returns a tiny GGUF file with greedy answers, which are computed from its values. */
function gguf(): Layout {
  const metadata = { ...METADATA, 'llama.context_length': { uint32: 512 } }
  const { file, logits } = createGgufDecoder('Q4_1', metadata)
  const cases = [1, 12, 64].map((length) => {
    const tokens = Array.from({ length }, (_, at) => (at * at + 3 * at + length) % 61)
    const answer: number[] = []
    for (let count = 0; count < 12; count += 1) {
      const last = logits([...tokens, ...answer]).at(-1) ?? []
      answer.push(last.indexOf(Math.max(...last)))
    }
    return { prompt: tokens, greedy: answer }
  })
  return { model: new Blob([file]), cases, isBatched: true, isScheduled: true }
}

const LAYOUTS: Record<string, Layout> = {
  grouped: { model: 'tiny/onnx/model.onnx', cases: tiny, isBatched: true, isScheduled: true },
  older: { model: 'tiny/older/model.onnx', cases: tiny, isBatched: true, isScheduled: true },
  plain: of('plain', 'model'),
  conv: { ...of('conv', 'model'), hasStates: true, isScheduled: true },
  recurrent: { ...of('recurrent', 'model'), hasStates: true, isScheduled: true },
  split,
  branch: { ...of('branch', 'model'), ...branch },
  q4,
  fp16: { ...of('fp16', 'model_fp16'), isBatched: true, isHalf: true },
  q4f16: { ...of('q4f16', 'model_q4f16'), isBatched: true, isHalf: true },
  branch16: { ...of('branch16', 'model_fp16'), ...branch, isHalf: true },
  // The build for large models, which reads weights from a file apart as it needs them.
  gguf: gguf(),
  'large q4': { ...q4, large: true },
  'large split': { ...split, large: true },
  'large gguf': { ...gguf(), large: true },
}

/**
 * Runtimes that the layouts share, by device and build. A GPU made of software compiles shaders for seconds,
 * and each runtime on WASM is compiled anew.
 */
const runtimes = new Map<string, Promise<OpenedRuntime>>()

const open = async (source: DecoderSource): Promise<OpenedDecoder> => {
  const build = `${source.device}, large: ${source.large}`
  const runtime = runtimes.get(build) ?? openRuntime(source.device, source.large)
  runtimes.set(build, runtime)
  return openDecoder(source, await runtime)
}

afterAll(async () => {
  for (const runtime of runtimes.values()) (await runtime).close()
})

const entries = Object.entries(LAYOUTS)
describe.each(entries)('%s on wasm', (name, layout) => void suite('wasm', name, layout))
const onGpu = entries.filter(([, { large, isHalf }]) => !large && (hasHalves || !isHalf))
describe.each(onGpu)(
  '%s on webgpu',
  // A GPU made of software compiles the shaders of a model for seconds.
  { tags: ['slow'] },
  (name, layout) => void suite('webgpu', name, layout),
)

function suite(device: Device, name: string, layout: Layout): void {
  const { cases, hasStates = false, isBatched = false, isHalf = false } = layout
  // WASM adds halves up in 32 bits; a GPU does not, and has scores that are 0.008 apart where they are 8.
  const closeness = isHalf ? { wasm: 0.02, webgpu: 0.1 }[device] : EXACT
  const long = cases[2]?.prompt ?? []
  const isTiny = cases === tiny
  let opened: OpenedDecoder
  beforeAll(async () => {
    opened = await open({ device, ...layout })
  })
  afterAll(() => opened.close())

  /** Expects the scores that a sequence of these tokens has when it is computed afresh. */
  const expectScores = async (scores: Float32Array, tokens: readonly number[]): Promise<void> => {
    const fresh = opened.decoder.open()
    const wanted = await prefill(fresh, tokens, opened.decoder.maxChunkTokens)
    fresh.close()
    expect(maxDifference(scores, wanted)).toBeLessThan(closeness)
  }
  const expectNext = async (sequence: Sequence, before: number[], next: number): Promise<void> => {
    await expectScores(await takeRow(await sequence.forward([next])), [...before, next])
    expect(sequence.length).toBe(before.length + 1)
  }

  // A device of software takes seconds to compile what each length of a prompt needs.
  const some = device === 'webgpu' && !isTiny ? cases.slice(1, 2) : cases
  test.each(some.map((each) => ({ ...each, length: each.prompt.length })))(
    'the tokens after a prompt of $length are those of the reference, in chunks of any size',
    async ({ prompt, greedy: expected }) => {
      const count = device === 'wasm' ? 12 : 4
      const sizes = prompt.length > 100 ? [256, 64, 7] : [64, 5]
      for (const chunk of device === 'wasm' && prompt.length > 1 ? sizes : [64]) {
        const sequence = opened.decoder.open()
        expect(await greedy(sequence, prompt, count, chunk)).toEqual(expected.slice(0, count))
        sequence.close()
      }
    },
  )

  test.runIf(isTiny)('the first scores are those of the reference', async () => {
    const sequence = opened.decoder.open()
    const scores = await takeRow(await sequence.forward(cases[1]?.prompt ?? []))
    FIRST_SCORES.forEach((score, index) => expect(scores[index]).toBeCloseTo(score, 3))
    sequence.close()
  })

  test('a sequence is cut, forked and continued as if it had never been elsewhere', async () => {
    const first = opened.decoder.open()
    await first.extend(long.slice(0, 20))
    first.checkpoint()
    await first.extend(long.slice(20, 33))
    expect(first.reusableLength(33)).toBe(33)
    expect(first.reusableLength(25)).toBe(hasStates ? 20 : 25)
    expect(first.reusableLength(19)).toBe(hasStates ? 0 : 19)
    const second = await first.fork(20)
    const third = await first.fork(33)
    expect([second.length, third.length]).toEqual([20, 33])
    await expectNext(first, long.slice(0, 33), 3)
    await first.truncate(20)
    await expectNext(first, long.slice(0, 20), 4)
    await expectNext(second, long.slice(0, 20), 5)
    first.close()
    await expectNext(third, long.slice(0, 33), 6)
    await second.truncate(0)
    await second.extend(long.slice(0, 2))
    await expectNext(second, long.slice(0, 2), 7)
    await expect(second.truncate(5)).rejects.toMatchObject({ kind: 'internal' })
    second.close()
    third.close()
  })

  test.runIf(isTiny)('a sequence grows beyond its first room, and is cut far back', async () => {
    const sequence = opened.decoder.open()
    await prefill(sequence, long.slice(0, 250))
    const before = sequence.bytes
    await sequence.extend(long.slice(250, 290))
    expect(sequence.bytes).toBeGreaterThan(before)
    await expectNext(sequence, long.slice(0, 290), 9)
    await sequence.truncate(20)
    await expectNext(sequence, long.slice(0, 20), 9)
    sequence.close()
  })

  test('a forward pass has a row of scores for each of the last tokens', async () => {
    const prompt = long.slice(0, 12)
    const sequence = opened.decoder.open()
    const logits = await sequence.forward(prompt, 3)
    expect(logits.rows).toBe(3)
    for (const row of [0, 1, 2])
      await expectScores(await logits.row(row), prompt.slice(0, 10 + row))
    logits.release()
    sequence.close()
  })

  test(`the batch size is ${isBatched ? 'larger than' : ''} one`, () => {
    expect(opened.decoder.maxBatchSize > 3).toBe(isBatched)
    expect(opened.decoder.maxBatchSize > 1).toBe(isBatched)
  })

  test.runIf(isBatched)('sequences of a batch join, leave and are cut', async () => {
    const { decoder } = opened
    const texts = new Map<Sequence, number[]>()
    const begin = async (prompt: number[]): Promise<Sequence> => {
      const sequence = decoder.open()
      await prefill(sequence, prompt)
      texts.set(sequence, [...prompt])
      return sequence
    }
    let token = 1
    const step = async (...sequences: Sequence[]): Promise<void> => {
      const batch = sequences.map((sequence) => ({ sequence, token: (token += 1) }))
      const logits = await decoder.step(batch)
      expect(logits.rows).toBe(batch.length)
      for (const [row, each] of batch.entries()) {
        const text = texts.get(each.sequence) as number[]
        text.push(each.token)
        await expectScores(await logits.row(row), text)
      }
      logits.release()
    }

    const a = await begin(long.slice(5, 17))
    const b = await begin(long.slice(0, 1))
    await step(a, b)
    await step(b, a)
    const c = await begin(long.slice(0, 60))
    await step(a, b, c)
    await step(c)
    await b.truncate(2)
    texts.get(b)?.splice(2)
    await step(a, b, c)
    const d = await b.fork(3)
    texts.set(d, texts.get(b)?.slice(0, 3) ?? [])
    await step(a, d, b, c)
    // It is closed while the others are computed.
    const computed = step(a, d, b)
    c.close()
    await computed
    a.close()
    b.close()
    await step(d)
    d.close()
  })

  const isScheduled =
    layout.isScheduled && (device === 'wasm' || name === 'grouped' || name === 'gguf')
  if (isScheduled) scheduled(() => opened, { device, cases, rewinds: !hasStates })
}

interface ScheduledOptions {
  device: Device
  cases: readonly Case[]
  rewinds: boolean
}

/** Registers tests of answers that the scheduler computes. */
function scheduled(
  opened: () => OpenedDecoder,
  { device, cases, rewinds }: ScheduledOptions,
): void {
  const count = device === 'wasm' ? 10 : 6
  let scheduler: Scheduler | undefined
  const close = async (): Promise<void> => {
    await scheduler?.close()
    scheduler = undefined
  }
  afterEach(close)

  const restart = async (changes: Partial<OpenedDecoder['decoder']> = {}): Promise<void> => {
    await close()
    const { decoder } = opened()
    const { maxChunkTokens, maxBatchSize } = decoder
    scheduler = new Scheduler({
      decoder: {
        maxChunkTokens,
        maxBatchSize,
        open: () => decoder.open(),
        step: (batch) => decoder.step(batch),
        synchronize: () => decoder.synchronize(),
        close: () => decoder.close(),
        ...changes,
      },
      budget: { sequences: 8, bytes: 2 ** 30 },
      reopen: () => Promise.reject(new Error('The decoder must not fail.')),
    })
  }

  interface RunOptions {
    boundaries?: readonly number[]
    drafts?: boolean
    logitBias?: Record<number, number>
  }

  /** Resolves with the tokens of an answer, and how many of the prompt were cached. */
  const run = async (
    prompt: readonly number[],
    { boundaries = [], drafts = false, logitBias = {} }: RunOptions = {},
  ): Promise<{ tokens: number[]; cached: number }> => {
    let cached = -1
    const setup = {
      scheduler: scheduler as Scheduler,
      constraints: {
        open: () => Promise.reject(new Error('There is no constraint.')),
        close: () => undefined,
      },
      encode: () => [],
      endTokens: new Set<number>(),
      contextWindow: 512,
      drafts,
    }
    const sampler = new Sampler(
      { temperature: 0, logitBias },
      { temperature: 0, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, suppress: [] },
      prompt,
    )
    const pieces = runDecodeLoop(
      setup,
      { sampler, detokenizer: { push: (token) => `${token} `, drop: () => undefined } },
      { tokens: prompt, boundaries, opening: '' },
      {
        maxTokens: count,
        sampling: {},
        signal: new AbortController().signal,
        onStart: ({ cachedTokens }) => (cached = cachedTokens),
      },
    )
    let text = ''
    for await (const piece of pieces) text += piece.text
    return { tokens: text.trim().split(' ').map(Number), cached }
  }

  const { prompt, greedy: answer } = cases[2] as Case
  const expected = answer.slice(0, count)

  test.each([256, 16])(
    'answers at once are those of the reference, in chunks of %i',
    async (size) => {
      await restart({ maxChunkTokens: Math.min(size, opened().decoder.maxChunkTokens) })
      const answers = await Promise.all(cases.map((each) => run(each.prompt)))
      expect(answers).toEqual(
        cases.map((each) => ({ tokens: each.greedy.slice(0, count), cached: 0 })),
      )
    },
  )

  test('an answer after a cached prefix is the same: again, another turn, an edit, a branch', async () => {
    const half = Math.floor(prompt.length / 2)
    const boundaries = [half]
    const prompts = [
      prompt,
      prompt,
      [...prompt, ...expected, 7, 8, 9],
      [...prompt.slice(0, -3), 5],
      [...prompt.slice(0, half), 5, 6],
    ]
    await restart()
    const found: Awaited<ReturnType<typeof run>>[] = []
    for (const each of prompts) found.push(await run(each, { boundaries }))
    for (const [index, each] of prompts.entries()) {
      await restart()
      expect((await run(each, { boundaries })).tokens).toEqual(found[index]?.tokens)
    }
    expect(found[0]?.cached).toBe(0)
    for (const { cached } of found.slice(1)) expect(cached).toBeGreaterThanOrEqual(half)
    expect(found[2]?.cached).toBe(prompt.length + count - 1)
  })

  test('drafted tokens change no answer', async () => {
    // Of two tokens, after all of whose triples it is known how they went on.
    const [one, other] = [expected[0] as number, expected[1] as number]
    const triples = [...'0001011100'].map((digit) => (digit === '0' ? one : other))
    const logitBias = { [one]: 100, [other]: 100 }
    await restart()
    const plain = await run([...prompt, ...triples], { logitBias })
    let verified = 0
    const openCounted = () => {
      const sequence = opened().decoder.open()
      const forward = sequence.forward.bind(sequence)
      const counted: Sequence['forward'] = (tokens, rows) => {
        verified += Number((rows ?? 1) > 1)
        return forward(tokens, rows)
      }
      return Object.assign(sequence, { forward: counted })
    }
    await restart({ open: openCounted })
    const drafted = await run([...prompt, ...triples], { logitBias, drafts: true })
    expect(drafted.tokens).toEqual(plain.tokens)
    expect(verified > 0).toBe(rewinds)
  })
}

describe('4-bit weights that were converted to 8-bit integers', () => {
  const Q4 = { device: 'wasm', model: of('q4', 'model_q4').model } as const
  /** Rounding of the two, over the greatest of the logits. Random weights of 32 rows hide little of it. */
  const CLOSENESS = 0.15
  const prompt = layouts.q4[2]?.prompt as number[]
  let exact: OpenedDecoder
  let int8: OpenedDecoder
  beforeAll(async () => {
    exact = await open(Q4)
    int8 = await open({ ...Q4, int8: true })
  })
  afterAll(() => Promise.all([exact.close(), int8.close()]))

  /** Logits after a prefix of the prompt of that length, and after another token. */
  async function logitsAfter({ decoder }: Pick<OpenedDecoder, 'decoder'>, length: number) {
    const sequence = decoder.open()
    const first = await prefill(sequence, prompt.slice(0, length))
    const second = await takeRow(await sequence.forward([7]))
    sequence.close()
    return [first, second] as const
  }

  test.each([1, 9, 70])('differ little in their logits after %i tokens', async (length) => {
    const wanted = await logitsAfter(exact, length)
    const got = await logitsAfter(int8, length)
    for (const [step, row] of wanted.entries()) {
      const greatest = maxDifference(row, new Float32Array(row.length))
      const difference = maxDifference(row, got[step] ?? row) / greatest
      expect(difference).toBeLessThan(CLOSENESS)
      // Equal logits would mean that nothing was converted.
      expect(difference).toBeGreaterThan(1e-4)
    }
  })

  test('give the same logits in chunks of any size, and beside other sequences', async () => {
    const { decoder } = int8
    const compute = async (tokens: readonly number[], chunk?: number): Promise<Float32Array> => {
      const sequence = decoder.open()
      const row = await prefill(sequence, tokens, chunk)
      sequence.close()
      return row
    }
    expect(maxDifference(await compute(prompt, 64), await compute(prompt, 5))).toBeLessThan(EXACT)
    const texts = [prompt.slice(0, 30), prompt.slice(0, 7), prompt.slice(5, 25)]
    const together = texts.map(() => decoder.open())
    for (const [index, sequence] of together.entries()) await sequence.extend(texts[index] ?? [])
    const batch = await decoder.step(together.map((sequence) => ({ sequence, token: 11 })))
    for (const [row, text] of texts.entries()) {
      const alone = await compute([...text, 11])
      expect(maxDifference(await batch.row(row), alone)).toBeLessThan(EXACT)
    }
    batch.release()
    for (const sequence of together) sequence.close()
  })

  test.each([
    ['are what a load on WASM computes with', 'fast'],
    ['are not what an exact load computes with', 'exact'],
  ] as const)('%s', async (_, precision) => {
    const { model, externalData } = await readFiles(Q4.model)
    const weights = new Map([
      ['onnx/model_q4.onnx', model],
      ...externalData.map(({ path, data }) => [`onnx/${path}`, data] as const),
    ])
    const options = { contextWindow: 512, firstPosition: 0, warm: false } as const
    const loaded = await loadDecoder(
      { device: 'wasm', runtime: runtimeFolder(), precision, ...options },
      weights,
      new AbortController().signal,
    )
    const [same, other] = precision === 'fast' ? [int8, exact] : [exact, int8]
    const [row] = await logitsAfter(loaded, 9)
    expect(maxDifference((await logitsAfter(same, 9))[0], row)).toBeLessThan(EXACT)
    expect(maxDifference((await logitsAfter(other, 9))[0], row)).toBeGreaterThan(EXACT)
    await loaded.release()
  })
})
