/** The model's chat template: a conversation in, the text the model was trained to continue out. */
import { InoriginError } from '../../error.ts'
import type { AssistantMessage, ChatMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import { parseProgram, Refusal, runProgram } from './jinja.ts'
import { createMarks, type Marks, type Range } from './marks.ts'
import { countCharacters } from './size.ts'
import { type Form, FORM, type Hide, variablesOf } from './variables.ts'

export interface Rendering {
  /** The conversation up to where the answer begins, or goes on. */
  text: string
  /** Where messages end: each from the last that is said in one to the first in the next. */
  ends: readonly Range[]
  /** Where the answer is opened. */
  opening: number
  /** Where it begins: the end of the text, unless it has begun. */
  answer: number
}

export interface ChatTemplate {
  /** `hide` changes all texts of the conversation before the template sees them. */
  render(conversation: Conversation, hide?: Hide): Rendering
}

/** `tokens` are the names a template may use, such as `bos_token`. */
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

  /** Rendered a second time, with marks in what is said. `null`: system text is left out. */
  const locate = (text: string, conversation: Conversation, hide: Hide): Located | null => {
    const marks = createMarks(text)
    const found = marks.take(attempt(conversation, hide, marks, false))
    const kept = conversation.messages.every(
      ({ role, content }, index) =>
        role !== 'system' || content.trim() === '' || found.owners.has(index),
    )
    if (!kept) return null
    // The marks changed what the template did if the texts part before the last of them.
    const parting = partingOf(text, found.text)
    const last = found.places.at(-1)?.at ?? 0
    if (parting >= last) return { ends: found.ends(parting), opening: parting }
    const opening = partingOf(text, attempt(conversation, hide, null, false))
    return { ends: found.ends(parting).filter(({ to }) => to <= parting), opening }
  }

  /** With the beginning of the answer behind what opens it. */
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
        // It never gets to see the answer, for which it need not have a way.
        return ''
      }
    }
    const gap = block === '' && !/^\s/.test(given) ? space() : ''
    return { ...located, text: text + block + gap + hide(given), answer }
  }

  const render: ChatTemplate['render'] = (conversation, hide = (text) => text) => {
    if (callsTools(conversation)) form ??= findForm(attempt)
    let refusal: unknown
    // Templates without a system role either refuse it or leave it out.
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

/** The space that a template has between what opens an answer and the answer, once it is there. */
const gapBehind = (open: string, whole: string): string =>
  whole.startsWith(open) ? (/^\s*(?=\S)/.exec(whole.slice(open.length))?.[0] ?? '') : ''

type Attempt = (
  conversation: Conversation,
  hide: Hide,
  marks?: Marks | null,
  opening?: boolean,
  form?: Form,
) => string

function explain(thrown: unknown): InoriginError {
  if (thrown instanceof InoriginError) return thrown
  if (thrown instanceof Refusal) {
    return new InoriginError(
      'invalid_request',
      `This model does not take such a conversation: ${thrown.message}`,
      { code: 'template_refused', param: 'messages', cause: thrown },
    )
  }
  return modelUnusable(`its chat template failed (${String(thrown)}).`, thrown)
}

const callsTools = ({ messages }: Conversation): boolean =>
  messages.some(
    (message) => message.role === 'tool' || (message.role === 'assistant' && message.toolCalls),
  )

/** Tries a conversation with a call, to see how the template wants calls. */
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

/** How far two texts are the same. */
function partingOf(one: string, other: string): number {
  const least = Math.min(one.length, other.length)
  let at = 0
  while (at < least && one.charCodeAt(at) === other.charCodeAt(at)) at += 1
  return at
}

const asItIs = (conversation: Conversation): Conversation => conversation

/** `null` where nothing was reasoned. */
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
 * System text moves to the front of the next user turn, and turns of one role in a row become one.
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

function join(last: AssistantMessage, next: AssistantMessage): void {
  const reasoning = [last.reasoning, next.reasoning].filter((each) => each).join('\n\n')
  const toolCalls = [...(last.toolCalls ?? []), ...(next.toolCalls ?? [])]
  if (reasoning !== '') last.reasoning = reasoning
  if (toolCalls.length > 0) last.toolCalls = toolCalls
}
