/**
 * Lets streams survive the death of their host. The asking side keeps the request. The next host
 * starts embeddings and predictions anew, because they have a single result. It continues a
 * generation: it computes the tokens that arrived as part of the prompt, sends their events again,
 * of which `Delivery` drops those that were delivered, and generates the rest.
 */
import { InoriginError } from '../error.ts'
import type {
  AcceptedEvent,
  Caller,
  ContentEvent,
  EventStream,
  Generation,
  GenerationEvent,
  GenerationRequest,
  Host,
  SpeechEvent,
  SpeechRequest,
  SpeechStream,
  Usage,
} from '../types/index.ts'
import { MAX_FAILOVERS } from './ask.ts'
import { isHostGone, isHostLost } from './link.ts'

/**
 * Maximum number of failovers of one stream by the code of an error after which the next request
 * loads the model again. A request that hangs its model would hang the next one for minutes, too.
 */
const MODEL_FAILOVERS: Readonly<Record<string, number>> = {
  worker_ended: MAX_FAILOVERS,
  model_unresponsive: 1,
  storage_damaged: 1,
  runtime_crashed: 1,
}

/** Returns the host with streams that continue on the next one when it dies. */
export function withFailover(host: Host): Host {
  return {
    ...host,
    generate: (request, caller) =>
      continueGeneration(host.generate, withSeed(request), caller, new Delivery()),
    followBackground: (id, skippedEvents, caller) =>
      followBackground(host, id, skippedEvents, caller),
    embed: (request, caller) => openWithFailover(() => host.embed(request, caller)),
    rerank: (request, caller) => openWithFailover(() => host.rerank(request, caller)),
    speak: (request, caller) => continueSpeech(host, request, caller),
    createRemotePrediction: (request, caller) =>
      openWithFailover(() => host.createRemotePrediction(request, caller)),
  }
}

/**
 * Generates what `delivery` lacks of a response, and continues when a host or its model dies. The
 * request must have a seed, so that each host makes the same choices.
 */
export function continueGeneration(
  generate: Host['generate'],
  request: GenerationRequest,
  caller: Caller,
  delivery: Delivery,
): Promise<Generation> {
  const isModelLost = createModelLossCheck()
  return openWithFailover(() => generate({ ...request, ...delivery.resumption() }, caller), {
    canContinue: (error) =>
      delivery.canContinue && (isHostGone(error) || isModelLost(error, delivery.hasStarted)),
    openElsewhere: (error) =>
      error instanceof InoriginError && error.mayContinueUpstream === true && delivery.interrupt(),
    select: (event) => delivery.select(event),
  })
}

/** Returns the request with a seed, because another host could not repeat choices without one. */
export function withSeed(request: GenerationRequest): GenerationRequest {
  const { sampling } = request
  return { ...request, sampling: { ...sampling, seed: sampling.seed ?? createSeed() } }
}

/** Follows a background response, which the next host continues by itself. */
function followBackground(host: Host, id: string, skippedEvents: number, caller: Caller) {
  let received = skippedEvents
  return openWithFailover(() => host.followBackground(id, received, caller), {
    select(event) {
      if (event.type !== 'progress' && event.type !== 'heartbeat') received += 1
      return event
    },
  })
}

/** Speaks a text, and what is left of it on the next host. */
function continueSpeech(host: Host, request: SpeechRequest, caller: Caller) {
  let skippedSentences = request.skippedSentences ?? 0
  return openWithFailover<SpeechEvent, SpeechStream>(
    () => host.speak({ ...request, skippedSentences }, caller),
    {
      select(event) {
        if (event.type === 'audio') skippedSentences += 1
        return event
      },
    },
  )
}

/** Events of a stream, of which the one of type `finish` is the last. */
interface TypedEvent {
  type: string
}

interface FailoverOptions<Event> {
  /**
   * Returns `true` if the stream can be opened again after this error. Default: if the host died.
   */
  canContinue?: (error: unknown) => boolean
  /**
   * Returns `true` if the stream, which cannot be opened again as it was, continues on another
   * server from now on. Default: never.
   */
  openElsewhere?: (error: unknown) => boolean
  /** Returns the part of an event that was not delivered; `null` if there is none. Default: all. */
  select?: (event: Event) => Event | null
}

/** Opens a stream, and opens it again while that is possible. */
async function openWithFailover<Event extends TypedEvent, Stream extends EventStream<Event>>(
  open: () => Promise<Stream & EventStream<Event>>,
  {
    canContinue = isHostGone,
    openElsewhere,
    select = (event) => event,
  }: FailoverOptions<Event> = {},
): Promise<Stream> {
  let failovers = 0
  /** Throws the error if the stream cannot be opened again. */
  const assertRetry = (error: unknown, isOpening: boolean): void => {
    // After a death, the election of the next host may take longer than one search for it.
    const isLost = isOpening && failovers > 0 && isHostLost(error)
    if ((canContinue(error) || isLost) && (failovers += 1) <= MAX_FAILOVERS) return
    if (!openElsewhere?.(error)) throw error
  }
  const reopen = async (): Promise<Stream> => {
    for (;;) {
      try {
        return await open()
      } catch (error) {
        assertRetry(error, true)
      }
    }
  }

  async function* read(first: Stream): AsyncGenerator<Event> {
    let isFinished = false
    for (let stream = first; ; stream = await reopen()) {
      try {
        for await (const event of stream.events as AsyncIterable<Event>) {
          if (isFinished) continue
          const selected = select(event)
          isFinished = event.type === 'finish'
          if (selected !== null) yield selected
        }
        return
      } catch (error) {
        if (isFinished) return
        assertRetry(error, false)
      }
    }
  }
  const first = await reopen()
  return { ...first, events: read(first) }
}

/**
 * Returns a check of the errors of one stream: `true` if the model may be loaded again after it.
 * Before the start, the load may have failed, and would fail again. A worker that ended then gets one
 * more attempt, because it may have ended between the load and the start.
 */
function createModelLossCheck(): (error: unknown, hasStarted: boolean) => boolean {
  const counts = new Map<string, number>()
  return (error, hasStarted) => {
    const { code = '' } = InoriginError.from(error)
    const count = (counts.get(code) ?? 0) + 1
    counts.set(code, count)
    if (!hasStarted) return code === 'worker_ended' && count === 1
    return count <= (MODEL_FAILOVERS[code] ?? 0)
  }
}

const createSeed = (): number => crypto.getRandomValues(new Uint32Array(1))[0] as number

/** Amounts of content. A host that continues sends the same content again, in other pieces. */
interface Amounts {
  /** UTF-16 units of reasoning, text and arguments. */
  characters: number
  calls: number
  logprobs: number
}

type TextEvent = Extract<ContentEvent, { text: string }>

/** What was delivered of a generation, from which another host can continue it. */
export class Delivery {
  #isAccepted = false
  #hasStarted = false
  /** Counts of the host's `start` event; `null` if an upstream server sent it. */
  #prompt: Pick<Usage, 'promptTokens' | 'cachedTokens'> | null = null
  #isUpstream = false
  /** `true` once an upstream server continues an answer that a host began. */
  #isInterrupted = false
  #tokens: number[] = []
  #delivered: Delivered = { ...noContent(), text: '', tokens: 0, reasoningTokens: 0 }
  /** Content of the present host so far. */
  #received = noContent()
  /** Number of tokens of the present host so far. */
  #receivedTokens = 0

  /** `true` once prefill had started on a host. */
  get hasStarted(): boolean {
    return this.#hasStarted
  }

  /** `false` once another server has sent content, which no host can continue or repeat. */
  get canContinue(): boolean {
    const { characters, calls } = this.#delivered
    return !this.#isUpstream || (characters === 0 && calls === 0)
  }

  /**
   * Has an upstream server continue from now on. Returns `false` if no server could: before the
   * start, within reasoning, after a tool call, and if one has already tried.
   */
  interrupt(): boolean {
    const { characters, calls, text } = this.#delivered
    const isText = calls === 0 && (text !== '' || characters === 0)
    const isPossible = this.hasStarted && !this.#isUpstream && !this.#isInterrupted && isText
    this.#isInterrupted ||= isPossible
    return isPossible
  }

  /** Returns the fields of the request with which the next host or server continues. */
  resumption(): Pick<GenerationRequest, 'resumeTokens' | 'interrupted'> {
    const { text, tokens } = this.#delivered
    this.#received = this.#isInterrupted ? { ...this.#delivered } : noContent()
    if (this.#isInterrupted) return { interrupted: { text, tokens } }
    this.#receivedTokens = 0
    return this.#tokens.length > 0 ? { resumeTokens: [...this.#tokens] } : {}
  }

  /** Returns the part of an event that was not delivered before; `null` if there is none. */
  select(event: AcceptedEvent | GenerationEvent): AcceptedEvent | GenerationEvent | null {
    switch (event.type) {
      case 'accepted':
        this.#isUpstream = event.servedBy === 'upstream'
        if (this.#isAccepted) return null
        this.#isAccepted = true
        return event
      case 'start': {
        if (this.#hasStarted) return null
        this.#hasStarted = true
        const { promptTokens, cachedTokens } = event
        if (!this.#isUpstream) this.#prompt = { promptTokens, cachedTokens }
        return event
      }
      case 'progress':
        return this.#hasStarted ? { type: 'heartbeat' } : event
      case 'heartbeat':
        return event
      case 'served_by':
        this.#isUpstream = event.servedBy === 'upstream'
        return event
      case 'finish':
        // Servers count the prompt in their last chunk, and their `start` often has no counts.
        if (this.#isUpstream && !this.#isInterrupted) return event
        // The next host prefills the prompt anew, or has parts of it in its own prefix cache.
        return { ...event, usage: { ...this.#totalUsage(event.usage), ...this.#prompt } }
      default:
        return this.#selectContent(event)
    }
  }

  /** Returns the output tokens of both, if a host began the answer and a server continued it. */
  #totalUsage(usage: Usage): Usage {
    if (!this.#isInterrupted) return usage
    const { tokens, reasoningTokens } = this.#delivered
    return {
      ...usage,
      completionTokens: usage.completionTokens + tokens,
      reasoningTokens: usage.reasoningTokens + reasoningTokens,
    }
  }

  #selectContent(event: ContentEvent): ContentEvent | null {
    const { tokens: ids = [] } = event
    const delivered = this.#delivered
    this.#tokens.splice(this.#receivedTokens, ids.length, ...ids)
    this.#receivedTokens += ids.length
    const selected = 'text' in event ? cut(event, this.#received, delivered) : event
    this.#received = addContent(this.#received, event)
    const isNew = 'text' in event ? selected !== null : this.#received.calls > delivered.calls
    for (const key of AMOUNTS) delivered[key] = Math.max(delivered[key], this.#received[key])
    if (!isNew || !selected) return null
    if (selected.type === 'text') delivered.text += selected.text
    return this.#withNewTokens(selected)
  }

  /** Replaces the tokens of an event by those that no delivered event had. */
  #withNewTokens(event: ContentEvent): ContentEvent {
    const { tokens: _, ...content } = event
    const newTokens = this.#tokens.slice(this.#delivered.tokens)
    this.#delivered.tokens = this.#tokens.length
    if (event.type === 'reasoning') this.#delivered.reasoningTokens += newTokens.length
    return newTokens.length > 0 ? { ...content, tokens: newTokens } : content
  }
}

/** Content that was delivered. */
interface Delivered extends Amounts {
  /** Text without reasoning. */
  text: string
  /** Number of tokens that were delivered with an event. */
  tokens: number
  reasoningTokens: number
}

const AMOUNTS = ['characters', 'calls', 'logprobs'] as const satisfies (keyof Amounts)[]

const noContent = (): Amounts => ({ characters: 0, calls: 0, logprobs: 0 })

function addContent({ characters, calls, logprobs }: Amounts, event: ContentEvent): Amounts {
  return {
    characters: characters + ('text' in event ? event.text.length : 0),
    calls: calls + (event.type === 'tool_call' ? 1 : 0),
    logprobs: logprobs + (event.type === 'text' ? (event.logprobs?.length ?? 0) : 0),
  }
}

/** Removes from an event that comes after `before` what was delivered. */
function cut(event: TextEvent, before: Amounts, delivered: Amounts): TextEvent | null {
  const text = event.text.slice(Math.max(0, delivered.characters - before.characters))
  if (event.type !== 'text' || !event.logprobs) return text === '' ? null : { ...event, text }
  const logprobs = event.logprobs.slice(Math.max(0, delivered.logprobs - before.logprobs))
  return text === '' && logprobs.length === 0 ? null : { ...event, text, logprobs }
}
