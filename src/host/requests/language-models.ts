/** The operations of language models and embedders. */
import { findEmbedder, isEmbedder, toModel } from '../../catalog/find-entry.ts'
import type { Catalog } from '../../catalog/schema.ts'
import { assertDimensions } from '../../predictor/embed.ts'
import type {
  Caller,
  Generation,
  GenerationEvent,
  GenerationRequest,
  Host,
} from '../../types/index.ts'
import type { RecentInputs } from '../choice/recent-inputs.ts'
import type { Entries } from '../library/entries.ts'
import { findModel } from '../library/find-entry.ts'
import type { Authorize } from './authorization.ts'
import { streamEmbeddings } from './embedding-stream.ts'
import { streamGeneration } from './generation-stream.ts'
import type { FetchImages } from './image-fetcher.ts'
import { markInterruption } from './interruption.ts'
import type { Leases } from './leases.ts'
import { untilStatus } from './status-timeout.ts'
import { notAllowed, type Upstreams } from './upstreams.ts'

export interface LanguageModelOptions {
  authorize: Authorize
  catalog: () => Promise<Catalog>
  entries: Entries
  leases: Leases
  upstreams: Upstreams
  /** Generates without a check of the API key. */
  generate: Host['generate']
  fetchImages: FetchImages
  recentInputs: RecentInputs
}

/** Creates the function that generates, without a check of the API key. */
export function createGenerator({
  entries,
  leases,
  upstreams,
  fetchImages,
}: Pick<
  LanguageModelOptions,
  'entries' | 'leases' | 'upstreams' | 'fetchImages'
>): Host['generate'] {
  async function open(received: GenerationRequest, caller: Caller): Promise<Generation> {
    const { route, resumeTokens, interrupted } = received
    const entry = await findModel(entries, received)
    const request = await fetchImages(received, caller.signal)
    if (interrupted) return upstreams.continueAnswer(entry, request, interrupted, caller)
    // A server cannot continue the tokens of a local model.
    const first = resumeTokens ? undefined : await upstreams.findFirst(entry, route)
    if (first) return upstreams.generate(first, entry, request, caller)
    const acquireLease = () =>
      findModel(entries, request).then((found) => leases.acquire(found, caller.signal))
    const mayOpenInstead = !resumeTokens && upstreams.mayAnswerAfter(entry, route)
    const openInstead = (error: unknown) => {
      const after = upstreams.findAfter(entry, route, error)
      return after && upstreams.generate(after, entry, request, caller)
    }
    const markError = (error: unknown) => markInterruption(entry, request, error)
    try {
      return await streamGeneration(acquireLease, request, caller, {
        openInstead: mayOpenInstead ? openInstead : undefined,
        refusal: route === 'upstream' ? notAllowed(entry) : undefined,
        markError,
      })
    } catch (error) {
      const instead = mayOpenInstead ? openInstead(error) : undefined
      if (!instead) throw markError(error)
      return instead
    }
  }

  return (request, caller) => withEarlyStatus(open(request, caller))
}

/** Resolves as the generation does, or after 5 s with a stream that waits for it. */
async function withEarlyStatus(opened: Promise<Generation>): Promise<Generation> {
  await untilStatus(opened)
  const undecided: Promise<Pick<Generation, 'ignored' | 'servedBy'>> = Promise.resolve({
    ignored: [],
  })
  const { ignored, servedBy } = await Promise.race([opened, undecided])
  return { ignored, ...(servedBy && { servedBy }), events: events() }

  async function* events(): AsyncGenerator<GenerationEvent> {
    const generation = await opened
    // A server says it by itself.
    if (!servedBy && generation.servedBy === 'local') yield { type: 'served_by', servedBy: 'local' }
    yield* generation.events
  }
}

export function createLanguageModels({
  authorize,
  catalog,
  entries,
  leases,
  upstreams,
  generate,
  fetchImages,
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
    async countTokens(received, caller) {
      authorize(caller)
      const { signal } = caller
      const entry = await findModel(entries, received)
      const request = await fetchImages(received, signal)
      const { instance, release } = await leases.acquire(entry, signal)
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
      const { route } = request
      const first = await upstreams.findFirst(entry, route)
      if (first) return upstreams.embed(first, entry, request, caller)
      if (route === 'upstream') throw notAllowed(entry)
      const acquireLease = () => leases.acquire(entry, caller.signal)
      const openInstead = (error: unknown) => {
        const after = upstreams.findAfter(entry, route, error)
        return after && upstreams.embed(after, entry, request, caller)
      }
      const mayOpenInstead = upstreams.mayAnswerAfter(entry, route)
      const other = mayOpenInstead ? openInstead : undefined
      return streamEmbeddings(acquireLease, request, caller, recentInputs, other)
    },
  }
}
