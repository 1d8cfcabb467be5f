/** Renders a conversation with the model's chat template into the text that the model continues. */
import { InoriginError } from '../../error.ts'
import type { AssistantMessage, ChatMessage, Tool, UserMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import {
  LimitExceeded,
  parse,
  type Program,
  render as renderProgram,
  TemplateError,
  TemplateRejection,
  toValue,
  type Value,
} from '../jinja/index.ts'
import { findEnds, MessageMarkers, type TextRange } from './message-markers.ts'
import {
  CutArguments,
  DEFAULT_TOOL_CALL_FORM,
  type EscapeText,
  hasToolCalls,
  type TemplateForm,
  type ToolCallForm,
  toTemplateVariables,
} from './template-variables.ts'
import { countCharacters } from './token-bounds.ts'

/** A rendered conversation. All positions are in UTF-16 units. */
export interface Rendering {
  /** Text of the prompt, including the beginning of the answer if it has begun. */
  text: string
  /** Ranges in which messages end: from the last text of one to the first text of the next. */
  ends: readonly TextRange[]
  /** Position where the template opens the answer. */
  opening: number
  /** Position where the answer begins. It is the end of the text, unless the answer has begun. */
  answer: number
}

/**
 * Parses a chat template. `tokens` are the texts of special tokens by the names that a template may
 * use, such as `bos_token`.
 */
export function parseTemplate(source: string, tokens: Readonly<Record<string, string>>) {
  const renderOnce = createRenderer(source, tokens)
  return {
    /**
     * Renders a conversation. `escape` escapes all of its texts before the template reads them.
     * Throws `invalid_request` if the template rejects the conversation, fails or is invalid.
     */
    render(conversation: Conversation, escape: EscapeText = unescaped): Rendering {
      let failure: InoriginError | undefined
      // Templates without a system role either reject system messages or leave them out.
      for (const simplify of [unchanged, withToolDefaults, withoutReasoning, mergeSystemMessages]) {
        const candidate = simplify(conversation)
        if (candidate === null) continue
        try {
          const whole = renderPrefilled(renderOnce, candidate, escape)
          const text = whole?.text ?? renderOnce(candidate, escape)
          const located = locate(renderOnce, text, candidate, escape)
          if (!located) continue
          if (whole) return { ...located, ...whole }
          const beginning = renderBeginning(renderOnce, text, candidate, escape)
          return { ...located, text: text + beginning, answer: text.length }
        } catch (thrown) {
          if (!isTemplateFailure(thrown)) throw thrown
          // The first failure is about the conversation as it was sent.
          failure ??= thrown
        }
      }
      throw failure ?? toTemplateError(new TemplateRejection('it leaves out the system message'))
    },
  }
}

const unchanged = (conversation: Conversation): Conversation => conversation

const unescaped: EscapeText = (text) => text

/** Ends the beginning of an answer. A template writes it as a part of the message. */
const PREFIX_END = 'endoftheprefilledanswer'

/**
 * Renders a conversation with the beginning of its answer as the last message, as transformers does,
 * and cuts the text after it. So the template writes its own marks before the answer. Returns `null`
 * if the template does not write the message, or changes its text.
 */
function renderPrefilled(
  render: RenderTemplate,
  conversation: Conversation,
  escape: EscapeText,
): Pick<Rendering, 'text' | 'answer'> | null {
  const { messages, responsePrefix } = conversation
  if (!responsePrefix || responsePrefix.block) return null
  const { text: prefix } = responsePrefix
  // The space after the mark shows whether the template trims the message.
  const begun = { role: 'assistant' as const, content: `${prefix}${PREFIX_END} ` }
  let whole = ''
  try {
    whole = render({ ...conversation, messages: [...messages, begun] }, escape, { opening: false })
  } catch (thrown) {
    // The template need not support the message, since it never renders the answer itself.
    if (!isTemplateFailure(thrown)) throw thrown
  }
  const end = whole.lastIndexOf(PREFIX_END)
  if (end < 0) return null
  const isTrimmed = !whole.startsWith(' ', end + PREFIX_END.length)
  const text = isTrimmed ? whole.slice(0, end).trimEnd() : whole.slice(0, end)
  const shown = [escape(prefix), escape(prefix).trimEnd(), escape(prefix).trim()]
  const written = shown.find((each) => text.endsWith(each))
  return written === undefined ? null : { text, answer: text.length - written.length }
}

/** Locates the messages by a rendering with marks; `null` if the template left system text out. */
function locate(
  render: RenderTemplate,
  text: string,
  conversation: Conversation,
  escape: EscapeText,
): Pick<Rendering, 'ends' | 'opening'> | null {
  const markers = new MessageMarkers(text)
  const found = markers.extract(render(conversation, escape, { markers, opening: false }))
  const owners = new Set(found.positions.map(({ owner }) => owner))
  const hasSystemText = conversation.messages.every(
    ({ role, content }, index) => role !== 'system' || content.trim() === '' || owners.has(index),
  )
  if (!hasSystemText) return null
  // The marks changed the template's behavior if the texts diverge before the last mark.
  const divergence = commonPrefixLength(text, found.text)
  const ends = findEnds(found.positions, divergence)
  if (divergence >= (found.positions.at(-1)?.at ?? 0)) return { ends, opening: divergence }
  const opening = commonPrefixLength(text, render(conversation, escape, { opening: false }))
  return { ends: ends.filter(({ to }) => to <= divergence), opening }
}

/** Returns the beginning of the answer, which follows the rendered text; empty if there is none. */
function renderBeginning(
  render: RenderTemplate,
  text: string,
  conversation: Conversation,
  escape: EscapeText,
): string {
  const { messages, responsePrefix } = conversation
  if (!responsePrefix) return ''
  const { block = '', text: prefix } = responsePrefix
  if (block !== '' || /^\s/.test(prefix)) return block + escape(prefix)
  const sample = { role: 'assistant' as const, content: 'Yes' }
  let whole = ''
  try {
    whole = render({ ...conversation, messages: [...messages, sample] }, escape, { opening: false })
  } catch {
    // The template never renders the answer itself, so it need not support it.
  }
  // The template may put white space between the opening of an answer and its text.
  const rest = whole.startsWith(text) ? whole.slice(text.length) : ''
  return (/^\s*(?=\S)/.exec(rest)?.[0] ?? '') + escape(prefix)
}

/** Returns `true` for errors of templates that another form of the conversation may avoid. */
const isTemplateFailure = (thrown: unknown): thrown is InoriginError =>
  thrown instanceof InoriginError &&
  thrown.cause instanceof TemplateError &&
  !(thrown.cause instanceof LimitExceeded)

/**
 * Converts an error of a template into a user-visible error, which says where the template failed.
 * The innermost loop over `messages` shows its place in the conversation.
 */
function toTemplateError(error: TemplateError, messages: readonly Value[] = []): InoriginError {
  const index = messages.findLastIndex((message) => error.loopItems.includes(message))
  const place = index < 0 ? '' : ` at message ${index + 1} of ${messages.length}`
  const line = error.line === undefined ? '' : ` (line ${error.line} of the template)`
  const details = { param: 'messages', cause: error }
  if (error instanceof TemplateRejection) {
    return new InoriginError(
      'invalid_request',
      `The chat template of this model rejects the conversation${place}: ${error.message}`,
      { code: 'template_refused', ...details },
    )
  }
  return new InoriginError(
    'invalid_request',
    `The chat template of this model fails${place}${line}: ${error.message}. ` +
      'Change the conversation, or use another model.',
    { code: 'template_failed', ...details },
  )
}

/** Adds a description and a schema to tools that lack them. Returns `null` if none does. */
function withToolDefaults(conversation: Conversation): Conversation | null {
  const { tools = [] } = conversation
  if (tools.every((tool) => tool.description !== undefined && hasAllKeys(tool))) return null
  return {
    ...conversation,
    tools: tools.map((tool) => ({
      ...tool,
      description: tool.description ?? '',
      parameters: {
        type: 'object',
        properties: {},
        ...(typeof tool.parameters === 'object' && tool.parameters),
      },
    })),
  }
}

const hasAllKeys = ({ parameters }: Tool): boolean =>
  typeof parameters === 'object' && 'type' in parameters && 'properties' in parameters

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

/** Turns system messages into user messages, and merges neighbors of one role, except of tools. */
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

/**
 * Renders a conversation as it is, with marks around the messages, and with or without the opening
 * of the answer. `escape` escapes its texts. Throws what the template throws.
 */
type RenderTemplate = (
  conversation: Conversation,
  escape: EscapeText,
  options?: { markers?: MessageMarkers; opening?: boolean },
) => string

/**
 * Parses a template, and returns a function that renders it in the forms of tool calls and contents
 * that it expects. `tokens` become variables.
 */
function createRenderer(source: string, tokens: Readonly<Record<string, string>>): RenderTemplate {
  const program = parseOrFail(source)
  const hasThinkBlocks = source.includes('</think>')
  let callForm: ToolCallForm | null = null
  let needsParts: boolean | null = null

  const renderAs = (
    form: Omit<TemplateForm, 'hasThinkBlocks'>,
    conversation: Conversation,
    escape: EscapeText,
    { markers, ...more }: { markers?: MessageMarkers; add_generation_prompt?: boolean },
  ): string => {
    const cut = new CutArguments()
    const variables = toTemplateVariables(conversation, { ...form, hasThinkBlocks }, escape, cut)
    const marked = markers?.insert(variables) ?? variables
    const others = Object.entries({ ...tokens, ...more }).map(
      ([name, value]) => [name, toValue(value)] as const,
    )
    const size = {
      characters: countCharacters(conversation),
      messages: conversation.messages.length,
    }
    try {
      if (program instanceof TemplateError) throw program
      return cut.restore(renderProgram(program, [...marked, ...others], size))
    } catch (thrown) {
      if (!(thrown instanceof TemplateError)) throw thrown
      const messages = marked.get('messages')
      throw toTemplateError(thrown, Array.isArray(messages) ? messages : [])
    }
  }

  /** Returns `true` if the template writes the text of a sample, as a text or as a list of parts. */
  const writesText = (asParts: boolean): boolean => {
    const form = { calls: DEFAULT_TOOL_CALL_FORM, needsParts: asParts }
    try {
      return renderAs(form, SAMPLE_QUESTION, unescaped, {}).includes(QUESTION)
    } catch (thrown) {
      // The conversation would exceed the limit again, after as long a time.
      if (!isTemplateFailure(thrown)) throw thrown
      return false
    }
  }

  return (conversation, escape, { markers, opening = true } = {}) => {
    // Templates of some models with images leave out a text that is not in a list of parts.
    const asParts = (needsParts ??= !writesText(false) && writesText(true))
    if (hasToolCalls(conversation.messages)) {
      callForm ??= detectCallForm((calls) =>
        renderAs({ calls, needsParts: asParts }, SAMPLE_CALL, unescaped, {
          add_generation_prompt: true,
        }),
      )
    }
    const form = { calls: callForm ?? DEFAULT_TOOL_CALL_FORM, needsParts: asParts }
    return renderAs(form, conversation, escape, {
      add_generation_prompt: opening,
      ...(markers && { markers }),
    })
  }
}

/** Parses a template. Returns the error of an invalid one, which each rendering throws. */
function parseOrFail(source: string): Program | TemplateError {
  try {
    return parse(source)
  } catch (thrown) {
    if (thrown instanceof TemplateError) return thrown
    throw thrown
  }
}

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
      const asData = data?.includes('Zurich') === true
      const asText = text?.includes(ARGUMENTS) === true
      // Some templates leave a call out unless there is no content, and others write "None" then.
      const writesNone = `${data ?? ''}${text ?? ''}`.includes('None')
      if (empty === null && (writesNone || (!asData && !asText))) continue
      const form = asText ? (asData ? 'both' : 'text') : 'data'
      return { arguments: form, empty, shortIds }
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

/** Throws `model_unusable` if a template is invalid, for models that are about to be added. */
export function assertValidTemplate(source: string): void {
  const program = parseOrFail(source)
  if (!(program instanceof TemplateError)) return
  const place = `line ${program.line ?? 1}: ${program.message}`
  throw modelUnusable(`its chat template cannot be read (${place}).`, program)
}

/** Returns the length of the common prefix of two texts, or of two lists of tokens. */
export function commonPrefixLength(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  const longest = Math.min(a.length, b.length)
  let length = 0
  while (length < longest && a[length] === b[length]) length += 1
  return length
}
