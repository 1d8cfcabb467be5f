/** Renders a conversation with the model's chat template into the text that the model continues. */
import { InoriginError } from '../../error.ts'
import type { AssistantMessage, ChatMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import { parseProgram, Refusal, runProgram } from './jinja.ts'
import { createMarks, type Marks, type Range } from './marks.ts'
import { countCharacters } from './size.ts'
import { type Form, FORM, type Hide, variablesOf } from './variables.ts'

/** A rendered conversation. All positions are in UTF-16 units. */
export interface Rendering {
  /** Text of the prompt, including the beginning of the answer if it has begun. */
  text: string
  /**
   * Ranges in which messages end, each from the last text of one message to the first of the next.
   */
  ends: readonly Range[]
  /** Position where the template opens the answer. */
  opening: number
  /** Position where the answer begins. It is the end of the text, unless the answer has begun. */
  answer: number
}

/** A parsed chat template. */
export interface ChatTemplate {
  /**
   * Renders a conversation. `hide` disguises all of its texts before the template reads them.
   * Throws `invalid_request` if the template rejects the conversation.
   */
  render(conversation: Conversation, hide?: Hide): Rendering
}

/**
 * Parses a chat template. `tokens` are the texts of special tokens by the names that a template may
 * use, such as `bos_token`.
 */
export function parseTemplate(
  source: string,
  tokens: Readonly<Record<string, string>>,
): ChatTemplate {
  const program = parseProgram(source)
  const thinks = source.includes('</think>')
  let form: Form | null = null

  const attempt: Attempt = (conversation, hide, marks, opening = true, how = form ?? FORM) => {
    const variables = variablesOf(conversation, how, thinks, hide)
    const marked = marks ? marks.put(variables) : variables
    return runProgram(
      program,
      { ...tokens, ...marked, add_generation_prompt: opening },
      { characters: countCharacters(conversation), messages: conversation.messages.length },
    )
  }

  /**
   * Locates the messages in a rendered text, by a second rendering with marks. Returns `null` if
   * the template left system text out.
   */
  const locate = (text: string, conversation: Conversation, hide: Hide): Located | null => {
    const marks = createMarks(text)
    const found = marks.take(attempt(conversation, hide, marks, false))
    const kept = conversation.messages.every(
      ({ role, content }, index) =>
        role !== 'system' || content.trim() === '' || found.owners.has(index),
    )
    if (!kept) return null
    // The marks changed the template's behavior if the texts diverge before the last mark.
    const parting = partingOf(text, found.text)
    const last = found.places.at(-1)?.at ?? 0
    if (parting >= last) return { ends: found.ends(parting), opening: parting }
    const opening = partingOf(text, attempt(conversation, hide, null, false))
    return { ends: found.ends(parting).filter(({ to }) => to <= parting), opening }
  }

  /** Appends the beginning of the answer to the rendered text. */
  const begin = (
    text: string,
    located: Located,
    conversation: Conversation,
    hide: Hide,
  ): Rendering => {
    const { messages, begun } = conversation
    const answer = text.length
    if (!begun) return { ...located, text, answer }
    const { block = '', text: given } = begun
    const space = (): string => {
      const whole = { ...conversation, messages: [...messages, ANSWER] }
      try {
        return gapBehind(text, attempt(whole, hide, null, false))
      } catch {
        // The template never renders the answer itself, so it need not support it.
        return ''
      }
    }
    const gap = block === '' && !/^\s/.test(given) ? space() : ''
    return { ...located, text: text + block + gap + hide(given), answer }
  }

  const render: ChatTemplate['render'] = (conversation, hide = (text) => text) => {
    if (callsTools(conversation)) form ??= findForm(attempt)
    let refusal: unknown
    // Templates without a system role either reject system messages or leave them out.
    for (const simpler of [asItIs, withoutReasoning, fold]) {
      const candidate = simpler(conversation)
      try {
        if (candidate === null) continue
        const text = attempt(candidate, hide)
        const located = locate(text, candidate, hide)
        if (located) return begin(text, located, candidate, hide)
      } catch (thrown) {
        if (!(thrown instanceof Refusal)) throw explain(thrown)
        refusal = thrown
      }
    }
    throw explain(refusal)
  }
  return { render }
}

type Located = Pick<Rendering, 'ends' | 'opening'>

const ANSWER: AssistantMessage = { role: 'assistant', content: 'Yes' }

/** Returns the whitespace that a template puts between the opening of an answer and its text. */
const gapBehind = (open: string, whole: string): string =>
  whole.startsWith(open) ? (/^\s*(?=\S)/.exec(whole.slice(open.length))?.[0] ?? '') : ''

type Attempt = (
  conversation: Conversation,
  hide: Hide,
  marks?: Marks | null,
  opening?: boolean,
  form?: Form,
) => string

/** Converts an error of a template into a user-visible error. */
function explain(thrown: unknown): InoriginError {
  if (thrown instanceof InoriginError) return thrown
  if (thrown instanceof Refusal) {
    return new InoriginError(
      'invalid_request',
      `The chat template of this model rejects the conversation: ${thrown.message}`,
      { code: 'template_refused', param: 'messages', cause: thrown },
    )
  }
  return modelUnusable(`its chat template failed (${String(thrown)}).`, thrown)
}

const callsTools = ({ messages }: Conversation): boolean =>
  messages.some(
    (message) => message.role === 'tool' || (message.role === 'assistant' && message.toolCalls),
  )

/** Renders a sample with a tool call, to find out which form of calls the template expects. */
function findForm(attempt: Attempt): Form {
  const say = (form: Form): string | null => {
    try {
      return attempt(SAMPLE, (text) => text, null, true, form)
    } catch {
      return null
    }
  }
  for (const shortIds of [false, true]) {
    for (const empty of [null, ''] as const) {
      const data = say({ arguments: 'data', empty, shortIds })
      const text = say({ arguments: 'text', empty, shortIds })
      if (data === null && text === null) continue
      const asData = data?.includes('Zurich') === true && !data.includes('[object ')
      const asText = text?.includes(ARGUMENTS) === true
      if (asData || asText || empty === '') {
        return {
          arguments: asData ? (asText ? 'both' : 'data') : asText ? 'text' : 'data',
          empty,
          shortIds,
        }
      }
    }
  }
  return FORM
}

const ARGUMENTS = '{"place":"Zurich"}'

const SAMPLE: Conversation = {
  messages: [
    { role: 'user', content: 'How warm is it?' },
    {
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'call_0123456789', name: 'warmth', arguments: ARGUMENTS }],
    },
    { role: 'tool', toolCallId: 'call_0123456789', name: 'warmth', content: '21' },
  ],
  tools: [
    {
      name: 'warmth',
      description: 'Tells how warm a place is.',
      parameters: {
        type: 'object',
        properties: { place: { type: 'string', description: 'Where.' } },
      },
    },
  ],
}

/** Returns the length of the common prefix. */
function partingOf(one: string, other: string): number {
  const least = Math.min(one.length, other.length)
  let at = 0
  while (at < least && one.charCodeAt(at) === other.charCodeAt(at)) at += 1
  return at
}

const asItIs = (conversation: Conversation): Conversation => conversation

/** Removes reasoning from a conversation. Returns `null` if there is none. */
function withoutReasoning(conversation: Conversation): Conversation | null {
  let found = false
  const messages = conversation.messages.map((message) => {
    if (message.role !== 'assistant' || message.reasoning === undefined) return message
    found = true
    const { reasoning: _, ...spoken } = message
    return spoken
  })
  return found ? { ...conversation, messages } : null
}

/**
 * Turns system messages into user messages and merges consecutive messages of one role, except tool
 * messages.
 */
function fold(conversation: Conversation): Conversation {
  const turns: ChatMessage[] = []
  for (const message of conversation.messages) {
    const turn = message.role === 'system' ? { ...message, role: 'user' as const } : { ...message }
    const last = turns.at(-1)
    if (last?.role !== turn.role || turn.role === 'tool') turns.push(turn)
    else {
      last.content += `\n\n${turn.content}`
      if (last.role === 'assistant' && turn.role === 'assistant') join(last, turn)
    }
  }
  return { ...conversation, messages: turns }
}

/** Appends the reasoning and tool calls of `next` to `last`. */
function join(last: AssistantMessage, next: AssistantMessage): void {
  const reasoning = [last.reasoning, next.reasoning].filter((each) => each).join('\n\n')
  const toolCalls = [...(last.toolCalls ?? []), ...(next.toolCalls ?? [])]
  if (reasoning !== '') last.reasoning = reasoning
  if (toolCalls.length > 0) last.toolCalls = toolCalls
}
