/** What the next host knows of crashes in loads, and of verdicts on a GPU. */
import { afterEach, expect, test, vi } from 'vitest'
import type { Implementation } from '../../../src/catalog/schema.ts'
import { probeDevice } from '../../../src/device/capabilities.ts'
import type { GpuVerdict } from '../../../src/device/gpu-verdict.ts'
import { GpuVerdicts } from '../../../src/host/choice/gpu-verdict.ts'
import { LoadCrashes, type HostLives } from '../../../src/host/choice/load-crashes.ts'
import type { Database } from '../../../src/store/database.ts'
import { putDeviceFact } from '../../../src/store/device-facts.ts'
import { freshDatabase } from './fixture.ts'

const HOUR_MS = 3_600_000

const implementationOf = (id: string, memory: number): Implementation => ({
  id,
  engine: 'onnx',
  device: 'wasm',
  requires: { memory },
  resources: [],
})

const small = implementationOf('small', 1000)
const middle = implementationOf('middle', 2000)
const large = implementationOf('large', 3000)
const entry = { tag: '@a/b' as const, implementations: [large, middle, small] }

afterEach(() => {
  vi.restoreAllMocks()
})

let hosts = 0

/** The crashes as the next host sees them. Hosts before it are dead. */
function nextHost(database: Database, lives: Partial<HostLives> = {}) {
  return new LoadCrashes(database, {
    own: `host ${(hosts += 1)}`,
    lastEnded: null,
    living: async () => new Set<string>(),
    ...lives,
  })
}

/** Begins a load in a host, and says nothing of its end. */
async function beginLoad(database: Database, own: string): Promise<void> {
  await nextHost(database, { own }).begin(entry, middle)
}

const refusedIn = async (database: Database, lives?: Partial<HostLives>) =>
  [...(await nextHost(database, lives).find(entry)).keys()].toSorted()

test('two loads that ended their hosts rule out the implementation, and larger ones', async () => {
  const database = freshDatabase()
  await beginLoad(database, 'one')
  expect(await refusedIn(database)).toEqual([])
  await beginLoad(database, 'two')
  const host = nextHost(database)
  const refusals = await host.find(entry)
  expect([...refusals.keys()].toSorted()).toEqual(['large', 'middle'])
  expect(refusals.get('middle')).toMatch(
    /twice in a row within an hour.*'@a\/b', { retryCrashed: true }/,
  )
  await expect(host.begin(entry, middle)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'load_crashed',
  })
  await host.begin(entry, small)
  await host.forget('@a/b')
  expect(await host.find(entry)).toEqual(new Map())
  expect(await refusedIn(database)).toEqual([])
})

test('a load that fails, or whose host ended in order, is no crash', async () => {
  const database = freshDatabase()
  for (const own of ['one', 'two', 'three']) {
    const record = await nextHost(database, { own }).begin(entry, middle)
    await record.failed()
  }
  expect(await refusedIn(database)).toEqual([])
  for (const own of ['four', 'five', 'six']) {
    await beginLoad(database, own)
    expect(await refusedIn(database, { lastEnded: own })).toEqual([])
  }
})

test('a load that succeeds between two crashes acquits the implementation', async () => {
  const database = freshDatabase()
  await beginLoad(database, 'one')
  const record = await nextHost(database).begin(entry, middle)
  await record.completed()
  await beginLoad(database, 'two')
  expect(await refusedIn(database)).toEqual([])
  await beginLoad(database, 'three')
  expect(await refusedIn(database)).toEqual(['large', 'middle'])
})

test('a load that fails between two crashes does not acquit it', async () => {
  const database = freshDatabase()
  await beginLoad(database, 'one')
  const record = await nextHost(database).begin(entry, middle)
  await record.failed()
  await beginLoad(database, 'two')
  expect(await refusedIn(database)).toEqual(['large', 'middle'])
})

test('a load of a host that lives is no crash', async () => {
  const database = freshDatabase()
  await beginLoad(database, 'one')
  const living = async () => new Set(['one'])
  for (let count = 0; count < 3; count += 1) {
    expect(await refusedIn(database, { living })).toEqual([])
  }
})

test('a worker that ends in a load counts, although its host lives', async () => {
  const database = freshDatabase()
  const host = nextHost(database)
  for (let count = 0; count < 2; count += 1) await (await host.begin(entry, middle)).crashed()
  expect([...(await host.find(entry)).keys()]).toContain('middle')
})

test('crashes are forgotten after an hour, and in another version of the browser', async () => {
  const database = freshDatabase()
  await beginLoad(database, 'one')
  await beginLoad(database, 'two')
  expect(await refusedIn(database)).toEqual(['large', 'middle'])
  vi.spyOn(navigator, 'userAgent', 'get').mockReturnValue('Browser/2')
  expect(await refusedIn(database)).toEqual([])
  vi.restoreAllMocks()
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now + HOUR_MS)
  expect(await refusedIn(database)).toEqual([])
})

test.each<[string, GpuVerdict, boolean]>([
  ['right without a feature', { features: [] }, true],
  ['wrong', { features: null }, true],
  ['late', { features: null, late: true }, false],
  ['late with a feature', { features: [], late: true }, false],
])('a verdict of a GPU is stored unless it is late: %s', async (_, found, isStored) => {
  const database = freshDatabase()
  const host = new GpuVerdicts(database, probeDevice)
  host.record(found)
  expect(await host.verdict()).toEqual(found)
  const next = () => new GpuVerdicts(database, probeDevice).verdict()
  if (isStored) await expect.poll(next).toEqual(found)
  else {
    // A verdict that is stored comes after it: what would have been written is there by then.
    const other = { features: ['other'] }
    host.record(other)
    await expect.poll(next).toEqual(other)
    host.record(found)
    await host.verdict()
    // A write to the same store ends after those that were begun before it.
    await putDeviceFact(database, 'another subject', {})
    expect(await next()).toEqual(other)
  }
})
