/** Decides whether a request is answered on this device or by an upstream server. */
import type { Embedder, ModelEntry } from '../../catalog/schema.ts'
import type { Condition, Upstream } from '../../catalog/upstream-schema.ts'
import { findUpstream, mayAnswerUpstream } from '../../catalog/upstreams.ts'
import type { UpstreamCall } from '../../engine/upstream/connection.ts'
import { embedUpstream, generateUpstream } from '../../engine/upstream/index.ts'
import { InoriginError } from '../../error.ts'
import type {
  AcceptedEvent,
  Caller,
  EmbeddingRequest,
  Embeddings,
  GenerationEvent,
  GenerationRequest,
  InterruptedAnswer,
  Route,
} from '../../types/index.ts'
import { unlessAborted } from '../../values/promises.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import { isUnlisted } from '../library/entries.ts'
import type { HostToPage, PageToHost } from '../messages.ts'
import type { Models } from '../models/models.ts'
import type { Leases } from './leases.ts'

/** Entry that may have upstream implementations. */
type Routed = ModelEntry | Embedder

type Generated = AsyncGenerator<AcceptedEvent | GenerationEvent>

export interface UpstreamsOptions {
  selector: Pick<ImplementationSelector, 'select'>
  leases: Pick<Leases, 'acquire'>
  models: Pick<Models, 'ofTag'>
  getHeaders: UpstreamCall['getHeaders']
}

/** Conditions that only the local model can find out about a request. */
const LATE_CONDITIONS: readonly Condition[] = ['busy', 'too-long']

export class Upstreams {
  #options: UpstreamsOptions

  constructor(options: UpstreamsOptions) {
    this.#options = options
  }

  /**
   * Resolves with the upstream that answers in place of this device; `undefined` if this device is
   * tried first. Rejects with `upstream_not_allowed` if the request must be answered upstream, but
   * the catalog entry does not allow it now.
   */
  async findFirst(entry: Routed, route: Route | undefined): Promise<Upstream | undefined> {
    const early = entry.upstreams && (await this.#findEarly(entry, route))
    if (!early && route === 'upstream' && !mayAnswerUpstream(entry, LATE_CONDITIONS))
      throw notAllowed(entry)
    return early
  }

  /** Returns `true` if an upstream may answer after some error of this device. */
  mayAnswerAfter(entry: Routed, route: Route | undefined): boolean {
    return mayAnswerUpstream(entry, ['unavailable', ...LATE_CONDITIONS], route)
  }

  /** Returns the upstream that answers after the error of this device; `undefined` if none may. */
  findAfter(entry: Routed, route: Route | undefined, error: unknown): Upstream | undefined {
    const condition = toCondition(error)
    return condition && findUpstream(entry, condition, route)
  }

  generate(
    upstream: Upstream,
    { maxOutputTokens, capabilities }: ModelEntry,
    request: GenerationRequest,
    caller: Caller,
  ): Generated {
    const model = { maxOutputTokens, thinks: capabilities?.thinking ?? false }
    return generateUpstream(request, model, this.#toCall(upstream, caller))
  }

  /**
   * Has a server continue an answer that this device cannot finish. Throws `upstream_not_allowed` if
   * the catalog entry does not allow it.
   */
  continueAnswer(
    entry: ModelEntry,
    request: GenerationRequest,
    { text, tokens }: InterruptedAnswer,
    caller: Caller,
  ): Generated {
    const upstream = findUpstream(entry, 'interrupted', request.route)
    if (!upstream) throw notAllowed(entry)
    const { responsePrefix = '', maxTokens = entry.maxOutputTokens } = request
    const prefix = responsePrefix + text
    const rest = {
      ...request,
      ...(prefix !== '' && { responsePrefix: prefix }),
      maxTokens: Math.max(1, maxTokens - tokens),
    }
    return this.generate(upstream, entry, rest, caller)
  }

  embed(
    upstream: Upstream,
    { embeddings: { dimensions } }: Embedder,
    request: EmbeddingRequest,
    caller: Caller,
  ): Promise<Embeddings> {
    return embedUpstream(request, dimensions, this.#toCall(upstream, caller))
  }

  #toCall(upstream: Upstream, { key, isKeyHashed, signal }: Caller): UpstreamCall {
    const { getHeaders } = this.#options
    return { upstream, key: isKeyHashed ? null : key, signal, getHeaders }
  }

  async #findEarly(entry: Routed, route: Route | undefined): Promise<Upstream | undefined> {
    const always = findUpstream(entry, 'always', route)
    if (always) return always
    if (!(await this.#canRun(entry))) return findUpstream(entry, 'unavailable', route)
    const isLoaded = this.#options.models.ofTag(entry.tag).some(({ ready }) => ready)
    const meanwhile = isLoaded ? undefined : findUpstream(entry, 'not-loaded', route)
    if (meanwhile) this.#startLoading(entry)
    return meanwhile
  }

  /** Resolves with `true` if an implementation can run on this device, as far as is known. */
  async #canRun(entry: Routed): Promise<boolean> {
    if (isUnlisted(entry)) return true
    return this.#options.selector.select(entry).then(
      () => true,
      () => false,
    )
  }

  /** Loads the local model, whether or not the request that needs it is still there. */
  #startLoading(entry: Routed): void {
    this.#options.leases
      .acquire(entry, new AbortController().signal)
      .then(({ instance, release }) => instance.load().finally(release))
      // The next request tries again, and a request without an upstream reports the error.
      .catch(() => undefined)
  }
}

/** Creates the error for a request that must be answered upstream, although that is not allowed. */
export function notAllowed({ tag, upstreams = [] }: Routed): InoriginError {
  const conditions = upstreams.map(({ id, when }) => `${id} answers when: ${when.join(', ')}`)
  const why = conditions.length > 0 ? `now (${conditions.join('; ')})` : 'at all'
  const what = `${tag} must not be answered upstream ${why}.`
  return new InoriginError('permission', `${what} Leave the header x-inorigin-route out.`, {
    code: 'upstream_not_allowed',
  })
}

/**
 * Marks the error of a local answer if an upstream server may continue it. Only the asking side
 * knows what was delivered, so it asks again with that part.
 */
export function markInterruption(
  entry: ModelEntry,
  request: GenerationRequest,
  error: unknown,
): unknown {
  const { route } = request
  if (!(error instanceof InoriginError) || toCondition(error) !== 'unavailable') return error
  if (!isContinuable(request) || !findUpstream(entry, 'interrupted', route)) return error
  return new InoriginError(error.kind, error.message, {
    ...error.toRecord(),
    mayContinueUpstream: true,
    cause: error,
  })
}

/** Returns `false` for formats and biases that cannot begin in the middle of an answer. */
const isContinuable = ({ format, tools, sampling }: GenerationRequest): boolean =>
  !format && tools?.choice !== 'required' && !sampling.logitBias

/** Codes of errors that say nothing about this device. */
const PASSING_CODES: ReadonlySet<string | undefined> = new Set(['unloaded', 'replaced'])

/** Returns the condition that an error of the local model stands for. */
function toCondition(error: unknown): Condition | undefined {
  if (!(error instanceof InoriginError)) return undefined
  if (error.code === 'queue_full') return 'busy'
  if (error.code === 'context_length_exceeded') return 'too-long'
  return error.kind === 'unavailable' && !PASSING_CODES.has(error.code) ? 'unavailable' : undefined
}

/** Time in milliseconds in which the app's function must return the headers. */
const HEADERS_TIMEOUT_MS = 10_000

type HeadersMessage = Extract<PageToHost, { type: 'headers' }>

/** The requests of one worker for headers. The headers are neither stored nor reused. */
export class UpstreamHeaders {
  #post: (message: HostToPage) => void
  #waiting = new Map<number, (message: HeadersMessage) => void>()
  #lastId = 0

  constructor(post: (message: HostToPage) => void) {
    this.#post = post
  }

  /** Resolves with the headers for the URL. Rejects with `upstream_headers` if the app fails. */
  async request(url: string, signal: AbortSignal): Promise<Record<string, string>> {
    const id = (this.#lastId += 1)
    let timer: ReturnType<typeof setTimeout> | undefined
    const answered = new Promise<HeadersMessage>((resolve) => {
      this.#waiting.set(id, resolve)
      const error = `no answer within ${HEADERS_TIMEOUT_MS / 1000} s`
      const expire = () => resolve({ type: 'headers', id, headers: {}, error })
      timer = setTimeout(expire, HEADERS_TIMEOUT_MS)
    })
    this.#post({ type: 'headers', id, url })
    try {
      const { headers, error } = await unlessAborted(answered, signal)
      if (error === undefined) return headers
      const what = `serve({ upstreams }) returned no headers for ${url}: ${error}.`
      throw new InoriginError('unavailable', what, { code: 'upstream_headers' })
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(id)
    }
  }

  receive(message: HeadersMessage): void {
    this.#waiting.get(message.id)?.(message)
  }
}
