/** What a GPU that was lost needs: patience with it while it goes, and until it is there again. */
import { InoriginError } from '../error.ts'
import { sleep, within } from '../store/patience.ts'

/** A device that is lost may keep its runtime from ever coming to an end. */
const PATIENCE = 5_000

/** Resolves when that is done or failed, or has taken too long. */
export function soon(work: unknown): Promise<unknown> {
  // What cannot be freed any more is gone already.
  const done = Promise.resolve(work).catch(() => undefined)
  return within(PATIENCE, done, undefined)
}

/** Milliseconds to wait for a GPU that has just been lost to be there again. */
const PAUSES = [300, 1_000, 3_000]

/** What the work gives, which is tried again while there is no device. */
export async function persist<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (const pause of PAUSES) {
    try {
      return await work()
    } catch (thrown) {
      const { code } = InoriginError.from(thrown)
      if (signal.aborted || (code !== 'no_webgpu' && code !== 'device_lost')) throw thrown
      await sleep(pause, signal)
    }
  }
  return work()
}
