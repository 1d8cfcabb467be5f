/** The operations of the page's server handle that load, unload and describe what the catalog lists. */
import { removeTag } from '../../store/inventory.ts'
import type { Control } from '../../types/index.ts'
import { createCatalogIndex } from '../library/catalog-index.ts'
import { modelStateOf, type StateOptions } from '../library/model-state.ts'
import type { Entries } from '../library/entries.ts'
import type { LoadCrashes } from '../choice/load-crashes.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { Models } from '../models/models.ts'
import { waitUntilLoaded, type Leases } from './leases.ts'
import { withRetry } from './retry.ts'
import type { Trace } from './trace.ts'

export interface LoadingOptions extends StateOptions {
  entries: Entries
  leases: Leases
  models: Models
  selector: ImplementationSelector
  crashes: Pick<LoadCrashes, 'forget'>
  trace: Trace
}

type LoadingCalls = Pick<
  Control,
  | 'modelStates'
  | 'load'
  | 'forgetCrashes'
  | 'progress'
  | 'trace'
  | 'pause'
  | 'cancel'
  | 'unload'
  | 'explain'
>

export function createLoading(options: LoadingOptions): LoadingCalls {
  const { database, entries, leases, models, selector, crashes, trace } = options
  return {
    async modelStates() {
      return Promise.all((await entries.all()).map((entry) => modelStateOf(entry, options)))
    },
    async load(tag, { signal, onEvent }) {
      await withRetry(async () => {
        const lease = await leases.acquire(await entries.find(tag, 'tag'), signal, onEvent)
        await waitUntilLoaded(lease, signal, onEvent).finally(lease.release)
      })
    },
    async forgetCrashes(tag) {
      await entries.find(tag, 'tag')
      await crashes.forget(tag)
    },
    progress: async ({ signal }) => ({ events: models.progress(signal) }),
    trace: async ({ signal }) => ({ events: trace.read(signal) }),
    async pause(tag) {
      await entries.find(tag, 'tag')
      leases.pause(tag)
    },
    async cancel(tag) {
      const entry = await entries.find(tag, 'tag')
      leases.pause(tag)
      const { status } = await modelStateOf(entry, options)
      if (status === 'remote') await removeTag(database, tag, await createCatalogIndex(entries))
    },
    async unload(tag) {
      await entries.find(tag, 'tag')
      models.unload(tag)
    },
    async explain(tag, { signal }) {
      return selector.explain(await entries.complete(await entries.find(tag, 'tag'), signal))
    },
  }
}
