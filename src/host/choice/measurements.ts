/** Stores how fast implementations ran on this device. Each one is measured once. */
import type { Measurement } from '../../catalog/choose-implementation.ts'
import { listKeyParts } from '../../catalog/precision.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import type { Capabilities } from '../../device/capabilities.ts'
import { SELF_TEST_RUNTIME } from '../../device/gpu-verdict.ts'
import { type FactGroup, getDeviceFact, putFactOfGroup } from '../../store/device-facts.ts'
import type { Database } from '../../store/database.ts'
import type { Tag } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'

/** Result of measuring an implementation. */
export interface MeasurementResult {
  /** Measurement; `null` if the implementation rejects the inputs of callers. */
  measurement: Measurement | null
  /** `true` if the failure may be temporary. The next visit measures the implementation again. */
  isTransient?: boolean
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

export class Measurements {
  #database: Database
  #cache = new Map<string, CachedMeasurements>()

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Resolves with the measurements by implementation id, and the ids of those that must not be
   * measured again, even if there is no measurement.
   */
  async get({ tag, implementations }: Entry, deviceId: string, capabilities: Capabilities) {
    const where = environmentOf(capabilities)
    const { runs, untilRestart } = await this.#read(subjectOf(tag, deviceId), where)
    const measured = new Map<string, Measurement>()
    const tried = new Set<string>()
    for (const implementation of implementations) {
      const key = keyOf(implementation)
      const run = runs[key] === undefined ? untilRestart?.[key] : runs[key]
      if (run !== undefined) tried.add(implementation.id)
      if (run) measured.set(implementation.id, run)
    }
    return { measured, tried }
  }

  /** Applies a result at once. Resolves after it is stored. */
  async record(
    {
      tag,
      implementation,
      ...result
    }: { tag: Tag; implementation: Implementation } & MeasurementResult,
    deviceId: string,
    capabilities: Capabilities,
  ): Promise<void> {
    const subject = subjectOf(tag, deviceId)
    const before = await this.#read(subject, environmentOf(capabilities))
    const fact = withResult(before, keyOf(implementation), result)
    this.#putInCache(subject, fact)
    await this.#store(subject, fact)
  }

  /** Caches the most recently used facts. Evicted ones are read from the database again. */
  #putInCache(subject: string, fact: CachedMeasurements): void {
    this.#cache.delete(subject)
    this.#cache.set(subject, fact)
    const [oldest] = this.#cache.keys()
    if (this.#cache.size > SPEEDS.maxFacts && oldest !== undefined) this.#cache.delete(oldest)
  }

  /** Resolves with the measurements that were made at `where`. */
  async #read(subject: string, where: string): Promise<CachedMeasurements> {
    const latest = this.#cache.get(subject) ?? (await this.#readStored(subject))
    const current = latest?.where === where ? latest : { where, runs: {} }
    this.#putInCache(subject, current)
    return current
  }

  async #readStored(subject: string): Promise<StoredMeasurements | undefined> {
    // Without working storage, measurements apply until this host ends.
    const reading = getDeviceFact(this.#database, subject, isStoredMeasurements)
    const fact = await reading.catch(() => undefined)
    // A wrong clock may have recorded a time in the future.
    const isUseRecorded = Math.abs(Date.now() - (fact?.lastUsed ?? 0)) < LAST_USED_RESOLUTION_MS
    if (fact && !isUseRecorded) void this.#store(subject, fact)
    return fact
  }

  async #store(subject: string, { where, runs, failed }: StoredMeasurements): Promise<void> {
    const fact = { where, runs, ...(failed && { failed }), lastUsed: Date.now() }
    await putFactOfGroup(this.#database, SPEEDS, subject, fact).catch(() => undefined)
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
function keyOf(one: Implementation): string {
  const [id, ...parts] = listKeyParts(one)
  return [id, one.device, ...parts].join(' ')
}

function isStoredMeasurements(value: unknown): value is StoredMeasurements {
  return isObject(value) && 'where' in value && 'runs' in value
}
