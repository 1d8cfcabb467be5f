/** Loads of a decoder, and what the decode loop does after a failure of its device. */
import { readFile } from 'node:fs/promises'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Sequence } from '../../../src/engine/decoder.ts'
import {
  openDecoderEngine,
  type DecoderBackend,
  type LoadedDecoder,
} from '../../../src/engine/decoder-engine.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { arrived } from '../../support/arrived.ts'
import { createDeferred } from '../../support/deferred.ts'
import {
  failure,
  fakeDecoder,
  greedy,
  logitsOf,
  numbers,
  openLoop,
  textOf,
} from './fake-decoder.ts'

const prompts = [numbers(5), numbers(21, 3), numbers(40, 11), numbers(2, 9), numbers(17, 30)]

describe('a lost device', () => {
  const lost = (at: number) => (call: number) => (call === at ? failure('device_lost') : null)

  test.each([1, 2, 3, 5, 8, 13])('at call %i changes no token', async (call) => {
    const { run, reopened } = openLoop({ fail: lost(call), reopenOptions: {} })
    const texts = await Promise.all(
      prompts.map(async (prompt, seed) => (await run(prompt, { seed }).all()).text),
    )
    expect(reopened).toHaveLength(1)
    const calm = openLoop()
    for (const [seed, prompt] of prompts.entries())
      expect((await calm.run(prompt, { seed }).all()).text).toBe(texts[seed])
  })

  test('changes no token if it is lost while logits are read', async () => {
    // Hot enough that the best 64 of so many tokens do not settle the choice.
    const wide = (tokens: readonly number[]): Float32Array =>
      Float32Array.from({ length: 4000 }, (_, id) => logitsOf(tokens)[id % 64] as number)
    const answers: string[] = []
    let rows = 0
    for (const broken of [true, false]) {
      const { run, reopened, decoder } = openLoop({ logitsFunction: wide, reopenOptions: {} })
      const { step } = decoder
      decoder.step = async (entries) => {
        const logits = await step(entries)
        const row = async (index: number) => {
          rows += 1
          if (broken && rows === 3) throw failure('device_lost')
          return logits.row(index)
        }
        return { ...logits, row }
      }
      answers.push((await run([1, 2], { seed: 5, maxTokens: 20 }).all()).text)
      expect(reopened).toHaveLength(broken ? 1 : 0)
    }
    expect(rows).toBeGreaterThan(10)
    expect(answers[0]).toBe(answers[1])
  })

  test('is given up if it is lost again and again', async () => {
    const fail = () => failure('device_lost')
    const { run, reopened } = openLoop({ fail, reopenOptions: { fail } })
    await expect(run(numbers(5)).all()).rejects.toMatchObject({ code: 'device_lost' })
    expect(reopened).toHaveLength(2)
  })

  test('is an error if it cannot be opened again, and is tried again by the next answer', async () => {
    const { run } = openLoop({ fail: lost(2) })
    await expect(run(numbers(5)).all()).rejects.toMatchObject({ code: 'no_webgpu' })
    await expect(run(numbers(5)).all()).rejects.toMatchObject({ code: 'no_webgpu' })
  })

  test('loses its cache', async () => {
    const { run, reopened } = openLoop({ fail: lost(12), reopenOptions: {} })
    await run(numbers(20)).all()
    expect((await run(numbers(30)).all()).text).toBe(textOf(greedy(numbers(30), 10)))
    expect(reopened).toHaveLength(1)
  })
})

describe('a decoder that fails', () => {
  test('fails all that run on it, and is opened again for the next', async () => {
    const fail = (call: number): Error | null => (call === 4 ? failure('gpu_error') : null)
    const { run, reopened } = openLoop({ fail, reopenOptions: {} })
    const results = await Promise.allSettled(prompts.slice(0, 2).map((prompt) => run(prompt).all()))
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect((await run(numbers(5)).all()).text).toBe(textOf(greedy(numbers(5), 10)))
    expect(reopened).toHaveLength(1)
  })

  test('without memory evicts what nobody uses', async () => {
    let full = false
    const fail = (): Error | null => {
      const thrown = full ? failure('out_of_memory') : null
      full = false
      return thrown
    }
    const { decoder, run } = openLoop({ fail })
    await run(numbers(30)).all()
    const [cached] = decoder.alive
    full = true
    const { text } = await run(numbers(30, 5), { maxTokens: 4 }).all()
    expect(text).toBe(textOf(greedy(numbers(30, 5), 4)))
    expect(decoder.alive.has(cached as Sequence)).toBe(false)
    // What was evicted is not kept for later sequences.
    expect(decoder.calls.filter((call) => call === 'trim')).toHaveLength(1)
    // If there is nothing left to evict, it is an error.
    await vi.waitFor(() => expect(decoder.alive.size).toBe(1), 20_000)
    const first = run(numbers(30, 5), { maxTokens: 50 })
    await first.pieces.next()
    full = true
    await expect(first.all()).rejects.toMatchObject({ code: 'out_of_memory' })
  })
})

test('closing ends running answers, and frees everything', async () => {
  const { decoder, run, close } = openLoop()
  await run(numbers(9)).all()
  const before = decoder.calls.length
  const failed = run(numbers(5), { maxTokens: 900 })
    .all()
    .catch((thrown: unknown) => thrown)
  await vi.waitFor(() => expect(decoder.calls.length).toBeGreaterThan(before), {
    interval: 1,
    timeout: 20_000,
  })
  await close()
  expect(await failed).toMatchObject({ kind: 'unavailable' })
  expect(decoder.alive.size).toBe(0)
  await expect(run([1]).all()).rejects.toMatchObject({ kind: 'unavailable' })
})

describe('a load', () => {
  const loads: { signal: AbortSignal; finish(): void; fail(): void; released: boolean }[] = []
  beforeEach(() => void loads.splice(0))

  const backend: DecoderBackend = {
    drafts: false,
    load: (_options, _weights, signal) => {
      const { promise, resolve, reject } = createDeferred<LoadedDecoder>()
      const decoder = fakeDecoder()
      const release = async () => void (load.released = true)
      const load = {
        signal,
        finish: () => resolve({ decoder, verdict: null, reopen: async () => decoder, release }),
        fail: () => reject(failure('model_unusable')),
        released: false,
      }
      loads.push(load)
      return promise
    },
  }

  const never = new AbortController().signal
  const TEXTS = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']

  async function open(): Promise<Engine> {
    const files = TEXTS.map(
      async (name) => [name, new Blob([await readFile(`test/models/tiny/${name}`)])] as const,
    )
    const texts = new Map(await Promise.all(files))
    return openDecoderEngine(
      { device: 'wasm', maxInputTokens: 64, runtime: '/', constraints: '/', texts },
      backend,
    )
  }

  const generate = async (engine: Engine): Promise<unknown> => {
    const prompt = { tokens: [5, 6], boundaries: [], opening: '' }
    const options = { maxTokens: 2, sampling: { temperature: 0 }, signal: never }
    return engine.generate(prompt, options).next()
  }
  const begun = (count: number): Promise<void> =>
    vi.waitFor(() => expect(loads).toHaveLength(count), 20_000)
  const errorOf = (load: Promise<void>): Promise<unknown> =>
    load.then(
      () => null,
      (thrown: unknown) => thrown,
    )

  test('is shared by two at once', async () => {
    const engine = await open()
    const both = [engine.load(new Map(), never), engine.load(new Map(), never)]
    await begun(1)
    loads[0]?.finish()
    await Promise.all(both)
    await engine.load(new Map(), never)
    expect(loads).toHaveLength(1)
    await expect(generate(engine)).resolves.toMatchObject({ done: false })
    await engine.close()
    expect(loads[0]?.released).toBe(true)
  })

  test('is tried again after one that failed or was aborted', async () => {
    const engine = await open()
    const abort = new AbortController()
    const failed = errorOf(engine.load(new Map(), never))
    const aborted = errorOf(engine.load(new Map(), abort.signal))
    const third = engine.load(new Map(), never)
    await begun(1)
    loads[0]?.fail()
    expect(await failed).toMatchObject({ code: 'model_unusable' })
    await begun(2)
    abort.abort()
    expect(await aborted).toMatchObject({ kind: 'aborted' })
    expect(loads[1]?.signal.aborted).toBe(true)
    // The second arrives nevertheless, and is released.
    loads[1]?.finish()
    await begun(3)
    expect(loads[1]?.released).toBe(true)
    loads[2]?.finish()
    await third
    await engine.close()
  })

  test('that waits for another is aborted at once', async () => {
    const engine = await open()
    const abort = new AbortController()
    const first = engine.load(new Map(), never)
    const aborted = errorOf(engine.load(new Map(), abort.signal))
    abort.abort()
    expect(await aborted).toMatchObject({ kind: 'aborted' })
    loads[0]?.finish()
    await first
    expect(loads).toHaveLength(1)
    await engine.close()
  })

  test('is ended by a close, which frees a decoder that arrives late', async () => {
    const engine = await open()
    const failed = errorOf(engine.load(new Map(), never))
    await begun(1)
    let closed = false
    const closing = engine.close().then(() => (closed = true))
    expect(await failed).toMatchObject({ kind: 'aborted' })
    expect(loads[0]?.signal.aborted).toBe(true)
    await arrived()
    expect(closed).toBe(false)
    loads[0]?.finish()
    await closing
    expect(loads[0]?.released).toBe(true)
    await expect(generate(engine)).rejects.toMatchObject({ kind: 'internal' })
    await expect(engine.load(new Map(), never)).rejects.toMatchObject({ kind: 'aborted' })
    await arrived()
    expect(loads).toHaveLength(1)
  })
})
