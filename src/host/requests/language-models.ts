/** The operations of language models and embedders. */
import { findEmbedder, isEmbedder, toModel } from '../../catalog/find-entry.ts'
import type { Catalog } from '../../catalog/schema.ts'
import { assertDimensions } from '../../predictor/embed.ts'
import type { Host } from '../../types/index.ts'
import type { RecentInputs } from '../choice/recent-inputs.ts'
import type { Entries } from '../library/entries.ts'
import { findModel } from '../library/find-entry.ts'
import type { Authorize } from './authorization.ts'
import { streamEmbeddings } from './embedding-stream.ts'
import { streamGeneration } from './generation-stream.ts'
import type { Leases } from './leases.ts'

export interface LanguageModelOptions {
  authorize: Authorize
  catalog: () => Promise<Catalog>
  entries: Entries
  leases: Leases
  /** Generates without a check of the API key. */
  generate: Host['generate']
  recentInputs: RecentInputs
}

/** Creates the function that generates, without a check of the API key. */
export function createGenerator({
  entries,
  leases,
}: Pick<LanguageModelOptions, 'entries' | 'leases'>): Host['generate'] {
  return (request, caller) => {
    const acquireLease = () =>
      findModel(entries, request).then((entry) => leases.acquire(entry, caller.signal))
    return streamGeneration(acquireLease, request, caller)
  }
}

export function createLanguageModels({
  authorize,
  catalog,
  entries,
  leases,
  generate,
  recentInputs,
}: LanguageModelOptions): Pick<Host, 'models' | 'generate' | 'countTokens' | 'embed'> {
  return {
    async models(caller) {
      authorize(caller)
      const all = await entries.all()
      return all.filter((entry) => entry.type === 'model' || isEmbedder(entry)).map(toModel)
    },
    async generate(request, caller) {
      authorize(caller)
      return generate(request, caller)
    },
    async countTokens(request, caller) {
      authorize(caller)
      const { signal } = caller
      const { instance, release } = await leases.acquire(await findModel(entries, request), signal)
      signal.addEventListener('abort', release)
      try {
        await instance.opened
        return await instance.worker.countTokens(request, caller)
      } finally {
        release()
      }
    },
    async embed(request, caller) {
      authorize(caller)
      const entry = findEmbedder(await catalog(), request.model)
      assertDimensions(entry, request.dimensions)
      const acquireLease = () => leases.acquire(entry, caller.signal)
      return streamEmbeddings(acquireLease, request, caller, recentInputs)
    },
  }
}
