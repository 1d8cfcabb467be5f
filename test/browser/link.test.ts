/** The link over real ports between real threads, with real locks as death notices. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Link } from '../../src/link/link.ts'
import { holdLivenessLock } from '../../src/link/locks.ts'
import { remote } from '../../src/link/ask.ts'
import type { Caller, MethodTable, Remote } from '../../src/types/index.ts'
import type { Service } from './link-worker.ts'

/** The table of the worker, which cannot be imported here without starting it. */
const METHODS: MethodTable<Service> = {
  add: 'call',
  blob: 'call',
  canceled: 'call',
  endless: 'stream',
}

const anyone: Caller = { key: null, signal: new AbortController().signal }

let worker: Worker
let link: Link
let ask: Remote<Service>

beforeEach(async () => {
  worker = new Worker(new URL('./link-worker.ts', import.meta.url), { type: 'module' })
  link = {
    connect: (port) => worker.postMessage('port', [port]),
    livenessLock: await holdLivenessLock(navigator.locks, 'asker'),
    maxAttempts: 1,
    ackTimeoutMs: 10_000,
  }
  ask = remote<Service>(link, METHODS)
})

afterEach(() => worker.terminate())

test('calls reach a worker, and Blobs come back', async () => {
  expect(await ask.add(20, 22, anyone)).toBe(42)
  expect(await (await ask.blob('some bytes', anyone)).text()).toBe('some bytes')
})

test('a worker that ends within a stream is an error', async () => {
  const reply = await ask.endless(anyone)
  const read = async () => {
    for await (const number of reply.events) if (number === 3) worker.terminate()
  }
  await expect(read()).rejects.toMatchObject({ kind: 'unavailable', code: 'host_gone' })
})

test('each side waits once for the death of the other, however many requests are open', async () => {
  const open = () => ask.endless(anyone)
  const replies = await Promise.all([open(), open(), open()])
  await Promise.all(replies.map(({ events }) => events[Symbol.asyncIterator]().next()))
  const { pending = [] } = await navigator.locks.query()
  const awaited = pending
    .map(({ name }) => name)
    .filter((name) => name?.startsWith('inorigin:life:'))
  expect(awaited).toContain(link.livenessLock)
  expect(new Set(awaited).size).toBe(awaited.length)
})

test('a stream that is left is canceled in the worker', async () => {
  const reply = await ask.endless(anyone)
  for await (const number of reply.events) if (number === 2) break
  await expect.poll(() => ask.canceled(anyone)).toBe(1)
})

test('a stream of a caller that dies is canceled in the worker', async () => {
  const source = `
    const name = 'inorigin:life:dying'
    navigator.locks.request(name, () => new Promise(() => postMessage(name)))`
  const asker = new Worker(URL.createObjectURL(new Blob([source])))
  const life = await new Promise<string>(
    (resolve) => (asker.onmessage = ({ data }) => resolve(data)),
  )
  const reply = await remote<Service>({ ...link, livenessLock: life }, METHODS).endless(anyone)
  const iterator = reply.events[Symbol.asyncIterator]()
  await iterator.next()
  asker.terminate()
  await expect.poll(() => ask.canceled(anyone)).toBe(1)
})
