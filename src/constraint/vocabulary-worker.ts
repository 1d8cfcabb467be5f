/** Entry of the worker that builds the vocabulary of one model, and ends with it. */
import type { Instance } from './instance.ts'
import { buildHere, type VocabularyRequest, type VocabularyResponse } from './vocabulary.ts'

let instance: Instance | undefined

self.onmessage = ({ data }: MessageEvent<VocabularyRequest>) => {
  answer(data).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    respond({ type: 'failed', reason })
  })
}

async function answer(request: VocabularyRequest): Promise<void> {
  if (request.type === 'build') {
    instance = await buildHere(request.module, request.vocabulary)
    return respond({ type: 'built', memoryBytes: instance.memoryBytes })
  }
  if (!instance) throw new Error('The vocabulary is not built.')
  const { start, end } = request
  const bytes = instance.copyMemory(start, end)
  respond({ type: 'memory', bytes, start }, [bytes.buffer])
}

function respond(response: VocabularyResponse, transfer: Transferable[] = []): void {
  self.postMessage(response, { transfer })
}

respond({ type: 'started' })
