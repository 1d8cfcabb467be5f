/** Stores how fast implementations ran on this device. Each one is measured once. */
import type { Measurement } from '../../catalog/choose-implementation.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import type { Capabilities } from '../../device/capabilities.ts'
import { SELF_TEST_RUNTIME } from '../../device/gpu-verdict.ts'
import { type FactGroup, getDeviceFact, putFactOfGroup } from '../../store/device-facts.ts'
import type { Database } from '../../store/database.ts'
import type { Tag } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'

/** Measurements of a tag's implementations. */
interface KnownMeasurements {
  /** Measurements by implementation id. */
  measured: Map<string, Measurement>
  /**
   * Ids of the implementations that must not be measured again, even if there is no measurement.
   */
  tried: Set<string>
}

/** Result of measuring an implementation. */
export interface MeasurementResult {
  /** Measurement; `null` if the implementation rejects the inputs of callers. */
  measurement: Measurement | null
  /** `true` if the failure may be temporary. The next visit measures the implementation again. */
  isTransient?: boolean
}

export interface Measurements {
  get(entry: Entry, deviceId: string, capabilities: Capabilities): Promise<KnownMeasurements>
  record(
    result: { tag: Tag; implementation: Implementation } & MeasurementResult,
    deviceId: string,
    capabilities: Capabilities,
  ): Promise<void>
}

interface StoredMeasurements {
  /** Adapter and browser of the measurements. They are void with any others. */
  where: string
  runs: Record<string, Measurement | null>
  /** Number of successive visits with a temporary failure, by implementation key. */
  failed?: Record<string, number>
  /** Time of the last use in milliseconds since 1970, to the day. Older versions did not set it. */
  lastUsed?: number
}

/** A fact with the measurements that apply only until this host ends. */
interface CachedMeasurements extends StoredMeasurements {
  untilRestart?: Record<string, Measurement>
}

/** The facts, one for each tag and device. Clients may use any device names. */
const SPEEDS: FactGroup = {
  prefix: 'speed ',
  maxFacts: 200,
  getLastUsed: (fact) => (isStoredMeasurements(fact) ? (fact.lastUsed ?? 0) : 0),
}

/** Number of visits with a temporary failure after which an implementation is not tried again. */
const MAX_TRANSIENT_FAILURES = 3

/** Time in milliseconds in which a further use is not recorded. */
const LAST_USED_RESOLUTION_MS = 86_400_000

export function createMeasurements(database: Database): Measurements {
  const facts = createFacts(database)

  return {
    async get({ tag, implementations }, deviceId, capabilities) {
      const { runs, untilRestart } = await facts.read(
        subjectOf(tag, deviceId),
        environmentOf(capabilities),
      )
      const measured = new Map<string, Measurement>()
      const tried = new Set<string>()
      for (const implementation of implementations) {
        const key = keyOf(implementation)
        const run = runs[key] === undefined ? untilRestart?.[key] : runs[key]
        if (run !== undefined) tried.add(implementation.id)
        if (run) measured.set(implementation.id, run)
      }
      return { measured, tried }
    },
    async record({ tag, implementation, ...result }, deviceId, capabilities) {
      const subject = subjectOf(tag, deviceId)
      const fact = withResult(
        await facts.read(subject, environmentOf(capabilities)),
        keyOf(implementation),
        result,
      )
      await facts.write(subject, fact)
    },
  }
}

interface Facts {
  /** Resolves with the measurements that were made at `where`. */
  read(subject: string, where: string): Promise<CachedMeasurements>
  /** Applies measurements at once. Resolves after they are stored. */
  write(subject: string, fact: CachedMeasurements): Promise<void>
}

function createFacts(database: Database): Facts {
  const cache = new Map<string, CachedMeasurements>()

  /** Caches the most recently used facts. Evicted ones are read from the database again. */
  function putInCache(subject: string, fact: CachedMeasurements): void {
    cache.delete(subject)
    cache.set(subject, fact)
    const [oldest] = cache.keys()
    if (cache.size > SPEEDS.maxFacts && oldest !== undefined) cache.delete(oldest)
  }

  async function read(subject: string, where: string): Promise<CachedMeasurements> {
    const empty: StoredMeasurements = { where, runs: {} }
    const latest = cache.get(subject) ?? (await readStored(subject)) ?? empty
    const current = latest.where === where ? latest : empty
    putInCache(subject, current)
    return current
  }

  async function readStored(subject: string): Promise<StoredMeasurements | undefined> {
    // Without working storage, measurements apply until this host ends.
    const fact = await getDeviceFact(database, subject, isStoredMeasurements).catch(() => undefined)
    // A wrong clock may have recorded a time in the future.
    const isUseRecorded = Math.abs(Date.now() - (fact?.lastUsed ?? 0)) < LAST_USED_RESOLUTION_MS
    if (fact && !isUseRecorded) void store(subject, fact)
    return fact
  }

  async function store(
    subject: string,
    { where, runs, failed }: StoredMeasurements,
  ): Promise<void> {
    const fact: StoredMeasurements = {
      where,
      runs,
      ...(failed && { failed }),
      lastUsed: Date.now(),
    }
    await putFactOfGroup(database, SPEEDS, subject, fact).catch(() => undefined)
  }

  return {
    read,
    write(subject, fact) {
      putInCache(subject, fact)
      return store(subject, fact)
    },
  }
}

function withResult(
  fact: CachedMeasurements,
  key: string,
  { measurement, isTransient }: MeasurementResult,
): CachedMeasurements {
  const { [key]: before = 0, ...others } = fact.failed ?? {}
  const failures = before + 1
  if (measurement && isTransient && failures < MAX_TRANSIENT_FAILURES) {
    return {
      ...fact,
      failed: { ...others, [key]: failures },
      untilRestart: { ...fact.untilRestart, [key]: measurement },
    }
  }
  return { ...fact, failed: others, runs: { ...fact.runs, [key]: measurement } }
}

const subjectOf = (tag: Tag, deviceId: string): string => `${SPEEDS.prefix}${deviceId} ${tag}`

function environmentOf({ webgpu, wasm }: Capabilities): string {
  const { vendor, architecture, device, description } = webgpu ?? {}
  const gpu = webgpu ? [vendor, architecture, device, description] : ['no gpu']
  const threads = wasm.threads ? 'threads' : 'one thread'
  return [...gpu, threads, navigator.userAgent, SELF_TEST_RUNTIME].join(' | ')
}

/** Returns the key of an implementation. Its digests cause changed files to be measured again. */
function keyOf({ id, device, resources }: Implementation): string {
  return [id, device, ...resources.map(({ sha256 }) => sha256)].join(' ')
}

function isStoredMeasurements(value: unknown): value is StoredMeasurements {
  return isObject(value) && 'where' in value && 'runs' in value
}
