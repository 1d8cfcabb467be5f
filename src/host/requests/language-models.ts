/** The operations of language models and embedders. */
import { findEmbedder, isEmbedder, toModel } from '../../catalog/find-entry.ts'
import type { Catalog, Entry } from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
import { assertDimensions } from '../../predictor/embed.ts'
import type {
  Caller,
  EmbeddingEvent,
  EmbeddingRequest,
  Embeddings,
  EmbeddingStream,
  Generation,
  GenerationEvent,
  GenerationRequest,
  Host,
  RemoteStream,
} from '../../types/index.ts'
import { withTimeout } from '../../values/promises.ts'
import type { RecentInputs } from '../choice/recent-inputs.ts'
import { type Entries, findModel } from '../library/entries.ts'
import type { ModelInstance } from '../models/model-instance.ts'
import type { Lease } from '../models/models.ts'
import type { FetchImages } from './image-fetcher.ts'
import { markInterruption, notAllowed, type Upstreams } from './upstreams.ts'
import type { Leases } from './leases.ts'
import { createRetryPolicy, withRetry } from './retry.ts'
import { untilStatus } from './prediction-stream.ts'

interface LanguageModelOptions {
  catalog: () => Promise<Catalog>
  entries: Entries
  leases: Leases
  upstreams: Upstreams
  generate: Host['generate']
  fetchImages: FetchImages
  recentInputs: RecentInputs
}

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
  const { ignored, servedBy } = await Promise.race([opened, NOT_ACCEPTED_YET])
  return { ignored, ...(servedBy && { servedBy }), events: events() }

  async function* events(): AsyncGenerator<GenerationEvent> {
    const generation = await opened
    // A server says it by itself.
    if (!servedBy && generation.servedBy === 'local') yield { type: 'served_by', servedBy: 'local' }
    yield* generation.events
  }
}

export function createLanguageModels({
  catalog,
  entries,
  leases,
  upstreams,
  generate,
  fetchImages,
  recentInputs,
}: LanguageModelOptions) {
  return {
    async models() {
      const all = await entries.all()
      return all.filter((entry) => entry.type === 'model' || isEmbedder(entry)).map(toModel)
    },
    generate,
    async countTokens(received, caller) {
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
  } satisfies Partial<Host>
}

/**
 * Resolves with the first vectors, or after 5 s with a stream that waits for them. Rejects with errors
 * before that. The events throw later errors. `openInstead` takes over after an error of this device;
 * it is absent if this device answers or nobody.
 */
async function streamEmbeddings(
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
) {
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

/** Time in milliseconds in which a failing load still determines the status. */
const LOAD_FAILURE_GRACE_MS = 1_000

/** Result for a request that is not accepted by the time its headers must be sent. */
const NOT_ACCEPTED_YET: Promise<Pick<Generation, 'ignored' | 'servedBy'>> = Promise.resolve({
  ignored: [],
})

/** Alternative to an answer of the local model. */
interface Fallback {
  /**
   * Opens another answer after an error; `undefined` if there is none. Absent if this device answers
   * or nobody.
   */
  openInstead?: ((error: unknown) => Promise<Generation> | undefined) | undefined
  /** Error for a request that the local model would answer, but must not. It loads no weights. */
  refusal?: InoriginError | undefined
  /** Returns the error with which the answer ends. Default: the error itself. */
  markError?: (error: unknown) => unknown
}

/** One attempt to have a model answer the request. */
interface Attempt {
  lease: Promise<Lease>
  accepted: Promise<Generation & RemoteStream<GenerationEvent>>
  /** The model, once it has accepted the request. */
  instance: Pick<ModelInstance, 'ready'> | null
  /** `true` once the model writes the answer. Only the asking side knows what has arrived then. */
  isAnswering: boolean
}

/**
 * Resolves after 5 s at the latest, or when the prompt is templated and tokenized, fits the context
 * and is queued. Rejects if that fails or if the model fails to load at once. The events throw
 * later errors. They report the load; the model worker writes the others directly to the caller.
 * `acquireLease` is called again if the GPU turns out to compute wrong numbers. `fallback` takes over
 * if the local model fails before its answer begins.
 */
async function streamGeneration(
  acquireLease: () => Promise<Lease>,
  request: GenerationRequest,
  caller: Caller,
  { openInstead, refusal, markError = (error) => error }: Fallback = {},
): Promise<Generation> {
  const shouldRetry = createRetryPolicy()
  const open = () => openAttempt(acquireLease, request, caller, refusal)
  let attempt = await withRetry(() => untilStarted(open()), shouldRetry)
  const { ignored } = await Promise.race([attempt.accepted, NOT_ACCEPTED_YET])
  // The weights of a model that is not ready may fail to load, and then a server answers.
  const isDecided = !openInstead || attempt.instance?.ready === true
  return { ignored, ...(isDecided && { servedBy: 'local' }), events: events() }

  async function* events(): AsyncGenerator<GenerationEvent> {
    for (;;) {
      try {
        yield* readAttempt(attempt, caller, isDecided)
        return
      } catch (error) {
        if (attempt.isAnswering) throw markError(error)
        if (shouldRetry(error)) {
          attempt = open()
          continue
        }
        const instead = openInstead?.(error)
        if (!instead) throw markError(error)
        yield* (await instead).events
        return
      }
    }
  }
}

/** Resolves when the attempt was accepted, or if it has not failed within 5 s. */
async function untilStarted(attempt: Attempt): Promise<Attempt> {
  const { lease, accepted } = attempt
  const started = accepted.then(async () => {
    const { instance } = await lease
    await withTimeout(LOAD_FAILURE_GRACE_MS, instance.load(), undefined)
  })
  try {
    await untilStatus(started)
  } catch (error) {
    lease.then(({ release }) => release(), ignore)
    throw error
  }
  return attempt
}

function openAttempt(
  acquireLease: () => Promise<Lease>,
  request: GenerationRequest,
  caller: Caller,
  refusal: InoriginError | undefined,
): Attempt {
  const { signal } = caller
  const lease = acquireLease()
  const accepted = lease.then(async ({ instance, release }) => {
    signal.addEventListener('abort', release)
    if (signal.aborted) release()
    if (!refusal) instance.load().catch(ignore)
    await instance.opened
    const generation = await instance.worker.generate(request, caller)
    if (refusal) throw refusal
    attempt.instance = instance
    return generation
  })
  const attempt: Attempt = { lease, accepted, instance: null, isAnswering: false }
  // The reader of the events gets this error.
  accepted.catch(ignore)
  return attempt
}

async function* readAttempt(
  attempt: Attempt,
  { signal, handOver }: Caller,
  isAnnounced: boolean,
): AsyncGenerator<GenerationEvent> {
  const { lease, accepted } = attempt
  // A rejected request must not wait for the weights.
  const rejected = new AbortController()
  accepted.catch((error: unknown) => rejected.abort(error))
  const { instance, release } = await lease
  try {
    const untilRejected = AbortSignal.any([signal, rejected.signal])
    for await (const progress of instance.progress.read(untilRejected))
      yield { type: 'progress', progress }
    const stream = await accepted
    if (!isAnnounced) yield { type: 'served_by', servedBy: 'local' }
    attempt.isAnswering = true
    if (handOver) await handOver(stream)
    else yield* stream.events
  } catch (error) {
    throw await instance.explainFailure(error)
  } finally {
    release()
  }
}
