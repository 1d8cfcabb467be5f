/** Accepts a generation request: loads its model, then streams the events of its response. */
import type {
  Caller,
  Generation,
  GenerationEvent,
  GenerationRequest,
  RemoteStream,
} from '../../types/index.ts'
import type { InoriginError } from '../../error.ts'
import { withTimeout } from '../../store/timeouts.ts'
import type { ModelInstance } from '../models/model-instance.ts'
import type { Lease } from '../models/models.ts'
import { createRetryPolicy, withRetry } from './retry.ts'
import { untilStatus } from './status-timeout.ts'

/** Time in milliseconds in which a failing load still determines the status. */
const LOAD_FAILURE_GRACE_MS = 1_000

/** Result for a request that is not accepted by the time its headers must be sent. */
const NOT_ACCEPTED_YET = Promise.resolve({ ignored: [] as string[] })

/** Alternative to an answer of the local model. */
export interface Fallback {
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
export async function streamGeneration(
  acquireLease: () => Promise<Lease>,
  request: GenerationRequest,
  caller: Caller,
  { openInstead, refusal, markError = (error) => error }: Fallback = {},
): Promise<Generation> {
  const shouldRetry = createRetryPolicy()
  const start = () => startAttempt(acquireLease, request, caller, refusal)
  let attempt = await withRetry(start, shouldRetry)
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
          attempt = createAttempt(acquireLease, request, caller, refusal)
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

/** Resolves with an attempt that was accepted or that has not failed within 5 s. */
async function startAttempt(
  acquireLease: () => Promise<Lease>,
  request: GenerationRequest,
  caller: Caller,
  refusal: InoriginError | undefined,
): Promise<Attempt> {
  const attempt = createAttempt(acquireLease, request, caller, refusal)
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

function createAttempt(
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

const ignore = () => {}
