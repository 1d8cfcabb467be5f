/** Accepts an embedding request: loads its model, then streams its vectors. */
import { stream } from '../link/ask.ts'
import type { ModelStreams } from '../link/protocol.ts'
import type { Caller, EmbeddingEvent, EmbeddingRequest, Embeddings } from '../types/index.ts'
import { elapsed, PATIENCE } from './accept.ts'
import { withHeartbeat } from './heartbeat.ts'
import type { Lease } from './models.ts'
import { unlessUntrusted } from './trust.ts'

/** A request whose texts have been read and queued. */
interface Accepted extends Lease {
  events: AsyncIterable<Embeddings>
}

/**
 * Resolves when the texts have been read and are queued, or after 5 s. Rejects with errors before
 * that. The events throw later errors.
 */
export async function embed(
  lease: () => Promise<Lease>,
  request: EmbeddingRequest,
  caller: Caller,
): Promise<AsyncIterable<EmbeddingEvent>> {
  const accepted = unlessUntrusted(() => accept(lease, request, caller))
  // The reader of the events gets this error.
  accepted.catch(() => undefined)
  await Promise.race([accepted, elapsed(PATIENCE)])
  return withHeartbeat(events())

  async function* events(): AsyncGenerator<EmbeddingEvent> {
    const { hosted, leave, events: made } = await accepted
    try {
      for await (const embeddings of made) yield { type: 'finish', embeddings }
    } catch (error) {
      throw await hosted.failed(error)
    } finally {
      leave()
    }
  }
}

async function accept(
  lease: () => Promise<Lease>,
  request: EmbeddingRequest,
  { client = '', key, signal }: Caller,
): Promise<Accepted> {
  const { hosted, leave } = await lease()
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    await hosted.load()
    const sender = { client, partition: key ?? '' }
    const { events } = await stream<ModelStreams, 'embed'>(
      hosted.link,
      'embed',
      [request, sender],
      {
        signal,
      },
    )
    return { hosted, leave, events }
  } catch (error) {
    leave()
    throw await hosted.failed(error)
  }
}
