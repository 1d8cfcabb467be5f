/** State of a tag on this device: whether it is loaded, stored or remote, and its size. */
import { getMemoryBytes, hasResources, sumResourceBytes } from '../../catalog/memory-bytes.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import type { Database } from '../../store/database.ts'
import type { ModelState } from '../../types/index.ts'
import { areStored } from '../../store/resources.ts'
import type { Models } from '../models/models.ts'
import { findUpstream } from '../../catalog/upstreams.ts'
import type { ImplementationSelector } from '../choice/selector.ts'

export interface StateOptions {
  database: Database
  models: Pick<Models, 'ofTag' | 'countUsers'>
  selector: Pick<ImplementationSelector, 'select'>
}

export async function modelStateOf(
  entry: Entry,
  { database, models, selector }: StateOptions,
): Promise<ModelState> {
  const { tag, type, name } = entry
  const all = models.ofTag(tag)
  const instance = all.findLast(({ ready }) => ready) ?? all.at(-1)
  const implementation = instance?.implementation ?? (await findSelected(entry, selector))
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

function findSelected(
  entry: Entry,
  selector: Pick<ImplementationSelector, 'select'>,
): Promise<Implementation | undefined> {
  return selector.select(entry).then(
    ({ implementation }) => implementation,
    () => undefined,
  )
}
