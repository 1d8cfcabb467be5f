/** The worker of a vocabulary, and the thread that waits for it. */
import { expect, onTestFinished, test } from 'vitest'
import { createConstraintCompiler } from '../../../src/constraint/index.ts'

const never = new AbortController().signal
const WASM = '/inorigin/llguidance.wasm'
const WORKER = '/inorigin/vocabulary-worker.js'

/** A vocabulary as large as those of models: all bytes, and words of random letters. */
function largeVocabulary(size: number) {
  let state = 1
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const bytes: (Uint8Array | null)[] = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte))
  while (bytes.length < size) {
    bytes.push(Uint8Array.from({ length: 2 + random(8) }, () => 0x61 + random(26)))
  }
  const end = bytes.push(null) - 1
  return { bytes, special: new Map([['<end>', end]]), endTokens: [end] }
}

/** Counts the tasks that this thread runs beside others. */
function countTasks(): () => number {
  const { port1, port2 } = new MessageChannel()
  let tasks = 0
  port1.onmessage = () => {
    tasks += 1
    port2.postMessage(null)
  }
  port2.postMessage(null)
  onTestFinished(() => port1.close())
  return () => tasks
}

test('a large vocabulary is built elsewhere and copied in small steps', async () => {
  const tasks = countTasks()
  const steps: { type: string; bytes: number; tasks: number }[] = []
  let isTerminated = false
  const createWorker = (): Worker => {
    const worker = new Worker(WORKER, { type: 'module' })
    worker.addEventListener('message', ({ data }) => {
      steps.push({ type: data.type, bytes: data.bytes?.length ?? 0, tasks: tasks() })
    })
    const terminate = worker.terminate.bind(worker)
    worker.terminate = () => {
      isTerminated = true
      terminate()
    }
    return worker
  }
  const compiler = createConstraintCompiler({
    ...largeVocabulary(120_000),
    wasm: WASM,
    createWorker,
  })
  onTestFinished(() => compiler.close())
  const before = tasks()
  const whole = await compiler.open({ type: 'text' }, never)
  whole.close()
  const [started, built, ...copied] = steps
  const types = [started?.type, built?.type, ...new Set(copied.map(({ type }) => type))]
  expect(types).toEqual(['started', 'built', 'memory'])
  // This thread would run no task while it built the vocabulary itself.
  expect((built?.tasks ?? 0) - before).toBeGreaterThan(100)
  expect(copied.length).toBeGreaterThan(16)
  expect(Math.max(...copied.map(({ bytes }) => bytes))).toBeLessThanOrEqual(2 * 2 ** 20)
  expect(copied.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(compiler.memoryBytes)
  expect(isTerminated).toBe(true)

  const matcher = await compiler.open({ type: 'pattern', pattern: '[ab]{2,4}c' }, never)
  for (const character of 'abc') expect(matcher.accept(character.charCodeAt(0))).toBe(true)
  expect(matcher.accept(0x61)).toBe(false)
})

test('without such a worker, the vocabulary is built here', async () => {
  const createWorker = (): Worker => new Worker('/missing/vocabulary-worker.js', { type: 'module' })
  const compiler = createConstraintCompiler({ ...largeVocabulary(300), wasm: WASM, createWorker })
  onTestFinished(() => compiler.close())
  const matcher = await compiler.open({ type: 'constant', text: 'ab' }, never)
  expect(new TextDecoder().decode(matcher.forced())).toBe('ab')
})

test('closing ends the worker', async () => {
  const workers: Worker[] = []
  let terminated = 0
  const createWorker = (): Worker => {
    const worker = new Worker(WORKER, { type: 'module' })
    const terminate = worker.terminate.bind(worker)
    worker.terminate = () => {
      terminated += 1
      terminate()
    }
    workers.push(worker)
    return worker
  }
  const compiler = createConstraintCompiler({
    ...largeVocabulary(120_000),
    wasm: WASM,
    createWorker,
  })
  const opening = compiler.open({ type: 'text' }, never)
  await expect.poll(() => workers.length).toBe(1)
  compiler.close()
  await expect(opening).rejects.toThrow('closed')
  expect([terminated, compiler.memoryBytes]).toEqual([1, 0])
})
