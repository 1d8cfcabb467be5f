/** Capabilities of this device, limited to those with which its GPU computes correct numbers. */
import { sumBytes } from '../../catalog/memory-bytes.ts'
import type { Implementation } from '../../catalog/schema.ts'
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
import type { GpuComparisonRecords } from '../models/implementation-load.ts'

interface GpuVerdicts {
  capabilities(): Promise<Capabilities>
  /** Resolves with the verdict on the GPU; `undefined` before the first self-test. */
  verdict(): Promise<GpuVerdict | undefined>
  /** Applies the verdict of a load and stores it. A verdict by timeout is not stored. */
  record(verdict: GpuVerdict): void
}

export function createGpuVerdicts(
  database: Database,
  probe: () => Promise<Capabilities>,
): GpuVerdicts {
  let recorded: GpuVerdict | undefined
  /** Stored verdict. It is read once: every prediction needs it, and only this host writes it. */
  let storedVerdict: Promise<GpuVerdict | undefined> | undefined

  async function verdict(): Promise<GpuVerdict | undefined> {
    const { webgpu } = await probe()
    if (recorded || !webgpu) return recorded
    const subject = toVerdictKey(webgpu, await getBrowserName())
    storedVerdict ??= getDeviceFact(database, subject, isGpuVerdict).catch((error: unknown) => {
      storedVerdict = undefined
      throw error
    })
    const stored = await storedVerdict
    return recorded ?? stored
  }

  async function store(newVerdict: GpuVerdict): Promise<void> {
    const { webgpu } = await probe()
    if (!webgpu) return
    await putDeviceFact(database, toVerdictKey(webgpu, await getBrowserName()), newVerdict)
  }

  return {
    verdict,
    async capabilities() {
      return withoutUntrusted(await probe(), await verdict())
    },
    record(newVerdict) {
      recorded = newVerdict
      if (newVerdict.late) return
      // If the verdict cannot be stored, the next host tests the GPU again.
      store(newVerdict).catch(() => undefined)
    },
  }
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

export function createGpuComparisons(
  database: Database,
  probe: () => Promise<Capabilities>,
): GpuComparisonRecords {
  /** Comparisons of this host, by implementation. They apply before they are stored. */
  const recent = new Map<string, GpuComparison>()
  const { read, store } = createStoredComparisons(database, probe)

  async function findOnGpu(
    tag: Tag,
    implementation: Implementation,
  ): Promise<GpuComparison | undefined> {
    if (implementation.device !== 'webgpu') return undefined
    const key = keyOf(implementation)
    return recent.get(`${tag} ${key}`) ?? (await read(tag))[key]
  }

  return {
    find: async ({ tag, type }, implementation) =>
      type === 'predictor' ? findOnGpu(tag, implementation) : undefined,
    findEncoder: async (entry, implementation) =>
      entry.type === 'model' && entry.capabilities?.imageInput
        ? findOnGpu(entry.tag, implementation)
        : undefined,
    mustCompare({ type }, { device, resources }) {
      const graph = resources.filter((resource) => isGraphFile(resource.type))
      return type === 'predictor' && device === 'webgpu' && sumBytes(graph) <= MAX_COMPARED_BYTES
    },
    record({ tag }, implementation, comparison) {
      const key = keyOf(implementation)
      recent.set(`${tag} ${key}`, comparison)
      if (!comparison.isTransient) store(tag, key, comparison).catch(() => undefined)
    },
  }
}

/** Reads and stores comparisons on this GPU. */
function createStoredComparisons(database: Database, probe: () => Promise<Capabilities>) {
  const stored = new Map<Tag, Promise<StoredComparisons | undefined>>()

  async function getEnvironment(): Promise<string | undefined> {
    const { webgpu } = await probe()
    return webgpu ? toVerdictKey(webgpu, await getBrowserName()) : undefined
  }

  async function read(tag: Tag): Promise<Record<string, GpuComparison>> {
    const where = await getEnvironment()
    // Without working storage, every host compares again.
    const reading =
      stored.get(tag) ??
      getDeviceFact(database, subjectOf(tag), isStoredComparisons).catch(() => undefined)
    stored.set(tag, reading)
    const fact = await reading
    return fact?.where === where ? (fact?.comparisons ?? {}) : {}
  }

  async function store(tag: Tag, key: string, comparison: GpuComparison): Promise<void> {
    const where = await getEnvironment()
    if (where === undefined) return
    const comparisons = { ...(await read(tag)), [key]: comparison }
    const fact: StoredComparisons = { where, comparisons, recorded: Date.now() }
    stored.set(tag, Promise.resolve(fact))
    await putFactOfGroup(database, COMPARISONS, subjectOf(tag), fact)
  }

  return { read, store }
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

// Names this browser with its full version, under which verdicts on its GPU are stored.

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
