/** Keeps what was delivered of a generation, so that another host can continue it. */
import type { ContentEvent, GenerationEvent, GenerationRequest, Usage } from '../types/index.ts'

export interface Delivery {
  /** `true` once prefill had started on a host. */
  readonly hasStarted: boolean
  /** `false` once another server has sent content, which no host can continue or repeat. */
  readonly canContinue: boolean
  /**
   * Has an upstream server continue from now on. Returns `false` if no server could: before the
   * start, within reasoning, after a tool call, and if one has already tried.
   */
  interrupt(): boolean
  /** Returns the fields of the request with which the next host or server continues. */
  resumption(): Pick<GenerationRequest, 'resumeTokens' | 'interrupted'>
  /** Returns the part of an event that was not delivered before; `null` if there is none. */
  select(event: GenerationEvent): GenerationEvent | null
}

/** Amounts of content. A host that continues sends the same content again, in other pieces. */
interface Amounts {
  /** UTF-16 units of reasoning, text and arguments. */
  characters: number
  calls: number
  logprobs: number
}

type TextEvent = Extract<ContentEvent, { text: string }>

export function createDelivery(): Delivery {
  const content = createContentLog()
  const { delivered } = content
  let started: Pick<Usage, 'promptTokens' | 'cachedTokens'> | null = null
  let isUpstream = false
  /** `true` once an upstream server continues an answer that a host began. */
  let isInterrupted = false

  /** Returns the output tokens of both, if a host began the answer and a server continued it. */
  function totalOutput(usage: Usage): Pick<Usage, 'completionTokens' | 'reasoningTokens'> {
    if (!isInterrupted) return usage
    return {
      completionTokens: usage.completionTokens + delivered.tokens,
      reasoningTokens: usage.reasoningTokens + delivered.reasoningTokens,
    }
  }

  return {
    get hasStarted() {
      return started !== null
    },
    get canContinue() {
      return !isUpstream || (delivered.characters === 0 && delivered.calls === 0)
    },
    interrupt() {
      const isText = delivered.calls === 0 && (delivered.text !== '' || delivered.characters === 0)
      const isPossible = started !== null && !isUpstream && !isInterrupted && isText
      isInterrupted ||= isPossible
      return isPossible
    },
    resumption() {
      const resumeTokens = content.restart(isInterrupted)
      if (isInterrupted) return { interrupted: { text: delivered.text, tokens: delivered.tokens } }
      return resumeTokens.length > 0 ? { resumeTokens } : {}
    },
    select(event) {
      switch (event.type) {
        case 'start':
          if (started) return null
          started = { promptTokens: event.promptTokens, cachedTokens: event.cachedTokens }
          return event
        case 'progress':
          return started ? { type: 'heartbeat' } : event
        case 'heartbeat':
          return event
        case 'served_by':
          isUpstream = event.servedBy === 'upstream'
          return event
        case 'finish':
          // The next host prefills the prompt anew, or has parts of it in its own prefix cache.
          return { ...event, usage: { ...event.usage, ...totalOutput(event.usage), ...started } }
        default:
          return content.select(event)
      }
    },
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

interface ContentLog {
  readonly delivered: Readonly<Delivered>
  /** Returns the part of the content that was not delivered before; `null` if there is none. */
  select(event: ContentEvent): ContentEvent | null
  /**
   * Expects the content of another host or server, with `isContinued` only what was not delivered.
   * Returns the tokens so far.
   */
  restart(isContinued: boolean): number[]
}

function createContentLog(): ContentLog {
  const tokens: number[] = []
  const delivered: Delivered = { ...noContent(), text: '', tokens: 0, reasoningTokens: 0 }
  /** Content of the present host so far. */
  let received = noContent()
  /** Tokens of the present host so far. */
  let receivedTokens = 0

  /** Replaces the tokens of an event by those that no delivered event had. */
  function withNewTokens(event: ContentEvent): ContentEvent {
    const { tokens: _, ...content } = event
    const newTokens = tokens.slice(delivered.tokens)
    delivered.tokens = tokens.length
    if (event.type === 'reasoning') delivered.reasoningTokens += newTokens.length
    return newTokens.length > 0 ? { ...content, tokens: newTokens } : content
  }

  return {
    delivered,
    select(event) {
      const { tokens: ids = [] } = event
      tokens.splice(receivedTokens, ids.length, ...ids)
      receivedTokens += ids.length
      const selected = 'text' in event ? cut(event, received, delivered) : event
      received = addContent(received, event)
      const isNew = 'text' in event ? selected !== null : received.calls > delivered.calls
      for (const key of AMOUNTS) delivered[key] = Math.max(delivered[key], received[key])
      if (!isNew || !selected) return null
      if (selected.type === 'text') delivered.text += selected.text
      return withNewTokens(selected)
    },
    restart(isContinued) {
      received = isContinued ? { ...delivered } : noContent()
      if (!isContinued) receivedTokens = 0
      return [...tokens]
    },
  }
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
