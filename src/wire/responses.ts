/** Schema of `POST /v1/responses`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { GenerationRequest, Tool } from '../types/index.ts'
import { customToolFields, grammarFields, toCustomTool } from './tools.ts'
import {
  anyObject,
  arrayOf,
  type FieldConflict,
  type FieldNames,
  flag,
  integerAtLeast,
  nonEmptyString,
  object,
  oneOf,
  optional,
  rejected,
  rejectedField,
  rejectedWith,
  string,
  taggedUnion,
  tagString,
  unsupported,
} from './fields.ts'
import { grammarFormats, toFormat } from './formats.ts'
import {
  chatSampling,
  effortField,
  findBudgetConflict,
  outputEffortField,
  type ReasoningSettings,
  renamedField,
  renamedFormat,
  sharedFields,
  topLogprobs,
  toReasoning,
  toSampling,
} from './shared-fields.ts'
import { inputSchema, toMessages, type InputItem } from './responses-input.ts'
import * as calls from './tools.ts'

/** Value of `include` that asks for logprobs, without a number of alternatives. */
const INCLUDE_LOGPROBS = 'message.output_text.logprobs'

/** Value of `include` that asks for reasoning in a form that can be sent back. */
const INCLUDE_ENCRYPTED_REASONING = 'reasoning.encrypted_content'

const toolReference = object({
  type: optional(oneOf(['function', 'custom'])),
  name: nonEmptyString,
})
const choice = taggedUnion('type', {
  function: { name: nonEmptyString },
  allowed_tools: { mode: oneOf(['auto', 'required']), tools: arrayOf(toolReference) },
  custom: { name: nonEmptyString },
})

const functionTool = object({ type: oneOf(['function']), ...calls.functionFields })

const customTool = object({
  type: oneOf(['custom']),
  ...customToolFields,
  format: optional(taggedUnion('type', { text: {}, grammar: grammarFields })),
})

/** Accepts functions and custom tools. Tools of other types run on the vendor's servers. */
const tool = v.lazy((input): typeof functionTool | typeof customTool | typeof rejected => {
  const type = (input as { type?: unknown } | null | undefined)?.type
  if (type === 'custom') return customTool
  return typeof type === 'string' && type !== 'function' ? rejected : functionTool
})

const format = taggedUnion('type', {
  text: {},
  ...grammarFormats,
  json_object: {},
  json_schema: {
    name: optional(string),
    description: optional(string),
    schema: anyObject,
    strict: optional(flag),
  },
})

const summary = optional(oneOf(['auto', 'concise', 'detailed']))

const CONVERSATION_ADVICE = 'send previous_response_id, or the whole conversation as input'

/** Schema of the body. */
export const responsesBodySchema = object({
  model: tagString,
  input: inputSchema,
  instructions: optional(string),
  messages: renamedField('send input instead'),
  system: renamedField('send instructions instead'),
  stream: optional(flag),
  max_output_tokens: optional(integerAtLeast(1)),
  max_tokens: renamedField('send max_output_tokens instead'),
  max_completion_tokens: renamedField('send max_output_tokens instead'),
  ...chatSampling,
  stop: renamedField('use /v1/chat/completions, which supports it'),
  stop_sequences: renamedField('use /v1/chat/completions, which supports stop'),
  tools: optional(arrayOf(tool)),
  tool_choice: calls.toolChoiceWordOr(choice),
  text: optional(object({ format: optional(format), verbosity: sharedFields.verbosity })),
  response_format: renamedFormat('send text.format instead'),
  output_format: renamedFormat('send text.format instead'),
  output_config: optional(
    object({ effort: outputEffortField, format: renamedFormat('send text.format instead') }),
  ),
  reasoning: optional(
    object({
      effort: effortField,
      summary,
      generate_summary: summary,
      mode: unsupported(string, (mode) => mode === 'standard'),
      context: unsupported(string, (messages) => messages === 'auto'),
    }),
  ),
  include: optional(arrayOf(string)),
  top_logprobs: topLogprobs,
  previous_response_id: optional(nonEmptyString),
  conversation: optional(rejectedWith(CONVERSATION_ADVICE)),
  store: optional(flag),
  metadata: optional(anyObject),
  prompt: rejectedField,
  background: optional(flag),
  truncation: unsupported(
    oneOf(['disabled', 'auto']),
    (way) => way === 'disabled',
    'shorten the input',
  ),
  thread: rejectedField,
  ...sharedFields,
})

export type ResponsesBody = v.InferOutput<typeof responsesBodySchema>

/** Returns the conflict between the fields of a body, if any. */
export function findResponsesConflict(body: ResponsesBody): FieldConflict | undefined {
  const { thinking, max_output_tokens, background, store } = body
  if (background && store === false) {
    const message = 'true or absent with background: true, which stores the response'
    return { path: ['store'], message, input: store }
  }
  return findBudgetConflict(thinking, max_output_tokens)
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
    sampling: toSampling(body),
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
export function toResponsesReasoning(body: ResponsesBody): ReasoningSettings {
  const own = body.reasoning?.effort
  if (!own) return toReasoning(body)
  const { reasoning_effort: general } = body
  const settings = toReasoning({ ...body, reasoning_effort: own })
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
export function responsesFieldNames(body: ResponsesBody): FieldNames {
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
    : toCustomTool(definition, definition.format ?? null)
}
