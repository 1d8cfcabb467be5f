import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { NO_RECORD } from '../../../src/host/choice/load-crashes.ts'
import { createIdleMonitor } from '../../../src/host/models/idle.ts'
import type { TraceReport } from '../../../src/types/index.ts'
import { createEventHub } from '../../../src/host/models/event-hub.ts'
import { createLoadTrace } from '../../../src/host/models/load-trace.ts'
import { createModels } from '../../../src/host/models/models.ts'
import type { Implementation } from '../../../src/catalog/schema.ts'
import type { ModelToHost } from '../../../src/host/messages.ts'
import type { TransferProgress } from '../../../src/store/transfer-rate.ts'
import { predictor } from '../catalog/entries.ts'

/** Those that were started, in that order. */
let workers: FakeWorker[] = []

class FakeWorker {
  onmessage: ((event: { data: ModelToHost }) => void) | undefined
  isEnded = false
  constructor() {
    workers.push(this)
  }
  postMessage(): void {}
  terminate(): void {
    this.isEnded = true
  }
}

beforeEach(() => {
  workers = []
  vi.stubGlobal('Worker', FakeWorker)
  vi.stubGlobal('navigator', {})
})

afterEach(() => {
  vi.unstubAllGlobals()
})

/** Models whose downloads never end, and how to tell how far the last one is. */
function open() {
  let reportTransfer = (_transfer: TransferProgress): void => undefined
  const idle = createIdleMonitor()
  const traced: TraceReport[] = []
  const models = createModels({
    progress: createEventHub(),
    trace: createLoadTrace((event) => traced.push(event)),
    idle,
    assets: 'https://app.test/inorigin/',
    ensure: (_resources, { onProgress }) => {
      reportTransfer = onProgress
      return new Promise(() => undefined)
    },
    threads: async () => undefined,
    crashes: { begin: async () => NO_RECORD },
    comparisons: {
      find: async () => undefined,
      findEncoder: () => Promise.resolve(undefined),
      mustCompare: () => false,
      record: () => undefined,
    },
    onVerdict: () => undefined,
    explain: async (error) => error,
  })
  const leaving = new AbortController()
  const told: number[] = []
  const watch = async () => {
    for await (const { loadedBytes } of models.progress(leaving.signal)) told.push(loadedBytes)
  }
  const watching = watch()
  const here = (loadedBytes: number) => {
    reportTransfer({ loadedBytes, totalBytes: 10, bytesPerSecond: 1, remainingSeconds: 1 })
    return new Promise((resolve) => setTimeout(resolve))
  }
  return { models, idle, traced, told, here, stop: () => (leaving.abort(), watching) }
}

const entry = predictor()
const implementation = entry.implementations[0] as Implementation

test('the way of a model that is only measured is told from when somebody asks for it', async () => {
  const { models, told, here, stop } = open()
  models.acquire(entry, implementation, undefined, true)
  await here(1)
  expect(told).toEqual([])
  models.acquire(entry, implementation)
  await here(2)
  expect(told).toEqual([2])
  await stop()
})

test('and goes on being told while it is measured too', async () => {
  const { models, told, here, stop } = open()
  models.acquire(entry, implementation)
  models.acquire(entry, implementation, undefined, true)
  await here(1)
  expect(told).toEqual([1])
  await stop()
})

test('users are requests of all ways, each until its end, and no measurements', async () => {
  const { models, stop } = open()
  const count = () => models.countUsers(entry.tag)
  const { release: endMeasurement } = models.acquire(entry, implementation, undefined, true)
  expect(count()).toBe(0)
  const [first, second] = [1, 2].map(() => models.acquire(entry, implementation))
  workers[0]?.onmessage?.({ data: { type: 'use', requests: 3 } })
  expect(count()).toBe(5)
  first?.release()
  first?.release()
  endMeasurement()
  expect(count()).toBe(4)
  workers[0]?.onmessage?.({ data: { type: 'use', requests: 0 } })
  second?.release()
  expect(count()).toBe(0)
  await stop()
})

test('what pages use without asking the host stays, and was used last', async () => {
  const { models, stop } = open()
  const begin = (id: string) => models.acquire(entry, { ...implementation, id })
  const use = (worker: number, requests: number) =>
    workers[worker]?.onmessage?.({ data: { type: 'use', requests } })
  const ended = () => workers.flatMap(({ isEnded }, index) => (isEnded ? [index] : []))
  const leases = ['0', '1', '2', '3'].map(begin)
  // All are left, but not given up, as they would be while they are on their way.
  for (const worker of workers.keys()) use(worker, 1)
  for (const { release } of leases) release()
  for (const worker of [1, 2, 3, 0]) use(worker, worker === 1 ? 1 : 0)
  begin('4')
  expect(ended()).toEqual([2])
  use(1, 0)
  begin('5')
  begin('6')
  expect(ended()).toEqual([0, 2, 3])
  await stop()
})

test('requests make the host busy, over direct ports too, and what is only measured does not', async () => {
  const { models, idle, stop } = open()
  const seen: boolean[] = []
  const look = () => seen.push(idle.isBusy)
  const use = (requests: number) => workers[0]?.onmessage?.({ data: { type: 'use', requests } })
  const measured = models.acquire(entry, implementation, undefined, true)
  look()
  const untilRequest = idle.untilRequest()
  const one = models.acquire(entry, implementation)
  look()
  one.release()
  one.release()
  look()
  use(1)
  look()
  use(0)
  look()
  measured.release()
  expect([seen, untilRequest.aborted, idle.untilRequest().aborted]).toEqual([
    [false, true, false, true, false],
    true,
    false,
  ])
  await stop()
})

test('a paused load ends for everyone with an error that clients do not retry', async () => {
  const { models, traced, here, stop } = open()
  const [one, other] = [
    models.acquire(entry, implementation),
    models.acquire(entry, implementation),
  ]
  await here(1)
  models.pause(entry.tag)
  expect(models.ofTag(entry.tag)).toEqual([])
  expect(other.instance).toBe(one.instance)
  const { reason } = one.instance.ended
  expect(reason).toMatchObject({ code: 'load_paused', retryAfter: undefined })
  const { id, device } = implementation
  const load = { type: 'load', tag: entry.tag, implementation: id, device }
  expect(traced).toEqual([
    { ...load, status: 'started' },
    { ...load, status: 'ended', error: { kind: 'unavailable', code: 'load_paused' } },
  ])
  await stop()
})

test('the trace has a load that was only measured from when a request needs it', async () => {
  const { models, traced, stop } = open()
  models.acquire(entry, implementation, undefined, true)
  expect(traced).toEqual([])
  models.acquire(entry, implementation)
  models.acquire(entry, implementation)
  models.unload(entry.tag)
  expect(traced).toMatchObject([
    { status: 'started' },
    { status: 'ended', error: { code: 'unloaded' } },
  ])
  await stop()
})
