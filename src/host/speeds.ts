/** How fast implementations ran on this device: measured once for each, and remembered. */
import type { Measurement } from '../catalog/choose.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { Capabilities } from '../device/capabilities.ts'
import { TRIED_WITH } from '../device/verdict.ts'
import { readFact, trimFacts, writeFact } from '../store/facts.ts'
import type { Database } from '../store/open.ts'
import type { Tag } from '../types/index.ts'

/** What is known of a tag's implementations. */
export interface Known {
  /** By implementation id. */
  measured: Map<string, Measurement>
  /** Ids of those that are not to be measured again, even where nothing came of it. */
  tried: Set<string>
}

export interface Speeds {
  of(entry: Entry, deviceId: string, capabilities: Capabilities): Promise<Known>
  /** `null`: nothing can be said of it, as it does not take inputs that were made up. */
  learn(
    found: { tag: Tag; implementation: Implementation; measurement: Measurement | null },
    deviceId: string,
    capabilities: Capabilities,
  ): Promise<void>
}

interface Fact {
  /** Adapter and browser; anything learnt with others says nothing. */
  where: string
  runs: Record<string, Measurement | null>
}

const PREFIX = 'speed '

/** Tags times devices that are remembered; clients may name devices as they like. */
const MOST = 200

export function createSpeeds(database: Database): Speeds {
  const facts = new Map<string, Fact>()

  /** The last of them, as what is stored is read again where it is asked for again. */
  function remember(subject: string, fact: Fact): void {
    facts.delete(subject)
    facts.set(subject, fact)
    const [oldest] = facts.keys()
    if (facts.size > MOST && oldest !== undefined) facts.delete(oldest)
  }

  async function read(subject: string, where: string): Promise<Fact> {
    const nothing: Fact = { where, runs: {} }
    // Where nothing can be stored, what was learnt counts until this host ends.
    const stored = () => readFact(database, subject, isFact).catch(() => undefined)
    const fact = facts.get(subject) ?? (await stored()) ?? nothing
    const current = fact.where === where ? fact : nothing
    remember(subject, current)
    return current
  }

  return {
    async of({ tag, implementations }, deviceId, capabilities) {
      const { runs } = await read(subjectOf(tag, deviceId), whereOf(capabilities))
      const measured = new Map<string, Measurement>()
      const tried = new Set<string>()
      for (const implementation of implementations) {
        const run = runs[keyOf(implementation)]
        if (run !== undefined) tried.add(implementation.id)
        if (run) measured.set(implementation.id, run)
      }
      return { measured, tried }
    },
    async learn({ tag, implementation, measurement }, deviceId, capabilities) {
      const subject = subjectOf(tag, deviceId)
      const { where, runs } = await read(subject, whereOf(capabilities))
      const fact: Fact = { where, runs: { ...runs, [keyOf(implementation)]: measurement } }
      remember(subject, fact)
      const keep = async () => {
        await writeFact(database, subject, fact)
        await trimFacts(database, PREFIX, MOST, subject)
      }
      await keep().catch(() => undefined)
    },
  }
}

const subjectOf = (tag: Tag, deviceId: string): string => `${PREFIX}${deviceId} ${tag}`

function whereOf({ webgpu, wasm }: Capabilities): string {
  const { vendor, architecture, device, description } = webgpu ?? {}
  const gpu = webgpu ? [vendor, architecture, device, description] : ['no gpu']
  const threads = wasm.threads ? 'threads' : 'one thread'
  return [...gpu, threads, navigator.userAgent, TRIED_WITH].join(' | ')
}

/** Hashes in the key, so that other files are another matter. */
function keyOf({ id, device, resources }: Implementation): string {
  return [id, device, ...resources.map(({ sha256 }) => sha256)].join(' ')
}

function isFact(value: unknown): value is Fact {
  return typeof value === 'object' && value !== null && 'where' in value && 'runs' in value
}
