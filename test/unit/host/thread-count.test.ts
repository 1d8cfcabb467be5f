import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { createThreadCount } from '../../../src/host/choice/thread-count.ts'
import type { Database } from '../../../src/store/database.ts'
import { memoryDatabase } from '../../support/memory-database.ts'

beforeEach(() => {
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
})

afterEach(() => {
  vi.unstubAllGlobals()
})

const device: Capabilities = {
  webgpu: null,
  wasm: { simd: true, threads: true, jspi: true },
  memory: null,
  cores: 6,
}

/** A database that is a map of facts. */
function memory(): Database {
  const facts = new Map<string, unknown>()
  const connection = {
    get: async (_store: string, subject: string) => facts.get(subject),
    put: async (_store: string, fact: unknown, subject: string) => void facts.set(subject, fact),
  }
  return memoryDatabase(connection)
}

const never = new AbortController().signal

/** A host on the device, where work with so many threads takes these milliseconds. */
function open(
  timesMs: Record<number, number>,
  { database = memory(), ...capabilities }: Partial<Capabilities> & { database?: Database } = {},
) {
  const measured: number[] = []
  const count = createThreadCount({
    database,
    device: async () => ({ ...device, ...capabilities }),
    async measure(threads, signal) {
      measured.push(threads)
      signal.throwIfAborted()
      const time = timesMs[threads]
      if (time === undefined) throw new Error('The runtime did not start.')
      return time
    },
  })
  return { ...count, measured, database }
}

test('the fastest number of threads is measured once, and another host knows it', async () => {
  const { get, measure, measured, database } = open({ 1: 40, 2: 21, 4: 12, 6: 10 })
  expect(await get()).toBe(undefined)
  await measure(never)
  expect(measured).toEqual([1, 2, 4, 6])
  expect(await get()).toBe(6)
  await measure(never)
  expect(measured).toHaveLength(4)
  const next = open({}, { database })
  expect(await next.get()).toBe(6)
  await next.measure(never)
  expect(next.measured).toEqual([])
})

test('the number of a load is a guess until the fastest is known, and needs shared memory', async () => {
  const { current, get, measure, measured, database } = open({ 1: 40, 2: 21, 4: 12, 6: 10 })
  expect(await current()).toBe(4)
  await measure(never)
  // To ask for the number is no load.
  expect(measured).toEqual([])
  await get()
  await measure(never)
  expect(await current()).toBe(6)
  const plain = { ...device.wasm, threads: false }
  expect(await open({}, { database, wasm: plain }).current()).toBe(1)
})

test('fewer threads that are about as fast are preferred', async () => {
  const { get, measure } = open({ 1: 40, 2: 21, 4: 10.9, 6: 10 })
  await get()
  await measure(never)
  expect(await get()).toBe(4)
})

test('a number with which the runtime does not start is not used', async () => {
  const { get, measure } = open({ 1: 40, 2: 21 })
  await get()
  await measure(never)
  expect(await get()).toBe(2)
})

test('nothing is stored if the runtime never starts, and the next load may try again', async () => {
  const { get, measure, measured } = open({})
  await get()
  await measure(never)
  await measure(never)
  expect(measured).toEqual([1, 2, 4, 6])
  expect(await get()).toBe(undefined)
  await measure(never)
  expect(measured).toHaveLength(8)
})

test('another browser or number of processors is measured again', async () => {
  const { get, measure, database } = open({ 1: 40, 2: 21, 4: 12, 6: 10 })
  await get()
  await measure(never)
  expect(await open({}, { database, cores: 8 }).get()).toBe(undefined)
  vi.stubGlobal('navigator', { userAgent: 'Browser/2' })
  expect(await open({}, { database }).get()).toBe(undefined)
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
  expect(await open({}, { database }).get()).toBe(6)
})

test.each([
  ['no load asked for the number', {}, false],
  ['the page is not isolated', { wasm: { ...device.wasm, threads: false } }, true],
  ['there is one processor', { cores: 1 }, true],
])('nothing is measured if %s', async (_case, capabilities, isNeeded) => {
  const { get, measure, measured } = open({ 1: 40 }, capabilities)
  if (isNeeded) await get()
  await measure(never)
  expect(measured).toEqual([])
})

test('a request ends the measurement, and a later one begins anew', async () => {
  const { get, measure, measured } = open({ 1: 40, 2: 21, 4: 12, 6: 10 })
  await get()
  const request = new AbortController()
  const measuring = measure(request.signal)
  request.abort()
  await expect(measuring).rejects.toMatchObject({ name: 'AbortError' })
  expect(await get()).toBe(undefined)
  await measure(never)
  expect(measured.slice(-4)).toEqual([1, 2, 4, 6])
  expect(await get()).toBe(6)
})
