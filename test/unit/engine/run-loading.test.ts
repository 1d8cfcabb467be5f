import { readFile } from 'node:fs/promises'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import {
  openDecoderEngine,
  type DecoderBackend,
  type LoadedDecoder,
} from '../../../src/engine/decoder-engine.ts'
import { InoriginError } from '../../../src/error.ts'
import { arrived } from '../../support/arrived.ts'
import { fakeDecoder } from './run-decoder.ts'

/** A load of weights that is on its way. */
interface Loading {
  signal: AbortSignal
  finish(): void
  fail(): void
  released: boolean
}

const loads: Loading[] = []

const backend: DecoderBackend = {
  drafts: false,
  load: (_options, _weights, signal) =>
    new Promise<LoadedDecoder>((resolve, reject) => {
      const decoder = fakeDecoder()
      const loading: Loading = {
        signal,
        finish: () =>
          resolve({
            decoder,
            verdict: null,
            reopen: async () => decoder,
            release: async () => {
              loading.released = true
            },
          }),
        fail: () =>
          reject(new InoriginError('unavailable', 'It failed.', { code: 'model_unusable' })),
        released: false,
      }
      loads.push(loading)
    }),
}

beforeEach(() => void loads.splice(0))

const never = new AbortController().signal
const TEXTS = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']

async function open(): Promise<Engine> {
  const texts = new Map<string, Blob>()
  for (const name of TEXTS) texts.set(name, new Blob([await readFile(`test/models/tiny/${name}`)]))
  return openDecoderEngine({ device: 'wasm', maxInputTokens: 64, runtime: '/', texts }, backend)
}

const write = async (engine: Engine): Promise<unknown> => {
  const prompt = { tokens: [5, 6], boundaries: [], opening: '' }
  return engine
    .generate(prompt, { maxTokens: 2, sampling: { temperature: 0 }, signal: never })
    .next()
}
const begun = (count: number): Promise<void> =>
  vi.waitFor(() => expect(loads).toHaveLength(count), 20_000)
const failure = (load: Promise<void>): Promise<unknown> =>
  load.then(
    () => null,
    (thrown: unknown) => thrown,
  )

test('two loads at once make one decoder', async () => {
  const engine = await open()
  const both = [engine.load(new Map(), never), engine.load(new Map(), never)]
  await begun(1)
  loads[0]?.finish()
  await Promise.all(both)
  await engine.load(new Map(), never)
  expect(loads).toHaveLength(1)
  await expect(write(engine)).resolves.toMatchObject({ done: false })
  await engine.close()
  expect(loads[0]?.released).toBe(true)
})

test('a load is tried again after one that failed or was cancelled', async () => {
  const engine = await open()
  const cancelling = new AbortController()
  const first = engine.load(new Map(), never)
  const second = engine.load(new Map(), cancelling.signal)
  const third = engine.load(new Map(), never)
  const failed = failure(first)
  const cancelled = failure(second)
  await begun(1)
  loads[0]?.fail()
  expect(await failed).toMatchObject({ code: 'model_unusable' })
  await begun(2)
  cancelling.abort()
  expect(await cancelled).toMatchObject({ kind: 'aborted' })
  expect(loads[1]?.signal.aborted).toBe(true)
  // It arrives all the same, and goes again.
  loads[1]?.finish()
  await begun(3)
  expect(loads[1]?.released).toBe(true)
  loads[2]?.finish()
  await third
  await engine.close()
})

test('one that waits for another is cancelled at once', async () => {
  const engine = await open()
  const cancelling = new AbortController()
  const first = engine.load(new Map(), never)
  const second = engine.load(new Map(), cancelling.signal)
  const cancelled = failure(second)
  cancelling.abort()
  expect(await cancelled).toMatchObject({ kind: 'aborted' })
  loads[0]?.finish()
  await first
  expect(loads).toHaveLength(1)
  await engine.close()
})

test('closing ends a load, and frees what arrives late', async () => {
  const engine = await open()
  const refused = failure(engine.load(new Map(), never))
  await begun(1)
  let closed = false
  const closing = engine.close().then(() => (closed = true))
  expect(await refused).toMatchObject({ kind: 'aborted' })
  expect(loads[0]?.signal.aborted).toBe(true)
  await arrived()
  expect(closed).toBe(false)
  loads[0]?.finish()
  await closing
  expect(loads[0]?.released).toBe(true)
  await expect(write(engine)).rejects.toMatchObject({ kind: 'internal' })
  await expect(engine.load(new Map(), never)).rejects.toMatchObject({ kind: 'aborted' })
  await arrived()
  expect(loads).toHaveLength(1)
})
