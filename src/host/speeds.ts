/** Stores how fast implementations ran on this device. Each one is measured once. */
import type { Measurement } from '../catalog/choose-implementation.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { Capabilities } from '../device/capabilities.ts'
import { SELF_TEST_RUNTIME } from '../device/gpu-verdict.ts'
import { getDeviceFact, trimDeviceFacts, putDeviceFact } from '../store/device-facts.ts'
import type { Database } from '../store/database.ts'
import type { Tag } from '../types/index.ts'

/** Measurements of a tag's implementations. */
export interface Known {
  /** Measurements by implementation id. */
  measured: Map<string, Measurement>
  /**
   * Ids of the implementations that must not be measured again, even if there is no measurement.
   */
  tried: Set<string>
}

/** Result of measuring an implementation. */
export interface Found {
  /** Measurement; `null` if the implementation rejects sample inputs and cannot be measured. */
  measurement: Measurement | null
  /** `true` if the failure may be temporary. The next visit measures the implementation again. */
  mayPass?: boolean
}

export interface Speeds {
  of(entry: Entry, deviceId: string, capabilities: Capabilities): Promise<Known>
  learn(
    found: { tag: Tag; implementation: Implementation } & Found,
    deviceId: string,
    capabilities: Capabilities,
  ): Promise<void>
}

interface Fact {
  /** Adapter and browser of the measurements. They are void with any others. */
  where: string
  runs: Record<string, Measurement | null>
  /** Number of successive visits with a temporary failure, by implementation key. */
  failed?: Record<string, number>
  /** Time of the last use in milliseconds since 1970, to the day. Older versions did not set it. */
  lastUsed?: number
}

/** A fact with the measurements that apply only until this host ends. */
interface Current extends Fact {
  now?: Record<string, Measurement>
}

const PREFIX = 'speed '

/** Maximum number of facts, one for each tag and device. Clients may use any device names. */
const MOST = 200

/** Number of visits with a temporary failure after which an implementation is not tried again. */
const VISITS = 3

/** Time in milliseconds in which a further use is not recorded. */
const SAME_USE = 86_400_000

export function createSpeeds(database: Database): Speeds {
  const facts = new Map<string, Current>()

  /** Caches the most recently used facts. Evicted ones are read from the database again. */
  function remember(subject: string, fact: Current): void {
    facts.delete(subject)
    facts.set(subject, fact)
    const [oldest] = facts.keys()
    if (facts.size > MOST && oldest !== undefined) facts.delete(oldest)
  }

  async function read(subject: string, where: string): Promise<Current> {
    const nothing: Fact = { where, runs: {} }
    const known = facts.get(subject) ?? (await stored(subject)) ?? nothing
    const current = known.where === where ? known : nothing
    remember(subject, current)
    return current
  }

  async function stored(subject: string): Promise<Fact | undefined> {
    // Without working storage, measurements apply until this host ends.
    const fact = await getDeviceFact(database, subject, isFact).catch(() => undefined)
    // A wrong clock may have recorded a time in the future.
    const isNoted = Math.abs(Date.now() - (fact?.lastUsed ?? 0)) < SAME_USE
    if (fact && !isNoted) void write(subject, fact)
    return fact
  }

  async function write(subject: string, { where, runs, failed }: Fact): Promise<void> {
    const fact: Fact = { where, runs, ...(failed && { failed }), lastUsed: Date.now() }
    const keep = async () => {
      await putDeviceFact(database, subject, fact)
      await trimDeviceFacts(database, PREFIX, {
        maxFacts: MOST,
        keepSubject: subject,
        getLastUsed: lastUse,
      })
    }
    await keep().catch(() => undefined)
  }

  return {
    async of({ tag, implementations }, deviceId, capabilities) {
      const { runs, now } = await read(subjectOf(tag, deviceId), whereOf(capabilities))
      const measured = new Map<string, Measurement>()
      const tried = new Set<string>()
      for (const implementation of implementations) {
        const key = keyOf(implementation)
        const run = runs[key] === undefined ? now?.[key] : runs[key]
        if (run !== undefined) tried.add(implementation.id)
        if (run) measured.set(implementation.id, run)
      }
      return { measured, tried }
    },
    async learn({ tag, implementation, ...found }, deviceId, capabilities) {
      const subject = subjectOf(tag, deviceId)
      const fact = withFound(
        await read(subject, whereOf(capabilities)),
        keyOf(implementation),
        found,
      )
      remember(subject, fact)
      await write(subject, fact)
    },
  }
}

function withFound(fact: Current, key: string, { measurement, mayPass }: Found): Current {
  const { [key]: before = 0, ...others } = fact.failed ?? {}
  const visits = before + 1
  if (measurement && mayPass && visits < VISITS) {
    return {
      ...fact,
      failed: { ...others, [key]: visits },
      now: { ...fact.now, [key]: measurement },
    }
  }
  return { ...fact, failed: others, runs: { ...fact.runs, [key]: measurement } }
}

const lastUse = (fact: unknown): number => (isFact(fact) ? (fact.lastUsed ?? 0) : 0)

const subjectOf = (tag: Tag, deviceId: string): string => `${PREFIX}${deviceId} ${tag}`

function whereOf({ webgpu, wasm }: Capabilities): string {
  const { vendor, architecture, device, description } = webgpu ?? {}
  const gpu = webgpu ? [vendor, architecture, device, description] : ['no gpu']
  const threads = wasm.threads ? 'threads' : 'one thread'
  return [...gpu, threads, navigator.userAgent, SELF_TEST_RUNTIME].join(' | ')
}

/** Returns the key of an implementation. Its digests cause changed files to be measured again. */
function keyOf({ id, device, resources }: Implementation): string {
  return [id, device, ...resources.map(({ sha256 }) => sha256)].join(' ')
}

function isFact(value: unknown): value is Fact {
  return typeof value === 'object' && value !== null && 'where' in value && 'runs' in value
}
