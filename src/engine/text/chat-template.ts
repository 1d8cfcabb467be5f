/** Renders a conversation with the model's chat template into the text that the model continues. */
import { InoriginError } from '../../error.ts'
import type { AssistantMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import { commonPrefixLength } from './common-prefix.ts'
import { TemplateRejection } from './jinja.ts'
import { createMessageMarkers, type TextRange } from './message-markers.ts'
import { mergeSystemMessages, withoutReasoning } from './simplify-conversation.ts'
import { createRenderer, type RenderTemplate } from './template-renderer.ts'
import type { EscapeText } from './template-variables.ts'

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
