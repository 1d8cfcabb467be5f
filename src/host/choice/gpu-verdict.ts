/** Capabilities of this device, limited to those with which its GPU computes correct numbers. */
import { sumBytes } from '../../catalog/memory-bytes.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import type { Capabilities } from '../../device/capabilities.ts'
import {
  type GpuComparison,
  type GpuVerdict,
  isGpuComparison,
  isGpuVerdict,
  toVerdictKey,
  withoutUntrusted,
} from '../../device/gpu-verdict.ts'
import type { Database } from '../../store/database.ts'
import {
  type FactGroup,
  getDeviceFact,
  putDeviceFact,
  putFactOfGroup,
} from '../../store/device-facts.ts'
import type { Tag } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import { cacheSuccess } from '../../values/promises.ts'
import type { GpuComparisonRecords } from '../models/implementation-load.ts'

export class GpuVerdicts {
  #database: Database
  #probe: () => Promise<Capabilities>
  #recorded: GpuVerdict | undefined

  constructor(database: Database, probe: () => Promise<Capabilities>) {
    this.#database = database
    this.#probe = probe
  }

  capabilities = async (): Promise<Capabilities> =>
    withoutUntrusted(await this.#probe(), await this.verdict())

  /** Resolves with the verdict on the GPU; `undefined` before the first self-test. */
  verdict = async (): Promise<GpuVerdict | undefined> => {
    const { webgpu } = await this.#probe()
    if (this.#recorded || !webgpu) return this.#recorded
    const stored = await this.#readStored()
    return this.#recorded ?? stored
  }

  /** Applies the verdict of a load and stores it. A verdict by timeout is not stored. */
  record = (verdict: GpuVerdict): void => {
    this.#recorded = verdict
    // If the verdict cannot be stored, the next host tests the GPU again.
    if (!verdict.late) this.#store(verdict).catch(() => undefined)
  }

  /** The stored verdict is read once: every prediction needs it, and only this host writes it. */
  #readStored = cacheSuccess(async () => {
    const subject = await findSubject(this.#probe)
    return subject === undefined ? undefined : getDeviceFact(this.#database, subject, isGpuVerdict)
  })

  async #store(verdict: GpuVerdict): Promise<void> {
    const subject = await findSubject(this.#probe)
    if (subject !== undefined) await putDeviceFact(this.#database, subject, verdict)
  }
}

/** Resolves with the subject of facts on this GPU and browser; `undefined` without a GPU. */
async function findSubject(probe: () => Promise<Capabilities>): Promise<string | undefined> {
  const { webgpu } = await probe()
  return webgpu ? toVerdictKey(webgpu, await getBrowserName()) : undefined
}

// Stores for which predictors and image encoders the GPU computes the same as the CPU. Each is
// compared once for every adapter, version of the browser, and runtime.

/**
 * Largest size in bytes of the graph and weights that are opened on the CPU as well, for the time of
 * the comparison. For larger predictors, the self-test of the GPU must do.
 */
const MAX_COMPARED_BYTES = 64 * 2 ** 20

const COMPARISONS: FactGroup = {
  prefix: 'comparison ',
  maxFacts: 200,
  getLastUsed: (fact) => (isStoredComparisons(fact) ? fact.recorded : 0),
}

/** Comparisons of a tag, by implementation. They are void on any other GPU or browser. */
interface StoredComparisons {
  where: string
  comparisons: Record<string, GpuComparison>
  /** Time of the last comparison in milliseconds since 1970. */
  recorded: number
}

export class GpuComparisons implements GpuComparisonRecords {
  #database: Database
  #probe: () => Promise<Capabilities>
  /** Comparisons of this host, by implementation. They apply before they are stored. */
  #recent = new Map<string, GpuComparison>()
  #stored = new Map<Tag, Promise<StoredComparisons | undefined>>()

  constructor(database: Database, probe: () => Promise<Capabilities>) {
    this.#database = database
    this.#probe = probe
  }

  async find(
    { tag, type }: Entry,
    implementation: Implementation,
  ): Promise<GpuComparison | undefined> {
    return type === 'predictor' ? this.#findOnGpu(tag, implementation) : undefined
  }

  async findEncoder(
    entry: Entry,
    implementation: Implementation,
  ): Promise<GpuComparison | undefined> {
    return entry.type === 'model' && entry.capabilities?.imageInput
      ? this.#findOnGpu(entry.tag, implementation)
      : undefined
  }

  mustCompare({ type }: Entry, { device, resources }: Implementation): boolean {
    const graph = resources.filter((resource) => isGraphFile(resource.type))
    return type === 'predictor' && device === 'webgpu' && sumBytes(graph) <= MAX_COMPARED_BYTES
  }

  record({ tag }: Entry, implementation: Implementation, comparison: GpuComparison): void {
    const key = keyOf(implementation)
    this.#recent.set(`${tag} ${key}`, comparison)
    if (!comparison.isTransient) this.#store(tag, key, comparison).catch(() => undefined)
  }

  async #findOnGpu(tag: Tag, implementation: Implementation): Promise<GpuComparison | undefined> {
    if (implementation.device !== 'webgpu') return undefined
    const key = keyOf(implementation)
    return this.#recent.get(`${tag} ${key}`) ?? (await this.#read(tag))[key]
  }

  async #read(tag: Tag): Promise<Record<string, GpuComparison>> {
    const where = await findSubject(this.#probe)
    // Without working storage, every host compares again.
    const reading =
      this.#stored.get(tag) ??
      getDeviceFact(this.#database, subjectOf(tag), isStoredComparisons).catch(() => undefined)
    this.#stored.set(tag, reading)
    const fact = await reading
    return fact?.where === where ? (fact?.comparisons ?? {}) : {}
  }

  async #store(tag: Tag, key: string, comparison: GpuComparison): Promise<void> {
    const where = await findSubject(this.#probe)
    if (where === undefined) return
    const comparisons = { ...(await this.#read(tag)), [key]: comparison }
    const fact: StoredComparisons = { where, comparisons, recorded: Date.now() }
    this.#stored.set(tag, Promise.resolve(fact))
    await putFactOfGroup(this.#database, COMPARISONS, subjectOf(tag), fact)
  }
}

const isGraphFile = (type: string): boolean => type === 'onnx' || type === 'data'

const subjectOf = (tag: Tag): string => `${COMPARISONS.prefix}${tag}`

/** Returns the key of an implementation. Its digests cause changed files to be compared again. */
const keyOf = ({ id, resources }: Implementation): string =>
  [id, ...resources.map(({ sha256 }) => sha256)].join(' ')

function isStoredComparisons(value: unknown): value is StoredComparisons {
  return (
    isObject(value) &&
    typeof value['where'] === 'string' &&
    typeof value['recorded'] === 'number' &&
    isObject(value['comparisons']) &&
    Object.values(value['comparisons']).every(isGpuComparison)
  )
}

/** Parts of `NavigatorUAData`, which TypeScript's types lack and only Chromium has. */
interface UserAgentData {
  getHighEntropyValues(
    hints: readonly string[],
  ): Promise<{ fullVersionList?: readonly { brand: string; version: string }[] }>
}

/**
 * Resolves with the user agent string, and in Chromium with the full versions, because the string has
 * only the major one: https://www.chromium.org/updates/ua-reduction/
 */
async function getBrowserName(): Promise<string> {
  const { userAgent, userAgentData } = navigator as Navigator & { userAgentData?: UserAgentData }
  const data = await userAgentData?.getHighEntropyValues(['fullVersionList']).catch(() => undefined)
  const versions = (data?.fullVersionList ?? []).map(({ brand, version }) => `${brand} ${version}`)
  return [userAgent, ...versions.toSorted()].join(' ')
}
