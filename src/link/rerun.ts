/** Lets calls survive the death of their host: the next host runs them again. */
import { isHostGone, isHostLost } from './link.ts'

/** Maximum number of failovers of one request. The request itself may be what ends its hosts. */
export const MAX_FAILOVERS = 3

/** Resolves with the result of a call, which runs again on the next host when its host dies. */
export async function rerunOnDeath<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let failovers = 0; ; failovers += 1) {
    try {
      return await call()
    } catch (error) {
      // After a death, the election of the next host may take longer than one search for it.
      const canRerun = isHostGone(error) || (failovers > 0 && isHostLost(error))
      if (!canRerun || failovers === MAX_FAILOVERS) throw error
    }
  }
}
