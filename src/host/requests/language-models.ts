/**
 * The operations of language models, and of predictors that embed, score or speak, on this device or, for
 * the first two, on a server in its place.
 */
import {
  findEmbedder,
  findReranker,
  findSpeaker,
  isEmbedder,
  isListed,
  toModel,
} from '../../catalog/find-entry.ts'
import type { Embedder, Entry, ModelEntry, Reranker, Speaker } from '../../catalog/schema.ts'
import type { Upstream } from '../../catalog/upstream-schema.ts'
import { InoriginError } from '../../error.ts'
import { assertDimensions } from '../../predictor/embed.ts'
import type {
  AcceptedEvent,
  Caller,
  EmbeddingEvent,
  EmbeddingRequest,
  Embeddings,
  GenerationEvent,
  GenerationRequest,
  Host,
  Ranking,
  RerankEvent,
  RerankRequest,
  SpeechEvent,
  SpeechRequest,
} from '../../types/index.ts'
import { withTimeout } from '../../values/promises.ts'
import type { RecentInputs } from '../choice/recent-inputs.ts'
import { type Entries, findModel } from '../library/entries.ts'
import type { ModelInstance } from '../models/model-instance.ts'
import type { Lease } from '../models/models.ts'
import type { FetchImages } from './image-fetcher.ts'
import { createRetryPolicy, type Leases, streamLoaded, withLoaded } from './leases.ts'
import { markInterruption, notAllowed, type Upstreams } from './upstreams.ts'

interface LanguageModelOptions {
  entries: Entries
  leases: Leases
  upstreams: Upstreams
  fetchImages: FetchImages
  recentInputs: RecentInputs
}

/** Largest number of models that an error names. */
const MAX_NAMED_MODELS = 5

type GenerationEvents = AsyncGenerator<AcceptedEvent | GenerationEvent>

export class LanguageModels {
  #options: LanguageModelOptions

  constructor(options: LanguageModelOptions) {
    this.#options = options
  }

  readonly methods = {
    models: async () => {
      const all = await this.#options.entries.all()
      return all.filter(isListed).map(toModel)
    },
    generate: async (request, caller) => ({ events: this.#generate(request, caller) }),
    countTokens: async (received, caller) => {
      const { entries, fetchImages, leases } = this.#options
      const { signal } = caller
      await leases.lookUp(received.model, signal)
      const entry = await findModel(entries, received)
      const request = await fetchImages(received, signal)
      const { instance, release } = await leases.acquire(entry, signal)
      signal.addEventListener('abort', release)
      try {
        await instance.opened
        return await instance.worker.countTokens(request, caller)
      } catch (error) {
        throw await this.#withLargerModels(error, entry)
      } finally {
        release()
      }
    },
    embed: async (request, caller) => {
      const { entries, leases, upstreams } = this.#options
      await leases.lookUp(request.model, caller.signal)
      const entry = findEmbedder({ entries: await entries.all() }, request.model)
      assertDimensions(entry, request.dimensions)
      const { route } = request
      const first = await upstreams.findFirst(entry, route)
      if (!first && route === 'upstream') throw notAllowed(entry)
      const isLocal = !first && !upstreams.mayAnswerAfter(entry, route)
      const servedBy = first ? 'upstream' : isLocal ? 'local' : undefined
      return {
        ...(servedBy && { servedBy }),
        events: this.#embed(entry, request, caller, first),
      }
    },
    rerank: async (request, caller) => {
      const { entries, leases } = this.#options
      await leases.lookUp(request.model, caller.signal)
      const entry = findReranker({ entries: await entries.all() }, request.model)
      return { events: this.#rerank(entry, request, caller) }
    },
    speak: async (request, caller) => {
      const { entries, leases } = this.#options
      await leases.lookUp(request.model, caller.signal)
      const entry = findSpeaker({ entries: await entries.all() }, request.model)
      // A voice that is unknown is refused before the model is loaded.
      const { toSpeechInputs } = await import('../../predictor/speech-inputs.ts')
      toSpeechInputs(entry, request)
      return { rate: entry.speech.rate, events: this.#speak(entry, request, caller) }
    },
  } satisfies Partial<Host>

  /** Generates on this device or on a server, where its errors and the catalog allow it. */
  async *#generate(received: GenerationRequest, caller: Caller): GenerationEvents {
    const { entries, leases, upstreams, fetchImages } = this.#options
    const { route, resumeTokens, interrupted } = received
    const entry = await findModel(entries, received)
    const request = await fetchImages(received, caller.signal)
    if (interrupted) return yield* upstreams.continueAnswer(entry, request, interrupted, caller)
    // A server cannot continue the tokens of a local model.
    const first = resumeTokens ? undefined : await upstreams.findFirst(entry, route)
    if (first) return yield* upstreams.generate(first, entry, request, caller)
    const local = new LocalGeneration(request, caller, {
      acquireLease: async () => {
        await leases.lookUp(request.model, caller.signal)
        return leases.acquire(await findModel(entries, request), caller.signal)
      },
      isOnly: resumeTokens !== undefined || !upstreams.mayAnswerAfter(entry, route),
      refusal: route === 'upstream' ? notAllowed(entry) : undefined,
    })
    const shouldRetry = createRetryPolicy()
    for (;;) {
      try {
        return yield* local.attempt()
      } catch (error) {
        // Only the asking side knows what has arrived of an answer.
        if (!local.isAnswering && shouldRetry(error)) continue
        const mayReplace = !local.isAnswering && !resumeTokens
        const instead = mayReplace ? upstreams.findAfter(entry, route, error) : undefined
        if (!instead)
          throw await this.#withLargerModels(markInterruption(entry, request, error), entry)
        return yield* upstreams.generate(instead, entry, request, caller)
      }
    }
  }

  /** Adds the models that would hold it to the error of a prompt that is too long. */
  async #withLargerModels(error: unknown, own: ModelEntry): Promise<unknown> {
    if (!(error instanceof InoriginError) || error.code !== 'context_length_exceeded') return error
    const tokens = Number(error.details?.['tokens'])
    const all = await this.#options.entries.all()
    const larger = all
      .flatMap((entry) => (entry.type === 'model' && entry.tag !== own.tag ? [entry] : []))
      .filter(({ maxInputTokens }) => maxInputTokens > tokens)
      .toSorted((one, other) => one.maxInputTokens - other.maxInputTokens)
      .slice(0, MAX_NAMED_MODELS)
    const named = larger.map(({ tag, maxInputTokens }) => `${tag} (${maxInputTokens})`).join(', ')
    const what = named
      ? `These models of the catalog have a larger context, in tokens: ${named}.`
      : 'No model of the catalog has a context of that many tokens.'
    const details = { ...error.details, models: larger.map(({ tag }) => tag) }
    const record = { ...error.toRecord(), details, cause: error }
    return new InoriginError(error.kind, `${error.message} ${what}`, record)
  }

  /** Embeds on the server if there is one, else on this device or after its error on a server. */
  async *#embed(
    entry: Embedder,
    request: EmbeddingRequest,
    caller: Caller,
    server: Upstream | undefined,
  ): AsyncGenerator<EmbeddingEvent> {
    const { upstreams } = this.#options
    let instead = server
    let embeddings: Embeddings | undefined
    try {
      if (!instead) embeddings = await this.#embedHere(entry, request, caller)
    } catch (error) {
      instead = upstreams.findAfter(entry, request.route, error)
      if (!instead) throw error
    }
    if (instead) embeddings = await upstreams.embed(instead, entry, request, caller)
    if (!embeddings) throw new InoriginError('internal', 'The model sent no vectors.')
    yield { type: 'finish', embeddings, servedBy: instead ? 'upstream' : 'local' }
  }

  async *#rerank(
    entry: Reranker,
    request: RerankRequest,
    caller: Caller,
  ): AsyncGenerator<RerankEvent> {
    const { leases } = this.#options
    const acquire = () => leases.acquire(entry, caller.signal)
    const ranking = await withLoaded(
      acquire,
      { key: null, signal: caller.signal },
      async (instance) => {
        const { events } = await instance.worker.rerank(request, caller)
        let last: Ranking | undefined
        // The stream is read to its end, because an earlier leave would cancel it.
        for await (const each of events) last = each
        return last
      },
    )
    if (!ranking) throw new InoriginError('internal', 'The model sent no scores.')
    yield { type: 'finish', ranking }
  }

  async *#speak(
    entry: Speaker,
    request: SpeechRequest,
    caller: Caller,
  ): AsyncGenerator<SpeechEvent> {
    const { signal } = caller
    const acquire = () => this.#options.leases.acquire(entry, signal)
    yield* streamLoaded(acquire, signal, async ({ worker }) => {
      const { events } = await worker.speak(request, caller)
      return events
    })
    yield { type: 'finish' }
  }

  #embedHere(entry: Embedder, request: EmbeddingRequest, caller: Caller) {
    const { leases, recentInputs } = this.#options
    const acquire = () => leases.acquire(entry, caller.signal)
    return withLoaded(acquire, { key: null, signal: caller.signal }, async (instance) => {
      const { events } = await instance.worker.embed(request, caller)
      let embeddings: Embeddings | undefined
      // The stream is read to its end, because an earlier leave would cancel it.
      for await (const vectors of events) embeddings = vectors
      recentInputs.keep(instance.entry, toInputs(instance.entry, request))
      return embeddings
    })
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

/** Time in milliseconds in which a failing load still refuses the request. */
const LOAD_FAILURE_GRACE_MS = 1_000

interface LocalOptions {
  acquireLease: () => Promise<Lease>
  /** `true` if no server may answer in place of this device. */
  isOnly: boolean
  /** Error for a request that the local model would answer, but must not. It loads no weights. */
  refusal: InoriginError | undefined
}

/** A generation of a local model, which may take several attempts. */
class LocalGeneration {
  /** `true` once the model writes the answer directly to the caller. */
  isAnswering = false
  #request: GenerationRequest
  #caller: Caller
  #options: LocalOptions
  #isAccepted = false
  #isAnnounced = false

  constructor(request: GenerationRequest, caller: Caller, options: LocalOptions) {
    this.#request = request
    this.#caller = caller
    this.#options = options
  }

  /**
   * Yields the progress of the load, and accepts the request meanwhile. Then the model worker writes
   * its events directly to the caller.
   */
  async *attempt(): GenerationEvents {
    const { acquireLease, isOnly } = this.#options
    const { signal, handOver } = this.#caller
    const { instance, release } = await acquireLease()
    signal.addEventListener('abort', release)
    if (signal.aborted) release()
    try {
      const accepting = this.#accept(instance)
      yield* readProgressUntil(accepting, instance, signal)
      const stream = await accepting
      if (!this.#isAccepted) {
        this.#isAccepted = true
        // The weights of a model that is not ready may fail to load, and then a server answers.
        this.#isAnnounced = isOnly || instance.ready
        const servedBy = this.#isAnnounced && ({ servedBy: 'local' } as const)
        yield { type: 'accepted', ignored: stream.ignored, ...servedBy }
      }
      yield* readProgress(instance, signal)
      if (!this.#isAnnounced) yield { type: 'served_by', servedBy: 'local' }
      this.isAnswering = true
      if (handOver) await handOver(stream)
      else yield* stream.events
    } catch (error) {
      throw await instance.explainFailure(error)
    } finally {
      release()
    }
  }

  /** Resolves when the worker has accepted the request, and its load does not fail at once. */
  async #accept(instance: ModelInstance) {
    const { refusal } = this.#options
    if (!refusal) instance.load().catch(ignore)
    await instance.opened
    const stream = await instance.worker.generate(this.#request, this.#caller)
    if (refusal) throw refusal
    await withTimeout(LOAD_FAILURE_GRACE_MS, instance.load(), undefined)
    return stream
  }
}

/** Yields the progress of the load until it is complete. Throws its error. */
async function* readProgress(instance: ModelInstance, signal: AbortSignal): GenerationEvents {
  for await (const progress of instance.progress.read(signal)) yield { type: 'progress', progress }
}

/** Yields the progress of the load until the work settles in any way. */
async function* readProgressUntil(
  work: Promise<unknown>,
  instance: ModelInstance,
  signal: AbortSignal,
): GenerationEvents {
  const settled = new AbortController()
  const settle = () => settled.abort()
  work.then(settle, settle)
  try {
    yield* readProgress(instance, AbortSignal.any([signal, settled.signal]))
  } catch (error) {
    if (!settled.signal.aborted) throw error
  }
}

const ignore = () => {}
