/** Capabilities of this device, limited to those with which its GPU computes correct numbers. */
import type { Capabilities } from '../device/capabilities.ts'
import {
  isGpuVerdict,
  withoutUntrusted,
  toVerdictKey,
  type GpuVerdict,
} from '../device/gpu-verdict.ts'
import { InoriginError } from '../error.ts'
import { getDeviceFact, putDeviceFact } from '../store/device-facts.ts'
import type { Database } from '../store/database.ts'

export interface Trust {
  capabilities(): Promise<Capabilities>
  /** Resolves with the verdict on the GPU; `undefined` before the first self-test. */
  verdict(): Promise<GpuVerdict | undefined>
  /** Applies the verdict of a load and stores it. A verdict by timeout is not stored. */
  learn(verdict: GpuVerdict): void
}

export function createTrust(database: Database, probe: () => Promise<Capabilities>): Trust {
  let learnt: GpuVerdict | undefined
  /** Stored verdict. It is read once: every prediction needs it, and only this host writes it. */
  let reading: Promise<GpuVerdict | undefined> | undefined

  async function verdict(): Promise<GpuVerdict | undefined> {
    const { webgpu } = await probe()
    if (learnt || !webgpu) return learnt
    const subject = toVerdictKey(webgpu, navigator.userAgent)
    reading ??= getDeviceFact(database, subject, isGpuVerdict).catch((error: unknown) => {
      reading = undefined
      throw error
    })
    const stored = await reading
    return learnt ?? stored
  }

  async function keep(found: GpuVerdict): Promise<void> {
    const { webgpu } = await probe()
    if (webgpu) await putDeviceFact(database, toVerdictKey(webgpu, navigator.userAgent), found)
  }

  return {
    verdict,
    async capabilities() {
      return withoutUntrusted(await probe(), await verdict())
    },
    learn(found) {
      learnt = found
      if (found.late) return
      // If the verdict cannot be stored, the next host tests the GPU again.
      keep(found).catch(() => undefined)
    },
  }
}

/** Returns the verdict with which a load rejected the GPU, or `null` for any other error. */
export function verdictOf(error: unknown): GpuVerdict | null {
  const isUntrusted = error instanceof InoriginError && error.code === 'gpu_untrusted'
  const found: unknown = isUntrusted ? error.details?.['verdict'] : null
  return isGpuVerdict(found) ? found : null
}

/** Returns `true` if a request must be retried after the error. One instance serves one request. */
export type TryAgain = (error: unknown) => boolean

/** Maximum number of attempts: with 16-bit floats, without them, and without the GPU. */
const ATTEMPTS = 3

/**
 * Creates the retry decision for one request. It allows retries after a rejected GPU, as long as
 * another choice is left, and one retry after damaged files, which the next load replaces.
 */
export function createTries(): TryAgain {
  let tried = 1
  let repaired = false
  return (error) => {
    if (verdictOf(error) !== null) return ++tried <= ATTEMPTS
    const isDamaged = error instanceof InoriginError && error.code === 'storage_damaged'
    const again = isDamaged && !repaired
    repaired ||= isDamaged
    return again
  }
}

/**
 * Runs the work and repeats it while `tryAgain` allows. A verdict on the GPU removes features of
 * the device, so the next attempt chooses another implementation.
 */
export async function unlessUntrusted<T>(
  work: () => Promise<T>,
  tryAgain: TryAgain = createTries(),
): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!tryAgain(error)) throw error
    }
  }
}
