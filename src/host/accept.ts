/** Accepts a generation request: loads its model, then streams the events of its response. */
import { stream, type AcceptedStream } from '../link/ask.ts'
import type { ModelStreams, Sender } from '../link/protocol.ts'
import type { Caller, Generation, GenerationEvent, GenerationRequest } from '../types/index.ts'
import { withHeartbeat } from './heartbeat.ts'
import type { Lease } from './models.ts'
import { createTries, unlessUntrusted } from './trust.ts'

/** Time in milliseconds after which a request gets status 200, whatever its outcome will be. */
export const PATIENCE = 5_000
/** Time in milliseconds in which a failing load still determines the status. */
const GRACE = 1_000

/** Result for a request that is not accepted by the time its headers must be sent. */
const NOT_YET = Promise.resolve({ result: { ignored: [] as string[] } })

/** One attempt to have a model answer the request. */
interface Attempt {
  leasing: Promise<Lease>
  accepted: Promise<AcceptedStream<{ ignored: string[] }, GenerationEvent>>
}

/**
 * Resolves after 5 s at the latest, or when the prompt is templated and tokenized, fits the context
 * and is queued. Rejects if that fails or if the model fails to load at once. The events throw
 * later errors. `lease` is called again if the GPU turns out to compute wrong numbers.
 */
export async function accept(
  lease: () => Promise<Lease>,
  request: GenerationRequest,
  caller: Caller,
): Promise<Generation> {
  const tryAgain = createTries()
  let attempt = await unlessUntrusted(() => begin(lease, request, caller), tryAgain)
  const { result } = await Promise.race([attempt.accepted, NOT_YET])
  return { ignored: result.ignored, events: withHeartbeat(events()) }

  async function* events(): AsyncGenerator<GenerationEvent> {
    for (;;) {
      try {
        yield* eventsOf(attempt, caller.signal)
        return
      } catch (error) {
        // The load failed before the first token, so the client has received nothing to take back.
        if (!tryAgain(error)) throw error
        attempt = ask(lease, request, caller)
      }
    }
  }
}

/** Resolves with an attempt that was accepted or that has not failed within `PATIENCE`. */
async function begin(
  lease: () => Promise<Lease>,
  request: GenerationRequest,
  caller: Caller,
): Promise<Attempt> {
  const attempt = ask(lease, request, caller)
  const { leasing, accepted } = attempt
  const beginning = accepted.then(async () => {
    const { hosted } = await leasing
    await Promise.race([hosted.load(), elapsed(GRACE)])
  })
  try {
    await Promise.race([beginning, elapsed(PATIENCE)])
  } catch (error) {
    leasing.then(({ leave }) => leave(), ignore)
    throw error
  }
  return attempt
}

function ask(
  lease: () => Promise<Lease>,
  request: GenerationRequest,
  { key, client = '', signal }: Caller,
): Attempt {
  const leasing = lease()
  const accepted = leasing.then(async ({ hosted, leave }) => {
    signal.addEventListener('abort', leave)
    if (signal.aborted) leave()
    hosted.load().catch(ignore)
    await hosted.opened
    // Each key has its own prefix cache, so that users with different keys do not share it.
    const sender: Sender = { client, partition: key ?? '' }
    return stream<ModelStreams, 'generate'>(hosted.link, 'generate', [request, sender], { signal })
  })
  // The reader of the events gets this error.
  accepted.catch(ignore)
  return { leasing, accepted }
}

async function* eventsOf(
  { leasing, accepted }: Attempt,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  // A rejected request must not wait for the weights.
  const refused = new AbortController()
  accepted.catch((error: unknown) => refused.abort(error))
  const { hosted, leave } = await leasing
  try {
    const waiting = AbortSignal.any([signal, refused.signal])
    for await (const progress of hosted.progress.read(waiting)) yield { type: 'progress', progress }
    yield* (await accepted).events
  } catch (error) {
    throw await hosted.failed(error)
  } finally {
    leave()
  }
}

const ignore = () => {}

export function elapsed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
