import { InoriginError } from '../../error.ts'
import type { Tag } from '../../types/index.ts'

/** Returns the error of everyone who waits for a load that was paused. Clients do not retry it. */
export function loadPaused(tag: Tag): InoriginError {
  const what = `The load of ${tag} was paused. Call server.models.load() to resume it.`
  return new InoriginError('unavailable', what, { code: 'load_paused' })
}
