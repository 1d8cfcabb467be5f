/** Opens the database, the catalogs and the entries of a host, which it needs before any model. */
import { loadCatalog } from '../catalog/load.ts'
import type { Catalog } from '../catalog/schema.ts'
import { names } from '../link/protocol.ts'
import { type Database, openDatabase } from '../store/database.ts'
import { raiseEpoch } from '../store/epoch.ts'
import { withFence } from '../store/fence.ts'
import type { LoadProgress } from '../types/index.ts'
import { cacheSuccess } from '../values/cache-success.ts'
import { createCatalogCopies } from './library/catalog-copies.ts'
import { createEntries, type Entries } from './library/entries.ts'
import type { HostSetup } from './messages.ts'

export interface Library {
  database: Database
  /** Resolves with the epoch of this host, which is later than those of its predecessors. */
  epoch: () => Promise<number>
  catalog: () => Promise<Catalog>
  entries: Entries
}

export interface LibraryEvents {
  onDownload(): void
  /** Called when a later host was elected. */
  onReplaced(): void
  onProgress(step: LoadProgress): void
}

/** Opens the library of a host. The catalog and the database are read on first use. */
export function openLibrary(
  setup: HostSetup,
  isElected: boolean,
  { onDownload, onReplaced, onProgress }: LibraryEvents,
): Library {
  const { scope, assets, offline } = setup
  const opened = openDatabase(names(scope).database)
  // Several pages without a service worker may host at once, each for itself. None replaces another.
  const database = isElected ? withFence(opened, names(scope).host, onReplaced) : opened
  const embedded = new URL('models/catalog.json', assets).href
  const copies = offline ? createCatalogCopies(database.name) : undefined
  const catalog = cacheSuccess(() =>
    loadCatalog(setup.catalog, embedded, scope, copies, setup.upstreams),
  )
  return {
    database,
    epoch: cacheSuccess(() => raiseEpoch(database)),
    catalog,
    entries: createEntries(database, catalog, { onDownload, onProgress }),
  }
}
