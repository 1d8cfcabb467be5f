/** The catalog's entries, with what hubs said of those that are listed by their repository alone. */
import { completeEntry, resolveHub, type Resolved } from '../catalog/hub/resolve.ts'
import { findEntry } from '../catalog/resolve.ts'
import type { Catalog, Entry, HubSource, ModelEntry } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import { readFact, writeFact } from '../store/facts.ts'
import type { Database } from '../store/open.ts'
import type { Tag } from '../types/index.ts'

export interface Entries {
  /** All of them, as complete as is known without asking a hub. */
  all(): Promise<Entry[]>
  /** The one of that tag. Rejects with `not_found`, naming what looks like it and `fits`. */
  find(tag: Tag, param: 'model' | 'tag', fits?: (entry: Entry) => boolean): Promise<Entry>
  /**
   * With its implementations: from a hub the first time, from then on as they were then, so that a
   * model stays the same until its catalog entry names another revision.
   */
  complete(entry: Entry, signal: AbortSignal): Promise<Entry>
  /** Takes those implementations for what the hub would have said of it. */
  adopt(entry: ModelEntry & { hub: HubSource }, resolved: Resolved): Promise<void>
}

export function createEntries(database: Database, load: () => Promise<Catalog>): Entries {
  const resolving = new Map<string, Promise<Resolved>>()

  async function known(entry: Entry): Promise<Entry> {
    if (!isShort(entry)) return entry
    const fact = await readFact(database, subjectOf(entry.hub), isResolved)
    return fact ? completeEntry(entry, fact) : entry
  }

  function resolve(source: HubSource): Promise<Resolved> {
    const subject = subjectOf(source)
    const running = resolving.get(subject)
    if (running) return running
    // Not ended by the one who asked first: others may wait for the same.
    const resolved = resolveHub(source, { signal: new AbortController().signal })
      .then(async (found) => {
        await writeFact(database, subject, found)
        return found
      })
      .finally(() => resolving.delete(subject))
    resolving.set(subject, resolved)
    return resolved
  }

  return {
    async all() {
      const { entries } = await load()
      return Promise.all(entries.map(known))
    },
    async find(tag, param, fits) {
      return known(findEntry(await load(), tag, param, fits))
    },
    async complete(entry, signal) {
      if (!isShort(entry)) return entry
      const resolved = await Promise.race([resolve(entry.hub), aborted(signal)])
      return completeEntry(entry, resolved)
    },
    adopt: ({ hub }, resolved) => writeFact(database, subjectOf(hub), resolved),
  }
}

/** One of a hub whose files have not been listed yet. */
export function isShort(entry: Entry): entry is ModelEntry & { hub: HubSource } {
  return entry.type === 'model' && entry.hub !== undefined && entry.implementations.length === 0
}

function subjectOf({ host, repository, revision, dtypes }: HubSource): string {
  return ['hub', host, repository, revision, ...(dtypes ?? [])].join(' ')
}

function isResolved(value: unknown): value is Resolved {
  return typeof value === 'object' && value !== null && 'implementations' in value
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(InoriginError.from(signal.reason))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })
}
