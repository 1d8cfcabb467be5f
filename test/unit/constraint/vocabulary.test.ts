/** Vocabularies: their packed form, and copies of instances from a worker. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Instance } from '../../../src/constraint/instance.ts'
import {
  buildHere,
  buildInWorker,
  packVocabulary,
  type VocabularyRequest,
  type VocabularyResponse,
} from '../../../src/constraint/vocabulary.ts'
import { createVocabulary } from './texts.ts'

const module = new WebAssembly.Module(
  readFileSync(join(import.meta.dirname, '../../../src/constraint/llguidance.wasm')),
)
const { bytes, endTokens } = createVocabulary(['hello', '日本'], ['<call>'])
const never = new AbortController().signal

test('tokens are packed with their lengths, and those without a text are empty', () => {
  const { tokens, endTokens: ends } = packVocabulary(
    [Uint8Array.of(1, 2), null, new Uint8Array(1001), new Uint8Array(300).fill(7)],
    [1, 9],
  )
  expect([...tokens].slice(0, 11)).toEqual([2, 0, 1, 2, 0, 0, 0, 0, 300 & 255, 1, 7])
  expect(tokens).toHaveLength(2 + 2 + 2 + 2 + 2 + 300)
  // An id that the model does not have is no end.
  expect([...ends]).toEqual([1])
})

test('a vocabulary without an end token is refused', async () => {
  await expect(buildHere(module, packVocabulary(bytes, []))).rejects.toThrow('no end token')
})

/** A worker of this thread, which answers as `vocabulary-worker.ts` does. */
class FakeWorker {
  onmessage: ((event: { data: VocabularyResponse }) => void) | null = null
  onerror: ((event: { preventDefault(): void }) => void) | null = null
  onmessageerror: (() => void) | null = null
  readonly requests: VocabularyRequest[] = []
  isTerminated = false
  readonly #answer: (request: VocabularyRequest) => VocabularyResponse | 'error' | 'silent'

  constructor(
    answer: (request: VocabularyRequest) => VocabularyResponse | 'error' | 'silent',
    start: VocabularyResponse | 'error' | 'silent' = { type: 'started' },
  ) {
    this.#answer = answer
    this.#say(start)
  }

  postMessage(request: VocabularyRequest): void {
    this.requests.push(request)
    this.#say(this.#answer(request))
  }

  #say(response: VocabularyResponse | 'error' | 'silent'): void {
    queueMicrotask(() => {
      if (response === 'error') this.onerror?.({ preventDefault: () => undefined })
      else if (response !== 'silent') this.onmessage?.({ data: response })
    })
  }

  terminate(): void {
    this.isTerminated = true
  }
}

const build = (worker: FakeWorker, signal = never): Promise<Instance | null> =>
  buildInWorker(module, packVocabulary(bytes, endTokens), () => worker as unknown as Worker, signal)

describe('an instance from a worker', () => {
  test('is a copy of its memory, piece by piece', async () => {
    const built = await buildHere(module, packVocabulary(bytes, endTokens))
    // Memory that was used for something makes several pieces.
    const grammars = Array.from({ length: 3 }, () => built.compile('start: /(a{500}|b)*/'))
    for (const each of grammars) built.dropGrammar(each)
    const worker = new FakeWorker((request) =>
      request.type === 'build'
        ? { type: 'built', memoryBytes: built.memoryBytes }
        : {
            type: 'memory',
            start: request.start,
            bytes: built.copyMemory(request.start, request.end),
          },
    )
    const copy = await build(worker)
    expect(worker.isTerminated).toBe(true)
    expect(copy?.memoryBytes).toBe(built.memoryBytes)
    const maskOf = (instance: Instance): number[] => {
      const matcher = instance.open(instance.compile('start: "hello" | "日本"'))
      return [...instance.mask(matcher, Math.ceil(bytes.length / 32))]
    }
    expect(copy && maskOf(copy)).toEqual(maskOf(built))
    const pieces = worker.requests.flatMap((each) => (each.type === 'read' ? [each] : []))
    expect(pieces.map(({ start }) => start)).toEqual([
      0,
      ...pieces.slice(0, -1).map(({ end }) => end),
    ])
    expect(pieces.at(-1)?.end).toBe(built.memoryBytes)
    expect(Math.max(...pieces.map(({ start, end }) => end - start))).toBeLessThanOrEqual(
      2 * 2 ** 20,
    )
  })

  test('is none where no worker starts', async () => {
    const forbid = (): Worker => {
      throw new DOMException('Forbidden by the policy.', 'SecurityError')
    }
    const packed = packVocabulary(bytes, endTokens)
    expect(await buildInWorker(module, packed, forbid, never)).toBeNull()
    for (const start of [{ type: 'started' }, 'error'] as const) {
      const failing = new FakeWorker(() => 'error', start)
      expect(await build(failing)).toBeNull()
      expect(failing.isTerminated).toBe(true)
    }
  })

  test('is none if the worker does not start in time, and one if it does', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const late = new FakeWorker(() => 'silent', 'silent')
    const building = build(late)
    await vi.advanceTimersByTimeAsync(4_999)
    expect([late.isTerminated, late.requests]).toEqual([false, []])
    await vi.advanceTimersByTimeAsync(1)
    expect(await building).toBeNull()
    expect(late.isTerminated).toBe(true)
    // A build may take longer.
    const slow = new FakeWorker(() => 'silent')
    void build(slow)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([slow.isTerminated, slow.requests.length]).toEqual([false, 1])
  })

  test('is an error if the module fails', async () => {
    const failing = new FakeWorker(() => ({ type: 'failed', reason: 'No memory.' }))
    await expect(build(failing)).rejects.toMatchObject({
      code: 'constraint_trap',
      message: 'The vocabulary could not be built: No memory.',
    })
  })

  test('ends its worker when the signal aborts', async () => {
    const worker = new FakeWorker(() => 'silent')
    const controller = new AbortController()
    const building = build(worker, controller.signal)
    await expect.poll(() => worker.requests.length).toBe(1)
    controller.abort(new Error('Enough.'))
    await expect(building).rejects.toThrow('Enough.')
    expect(worker.isTerminated).toBe(true)
  })
})
