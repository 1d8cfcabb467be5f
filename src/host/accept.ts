/** A generation from the moment it is asked for: the model on its way, then its answer. */
import { stream } from '../link/ask.ts'
import type { ModelStreams } from '../link/protocol.ts'
import type { Caller, Generation, GenerationEvent, GenerationRequest } from '../types/index.ts'
import { withHeartbeat } from './heartbeat.ts'
import type { Lease } from './models.ts'

/** Milliseconds after which a request gets its 200 although nobody knows yet how it will end. */
const PATIENCE = 5_000
/** Milliseconds in which a load that fails at once can still be a status. */
const GRACE = 1_000

/**
 * Resolves when the request is templated, tokenised, fits and is queued, or after 5 s; rejects when it
 * is refused before, or its model fails to load at once. What goes wrong later is thrown by the events.
 */
export async function accept(
  { hosted, leave }: Lease,
  request: GenerationRequest,
  caller: Caller,
): Promise<Generation> {
  caller.signal.addEventListener('abort', leave)
  const accepted = hosted.opened.then(() =>
    stream<ModelStreams, 'generate'>(hosted.link, 'generate', [request], { signal: caller.signal }),
  )
  try {
    const beginning = accepted.then(() => Promise.race([hosted.loaded, elapsed(GRACE)]))
    await Promise.race([beginning, elapsed(PATIENCE)])
  } catch (error) {
    leave()
    throw error
  }
  return { ignored: [], events: withHeartbeat(events()) }

  async function* events(): AsyncGenerator<GenerationEvent> {
    // A refusal need not wait for the weights.
    const refused = new AbortController()
    accepted.catch((error: unknown) => refused.abort(error))
    try {
      const waiting = AbortSignal.any([caller.signal, refused.signal])
      for await (const progress of hosted.progress.read(waiting)) yield { type: 'progress', progress }
      yield* (await accepted).events
    } catch (error) {
      hosted.failed(error)
      throw error
    } finally {
      leave()
    }
  }
}

function elapsed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
