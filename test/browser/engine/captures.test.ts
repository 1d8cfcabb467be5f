/** Captured runs on WebGPU: the same texts as plain runs, from the commands of an earlier run. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Sequence } from '../../../src/engine/decoder.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import { attribute } from '../../../src/engine/onnx/graph-file.ts'
import {
  encode,
  GRAPH,
  message,
  NODE,
  rewriteGraph,
  textsOf,
} from '../../../src/engine/onnx/protobuf.ts'
import { runDecodeLoop } from '../../../src/engine/run/decode-loop.ts'
import { Scheduler } from '../../../src/engine/run/scheduler.ts'
import { createRandom, Sampler } from '../../../src/engine/sampling/sampler.ts'
import {
  greedy,
  openDecoder,
  openRuntime,
  prefill,
  readFiles,
  takeRow,
  type OpenedDecoder,
  type OpenedRuntime,
} from '../../models/layouts.ts'
import { CASES, runtimeFolder } from '../../models/tiny.ts'
import { createGgufDecoder, METADATA } from '../../support/gguf-decoder.ts'

const TINY = 'tiny/onnx/model.onnx'
/** Ids of the tiny model are below it. */
const VOCABULARY = 280
const { prompt: PROMPT = [], greedy: ANSWER = [] } = CASES[1] ?? {}
const never = new AbortController().signal

let runtime: OpenedRuntime
let plain: OpenedDecoder
let capturing: OpenedDecoder
beforeAll(async () => {
  runtime = await openRuntime('webgpu')
  plain = await openDecoder({ device: 'webgpu', model: TINY }, runtime)
  capturing = await openDecoder({ device: 'webgpu', model: TINY, captures: true }, runtime)
})
afterAll(async () => {
  await plain.close()
  await capturing.close()
  runtime.close()
})
afterEach(() => void vi.restoreAllMocks())

/** Returns a function that resolves with the number of bind groups that a task creates; a repeated run has none. */
function countBindGroups(): (task: () => Promise<unknown>) => Promise<number> {
  const bind = vi.spyOn(GPUDevice.prototype, 'createBindGroup')
  return async (task) => {
    const before = bind.mock.calls.length
    await task()
    return bind.mock.calls.length - before
  }
}

/** Opens a sequence with the prompt. */
async function begin({ decoder }: OpenedDecoder, prompt = PROMPT): Promise<Sequence> {
  const sequence = decoder.open()
  await prefill(sequence, prompt)
  return sequence
}

const largest = (row: Float32Array): number => row.indexOf(Math.max(...row))

test('a step is recorded once for each KV cache, and a later sequence gets the cache of a closed one', async () => {
  const count = countBindGroups()
  const one = await begin(capturing)
  const other = await begin(capturing)
  const step = async (sequence: Sequence, token = 0): Promise<number> =>
    largest(await takeRow(await sequence.forward([token])))
  await step(one, ANSWER[0])
  expect(await count(() => step(other, ANSWER[0]))).toBeGreaterThan(0)
  for (const at of [1, 2, 3]) {
    for (const sequence of [one, other]) {
      let next = -1
      expect(await count(async () => (next = await step(sequence, ANSWER[at])))).toBe(0)
      expect(next).toBe(ANSWER[at + 1])
    }
  }
  one.close()
  const third = await begin(capturing)
  expect(await count(() => step(third, ANSWER[0]))).toBe(0)
  third.close()
  other.close()
})

test.each([4, 8])(
  '%i tokens with their logits are repeated, too, and others are not',
  async (size) => {
    const count = countBindGroups()
    const sequence = await begin(capturing)
    const text = [...PROMPT, ...ANSWER]
    const verify = async (tokens: number[], rows = tokens.length): Promise<void> => {
      const length = sequence.length
      const logits = await sequence.forward(tokens, rows)
      for (let row = 0; row < rows; row += 1)
        expect(largest(await logits.row(row))).toBe(text[length + tokens.length - rows + row + 1])
      logits.release()
    }
    await verify(ANSWER.slice(0, size))
    await sequence.truncate(PROMPT.length)
    expect(await count(() => verify(ANSWER.slice(0, size)))).toBe(0)
    await sequence.truncate(PROMPT.length)
    expect(await count(() => verify(ANSWER.slice(0, size), 1))).toBeGreaterThan(0)
    await sequence.truncate(PROMPT.length)
    expect(await count(() => verify(ANSWER.slice(0, 3)))).toBeGreaterThan(0)
    sequence.close()
  },
)

test('a batch is repeated, each row at its own length', async () => {
  const count = countBindGroups()
  const prompts = [PROMPT, PROMPT.slice(3), [...PROMPT, ...PROMPT]]
  const batchOf = (from: OpenedDecoder) => Promise.all(prompts.map((each) => begin(from, each)))
  const [expected, sequences] = [await batchOf(plain), await batchOf(capturing)]
  for (let at = 0; at < 4; at += 1) {
    const token = at + 1
    const entries = (all: Sequence[]) => all.map((sequence) => ({ sequence, token }))
    const wanted = await plain.decoder.step(entries(expected))
    const bound = await count(async () => {
      const logits = await capturing.decoder.step(entries(sequences))
      for (const row of prompts.keys()) expect(await logits.row(row)).toEqual(await wanted.row(row))
      logits.release()
    })
    wanted.release()
    if (at > 0) expect(bound).toBe(0)
  }
  for (const sequence of [...expected, ...sequences]) sequence.close()
})

test('logits stay what they are while another sequence takes a step', async () => {
  const one = await begin(capturing)
  const other = await begin(capturing, PROMPT.slice(3))
  const logits = await one.forward([ANSWER[0] ?? 0])
  const before = (await logits.row(0)).slice()
  await takeRow(await other.forward([5]))
  expect(await logits.row(0)).toEqual(before)
  logits.release()
  one.close()
  other.close()
})

test('sequences come and go without more and more memory', async () => {
  let bytes = 0
  const create = GPUDevice.prototype.createBuffer
  const destroy = GPUBuffer.prototype.destroy
  const alive = new WeakSet<GPUBuffer>()
  vi.spyOn(GPUDevice.prototype, 'createBuffer').mockImplementation(function (
    this: GPUDevice,
    descriptor,
  ) {
    const buffer = create.call(this, descriptor)
    alive.add(buffer)
    bytes += buffer.size
    return buffer
  })
  vi.spyOn(GPUBuffer.prototype, 'destroy').mockImplementation(function (this: GPUBuffer) {
    if (alive.delete(this)) bytes -= this.size
    return destroy.call(this)
  })
  const comeAndGo = async (): Promise<void> => {
    const sequences = [await begin(capturing), await begin(capturing)]
    for (const sequence of sequences) await takeRow(await sequence.forward([4]))
    for (const sequence of sequences) sequence.close()
  }
  await comeAndGo()
  const before = bytes
  for (let time = 0; time < 5; time += 1) await comeAndGo()
  expect(bytes).toBe(before)
})

/** Resolves with the tiny model, in which each operator of that kind is changed. */
async function changed(kind: string, change: (node: BlobPart) => Blob) {
  const { model } = await readFiles(TINY)
  return rewriteGraph(model, async ({ number, from, to }, window) => {
    if (number !== GRAPH.node) return null
    const node = await window.read(from, to)
    return textsOf(node, NODE.kind)[0] === kind
      ? message(GRAPH.node, change(new Blob([node as BlobPart])))
      : null
  })
}

describe('a load on WebGPU', () => {
  const options = {
    device: 'webgpu',
    runtime: runtimeFolder(),
    contextWindow: 512,
    firstPosition: 0,
    warm: false,
    verdict: { features: [] },
  } as const

  /** Resolves with the tokens that a loaded model answers with, and the bind groups of its last steps. */
  async function answerOf(model: Blob, more: { captures?: boolean } = {}) {
    const weights = new Map([['onnx/model.onnx', model]])
    const loaded = await loadDecoder({ ...options, ...more }, weights, never)
    const sequence = loaded.decoder.open()
    const tokens = await greedy(sequence, PROMPT, 4)
    const bound = await countBindGroups()(() => greedy(sequence, tokens.slice(-1), 3))
    sequence.close()
    await loaded.release()
    vi.restoreAllMocks()
    return { tokens, bound }
  }

  test('captures what recurs', async () => {
    const { model } = await readFiles(TINY)
    expect(await answerOf(model)).toEqual({ tokens: ANSWER.slice(0, 4), bound: 0 })
  })

  // Each load compiles all shaders again.
  const slow = { tags: ['slow'] }

  test('captures nothing if it should not', slow, async () => {
    const { model } = await readFiles(TINY)
    const { tokens, bound } = await answerOf(model, { captures: false })
    expect(tokens).toEqual(ANSWER.slice(0, 4))
    expect(bound).toBeGreaterThan(0)
  })

  test.each([
    [
      'of which the runtime computes a part on the CPU',
      () => {
        const celu = encode([[NODE.kind, 'Celu']])
        return changed('Sigmoid', (node) => new Blob([node, celu]))
      },
    ],
    [
      'whose attention cannot be captured',
      () => {
        const smooth = encode(attribute('smooth_softmax', 1))
        return changed('GroupQueryAttention', (node) => new Blob([node, smooth]))
      },
    ],
  ])('captures nothing of a graph %s', slow, async (_, create) => {
    const model = await create()
    const { tokens, bound } = await answerOf(model)
    expect(tokens).toEqual((await answerOf(model, { captures: false })).tokens)
    expect(bound).toBeGreaterThan(0)
  })
})

/** A decoder that captures, and one that does not. */
type Pair = readonly [OpenedDecoder, OpenedDecoder]

interface Question {
  tokens: number[]
  drafts: boolean
  maxTokens: number
}

/** Answers the questions, as many at once as a group has. */
async function answer({ decoder }: OpenedDecoder, groups: Question[][]): Promise<number[][]> {
  const scheduler = new Scheduler({
    decoder,
    budget: { sequences: 6, bytes: 2 ** 30 },
    reopen: () => Promise.reject(new Error('The decoder must not fail.')),
  })
  const one = async ({ tokens, drafts, maxTokens }: Question): Promise<number[]> => {
    const sampling = {
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
      suppress: [],
    }
    const pieces = runDecodeLoop(
      {
        scheduler,
        constraints: { open: () => Promise.reject(new Error('There is no constraint.')) },
        encode: () => [],
        endTokens: new Set<number>(),
        contextWindow: 512,
        drafts,
      },
      {
        sampler: new Sampler({ temperature: 0 }, sampling, tokens),
        detokenizer: { push: (token) => `${token} `, drop: () => undefined },
      },
      { tokens, boundaries: [], opening: '' },
      { maxTokens, sampling: {}, signal: never },
    )
    const found: number[] = []
    for await (const { tokenIds = [] } of pieces) found.push(...tokenIds)
    return found
  }
  const answers: number[][] = []
  try {
    for (const group of groups) answers.push(...(await Promise.all(group.map(one))))
  } finally {
    await scheduler.close()
  }
  return answers
}

/**
 * Returns groups of questions. Some repeat a phrase, so that tokens are drafted; some go on after an earlier one or
 * leave it after its first half, so that cached prefixes are found and truncated.
 */
function draw(count: number, seed: number): Question[][] {
  const random = createRandom(seed)
  const below = (limit: number): number => Math.floor(random() * limit)
  const tokensOf = (length: number): number[] => Array.from({ length }, () => below(VOCABULARY))
  const asked: number[][] = []
  const groups: Question[][] = []
  for (let made = 0; made < count;) {
    const size = Math.min(count - made, [1, 1, 2, 4][below(4)] ?? 1)
    groups.push(
      Array.from({ length: size }, () => {
        const earlier = asked[below(Math.max(1, asked.length))] ?? []
        const phrase = tokensOf(2 + below(3))
        const tokens = [
          () => tokensOf(1 + below(60)),
          () => [...tokensOf(5), ...Array.from({ length: 6 }, () => phrase).flat()],
          () => [...earlier.slice(0, 150), ...tokensOf(1 + below(8))],
          () => [...earlier.slice(0, earlier.length >> 1), ...tokensOf(1 + below(8))],
        ][below(4)]?.() ?? [1]
        asked.push(tokens)
        return { tokens, drafts: random() < 0.7, maxTokens: 4 + below(20) }
      }),
    )
    made += size
  }
  return groups
}

async function expectSameAnswers([captured, other]: Pair, count: number, seed: number) {
  const groups = draw(count, seed)
  const bind = vi.spyOn(GPUDevice.prototype, 'createBindGroup')
  const answers = await answer(captured, groups)
  const bound = bind.mock.calls.length
  expect(answers).toEqual(await answer(other, groups))
  // Most runs are repeated; prompts are not.
  expect(bound).toBeLessThan((bind.mock.calls.length - bound) / 2)
}

test('answers are the same as without: drafts, batches, cut sequences and cached prefixes', () =>
  expectSameAnswers([capturing, plain], 8, 1))

describe('many answers', { tags: ['slow'] }, () => {
  test('200 answers are the same as without', () => expectSameAnswers([capturing, plain], 200, 2))

  test.each([
    ['with position ids, and the logits of all tokens', 'tiny/older/model.onnx'],
    ['with weights of 4 bits', 'layouts/q4/onnx/model_q4.onnx'],
    ['from a GGUF file', () => new Blob([createGgufDecoder('Q4_1', METADATA).file])],
  ])('a decoder %s', async (_, source) => {
    const model = typeof source === 'string' ? source : source()
    const pair = [
      await openDecoder({ device: 'webgpu', model, captures: true }, runtime),
      await openDecoder({ device: 'webgpu', model }, runtime),
    ] as const
    await expectSameAnswers(pair, 20, 3)
    for (const each of pair) await each.close()
  })
})
