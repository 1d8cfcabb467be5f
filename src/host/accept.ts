/** A generation from the moment it is asked for: the model on its way, then its answer. */
import { stream } from '../link/ask.ts'
import type { ModelStreams, Sender } from '../link/protocol.ts'
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
  leasing: Promise<Lease>,
  request: GenerationRequest,
  { key, client = '', signal }: Caller,
): Promise<Generation> {
  const accepted = leasing.then(async ({ hosted, leave }) => {
    signal.addEventListener('abort', leave)
    if (signal.aborted) leave()
    await hosted.opened
    // Keys keep honest users apart, in what is cached as in what is answered.
    const sender: Sender = { client, partition: key ?? '' }
    return stream<ModelStreams, 'generate'>(hosted.link, 'generate', [request, sender], { signal })
  })
  const beginning = accepted.then(async () => {
    const { hosted } = await leasing
    await Promise.race([hosted.loaded, elapsed(GRACE)])
  })
  try {
    await Promise.race([beginning, elapsed(PATIENCE)])
  } catch (error) {
    leasing.then(({ leave }) => leave(), ignore)
    throw error
  }
  return { ignored: [], events: withHeartbeat(events()) }

  async function* events(): AsyncGenerator<GenerationEvent> {
    // A refusal need not wait for the weights.
    const refused = new AbortController()
    accepted.catch((error: unknown) => refused.abort(error))
    const { hosted, leave } = await leasing
    try {
      const waiting = AbortSignal.any([signal, refused.signal])
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

const ignore = () => {}

function elapsed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
