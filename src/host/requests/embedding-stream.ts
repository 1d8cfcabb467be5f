/** Accepts an embedding request: loads its model, then streams its vectors. */
import type {
  Caller,
  EmbeddingEvent,
  EmbeddingRequest,
  Embeddings,
  EventStream,
} from '../../types/index.ts'
import type { Lease } from '../models/models.ts'
import { withRetry } from './retry.ts'
import { untilStatus } from './status-timeout.ts'

/** A request whose texts have been read and queued. */
interface AcceptedEmbedding extends Lease, EventStream<Embeddings> {}

/**
 * Resolves when the texts have been read and are queued, or after 5 s. Rejects with errors before
 * that. The events throw later errors.
 */
export async function streamEmbeddings(
  acquireLease: () => Promise<Lease>,
  request: EmbeddingRequest,
  caller: Caller,
): Promise<EventStream<EmbeddingEvent>> {
  const accepted = withRetry(() => startEmbedding(acquireLease, request, caller))
  await untilStatus(accepted)
  return { events: events() }

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
  caller: Caller,
): Promise<AcceptedEmbedding> {
  const { signal } = caller
  const { instance, release } = await acquireLease()
  signal.addEventListener('abort', release)
  if (signal.aborted) release()
  try {
    await instance.load()
    const { events } = await instance.worker.embed(request, caller)
    return { instance, release, events }
  } catch (error) {
    release()
    throw await instance.explainFailure(error)
  }
}
