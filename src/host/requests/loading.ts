/** The operations of the page's server handle that load, unload and describe what the catalog lists. */
import type { Control } from '../../types/index.ts'
import { modelStateOf, type StateOptions } from '../library/model-state.ts'
import type { Entries } from '../library/entries.ts'
import type { LoadCrashes } from '../choice/load-crashes.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { Models } from '../models/models.ts'
import { waitUntilLoaded, type Leases } from './leases.ts'
import { withRetry } from './retry.ts'

export interface LoadingOptions extends StateOptions {
  entries: Entries
  leases: Leases
  models: Models
  selector: ImplementationSelector
  crashes: Pick<LoadCrashes, 'forget'>
}

export function createLoading(
  options: LoadingOptions,
): Pick<Control, 'modelStates' | 'load' | 'forgetCrashes' | 'progress' | 'unload' | 'explain'> {
  const { entries, leases, models, selector, crashes } = options
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
    async unload(tag) {
      await entries.find(tag, 'tag')
      models.unload(tag)
    },
    async explain(tag, { signal }) {
      return selector.explain(await entries.complete(await entries.find(tag, 'tag'), signal))
    },
  }
}
