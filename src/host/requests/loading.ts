/** The operations of the page's server handle that load, unload and describe what the catalog lists. */
import { getMemoryBytes, hasResources, sumResourceBytes } from '../../catalog/memory-bytes.ts'
import type { Entry } from '../../catalog/schema.ts'
import { findUpstream } from '../../catalog/upstreams.ts'
import type { Database } from '../../store/database.ts'
import { removeTag } from '../../store/inventory.ts'
import { areStored } from '../../store/resources.ts'
import type { Control, ModelState } from '../../types/index.ts'
import type { LoadCrashes } from '../choice/load-crashes.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import { createCatalogIndex, type Entries } from '../library/entries.ts'
import type { Models } from '../models/models.ts'
import { type Leases, withLoaded } from './leases.ts'
import type { Trace } from './middleware.ts'

interface LoadingOptions {
  database: Database
  entries: Entries
  leases: Leases
  models: Models
  selector: ImplementationSelector
  crashes: LoadCrashes
  trace: Trace
}

export function createLoading(options: LoadingOptions) {
  const { database, entries, leases, models, selector, crashes, trace } = options
  return {
    async modelStates() {
      return Promise.all((await entries.all()).map((entry) => modelStateOf(entry, options)))
    },
    load(tag, caller) {
      const { signal, onEvent } = caller
      const acquire = async () => leases.acquire(await entries.find(tag, 'tag'), signal, onEvent)
      return withLoaded(acquire, caller, async () => {})
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
  } satisfies Partial<Control>
}

/** Resolves with the state of a tag on this device: whether it is in memory or stored, its size. */
async function modelStateOf(
  entry: Entry,
  { database, models, selector }: LoadingOptions,
): Promise<ModelState> {
  const { tag, type, name } = entry
  const all = models.ofTag(tag)
  const instance = all.findLast(({ ready }) => ready) ?? all.at(-1)
  const findSelected = () =>
    selector.select(entry).then(
      (choice) => choice.implementation,
      () => undefined,
    )
  const implementation = instance?.implementation ?? (await findSelected())
  const isKnown = implementation
    ? hasResources(implementation)
    : entry.implementations.some(hasResources)
  const isHere = implementation && isKnown && (await areStored(database, implementation))
  const isSized = isKnown || entry.upstreams !== undefined
  const stored = isHere ? 'stored' : 'remote'
  return {
    tag,
    type,
    name,
    status: instance ? (instance.ready ? 'loaded' : 'loading') : stored,
    bytes: isSized ? sumResourceBytes(implementation ?? { resources: [] }) : null,
    memory: isSized ? getMemoryBytes(implementation ?? { resources: [] }) : null,
    users: models.countUsers(tag),
    device: implementation?.device ?? null,
    servedBy: findServer(entry, implementation !== undefined, instance?.ready ?? false),
  }
}

/** Returns where a request that begins now is answered. */
function findServer(entry: Entry, canRun: boolean, isReady: boolean): ModelState['servedBy'] {
  const isUpstream =
    findUpstream(entry, 'always') ??
    findUpstream(entry, 'unavailable', canRun ? 'local' : undefined) ??
    findUpstream(entry, 'not-loaded', isReady ? 'local' : undefined)
  if (isUpstream) return 'upstream'
  return canRun ? 'local' : null
}
