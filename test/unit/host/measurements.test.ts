import { afterEach, expect, test, vi } from 'vitest'
import { createMeasurements } from '../../../src/host/choice/measurements.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { predictor } from '../catalog/entries.ts'
import { memoryDatabase } from '../../support/memory-database.ts'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const device: Capabilities = {
  webgpu: null,
  wasm: { simd: true, threads: false, jspi: true },
  memory: null,
  cores: 4,
}

/** A database that is a map of facts. */
function memory() {
  const facts = new Map<string, unknown>()
  const connection = {
    get: async (_store: string, subject: string) => facts.get(subject),
    put: async (_store: string, fact: unknown, subject: string) => void facts.set(subject, fact),
    getAllKeys: async () => [...facts.keys()].toSorted(),
    delete: async (_store: string, subject: string) => void facts.delete(subject),
  }
  return { facts, database: memoryDatabase(connection) }
}

test('what is learnt of devices by the hundred is forgotten by its last use, not by its name', async () => {
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
  vi.stubGlobal('IDBKeyRange', { bound: () => null })
  vi.useFakeTimers({ now: Date.parse('2026-01-01') })
  const { facts, database } = memory()
  const [implementation] = predictor().implementations
  const found = {
    tag: predictor().tag,
    implementation: implementation!,
    measurement: { milliseconds: 5 },
  }
  const record = (name: string) => createMeasurements(database).record(found, name, device)
  const known = (name: string) => [...facts.keys()].some((subject) => subject.includes(`${name} `))
  const lastUseOf = (name: string) => {
    const subject = [...facts.keys()].find((one) => one.includes(name)) ?? ''
    return (facts.get(subject) as { lastUsed: number }).lastUsed
  }
  await record('aaa-this-device')
  await record('aaa-gone')
  for (let count = 100; count < 298; count += 1) {
    vi.advanceTimersByTime(1000)
    await record(`device-${count}`)
  }
  expect(facts.size).toBe(200)
  vi.advanceTimersByTime(2 * 86_400_000)
  // By another visit, which reads it.
  expect(
    (await createMeasurements(database).get(predictor(), 'aaa-this-device', device)).tried.size,
  ).toBe(1)
  await vi.waitFor(
    () => expect(lastUseOf('aaa-this-device')).toBeGreaterThan(Date.now() - 60_000),
    20_000,
  )
  await record('device-298')
  await record('device-299')
  expect(facts.size).toBe(200)
  expect(
    ['aaa-this-device', 'aaa-gone', 'device-100', 'device-101', 'device-299'].filter(known),
  ).toEqual(['aaa-this-device', 'device-101', 'device-299'])
})

test('devices by the thousand, named by whoever asks, are not all kept in memory', async () => {
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
  const read: string[] = []
  const connection = { get: async (_store: string, subject: string) => void read.push(subject) }
  const database = memoryDatabase(connection)
  const measurements = createMeasurements(database)
  const ask = (name: string) => measurements.get(predictor(), name, device)
  await ask('first')
  await ask('first')
  expect(read).toHaveLength(1)
  for (let count = 0; count < 1000; count += 1) {
    await ask(`device ${count}`)
    await ask('asked for all the time')
  }
  await ask('device 999')
  expect(read).toHaveLength(1002)
  await ask('first')
  expect(read).toHaveLength(1003)
})
