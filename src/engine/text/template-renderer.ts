/** Renders a conversation as it is, in the forms of tool calls and contents that a template expects. */
import type { Conversation } from '../engine.ts'
import { CutArguments } from './cut-arguments.ts'
import { LimitExceeded, parseTemplateProgram, renderTemplate } from './jinja.ts'
import type { MessageMarkers } from './message-markers.ts'
import {
  DEFAULT_TOOL_CALL_FORM,
  type EscapeText,
  hasToolCalls,
  type ToolCallForm,
  toTemplateVariables,
} from './template-variables.ts'
import { countCharacters } from './token-bounds.ts'

interface RenderOptions {
  /** Marks to put around the messages. */
  markers?: MessageMarkers
  /** `false` to leave out the opening of the answer. */
  opening?: boolean
}

/** Renders a conversation. `escape` escapes its texts. Throws what the template throws. */
export type RenderTemplate = (
  conversation: Conversation,
  escape: EscapeText,
  options?: RenderOptions,
) => string

/** Parses a template, and returns the function that renders it. `tokens` become variables. */
export function createRenderer(
  source: string,
  tokens: Readonly<Record<string, string>>,
): RenderTemplate {
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
