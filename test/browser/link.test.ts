/** The link over real ports between real threads, with real locks as death notices. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { call, stream, type Link } from '../../src/link/ask.ts'
import { holdLivenessLock } from '../../src/link/liveness.ts'
import type { Calls, Streams } from './link-worker.ts'

let worker: Worker
let link: Link

beforeEach(async () => {
  worker = new Worker(new URL('./link-worker.ts', import.meta.url), { type: 'module' })
  link = {
    connect: (port) => worker.postMessage('port', [port]),
    livenessLock: await holdLivenessLock(navigator.locks, 'asker'),
    maxAttempts: 1,
    ackTimeoutMs: 10_000,
  }
})

afterEach(() => worker.terminate())

test('asks a worker', async () => {
  expect(await call<Calls, 'add'>(link, 'add', [20, 22])).toBe(42)
})

test('a Blob crosses', async () => {
  const blob = await call<Calls, 'blob'>(link, 'blob', ['some bytes'])
  expect(await blob.text()).toBe('some bytes')
})

test('a worker that ends in the middle of a stream is noticed', async () => {
  const reply = await stream<Streams, 'endless'>(link, 'endless', [])
  const read = async () => {
    for await (const number of reply.events) if (number === 3) worker.terminate()
  }
  await expect(read()).rejects.toMatchObject({ kind: 'unavailable', code: 'host_gone' })
})

test('however many requests are open, each side waits for the death of the other once', async () => {
  const open = () => stream<Streams, 'endless'>(link, 'endless', [])
  const replies = await Promise.all([open(), open(), open()])
  await Promise.all(replies.map(({ events }) => events[Symbol.asyncIterator]().next()))
  const { pending = [] } = await navigator.locks.query()
  const awaited = pending
    .map(({ name }) => name)
    .filter((name) => name?.startsWith('inorigin:life:'))
  expect(awaited).toContain(link.livenessLock)
  expect(new Set(awaited).size).toBe(awaited.length)
})

test('leaving a stream cancels it in the worker', async () => {
  const reply = await stream<Streams, 'endless'>(link, 'endless', [])
  for await (const number of reply.events) if (number === 2) break
  await expect.poll(() => call<Calls, 'cancelled'>(link, 'cancelled', [])).toBe(1)
})

test('an asker that dies is noticed by the worker', async () => {
  const source = `
    const name = 'inorigin:life:dying'
    navigator.locks.request(name, () => new Promise(() => postMessage(name)))`
  const asker = new Worker(URL.createObjectURL(new Blob([source])))
  const life = await new Promise<string>(
    (resolve) => (asker.onmessage = ({ data }) => resolve(data)),
  )
  const reply = await stream<Streams, 'endless'>({ ...link, livenessLock: life }, 'endless', [])
  const iterator = reply.events[Symbol.asyncIterator]()
  await iterator.next()
  asker.terminate()
  await expect.poll(() => call<Calls, 'cancelled'>(link, 'cancelled', [])).toBe(1)
})
