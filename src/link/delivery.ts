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
  let started: Pick<Usage, 'promptTokens' | 'cachedTokens'> | null = null
  const tokens: number[] = []
  let isUpstream = false
  /** `true` once an upstream server continues an answer that a host began. */
  let isInterrupted = false
  /** Text that was delivered, without reasoning. */
  let text = ''
  let reasoningTokens = 0
  let delivered = noContent()
  /** Content of the present host so far. */
  let received = noContent()
  /** Tokens of the present host so far. */
  let receivedTokens = 0
  /** Number of tokens that were delivered with an event. */
  let deliveredTokens = 0

  function logTokens({ tokens: ids = [] }: ContentEvent): void {
    tokens.splice(receivedTokens, ids.length, ...ids)
    receivedTokens += ids.length
  }

  /** Replaces the tokens of an event by those that no delivered event had. */
  function withNewTokens(event: ContentEvent): ContentEvent {
    const { tokens: _, ...content } = event
    const newTokens = tokens.slice(deliveredTokens)
    deliveredTokens = tokens.length
    if (event.type === 'reasoning') reasoningTokens += newTokens.length
    return newTokens.length > 0 ? { ...content, tokens: newTokens } : content
  }

  function selectContent(event: ContentEvent): GenerationEvent | null {
    logTokens(event)
    const before = received
    received = addContent(received, event)
    const selected = 'text' in event ? cut(event, before, delivered) : event
    const isNew = 'text' in event ? selected !== null : received.calls > delivered.calls
    delivered = maximum(delivered, received)
    if (!isNew || !selected) return null
    if (selected.type === 'text') text += selected.text
    return withNewTokens(selected)
  }

  /** Returns the output tokens of both, if a host began the answer and a server continued it. */
  function totalOutput(usage: Usage): Pick<Usage, 'completionTokens' | 'reasoningTokens'> {
    if (!isInterrupted) return usage
    return {
      completionTokens: usage.completionTokens + deliveredTokens,
      reasoningTokens: usage.reasoningTokens + reasoningTokens,
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
      const isText = delivered.calls === 0 && (text !== '' || delivered.characters === 0)
      const isPossible = started !== null && !isUpstream && !isInterrupted && isText
      isInterrupted ||= isPossible
      return isPossible
    },
    resumption() {
      if (isInterrupted) {
        // The server sends only what is new.
        received = delivered
        return { interrupted: { text, tokens: deliveredTokens } }
      }
      received = noContent()
      receivedTokens = 0
      return tokens.length > 0 ? { resumeTokens: [...tokens] } : {}
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
          return selectContent(event)
      }
    },
  }
}

const noContent = (): Amounts => ({ characters: 0, calls: 0, logprobs: 0 })

function addContent({ characters, calls, logprobs }: Amounts, event: ContentEvent): Amounts {
  return {
    characters: characters + ('text' in event ? event.text.length : 0),
    calls: calls + (event.type === 'tool_call' ? 1 : 0),
    logprobs: logprobs + (event.type === 'text' ? (event.logprobs?.length ?? 0) : 0),
  }
}

const maximum = (one: Amounts, other: Amounts): Amounts => ({
  characters: Math.max(one.characters, other.characters),
  calls: Math.max(one.calls, other.calls),
  logprobs: Math.max(one.logprobs, other.logprobs),
})

/** Removes from an event that comes after `before` what was delivered. */
function cut(event: TextEvent, before: Amounts, delivered: Amounts): TextEvent | null {
  const text = event.text.slice(Math.max(0, delivered.characters - before.characters))
  if (event.type !== 'text' || !event.logprobs) return text === '' ? null : { ...event, text }
  const logprobs = event.logprobs.slice(Math.max(0, delivered.logprobs - before.logprobs))
  return text === '' && logprobs.length === 0 ? null : { ...event, text, logprobs }
}
