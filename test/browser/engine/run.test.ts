import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { runDecodeLoop } from '../../../src/engine/run/decode-loop.ts'
import { createScheduler, type Scheduler } from '../../../src/engine/run/scheduler.ts'
import { createSampler } from '../../../src/engine/sampling/sampler.ts'
import { openDecoder, type OpenedDecoder, type DecoderSource } from '../../models/layouts.ts'
import layouts from '../../models/layouts/expected.json'
import { CASES as tiny } from '../../models/tiny.ts'

interface Case {
  prompt: number[]
  greedy: number[]
}

const of = (folder: keyof typeof layouts, more: Partial<DecoderSource> = {}) => ({
  name: folder,
  model: `layouts/${folder}/onnx/model.onnx`,
  cases: layouts[folder] as Case[],
  ...more,
})

const grouped = { name: 'grouped', model: 'tiny/onnx/model.onnx', cases: tiny as Case[] }
const plain = { name: 'older', model: 'tiny/older/model.onnx', cases: tiny as Case[] }

const SETTINGS = [
  { device: 'wasm', count: 10, rewinds: true, ...grouped },
  { device: 'wasm', count: 10, rewinds: true, ...plain },
  { device: 'wasm', count: 10, rewinds: false, ...of('conv') },
  { device: 'wasm', count: 10, rewinds: false, ...of('recurrent') },
  { device: 'webgpu', count: 6, rewinds: true, ...grouped },
] as const

type Setting = (typeof SETTINGS)[number]

describe.each(SETTINGS.filter(({ device }) => device === 'wasm'))(
  '$name on $device',
  (setting) => void suite(setting),
)
// A GPU made of software compiles the shaders of a model for seconds.
describe.each(SETTINGS.filter(({ device }) => device === 'webgpu'))(
  '$name on $device',
  { tags: ['slow'] },
  (setting) => void suite(setting),
)

function suite({ device, count, model, cases, rewinds }: Setting): void {
  let opened: OpenedDecoder
  let scheduler: Scheduler | undefined
  beforeAll(async () => {
    opened = await openDecoder({ device, model })
  })
  afterAll(() => opened.close())
  afterEach(async () => {
    await scheduler?.close()
    scheduler = undefined
  })

  const begin = (chunk = opened.decoder.maxChunkTokens, decoder = opened.decoder): void => {
    scheduler = createScheduler({
      decoder: { ...decoder, maxChunkTokens: chunk },
      budget: { sequences: 8, bytes: 2 ** 30 },
      reopen: () => Promise.reject(new Error('It is not to fail.')),
    })
  }

  /** The tokens of an answer, which are told as text, and how many of the prompt were cached. */
  const run = async (
    prompt: readonly number[],
    boundaries: readonly number[] = [],
    {
      drafts = false,
      logitBias = {},
    }: { drafts?: boolean; logitBias?: Record<number, number> } = {},
  ): Promise<{ tokens: number[]; cached: number }> => {
    let cached = -1
    const setup = {
      scheduler: scheduler as Scheduler,
      constraints: {
        open: () => Promise.reject(new Error('None is asked for.')),
        close: () => undefined,
      },
      encode: () => [],
      endTokens: new Set<number>(),
      contextWindow: 512,
      drafts,
    }
    const sampler = createSampler(
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

  const [, , last] = cases
  const { prompt, greedy } = last as Case
  const expected = greedy.slice(0, count)

  test('writes what the reference does, in one chunk and in many', async () => {
    begin()
    expect(await run(prompt)).toEqual({ tokens: expected, cached: 0 })
    await scheduler?.close()
    begin(16)
    expect(await run(prompt)).toEqual({ tokens: expected, cached: 0 })
  })

  test('writes the same behind what was cached: again, another turn, an edit, a branch', async () => {
    const second = [...prompt, ...expected, 7, 8, 9]
    const half = Math.floor(prompt.length / 2)
    const boundaries = [half]
    const prompts = [
      prompt,
      prompt,
      second,
      [...prompt.slice(0, -3), 5],
      [...prompt.slice(0, half), 5, 6],
    ]
    begin()
    const cached: Awaited<ReturnType<typeof run>>[] = []
    for (const each of prompts) cached.push(await run(each, boundaries))
    for (const [index, each] of prompts.entries()) {
      await scheduler?.close()
      begin()
      expect((await run(each, boundaries)).tokens).toEqual(cached[index]?.tokens)
    }
    expect(cached[0]?.cached).toBe(0)
    for (const { cached: length } of cached.slice(1)) expect(length).toBeGreaterThanOrEqual(half)
    expect(cached[2]?.cached).toBe(prompt.length + count - 1)
  })

  test('writes several at once as one by one', async () => {
    const prompts = cases.map((each) => each.prompt)
    begin()
    const answers = await Promise.all(prompts.map((each) => run(each)))
    expect(answers.map(({ tokens }) => tokens)).toEqual(
      cases.map((each) => each.greedy.slice(0, count)),
    )
  })

  test('writes the same with tokens that were guessed', async () => {
    // Of two tokens, after all of whose triples it is known how they went on.
    const [one, other] = [expected[0] as number, expected[1] as number]
    const triples = [...'0001011100'].map((digit) => (digit === '0' ? one : other))
    const guessable = { logitBias: { [one]: 100, [other]: 100 }, drafts: false }
    begin()
    const plainly = await run([...prompt, ...triples], [], guessable)
    await scheduler?.close()
    let ventures = 0
    begin(undefined, {
      ...opened.decoder,
      open: () => {
        const sequence = opened.decoder.open()
        const { forward } = sequence
        return Object.assign(sequence, {
          forward: (tokens: readonly number[], rows?: number) => {
            ventures += Number((rows ?? 1) > 1)
            return forward(tokens, rows)
          },
        })
      },
    })
    const guessed = await run([...prompt, ...triples], [], { ...guessable, drafts: true })
    expect(guessed.tokens).toEqual(plainly.tokens)
    expect(ventures > 0).toBe(rewinds)
  })
}
