/** The engine for models that MLC compiled: over a stand-in, and the package itself up to its files. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { withTimeout } from '../../../src/store/timeouts.ts'
import type { Engine, TextChunk, Prompt } from '../../../src/engine/engine.ts'
import { MODEL_URL, openArtifacts } from '../../../src/engine/webllm/artifacts.ts'
import { watchDevice } from '../../../src/engine/webllm/device.ts'
import { openPipeline } from '../../../src/engine/webllm/pipeline.ts'
import { tinyFiles } from '../../models/tiny.ts'
import { decoded, GREEDY, load, long, never, run, short, textOf } from './run-engine.ts'
import { loadStandIn, type Log } from './webllm-standin.ts'

/** Of the tokens of an answer. */
const probabilities = (pieces: readonly TextChunk[]): number[] =>
  pieces.flatMap(({ logprobs = [] }) => logprobs.map(({ logprob }) => logprob))

describe('over a stand-in for the package', () => {
  let engine: Engine
  let log: Log
  let reference: Engine
  beforeAll(async () => {
    ;({ engine, log } = await loadStandIn())
    reference = await load()
  })
  afterAll(async () => {
    await engine.close()
    await reference.close()
  })
  beforeEach(() => Object.assign(log, { resets: 0, forwards: [] }))

  const cachedOf = async (prompt: Prompt, partition = 'one'): Promise<number> => {
    let cached = -1
    const onStart = (started: { cachedTokens: number }) => (cached = started.cachedTokens)
    await run(engine, prompt, { ...GREEDY, maxTokens: 4, partition, onStart })
    return cached
  }

  test.each([short, long, short])('gives the text of the reference', async ({ prompt, greedy }) => {
    const { pieces, ending } = await run(engine, prompt)
    expect(textOf(pieces)).toBe(decoded(greedy))
    expect(ending).toEqual({ reason: 'length', completionTokens: 16 })
  })

  test('has memory laid out for no more than the catalog promises', () => {
    expect(log.contextWindow).toBe(400)
    expect(engine.contextWindow).toBe(400)
  })

  test('samples, tells probabilities and keeps to a constraint as the other engine does', async () => {
    const sampling = { temperature: 1.5, topP: 0.9, topK: 30, seed: 7 }
    const constraint = { type: 'pattern', pattern: '[a-z ]{5,9}' } as const
    for (const options of [{ sampling }, { logprobs: 3 }, { constraint, maxTokens: 30 }]) {
      const given = await run(engine, short.prompt, { ...GREEDY, ...options })
      const wanted = await run(reference, short.prompt, { ...GREEDY, ...options })
      expect(textOf(given.pieces)).toBe(textOf(wanted.pieces))
      const close = probabilities(wanted.pieces).map((one) => expect.closeTo(one, 4))
      expect(probabilities(given.pieces)).toEqual(close)
      expect(given.ending).toEqual(wanted.ending)
    }
  })

  test('goes on from what it has computed, within one partition, and says how much that was', async () => {
    expect(await cachedOf(short.prompt)).toBe(0)
    const taken = log.forwards.reduce((sum, count) => sum + count, 0)
    const { prompt, greedy } = short
    const next = [...prompt.tokens, ...greedy.slice(0, 4), ...long.prompt.tokens.slice(0, 9)]
    Object.assign(log, { resets: 0, forwards: [] })
    const turn = { ...prompt, tokens: next, boundaries: [] }
    expect(await cachedOf(turn)).toBe(taken)
    expect(log).toMatchObject({ resets: 0 })
    expect(log.forwards[0]).toBe(next.length - taken)
  })

  test('begins anew for another partition, though the device holds the beginning', async () => {
    await cachedOf(short.prompt)
    Object.assign(log, { resets: 0, forwards: [] })
    const { prompt, greedy } = short
    const tokens = [...prompt.tokens, ...greedy.slice(0, 4), ...long.prompt.tokens.slice(0, 9)]
    expect(await cachedOf({ ...prompt, tokens, boundaries: [] }, 'two')).toBe(0)
    expect(log.resets).toBe(1)
    expect(log.forwards[0]).toBe(tokens.length)
  })

  test('answers that are asked for at once are computed one after the other, and an end takes none with it', async () => {
    const giving = new AbortController()
    const waiting = run(engine, short.prompt, { ...GREEDY, partition: 'b', signal: giving.signal })
    const [first, second] = [
      run(engine, long.prompt, { ...GREEDY, partition: 'a' }),
      run(engine, short.prompt, { ...GREEDY, partition: 'c' }),
    ]
    giving.abort()
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
    expect(textOf((await first).pieces)).toBe(decoded(long.greedy))
    expect(textOf((await second).pieces)).toBe(decoded(short.greedy))
    expect(log.resets).toBeLessThanOrEqual(3)
  })

  test('stops within one token of an abort', async () => {
    const cancelling = new AbortController()
    const running = engine.generate(short.prompt, {
      ...GREEDY,
      maxTokens: 400,
      signal: cancelling.signal,
    })
    await running.next()
    const { length } = log.forwards
    cancelling.abort()
    await expect(running.next()).rejects.toMatchObject({ kind: 'aborted' })
    expect(log.forwards.length - length).toBeLessThanOrEqual(1)
  })

  test('an answer outlives a device that is lost', async () => {
    const { opened } = log
    log.failures = 1
    const { pieces } = await run(engine, short.prompt, { ...GREEDY, partition: 'lost' })
    expect(textOf(pieces)).toBe(decoded(short.greedy))
    expect(log.opened).toBe(opened + 1)
  })
})

describe('the package itself', () => {
  const chat = { tokenizer_files: ['tokenizer.json'], context_window_size: 128, vocab_size: 64 }
  /** The smallest module that there is, which is no model's. */
  const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)
  /** A module with a memory and the functions of another version, each of which does nothing. */
  const FOREIGN = moduleOf(['_initialize', 'TVMWasmAllocSpace', 'TVMWasmFreeSpace', 'TVMFuncCall'])
  /** A module that wants what WebLLM has not. */
  const WANTING = Uint8Array.of(...EMPTY, 1, 4, 1, 0x60, 0, 0, 2, 7, 1, 1, 0x65, 1, 0x66, 0, 0)
  const files = async (given: Readonly<Record<string, BlobPart>>): Promise<Map<string, Blob>> => {
    const all = await tinyFiles(['tokenizer.json'])
    all.set('mlc-chat-config.json', new Blob([JSON.stringify(chat)]))
    for (const [name, content] of Object.entries(given)) all.set(name, new Blob([content]))
    return all
  }

  test.each<[string, Readonly<Record<string, BlobPart>>, RegExp]>([
    ['no library', {}, /no resource of type wasm/],
    [
      'a library that is none',
      { 'lib.wasm': 'hello' },
      /The model cannot be used: .*(wasm|magic)/i,
    ],
    ['a library that is cut', { 'lib.wasm': EMPTY.slice(0, 6) }, /The model cannot be used: /],
    ['a library of something else', { 'lib.wasm': EMPTY }, /The model cannot be used: /],
    ['a library of another version', { 'lib.wasm': FOREIGN }, /The model cannot be used: /],
    [
      'a library that wants what is not there',
      { 'lib.wasm': WANTING },
      /The model cannot be used: .*import/i,
    ],
    [
      'a configuration that is none',
      { 'lib.wasm': EMPTY, 'mlc-chat-config.json': '{' },
      /The model cannot be used: .*JSON/,
    ],
  ])('says what is wrong with %s', async (_, given, says) => {
    await expect(
      openPipeline(await files(given), { contextWindow: 128, signal: never }),
    ).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(says),
    })
  })

  test('gives the device back where a model is not loaded to its end', async () => {
    const given: GPUDevice[] = []
    const { requestDevice } = GPUAdapter.prototype
    GPUAdapter.prototype.requestDevice = async function (this: GPUAdapter, ...asked) {
      const device = await requestDevice.apply(this, asked)
      given.push(device)
      return device
    }
    try {
      const watch = watchDevice()
      const adapter = await navigator.gpu.requestAdapter()
      const working = watch.guard(() => new Promise(() => undefined))
      await adapter?.requestDevice()
      watch.release()
      expect((await given[0]?.lost)?.reason).toBe('destroyed')
      await expect(withTimeout(200, working, 'still waiting')).resolves.toBe('still waiting')
    } finally {
      GPUAdapter.prototype.requestDevice = requestDevice
    }
  })

  test.each([
    // The package destroys its device where a buffer finds no room.
    ['out_of_memory', (device: GPUDevice) => device.destroy()],
    [
      'gpu_error',
      (device: GPUDevice) =>
        device.queue.writeBuffer(
          device.createBuffer({ size: 4, usage: 0x80 }),
          0,
          new Uint8Array(4),
        ),
    ],
  ])('tells whoever waits, and whoever comes, of %s', async (code, harm) => {
    const watch = watchDevice()
    const device = await (await navigator.gpu.requestAdapter())?.requestDevice()
    const waiting = watch.guard(() => new Promise(() => undefined))
    if (device) harm(device)
    await expect(waiting).rejects.toMatchObject({ kind: 'unavailable', code })
    await expect(watch.guard(async () => 'fine')).rejects.toMatchObject({ code })
    watch.release()
  })

  test('is given up while it loads', async () => {
    const giving = new AbortController()
    const opening = openPipeline(await files({ 'lib.wasm': EMPTY }), {
      contextWindow: 128,
      signal: giving.signal,
    })
    giving.abort()
    await expect(opening).rejects.toMatchObject({ kind: 'aborted' })
  })

  test('finds its files without asking for any, and names the one that is missing', async () => {
    const given = await files({
      'ndarray-cache.json': '{"records": []}',
      'params_shard_0.bin': 'abc',
    })
    const cache = await openArtifacts(given).open('webllm/model')
    const read = async (name: string) => (await cache.match(new Request(MODEL_URL + name)))?.text()
    expect(await read('params_shard_0.bin')).toBe('abc')
    // What the list was called before.
    expect(await read('tensor-cache.json')).toBe('{"records": []}')
    await expect(read('params_shard_1.bin')).rejects.toMatchObject({
      code: 'model_unusable',
      message: expect.stringContaining('no resource named params_shard_1.bin'),
    })
  })
})

/** A module that exports a memory, and functions of no parameters under these names. */
function moduleOf(names: readonly string[]): Uint8Array<ArrayBuffer> {
  const section = (id: number, content: readonly number[]): number[] => [
    id,
    content.length,
    ...content,
  ]
  const named = (name: string, kind: number, index: number): number[] => {
    const bytes = [...new TextEncoder().encode(name)]
    return [bytes.length, ...bytes, kind, index]
  }
  const exported = [
    ...named('memory', 2, 0),
    ...names.flatMap((name, index) => named(name, 0, index)),
  ]
  return Uint8Array.of(
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [names.length, ...names.map(() => 0)]),
    ...section(5, [1, 0, 1]),
    ...section(7, [names.length + 1, ...exported]),
    ...section(10, [names.length, ...names.flatMap(() => [2, 0, 0x0b])]),
  )
}
