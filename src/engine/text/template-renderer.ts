/** Renders a conversation with a chat template in the forms that the template expects. */
import { InoriginError } from '../../error.ts'
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
import type { MessageMarkers } from './message-markers.ts'
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

/**
 * Renders a conversation as it is, with marks around the messages, and with or without the opening
 * of the answer. `escape` escapes its texts. Throws what the template throws.
 */
export type RenderTemplate = (
  conversation: Conversation,
  escape: EscapeText,
  options?: { markers?: MessageMarkers; opening?: boolean },
) => string

/**
 * Parses a template, and returns a function that renders it in the forms of tool calls and contents
 * that it expects. `tokens` become variables.
 */
export function createRenderer(
  source: string,
  tokens: Readonly<Record<string, string>>,
): RenderTemplate {
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

export const unescaped: EscapeText = (text) => text

/** Parses a template. Returns the error of an invalid one, which each rendering throws. */
export function parseOrFail(source: string): Program | TemplateError {
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
    for (const empty of [null, '', 'part'] as const) {
      const data = tryForm({ arguments: 'data', empty, shortIds })
      const text = tryForm({ arguments: 'text', empty, shortIds })
      if (data === null && text === null) continue
      const asData = data?.includes('Zurich') === true
      const asText = text?.includes(ARGUMENTS) === true
      // Some templates leave a call out unless there is no content, and others write "None" then.
      const writesNone = `${data ?? ''}${text ?? ''}`.includes('None')
      if (empty !== '' && (writesNone || (!asData && !asText))) continue
      const form = asText ? (asData ? 'both' : 'text') : 'data'
      return { arguments: form, empty, shortIds }
    }
  }
  return DEFAULT_TOOL_CALL_FORM
}

const ARGUMENTS = '{"place":"Zurich"}'

/** A call and its result, with the tool. */
export const SAMPLE_CALL: Conversation = {
  messages: [
    { role: 'user', content: QUESTION },
    {
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'call_0123456789', name: 'warmth', arguments: ARGUMENTS }],
    },
    { role: 'tool', toolCallId: 'call_0123456789', name: 'warmth', content: '21.5 degrees' },
  ],
  tools: [
    {
      name: 'warmth',
      description: 'Tells how warm a place is.',
      parameters: {
        type: 'object',
        properties: { place: { type: 'string', description: 'Where.' } },
        required: ['place'],
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

/** Returns `true` for errors of templates that another form of the conversation may avoid. */
export const isTemplateFailure = (thrown: unknown): thrown is InoriginError =>
  thrown instanceof InoriginError &&
  thrown.cause instanceof TemplateError &&
  !(thrown.cause instanceof LimitExceeded)

/**
 * Converts an error of a template into a user-visible error, which says where the template failed.
 * The innermost loop over `messages` shows its place in the conversation.
 */
export function toTemplateError(
  error: TemplateError,
  messages: readonly Value[] = [],
): InoriginError {
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
