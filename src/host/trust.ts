/** What this device can do, as far as its GPU has been found to compute right numbers. */
import type { Capabilities } from '../device/capabilities.ts'
import { isGpuVerdict, trusted, verdictSubject, type GpuVerdict } from '../device/verdict.ts'
import { InoriginError } from '../error.ts'
import { readFact, writeFact } from '../store/facts.ts'
import type { Database } from '../store/open.ts'

export interface Trust {
  capabilities(): Promise<Capabilities>
  /** What is known of the GPU; `undefined` before it has been tried. */
  verdict(): Promise<GpuVerdict | undefined>
  /** What a load found out; counts at once and is kept, unless it was found out by waiting. */
  learn(verdict: GpuVerdict): void
}

export function createTrust(database: Database, probe: () => Promise<Capabilities>): Trust {
  let learnt: GpuVerdict | undefined
  /** Once: every prediction asks, and nobody but this host writes it. */
  let reading: Promise<GpuVerdict | undefined> | undefined

  async function verdict(): Promise<GpuVerdict | undefined> {
    const { webgpu } = await probe()
    if (learnt || !webgpu) return learnt
    const subject = verdictSubject(webgpu, navigator.userAgent)
    reading ??= readFact(database, subject, isGpuVerdict).catch((error: unknown) => {
      reading = undefined
      throw error
    })
    const stored = await reading
    return learnt ?? stored
  }

  async function keep(found: GpuVerdict): Promise<void> {
    const { webgpu } = await probe()
    if (webgpu) await writeFact(database, verdictSubject(webgpu, navigator.userAgent), found)
  }

  return {
    verdict,
    async capabilities() {
      return trusted(await probe(), await verdict())
    },
    learn(found) {
      learnt = found
      if (found.late) return
      // Where nothing can be stored, the GPU is tried again by the next host.
      keep(found).catch(() => undefined)
    },
  }
}

/** The verdict with which a load gave a GPU up; the implementation is then chosen anew. */
export function verdictOf(error: unknown): GpuVerdict | null {
  const isUntrusted = error instanceof InoriginError && error.code === 'gpu_untrusted'
  const found: unknown = isUntrusted ? error.details?.['verdict'] : null
  return isGpuVerdict(found) ? found : null
}

/** Whether a request is to be tried anew after that failure. Counts over all of the request's phases. */
export type TryAgain = (error: unknown) => boolean

/** With 16-bit floats, without, and without the GPU. */
const ATTEMPTS = 3

/**
 * For one request: says yes to a GPU that a load gave up, as long as there is another choice left, and
 * once to stored files that were damaged, which a load fetches anew.
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
 * The work, once more for each GPU that a load gave up on the way: the next choice is another one, as
 * a verdict takes features away.
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
