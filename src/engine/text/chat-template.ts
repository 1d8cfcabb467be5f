/** Renders a conversation with the model's chat template into the text that the model continues. */
import { InoriginError } from '../../error.ts'
import type { AssistantMessage, ChatMessage, UserMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import { commonPrefixLength } from './common-prefix.ts'
import { LimitExceeded, parseTemplateProgram, renderTemplate, TemplateRejection } from './jinja.ts'
import { createMessageMarkers, type MessageMarkers, type TextRange } from './message-markers.ts'
import { countCharacters } from './token-bounds.ts'
import {
  DEFAULT_TOOL_CALL_FORM,
  type EscapeText,
  hasToolCalls,
  type ToolCallForm,
  toTemplateVariables,
} from './template-variables.ts'

/** A rendered conversation. All positions are in UTF-16 units. */
export interface Rendering {
  /** Text of the prompt, including the beginning of the answer if it has begun. */
  text: string
  /**
   * Ranges in which messages end, each from the last text of one message to the first of the next.
   */
  ends: readonly TextRange[]
  /** Position where the template opens the answer. */
  opening: number
  /** Position where the answer begins. It is the end of the text, unless the answer has begun. */
  answer: number
}

/** A parsed chat template. */
interface ChatTemplate {
  /**
   * Renders a conversation. `escape` escapes all of its texts before the template reads them.
   * Throws `invalid_request` if the template rejects the conversation.
   */
  render(conversation: Conversation, escape?: EscapeText): Rendering
}

/**
 * Parses a chat template. `tokens` are the texts of special tokens by the names that a template may
 * use, such as `bos_token`.
 */
export function parseTemplate(
  source: string,
  tokens: Readonly<Record<string, string>>,
): ChatTemplate {
  const program = parseTemplateProgram(source)
  const hasThinkBlocks = source.includes('</think>')
  let callForm: ToolCallForm | null = null
  let needsParts: boolean | null = null

  /** Returns `true` if the template writes the text of a sample, as a text or as a list of parts. */
  const writesText = (asParts: boolean): boolean => {
    const variables = toTemplateVariables(
      SAMPLE_QUESTION,
      DEFAULT_TOOL_CALL_FORM,
      hasThinkBlocks,
      (text) => text,
      asParts,
    )
    const limits = { characters: QUESTION.length, messages: 1 }
    try {
      return renderTemplate(program, { ...tokens, ...variables }, limits).includes(QUESTION)
    } catch (thrown) {
      // The conversation would exceed the limit again, after as long a time.
      if (thrown instanceof LimitExceeded) throw thrown
      return false
    }
  }

  const renderOnce: RenderOnce = (
    conversation,
    escape,
    markers,
    opening = true,
    attemptedForm = callForm ?? DEFAULT_TOOL_CALL_FORM,
  ) => {
    const variables = toTemplateVariables(
      conversation,
      attemptedForm,
      hasThinkBlocks,
      escape,
      // Templates of some models with images leave out a text that is not in a list of parts.
      (needsParts ??= !writesText(false) && writesText(true)),
    )
    const withMarkers = markers ? markers.insert(variables) : variables
    return renderTemplate(
      program,
      { ...tokens, ...withMarkers, add_generation_prompt: opening },
      { characters: countCharacters(conversation), messages: conversation.messages.length },
    )
  }

  /**
   * Locates the messages in a rendered text, by a second rendering with marks. Returns `null` if
   * the template left system text out.
   */
  const locate = (text: string, conversation: Conversation, escape: EscapeText): Located | null => {
    const markers = createMessageMarkers(text)
    const found = markers.extract(renderOnce(conversation, escape, markers, false))
    const hasSystemText = conversation.messages.every(
      ({ role, content }, index) =>
        role !== 'system' || content.trim() === '' || found.owners.has(index),
    )
    if (!hasSystemText) return null
    // The marks changed the template's behavior if the texts diverge before the last mark.
    const divergence = commonPrefixLength(text, found.text)
    const last = found.positions.at(-1)?.at ?? 0
    if (divergence >= last) return { ends: found.ends(divergence), opening: divergence }
    const opening = commonPrefixLength(text, renderOnce(conversation, escape, null, false))
    return { ends: found.ends(divergence).filter(({ to }) => to <= divergence), opening }
  }

  /** Appends the beginning of the answer to the rendered text. */
  const appendPrefill = (
    text: string,
    located: Located,
    conversation: Conversation,
    escape: EscapeText,
  ): Rendering => {
    const { messages, responsePrefix } = conversation
    const answer = text.length
    if (!responsePrefix) return { ...located, text, answer }
    const { block = '', text: prefilledText } = responsePrefix
    const findWhitespace = (): string => {
      const whole = { ...conversation, messages: [...messages, SAMPLE_ANSWER] }
      try {
        return whitespaceAfter(text, renderOnce(whole, escape, null, false))
      } catch {
        // The template never renders the answer itself, so it need not support it.
        return ''
      }
    }
    const whitespace = block === '' && !/^\s/.test(prefilledText) ? findWhitespace() : ''
    return { ...located, text: text + block + whitespace + escape(prefilledText), answer }
  }

  const render: ChatTemplate['render'] = (conversation, escape = (text) => text) => {
    if (hasToolCalls(conversation.messages)) callForm ??= detectCallForm(renderOnce)
    let rejection: unknown
    // Templates without a system role either reject system messages or leave them out.
    for (const simplify of [unchanged, withoutReasoning, mergeSystemMessages]) {
      const candidate = simplify(conversation)
      try {
        if (candidate === null) continue
        const text = renderOnce(candidate, escape)
        const located = locate(text, candidate, escape)
        if (located) return appendPrefill(text, located, candidate, escape)
      } catch (thrown) {
        if (!(thrown instanceof TemplateRejection)) throw toTemplateError(thrown)
        rejection = thrown
      }
    }
    throw toTemplateError(rejection)
  }
  return { render }
}

type Located = Pick<Rendering, 'ends' | 'opening'>

const SAMPLE_ANSWER: AssistantMessage = { role: 'assistant', content: 'Yes' }

/** Returns the whitespace that a template puts between the opening of an answer and its text. */
const whitespaceAfter = (open: string, whole: string): string =>
  whole.startsWith(open) ? (/^\s*(?=\S)/.exec(whole.slice(open.length))?.[0] ?? '') : ''

type RenderOnce = (
  conversation: Conversation,
  escape: EscapeText,
  markers?: MessageMarkers | null,
  opening?: boolean,
  callForm?: ToolCallForm,
) => string

/** Converts an error of a template into a user-visible error. */
function toTemplateError(thrown: unknown): InoriginError {
  if (thrown instanceof InoriginError) return thrown
  if (thrown instanceof TemplateRejection) {
    return new InoriginError(
      'invalid_request',
      `The chat template of this model rejects the conversation: ${thrown.message}`,
      { code: 'template_refused', param: 'messages', cause: thrown },
    )
  }
  return modelUnusable(`its chat template failed (${String(thrown)}).`, thrown)
}

const QUESTION = 'How warm is it?'

const SAMPLE_QUESTION: Conversation = { messages: [{ role: 'user', content: QUESTION }] }

/** Renders a sample with a tool call, to find out which form of calls the template expects. */
function detectCallForm(renderOnce: RenderOnce): ToolCallForm {
  const tryForm = (callForm: ToolCallForm): string | null => {
    try {
      return renderOnce(SAMPLE, (text) => text, null, true, callForm)
    } catch {
      return null
    }
  }
  for (const shortIds of [false, true]) {
    for (const empty of [null, ''] as const) {
      const data = tryForm({ arguments: 'data', empty, shortIds })
      const text = tryForm({ arguments: 'text', empty, shortIds })
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
  return DEFAULT_TOOL_CALL_FORM
}

const ARGUMENTS = '{"place":"Zurich"}'

const SAMPLE: Conversation = {
  messages: [
    { role: 'user', content: QUESTION },
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

const unchanged = (conversation: Conversation): Conversation => conversation

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
function mergeSystemMessages(conversation: Conversation): Conversation {
  const merged: ChatMessage[] = []
  for (const message of conversation.messages) {
    const turn = message.role === 'system' ? { ...message, role: 'user' as const } : { ...message }
    const last = merged.at(-1)
    if (last?.role !== turn.role || turn.role === 'tool') merged.push(turn)
    else {
      const offset = last.content.length + 2
      last.content += `\n\n${turn.content}`
      if (last.role === 'user' && turn.role === 'user') appendImages(last, turn, offset)
      if (last.role === 'assistant' && turn.role === 'assistant') appendMessage(last, turn)
    }
  }
  return { ...conversation, messages: merged }
}

/** Appends the images of `next` to `last`, whose text precedes that of `next` by `offset`. */
function appendImages(last: UserMessage, next: UserMessage, offset: number): void {
  const moved = (next.images ?? []).map((image) => ({ ...image, at: image.at + offset }))
  if (moved.length > 0) last.images = [...(last.images ?? []), ...moved]
}

/** Appends the reasoning and tool calls of `next` to `last`. */
function appendMessage(last: AssistantMessage, next: AssistantMessage): void {
  const reasoning = [last.reasoning, next.reasoning].filter((each) => each).join('\n\n')
  const toolCalls = [...(last.toolCalls ?? []), ...(next.toolCalls ?? [])]
  if (reasoning !== '') last.reasoning = reasoning
  if (toolCalls.length > 0) last.toolCalls = toolCalls
}
