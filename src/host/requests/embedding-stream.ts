/** Accepts an embedding request: loads its model, then streams its vectors. */
import { isEmbedder } from '../../catalog/find-entry.ts'
import type { Entry } from '../../catalog/schema.ts'
import type {
  Caller,
  EmbeddingEvent,
  EmbeddingRequest,
  EmbeddingStream,
  Embeddings,
  EventStream,
} from '../../types/index.ts'
import type { RecentInputs } from '../choice/recent-inputs.ts'
import type { Lease } from '../models/models.ts'
import { createRetryPolicy, withRetry } from './retry.ts'
import { untilStatus } from './status-timeout.ts'

/** A request whose texts have been read and queued. */
interface AcceptedEmbedding extends Lease, EventStream<Embeddings> {}

/**
 * Resolves when the texts have been read and are queued, or after 5 s. Rejects with errors before
 * that. The events throw later errors. `openInstead` takes over after an error of this device.
 */
export async function streamEmbeddings(
  acquireLease: () => Promise<Lease>,
  request: EmbeddingRequest,
  caller: Caller,
  recentInputs: RecentInputs,
  openInstead: (error: unknown) => Promise<EmbeddingStream> | undefined = () => undefined,
): Promise<EmbeddingStream> {
  const shouldRetry = createRetryPolicy()
  const start = () => withRetry(() => startEmbedding(acquireLease, request, caller), shouldRetry)
  let accepted = start()
  try {
    await untilStatus(accepted)
  } catch (error) {
    const instead = openInstead(error)
    if (!instead) throw error
    return instead
  }
  return { servedBy: 'local', events: events() }

  async function* events(): AsyncGenerator<EmbeddingEvent> {
    try {
      yield* localEvents()
    } catch (error) {
      const instead = openInstead(error)
      if (!instead) throw error
      yield* (await instead).events
    }
  }

  async function* localEvents(): AsyncGenerator<EmbeddingEvent> {
    for (;;) {
      const { instance, release, events: results } = await accepted
      try {
        for await (const embeddings of results) {
          recentInputs.keep(instance.entry, toInputs(instance.entry, request))
          yield { type: 'finish', embeddings }
        }
        return
      } catch (error) {
        const explained = await instance.explainFailure(error)
        if (!shouldRetry(explained)) throw explained
        accepted = start()
      } finally {
        release()
      }
    }
  }
}

/** Returns the first text as the input of the predictor. */
function toInputs(entry: Entry, { input: [text = ''] }: EmbeddingRequest): Record<string, unknown> {
  if (entry.type !== 'predictor' || !isEmbedder(entry)) return {}
  const { input: name } = entry.embeddings
  const isList = entry.signature.inputs.some(
    (input) => input.name === name && input.type === 'list',
  )
  return { [name]: isList ? [text] : text }
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
