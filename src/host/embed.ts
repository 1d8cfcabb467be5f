/** An embedding from the moment it is asked for: the model on its way, then its vectors. */
import { call } from '../link/ask.ts'
import type { ModelCalls } from '../link/protocol.ts'
import type { Caller, EmbeddingEvent, EmbeddingRequest, Embeddings } from '../types/index.ts'
import { elapsed, PATIENCE } from './accept.ts'
import { withHeartbeat } from './heartbeat.ts'
import type { Lease } from './models.ts'
import { unlessUntrusted } from './trust.ts'

/**
 * Resolves when the vectors are there, or after 5 s; rejects with what goes wrong before. What goes
 * wrong later is thrown by the events.
 */
export async function embed(
  lease: () => Promise<Lease>,
  request: EmbeddingRequest,
  caller: Caller,
): Promise<AsyncIterable<EmbeddingEvent>> {
  const made = unlessUntrusted(() => make(lease, request, caller))
  // Whoever reads the events hears of it.
  made.catch(() => undefined)
  await Promise.race([made, elapsed(PATIENCE)])
  return withHeartbeat(events())

  async function* events(): AsyncGenerator<EmbeddingEvent> {
    yield { type: 'finish', embeddings: await made }
  }
}

async function make(
  lease: () => Promise<Lease>,
  request: EmbeddingRequest,
  { client = '', key, signal }: Caller,
): Promise<Embeddings> {
  const { hosted, leave } = await lease()
  signal.addEventListener('abort', leave)
  try {
    if (signal.aborted) leave()
    await hosted.load()
    const sender = { client, partition: key ?? '' }
    return await call<ModelCalls, 'embed'>(hosted.link, 'embed', [request, sender], { signal })
  } catch (error) {
    throw await hosted.failed(error)
  } finally {
    leave()
  }
}
