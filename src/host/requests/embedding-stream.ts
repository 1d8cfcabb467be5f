/** Accepts an embedding request: loads its model, then streams its vectors. */
import { isEmbedder } from '../../catalog/find-entry.ts'
import type { Entry } from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
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
 * Resolves with the first vectors, or after 5 s with a stream that waits for them. Rejects with errors
 * before that. The events throw later errors. `openInstead` takes over after an error of this device;
 * it is absent if this device answers or nobody.
 */
export async function streamEmbeddings(
  acquireLease: () => Promise<Lease>,
  request: EmbeddingRequest,
  caller: Caller,
  recentInputs: RecentInputs,
  openInstead?: (error: unknown) => Promise<EmbeddingStream> | undefined,
): Promise<EmbeddingStream> {
  let isDecided = openInstead === undefined
  const local = computeEmbeddings(acquireLease, request, caller, recentInputs)
  local.then(() => (isDecided = true), ignore)
  try {
    await untilStatus(local)
  } catch (error) {
    const instead = openInstead?.(error)
    if (!instead) throw error
    return instead
  }
  return { ...(isDecided && { servedBy: 'local' }), events: events() }

  async function* events(): AsyncGenerator<EmbeddingEvent> {
    try {
      yield { type: 'finish', embeddings: await local }
    } catch (error) {
      const instead = openInstead?.(error)
      if (!instead) throw error
      yield* (await instead).events
    }
  }
}

/** Computes the vectors on this device, with the retries that its errors allow. */
async function computeEmbeddings(
  acquireLease: () => Promise<Lease>,
  request: EmbeddingRequest,
  caller: Caller,
  recentInputs: RecentInputs,
): Promise<Embeddings> {
  const shouldRetry = createRetryPolicy()
  for (;;) {
    const { instance, release, events } = await withRetry(
      () => startEmbedding(acquireLease, request, caller),
      shouldRetry,
    )
    try {
      const embeddings = await readOnly(events)
      recentInputs.keep(instance.entry, toInputs(instance.entry, request))
      return embeddings
    } catch (error) {
      const explained = await instance.explainFailure(error)
      if (!shouldRetry(explained)) throw explained
    } finally {
      release()
    }
  }
}

/** Resolves with the value of a stream at its end: its writer takes an earlier leave for a cancel. */
async function readOnly(events: AsyncIterable<Embeddings>): Promise<Embeddings> {
  let found: Embeddings | undefined
  for await (const embeddings of events) found = embeddings
  if (!found) throw new InoriginError('internal', 'The model sent no vectors.')
  return found
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

const ignore = () => {}
