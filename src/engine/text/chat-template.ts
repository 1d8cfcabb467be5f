/** Renders a conversation with the model's chat template into the text that the model continues. */
import type { InoriginError } from '../../error.ts'
import type { AssistantMessage, ChatMessage, Tool, UserMessage } from '../../types/index.ts'
import { withToolNames } from '../../values/custom-tools.ts'
import type { Conversation } from '../engine.ts'
import { TemplateRejection } from '../jinja/index.ts'
import { findEnds, MessageMarkers, type TextRange } from './message-markers.ts'
import {
  createRenderer,
  isTemplateFailure,
  type RenderTemplate,
  toTemplateError,
  unescaped,
} from './template-renderer.ts'
import { withSingleCalls, writesOneCall } from './single-calls.ts'
import type { EscapeText } from './template-variables.ts'

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
  let losesCalls: boolean | null = null
  return {
    /**
     * Renders a conversation. `escape` escapes all of its texts before the template reads them.
     * Throws `invalid_request` if the template rejects the conversation, fails or is invalid.
     */
    render(sent: Conversation, escape: EscapeText = unescaped): Rendering {
      let failure: InoriginError | undefined
      const divided = withSingleCalls(sent)
      if (divided) losesCalls ??= writesOneCall((sample) => renderOnce(sample, unescaped))
      const conversation = divided && losesCalls ? divided : sent
      // Templates without a system role either reject system messages or leave them out.
      for (const simplify of CHANGES) {
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

/** Changes that make a template accept a conversation. They return `null` if they change nothing. */
const CHANGES: readonly ((conversation: Conversation) => Conversation | null)[] = [
  unchanged,
  withToolDefaults,
  withResultNames,
  withSingleCalls,
  withoutReasoning,
  joinSystemMessages,
  mergeSystemMessages,
]

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

/** Adds a description and a schema to tools that lack them. Returns `null` if none does. */
function withToolDefaults(conversation: Conversation): Conversation | null {
  const { tools = [] } = conversation
  if (tools.every((tool) => tool.description !== undefined && hasAllKeys(tool))) return null
  return {
    ...conversation,
    tools: tools.map(({ parametersText: text, ...tool }) => ({
      ...tool,
      description: tool.description ?? '',
      parameters: {
        type: 'object',
        properties: {},
        ...(typeof tool.parameters === 'object' && tool.parameters),
      },
      ...(text !== undefined && hasAllKeys(tool) && { parametersText: text }),
    })),
  }
}

const hasAllKeys = ({ parameters }: Tool): boolean =>
  typeof parameters === 'object' && 'type' in parameters && 'properties' in parameters

/** Adds names to results of tools. Returns `null` if all have one. */
function withResultNames(conversation: Conversation): Conversation | null {
  const { messages } = conversation
  const lacksName = messages.some((message) => message.role === 'tool' && message.name === '')
  return lacksName ? { ...conversation, messages: withToolNames(messages) } : null
}

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

/** Merges the system messages at the start. Returns `null` if there are not several. */
function joinSystemMessages(conversation: Conversation): Conversation | null {
  const { messages } = conversation
  const end = messages.findIndex(({ role }) => role !== 'system')
  const first = messages.slice(0, end < 0 ? messages.length : end)
  if (first.length < 2) return null
  const content = first.map((message) => message.content).join('\n\n')
  const rest = messages.slice(first.length)
  return { ...conversation, messages: [{ role: 'system', content }, ...rest] }
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

/** Returns the length of the common prefix of two texts, or of two lists of tokens. */
export function commonPrefixLength(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  const longest = Math.min(a.length, b.length)
  let length = 0
  while (length < longest && a[length] === b[length]) length += 1
  return length
}
