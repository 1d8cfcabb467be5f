/** Schema of `POST /v1/responses`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { GenerationRequest, Tool } from '../types/index.ts'
import * as f from './fields.ts'
import { grammarFormats, toFormat } from './formats.ts'
import * as shared from './shared-fields.ts'
import { inputSchema, toMessages, type InputItem } from './responses-input.ts'
import * as calls from './tools.ts'

/** Value of `include` that asks for logprobs, without a number of alternatives. */
const INCLUDE_LOGPROBS = 'message.output_text.logprobs'

/** Value of `include` that asks for reasoning in a form that can be sent back. */
const INCLUDE_ENCRYPTED_REASONING = 'reasoning.encrypted_content'

const toolReference = f.object({
  type: f.optional(f.oneOf(['function', 'custom'])),
  name: f.nonEmptyString,
})
const choice = f.taggedUnion('type', {
  function: { name: f.nonEmptyString },
  allowed_tools: { mode: f.oneOf(['auto', 'required']), tools: f.arrayOf(toolReference) },
  custom: { name: f.nonEmptyString },
})

const functionTool = f.object({ type: f.oneOf(['function']), ...calls.functionFields })

const customTool = f.object({
  type: f.oneOf(['custom']),
  ...calls.customToolFields,
  format: f.optional(f.taggedUnion('type', { text: {}, grammar: calls.grammarFields })),
})

/** Accepts functions and custom tools. Tools of other types run on the vendor's servers. */
const tool = v.lazy((input): typeof functionTool | typeof customTool | typeof f.rejected => {
  const type = (input as { type?: unknown } | null | undefined)?.type
  if (type === 'custom') return customTool
  return typeof type === 'string' && type !== 'function' ? f.rejected : functionTool
})

const format = f.taggedUnion('type', {
  text: {},
  ...grammarFormats,
  json_object: {},
  json_schema: {
    name: f.optional(f.string),
    description: f.optional(f.string),
    schema: f.anyObject,
    strict: f.optional(f.flag),
  },
})

const summary = f.optional(f.oneOf(['auto', 'concise', 'detailed']))

const CONVERSATION_ADVICE = 'send previous_response_id, or the whole conversation as input'

/** Schema of the body. */
export const responsesBodySchema = f.object({
  model: f.tagString,
  input: inputSchema,
  instructions: f.optional(f.string),
  messages: shared.renamedField('send input instead'),
  system: shared.renamedField('send instructions instead'),
  stream: f.optional(f.flag),
  max_output_tokens: f.optional(f.integerAtLeast(1)),
  max_tokens: shared.renamedField('send max_output_tokens instead'),
  max_completion_tokens: shared.renamedField('send max_output_tokens instead'),
  ...shared.chatSampling,
  stop: shared.renamedField('use /v1/chat/completions, which supports it'),
  stop_sequences: shared.renamedField('use /v1/chat/completions, which supports stop'),
  tools: f.optional(f.arrayOf(tool)),
  tool_choice: calls.toolChoiceWordOr(choice),
  text: f.optional(
    f.object({ format: f.optional(format), verbosity: shared.sharedFields.verbosity }),
  ),
  response_format: shared.renamedFormat('send text.format instead'),
  output_format: shared.renamedFormat('send text.format instead'),
  output_config: f.optional(
    f.object({
      effort: shared.outputEffortField,
      format: shared.renamedFormat('send text.format instead'),
    }),
  ),
  reasoning: f.optional(
    f.object({
      effort: shared.effortField,
      summary,
      generate_summary: summary,
      mode: f.unsupported(f.string, (mode) => mode === 'standard'),
      context: f.unsupported(f.string, (messages) => messages === 'auto'),
    }),
  ),
  include: f.optional(f.arrayOf(f.string)),
  top_logprobs: shared.topLogprobs,
  previous_response_id: f.optional(f.nonEmptyString),
  conversation: f.optional(f.rejectedWith(CONVERSATION_ADVICE)),
  store: f.optional(f.flag),
  metadata: f.optional(f.anyObject),
  prompt: f.rejectedField,
  background: f.optional(f.flag),
  truncation: f.unsupported(
    f.oneOf(['disabled', 'auto']),
    (way) => way === 'disabled',
    'shorten the input',
  ),
  thread: f.rejectedField,
  ...shared.sharedFields,
})

export type ResponsesBody = v.InferOutput<typeof responsesBodySchema>

/** Returns the conflict between the fields of a body, if any. */
export function findResponsesConflict(body: ResponsesBody): f.FieldConflict | undefined {
  const { thinking, max_output_tokens, background, store } = body
  if (background && store === false) {
    const message = 'true or absent with background: true, which stores the response'
    return { path: ['store'], message, input: store }
  }
  return shared.findBudgetConflict(thinking, max_output_tokens)
}

/** Converts the body to a generation request. `items` are the resolved input. */
export function toResponsesRequest(
  body: ResponsesBody,
  items: readonly InputItem[],
): GenerationRequest {
  const { instructions, text } = body
  const messages = toMessages(items)
  return {
    model: body.model,
    messages: calls.withToolNames(
      instructions ? [{ role: 'system', content: instructions }, ...messages] : messages,
    ),
    maxTokens: body.max_output_tokens ?? undefined,
    sampling: shared.toSampling(body),
    stop: [],
    tools: calls.toToolUse(
      (body.tools ?? []).map(toResponsesTool),
      toResponsesToolChoice(body.tool_choice),
      calls.allowsParallelCalls({ parallel_tool_calls: body.parallel_tool_calls }),
    ),
    format: toFormat(text?.format),
    reasoningBudget: toResponsesReasoning(body).budget,
    logprobs: toTopLogprobs(body),
  }
}

/** Returns the reasoning settings. This style has the field `reasoning.effort` of its own. */
export function toResponsesReasoning(body: ResponsesBody): shared.ReasoningSettings {
  const own = body.reasoning?.effort
  if (!own) return shared.toReasoning(body)
  const { reasoning_effort: general } = body
  const settings = shared.toReasoning({ ...body, reasoning_effort: own })
  const toOwnName = (name: string) => (name === 'reasoning_effort' ? 'reasoning.effort' : name)
  return {
    ...settings,
    fields: settings.fields.map(toOwnName),
    ignored: [
      ...settings.ignored.map(toOwnName),
      ...(general && general !== own ? ['reasoning_effort'] : []),
    ],
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function responsesFieldNames(body: ResponsesBody): f.FieldNames {
  return {
    rename: [
      [/^(tools\[\d+\]\.)input.*/, '$1format.definition'],
      [/^format\b/, 'text.format'],
      [/^messages\b/, 'input'],
    ],
    reasoning: toResponsesReasoning(body).fields,
  }
}

/** Returns `true` if the client intends to send reasoning back. */
export function includesEncryptedReasoning({ include }: ResponsesBody): boolean {
  return include?.includes(INCLUDE_ENCRYPTED_REASONING) ?? false
}

/** Returns the fields without effect, such as `include` with a value that is not supported. */
export function ignoredByResponses(body: ResponsesBody): string[] {
  const isSupported = (name: string): boolean =>
    name === INCLUDE_LOGPROBS || name === INCLUDE_ENCRYPTED_REASONING
  const included = (body.include?.every(isSupported) ?? true) ? [] : ['include']
  return [...included, ...toResponsesReasoning(body).ignored]
}

/** Returns the number of alternatives for each token, or `undefined` without logprobs. */
export function toTopLogprobs({
  include,
  top_logprobs: topLogprobsCount,
}: ResponsesBody): number | undefined {
  return topLogprobsCount || include?.includes(INCLUDE_LOGPROBS)
    ? (topLogprobsCount ?? 0)
    : undefined
}

function toResponsesToolChoice(value: ResponsesBody['tool_choice']): calls.ParsedToolChoice {
  if (value === null || value === undefined) return { choice: 'auto' }
  if (typeof value === 'string') return { choice: value }
  if (value.type !== 'allowed_tools') return { choice: 'required', only: [value.name] }
  return { choice: value.mode, only: value.tools.map(({ name }) => name) }
}

function toResponsesTool(definition: NonNullable<ResponsesBody['tools']>[number]): Tool {
  return definition.type === 'function'
    ? calls.toTool(definition)
    : calls.toCustomTool(definition, definition.format ?? null)
}
