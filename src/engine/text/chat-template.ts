/** Renders a conversation with the model's chat template into the text that the model continues. */
import { InoriginError } from '../../error.ts'
import type { AssistantMessage, ChatMessage, UserMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import { LimitExceeded, parseTemplateProgram, renderTemplate, TemplateRejection } from './jinja.ts'
import { createMessageMarkers, type MessageMarkers, type TextRange } from './message-markers.ts'
import {
  CutArguments,
  DEFAULT_TOOL_CALL_FORM,
  type EscapeText,
  hasToolCalls,
  type ToolCallForm,
  toTemplateVariables,
} from './template-variables.ts'
import { countCharacters } from './token-bounds.ts'

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
  const renderOnce = createRenderer(source, tokens)
  return {
    render(conversation, escape = (text) => text) {
      let rejection: unknown
      // Templates without a system role either reject system messages or leave them out.
      for (const simplify of [unchanged, withoutReasoning, mergeSystemMessages]) {
        const candidate = simplify(conversation)
        try {
          if (candidate === null) continue
          const text = renderOnce(candidate, escape)
          const located = locate(renderOnce, text, candidate, escape)
          if (located) return appendPrefill(renderOnce, text, located, candidate, escape)
        } catch (thrown) {
          if (!(thrown instanceof TemplateRejection)) throw toTemplateError(thrown)
          rejection = thrown
        }
      }
      throw toTemplateError(rejection)
    },
  }
}

const unchanged = (conversation: Conversation): Conversation => conversation

type Located = Pick<Rendering, 'ends' | 'opening'>

/**
 * Locates the messages in a rendered text, by a second rendering with marks. Returns `null` if
 * the template left system text out.
 */
function locate(
  render: RenderTemplate,
  text: string,
  conversation: Conversation,
  escape: EscapeText,
): Located | null {
  const markers = createMessageMarkers(text)
  const found = markers.extract(render(conversation, escape, { markers, opening: false }))
  const hasSystemText = conversation.messages.every(
    ({ role, content }, index) =>
      role !== 'system' || content.trim() === '' || found.owners.has(index),
  )
  if (!hasSystemText) return null
  // The marks changed the template's behavior if the texts diverge before the last mark.
  const divergence = commonPrefixLength(text, found.text)
  const last = found.positions.at(-1)?.at ?? 0
  if (divergence >= last) return { ends: found.ends(divergence), opening: divergence }
  const opening = commonPrefixLength(text, render(conversation, escape, { opening: false }))
  return { ends: found.ends(divergence).filter(({ to }) => to <= divergence), opening }
}

/** Appends the beginning of the answer to the rendered text. */
function appendPrefill(
  render: RenderTemplate,
  text: string,
  located: Located,
  conversation: Conversation,
  escape: EscapeText,
): Rendering {
  const { messages, responsePrefix } = conversation
  const answer = text.length
  if (!responsePrefix) return { ...located, text, answer }
  const { block = '', text: prefilledText } = responsePrefix
  const findWhitespace = (): string => {
    const whole = { ...conversation, messages: [...messages, SAMPLE_ANSWER] }
    try {
      return whitespaceAfter(text, render(whole, escape, { opening: false }))
    } catch {
      // The template never renders the answer itself, so it need not support it.
      return ''
    }
  }
  const whitespace = block === '' && !/^\s/.test(prefilledText) ? findWhitespace() : ''
  return { ...located, text: text + block + whitespace + escape(prefilledText), answer }
}

const SAMPLE_ANSWER: AssistantMessage = { role: 'assistant', content: 'Yes' }

/** Returns the whitespace that a template puts between the opening of an answer and its text. */
const whitespaceAfter = (open: string, whole: string): string =>
  whole.startsWith(open) ? (/^\s*(?=\S)/.exec(whole.slice(open.length))?.[0] ?? '') : ''

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

// Conversations in the forms that templates with fewer roles accept.

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

// Renders a conversation as it is, in the forms of tool calls and contents that a template expects.

interface RenderOptions {
  /** Marks to put around the messages. */
  markers?: MessageMarkers
  /** `false` to leave out the opening of the answer. */
  opening?: boolean
}

/** Renders a conversation. `escape` escapes its texts. Throws what the template throws. */
type RenderTemplate = (
  conversation: Conversation,
  escape: EscapeText,
  options?: RenderOptions,
) => string

/** Parses a template, and returns the function that renders it. `tokens` become variables. */
function createRenderer(source: string, tokens: Readonly<Record<string, string>>): RenderTemplate {
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
      unescaped,
      new CutArguments(),
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

  const renderAs = (
    form: ToolCallForm,
    conversation: Conversation,
    escape: EscapeText,
    { markers, opening = true }: RenderOptions = {},
  ): string => {
    // Templates of some models with images leave out a text that is not in a list of parts.
    needsParts ??= !writesText(false) && writesText(true)
    const cut = new CutArguments()
    const variables = toTemplateVariables(
      conversation,
      form,
      hasThinkBlocks,
      escape,
      cut,
      needsParts,
    )
    const withMarkers = markers ? markers.insert(variables) : variables
    const rendered = renderTemplate(
      program,
      { ...tokens, ...withMarkers, add_generation_prompt: opening },
      { characters: countCharacters(conversation), messages: conversation.messages.length },
    )
    return cut.restore(rendered)
  }

  return (conversation, escape, options) => {
    if (hasToolCalls(conversation.messages)) {
      callForm ??= detectCallForm((form) => renderAs(form, SAMPLE_CALL, unescaped))
    }
    return renderAs(callForm ?? DEFAULT_TOOL_CALL_FORM, conversation, escape, options)
  }
}

const unescaped: EscapeText = (text) => text

const QUESTION = 'How warm is it?'

const SAMPLE_QUESTION: Conversation = { messages: [{ role: 'user', content: QUESTION }] }

/** Returns the form of calls that the template expects. `render` renders a sample with a call. */
function detectCallForm(render: (callForm: ToolCallForm) => string): ToolCallForm {
  const tryForm = (callForm: ToolCallForm): string | null => {
    try {
      return render(callForm)
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

const SAMPLE_CALL: Conversation = {
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

/** Returns the length of the common prefix of two texts, or of two lists of tokens. */
export function commonPrefixLength(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  const longest = Math.min(a.length, b.length)
  let length = 0
  while (length < longest && a[length] === b[length]) length += 1
  return length
}
