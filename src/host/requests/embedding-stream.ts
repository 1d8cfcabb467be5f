/** Accepts an embedding request: loads its model, then streams its vectors. */
import { stream } from '../../link/ask.ts'
import type { ModelStreams } from '../../link/protocol.ts'
import type { Caller, EmbeddingEvent, EmbeddingRequest, Embeddings } from '../../types/index.ts'
import { withHeartbeat } from './heartbeat.ts'
import type { Lease } from '../models/models.ts'
import { withRetry } from './retry.ts'
import { untilStatus } from './status-timeout.ts'

/** A request whose texts have been read and queued. */
interface AcceptedEmbedding extends Lease {
  events: AsyncIterable<Embeddings>
}

/**
 * Resolves when the texts have been read and are queued, or after 5 s. Rejects with errors before
 * that. The events throw later errors.
 */
export async function streamEmbeddings(
  acquireLease: () => Promise<Lease>,
  request: EmbeddingRequest,
  caller: Caller,
): Promise<AsyncIterable<EmbeddingEvent>> {
  const accepted = withRetry(() => startEmbedding(acquireLease, request, caller))
  await untilStatus(accepted)
  return withHeartbeat(events())

  async function* events(): AsyncGenerator<EmbeddingEvent> {
    const { instance, release, events: results } = await accepted
    try {
      for await (const embeddings of results) yield { type: 'finish', embeddings }
    } catch (error) {
      throw await instance.explainFailure(error)
    } finally {
      release()
    }
  }
}

async function startEmbedding(
  acquireLease: () => Promise<Lease>,
  request: EmbeddingRequest,
  { client = '', key, signal }: Caller,
): Promise<AcceptedEmbedding> {
  const { instance, release } = await acquireLease()
  signal.addEventListener('abort', release)
  if (signal.aborted) release()
  try {
    await instance.load()
    const sender = { client, partition: key ?? '' }
    const { events } = await stream<ModelStreams, 'embed'>(
      instance.link,
      'embed',
      [request, sender],
      {
        signal,
      },
    )
    return { instance, release, events }
  } catch (error) {
    release()
    throw await instance.explainFailure(error)
  }
}
