/** One request for a model of which the runtime cannot compute some implementations. */
import { afterEach, expect, test, vi } from 'vitest'
import type { Entry, Implementation } from '../../../src/catalog/schema.ts'
import { deviceFailure } from '../../../src/engine/failure.ts'
import { NO_RECORD } from '../../../src/host/choice/load-crashes.ts'
import { RecentInputs } from '../../../src/host/choice/recent-inputs.ts'
import { ImplementationSelector } from '../../../src/host/choice/selector.ts'
import { UnsupportedLoads } from '../../../src/host/choice/unsupported-loads.ts'
import type { Entries } from '../../../src/host/library/entries.ts'
import { createFailureExplainer } from '../../../src/host/library/explain-failure.ts'
import { EventHub } from '../../../src/host/models/event-hub.ts'
import { MODEL_METHODS, type ModelService } from '../../../src/host/models/model-service.ts'
import { IdleMonitor, Models } from '../../../src/host/models/models.ts'
import { Leases, withLoaded } from '../../../src/host/requests/leases.ts'
import { answer } from '../../../src/link/answer.ts'
import type { LoadProgress, TraceReport } from '../../../src/types/index.ts'
import { memoryDatabase } from '../../support/memory-database.ts'
import { deviceOf } from '../../support/samples.ts'
import { model } from '../catalog/entries.ts'

afterEach(() => vi.unstubAllGlobals())

const [listed] = model().implementations as [Implementation]
const entry = model({ implementations: ['one', 'two', 'three'].map((id) => ({ ...listed, id })) })

/** Starts the parts of a host whose workers load all but the first `failures` models. */
function open(failures: number) {
  let loads = 0
  const service = {
    openModel: async () => undefined,
    async loadModel() {
      loads += 1
      if (loads > failures) return null
      throw deviceFailure(new Error(`ERROR_CODE: 9, ERROR_MESSAGE: It has no kernel ${loads}.`))
    },
  } as Partial<ModelService> as ModelService
  class FakeWorker {
    postMessage(_message: unknown, [port]: MessagePort[]): void {
      if (port) void answer(port, service, MODEL_METHODS)
    }
    terminate(): void {}
  }
  vi.stubGlobal('Worker', FakeWorker)
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })

  const database = memoryDatabase({ get: async () => undefined })
  const entries = { all: async () => [entry], complete: async (one: Entry) => one }
  const device = async () => deviceOf()
  const chosen: string[] = []
  const watched = { progress: new EventHub<LoadProgress>(), trace: note, idle: new IdleMonitor() }
  function note(event: TraceReport): void {
    if (event.type === 'choice') chosen.push(event.implementation)
  }
  const known = {
    database,
    device,
    preference: 'auto',
    entries: entries as unknown as Entries,
    verdict: async () => undefined,
    threads: { current: async () => 1, measure: async () => undefined },
    crashes: { find: async () => new Map(), begin: async () => NO_RECORD },
    unsupported: new UnsupportedLoads(database),
    comparisons: {
      find: async () => undefined,
      findEncoder: async () => undefined,
      mustCompare: () => false,
      record: () => undefined,
    },
    recentInputs: new RecentInputs(),
  } as const
  const models = new Models({
    ...watched,
    ...known,
    assets: 'https://app.test/inorigin/',
    threads: async () => undefined,
    onVerdict: () => undefined,
    ensure: async (wanted) => new Map(wanted.map(({ name }) => [name, new Blob()])),
    explain: createFailureExplainer(known),
  })
  const selector = new ImplementationSelector({ ...watched, ...known, models })
  const leases = new Leases({ ...watched, ...known, models, selector, predictions: {} as never })
  const { signal } = new AbortController()
  const load = () =>
    withLoaded(
      () => leases.acquire(entry, signal),
      { key: null, signal },
      async ({ implementation }) => implementation.id,
    )
  return { load, chosen }
}

test('the request tries one after the other, and later ones begin with the one that runs', async () => {
  const { load, chosen } = open(2)
  expect([await load(), chosen]).toEqual(['three', ['one', 'two', 'three']])
  expect([await load(), chosen.at(3)]).toEqual(['three', 'three'])
})

test('if none is left, the error says what each of them lacks', async () => {
  const { load, chosen } = open(3)
  await expect(load()).rejects.toMatchObject({
    code: 'operator_unsupported',
    message: expect.stringMatching(
      /one: .*no kernel 1\. two: .*no kernel 2\. three: .*no kernel 3/,
    ),
  })
  expect(chosen).toEqual(['one', 'two', 'three'])
})
