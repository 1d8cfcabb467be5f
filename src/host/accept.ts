/** A generation from the moment it is asked for: the model on its way, then its answer. */
import { stream, type Reply } from '../link/ask.ts'
import type { ModelStreams, Sender } from '../link/protocol.ts'
import type { Caller, Generation, GenerationEvent, GenerationRequest } from '../types/index.ts'
import { withHeartbeat } from './heartbeat.ts'
import type { Lease } from './models.ts'
import { createTries, unlessUntrusted } from './trust.ts'

/** Milliseconds after which a request gets its 200 although nobody knows yet how it will end. */
export const PATIENCE = 5_000
/** Milliseconds in which a load that fails at once can still be a status. */
const GRACE = 1_000

/** What is told of a request that is not accepted by the time its headers have to go. */
const NOT_YET = Promise.resolve({ result: { ignored: [] as string[] } })

/** One model that was asked. */
interface Attempt {
  leasing: Promise<Lease>
  accepted: Promise<Reply<{ ignored: string[] }, GenerationEvent>>
}

/**
 * Resolves when the request is templated, tokenised, fits and is queued, or after 5 s; rejects when it
 * is refused before, or its model fails to load at once. What goes wrong later is thrown by the events.
 * `lease` is called again when the device turned out not to be one to trust.
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
        // Found out before the first token, so nothing was told that would have to be taken back.
        if (!tryAgain(error)) throw error
        attempt = ask(lease, request, caller)
      }
    }
  }
}

/** An attempt that has been accepted, or has not failed for as long as a caller is kept waiting. */
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
    // Keys keep honest users apart, in what is cached as in what is answered.
    const sender: Sender = { client, partition: key ?? '' }
    return stream<ModelStreams, 'generate'>(hosted.link, 'generate', [request, sender], { signal })
  })
  // Whoever reads the events hears of it.
  accepted.catch(ignore)
  return { leasing, accepted }
}

async function* eventsOf(
  { leasing, accepted }: Attempt,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  // A refusal need not wait for the weights.
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
