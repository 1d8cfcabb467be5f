/**
 * Remembers loads that ended the page or its worker, as browsers do when memory runs out. A record is
 * written before the weights are loaded, and removed after that, also if the load fails. A record
 * that is left behind is a crash. An implementation with two crashes within an hour, and no complete
 * load in between, is not loaded again until the user or a new version of the browser allows it.
 */
import { getMemoryBytes } from '../../catalog/memory-bytes.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
import { deleteDeviceFacts, listDeviceFacts, putDeviceFact } from '../../store/device-facts.ts'
import type { Database } from '../../store/database.ts'
import type { Tag } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import type { LoadRecord } from '../models/implementation-load.ts'

/** Ends of hosts that are no crashes. */
export interface HostLives {
  /** Name of the liveness lock of this host; `null` without Web Locks. */
  own: string | null
  /** Name of the lock of the last host whose tab was closed or that lost an election. */
  lastEnded: string | null
  /** Resolves with the names of the locks of living hosts. */
  living(): Promise<ReadonlySet<string>>
}

/** Number of crashes in a row after which an implementation is not loaded again. */
const MAX_CRASHES = 2

/** Time in milliseconds after which a crash no longer counts. A closed laptop may look like one. */
const CRASH_EXPIRY_MS = 3_600_000

const SUBJECT_PREFIX = 'load '

/** Record where loads are not watched. */
export const NO_RECORD: LoadRecord = {
  completed: async () => {},
  failed: async () => {},
  crashed: async () => {},
}

type LoadedEntry = Pick<Entry, 'tag' | 'implementations'>

/** Stored crashes of an implementation. */
interface CrashFact {
  /** Browser of the crashes. They are void with any other. */
  where: string
  /** Times of loads that crashed, in milliseconds since 1970. */
  crashes: number[]
  /** Load in progress: its time, and the liveness lock of its host. */
  loading: { since: number; life: string | null } | null
}

export class LoadCrashes {
  #database: Database
  #lives: HostLives
  #facts = new Map<string, CrashFact>()
  /** Resolves when the stored facts are known. */
  #settled: Promise<void>

  constructor(database: Database, lives: HostLives) {
    this.#database = database
    this.#lives = lives
    // Without working storage, crashes are not remembered, and loads go on.
    this.#settled = this.#settle().catch(() => undefined)
  }

  /** Resolves with why implementations of the entry must not be loaded, by id. */
  async find({ tag, implementations }: LoadedEntry): Promise<ReadonlyMap<string, string>> {
    await this.#settled
    const crashed = implementations.filter((one) => this.#hasCrashed(tag, one))
    const least = Math.min(...crashed.map(getMemoryBytes))
    const tooLarge = implementations.filter((one) => getMemoryBytes(one) > least)
    return new Map([
      ...tooLarge.map(({ id }) => [id, `it is larger than one that ended this page`] as const),
      ...crashed.map(({ id }) => [id, describeCrash(tag)] as const),
    ])
  }

  /** Writes the record of a load. Rejects with `load_crashed` if it must not be loaded. */
  async begin({ tag }: LoadedEntry, implementation: Implementation): Promise<LoadRecord> {
    const life = this.#lives.own
    if (life === null) return NO_RECORD
    await this.#settled
    if (this.#hasCrashed(tag, implementation)) throw loadCrashed(tag, implementation)
    const subject = subjectOf(tag, implementation)
    const fact = this.#read(tag, implementation)
    const since = Date.now()
    const store = (next: CrashFact) => this.#put(subject, next).catch(() => undefined)
    await store({ ...fact, loading: { since, life } })
    return {
      // A tab may crash in a load for another reason, so a load that succeeds acquits the others.
      completed: () => store({ ...fact, crashes: [], loading: null }),
      failed: () => store({ ...fact, loading: null }),
      crashed: () => store(withCrash(fact, since)),
    }
  }

  /** Forgets the crashes of the tag, so that it is loaded again. */
  async forget(tag: Tag): Promise<void> {
    await this.#settled
    const subjects = [...this.#facts.keys()].filter((one) => one.startsWith(prefixOf(tag)))
    for (const subject of subjects) this.#facts.delete(subject)
    await deleteDeviceFacts(this.#database, subjects)
  }

  /** Reads the facts, and counts the records that dead hosts left behind. */
  async #settle(): Promise<void> {
    const { lastEnded, living: listLiving } = this.#lives
    const stored = await listDeviceFacts(this.#database, SUBJECT_PREFIX, isCrashFact)
    const living = stored.length > 0 ? await listLiving() : new Set<string>()
    for (const [subject, fact] of stored) {
      this.#facts.set(subject, fact)
      const { loading } = fact
      if (!loading || (loading.life !== null && living.has(loading.life))) continue
      const isCrash = loading.life !== null && loading.life !== lastEnded
      await this.#put(
        subject,
        isCrash ? withCrash(fact, loading.since) : { ...fact, loading: null },
      )
    }
  }

  async #put(subject: string, fact: CrashFact): Promise<void> {
    const current = { ...fact, crashes: fact.crashes.filter(isRecent) }
    if (current.crashes.length === 0 && !current.loading) {
      this.#facts.delete(subject)
      return deleteDeviceFacts(this.#database, [subject])
    }
    this.#facts.set(subject, current)
    await putDeviceFact(this.#database, subject, current)
  }

  #read(tag: Tag, implementation: Implementation): CrashFact {
    const fact = this.#facts.get(subjectOf(tag, implementation))
    const where = navigator.userAgent
    return fact?.where === where ? fact : { where, crashes: [], loading: null }
  }

  #hasCrashed(tag: Tag, implementation: Implementation): boolean {
    return this.#read(tag, implementation).crashes.filter(isRecent).length >= MAX_CRASHES
  }
}

const prefixOf = (tag: Tag): string => `${SUBJECT_PREFIX}${tag} `

/** An exact load needs other memory than a fast one of the same files. */
const subjectOf = (tag: Tag, { id, precision }: Implementation): string =>
  prefixOf(tag) + [id, ...(precision === 'exact' ? [precision] : [])].join(' ')

const withCrash = (fact: CrashFact, since: number): CrashFact => ({
  ...fact,
  crashes: [...fact.crashes, since],
  loading: null,
})

/** Returns `true` for a time in the last hour. A wrong clock may have recorded one in the future. */
const isRecent = (time: number): boolean => Math.abs(Date.now() - time) < CRASH_EXPIRY_MS

const describeCrash = (tag: Tag): string =>
  'its load ended this page or its worker twice in a row within an hour, most likely because ' +
  `memory ran out; server.models.load('${tag}', { retryCrashed: true }) tries it again`

function loadCrashed(tag: Tag, { id }: Implementation): InoriginError {
  const what = `The implementation ${id} of ${tag} is not loaded: ${describeCrash(tag)}.`
  return new InoriginError('unavailable', what, { code: 'load_crashed', details: { tag } })
}

function isCrashFact(value: unknown): value is CrashFact {
  return (
    isObject(value) &&
    typeof value['where'] === 'string' &&
    Array.isArray(value['crashes']) &&
    'loading' in value
  )
}
