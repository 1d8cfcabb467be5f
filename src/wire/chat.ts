/** Schema of `POST /v1/chat/completions`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { AnswerFormat, ChatMessage, GenerationRequest } from '../types/index.ts'
import { beginWith, begunFault } from './begun.ts'
import {
  anyObject,
  atLeast,
  consistent,
  filled,
  flag,
  listOf,
  never,
  object,
  oneOf,
  optional,
  refused,
  stops,
  string,
  tagged,
  textOr,
} from './fields.ts'
import type { Fault } from './fields.ts'
import {
  functionCall,
  functionPlaces,
  functionsFault,
  functionsFields,
  hasFunctions,
  withTools,
} from './functions.ts'
import { chatImage, imageOf, noImage, userMessage } from './images.ts'
import type { Places } from './places.ts'
import { budgetFault, outputEffort, reasoningOf } from './reasoning.ts'
import { chatSampling, samplingOf } from './sampling.ts'
import { elsewhere, formatElsewhere, sharedFields, textPart, topLogprobs } from './shared.ts'
import * as calls from './tools.ts'

const elseRefused = { input_audio: never, file: never }

/** Content without images. Absent content is an empty text, and a refusal counts as text. */
const contentRule = optional(
  textOr(
    tagged('type', {
      text: textPart,
      refusal: object({ type: v.literal('refusal'), refusal: string }),
      image_url: noImage,
      ...elseRefused,
    }),
  ),
)
const shownRule = optional(
  textOr(tagged('type', { text: textPart, image_url: chatImage, ...elseRefused, refusal: never })),
)

const call = object({
  id: string,
  type: optional(oneOf(['function'])),
  function: object({ name: filled, arguments: calls.argumentsText }),
})

const messageRule = tagged('role', {
  system: object({ role: v.literal('system'), content: contentRule }),
  developer: object({ role: v.literal('developer'), content: contentRule }),
  user: object({ role: v.literal('user'), content: shownRule }),
  assistant: object({
    role: v.literal('assistant'),
    content: contentRule,
    refusal: optional(string),
    // Servers use either name for reasoning, and clients send back what they received.
    reasoning_content: optional(string),
    reasoning: optional(string),
    tool_calls: optional(listOf(call)),
    function_call: functionCall,
    audio: refused,
  }),
  tool: object({
    role: v.literal('tool'),
    content: contentRule,
    tool_call_id: optional(string),
    name: optional(string),
  }),
  function: object({ role: v.literal('function'), name: filled, content: contentRule }),
})

const tool = tagged('type', {
  function: object({ type: string, function: object(calls.functionFields) }),
  custom: never,
})

const format = tagged('type', {
  text: object({ type: v.literal('text') }),
  grammar: object({ type: v.literal('grammar'), grammar: filled }),
  json_object: object({ type: v.literal('json_object'), schema: optional(anyObject) }),
  json_schema: object({
    type: v.literal('json_schema'),
    json_schema: object({
      name: optional(string),
      description: optional(string),
      schema: optional(anyObject),
      strict: optional(flag),
    }),
  }),
})

const table = object({
  model: filled,
  messages: v.pipe(listOf(messageRule), v.minLength(1, 'an array with at least one message')),
  stream: optional(flag),
  stream_options: optional(object({ include_usage: optional(flag) })),
  max_completion_tokens: optional(atLeast(1)),
  max_tokens: optional(atLeast(1)),
  ...chatSampling,
  stop: optional(
    v.lazy((input): typeof filled | typeof stops => (typeof input === 'string' ? filled : stops)),
  ),
  stop_sequences: elsewhere('send stop instead'),
  system: elsewhere('send a message of role system instead'),
  thread: refused,
  tools: optional(listOf(tool)),
  tool_choice: calls.toolChoice,
  response_format: optional(format),
  output_config: optional(
    object({ effort: outputEffort, format: formatElsewhere('send response_format instead') }),
  ),
  output_format: formatElsewhere('send response_format instead'),
  logprobs: optional(flag),
  top_logprobs: topLogprobs,
  ...sharedFields,
  ...functionsFields,
  continue_final_message: optional(flag),
  add_generation_prompt: optional(flag),
})

export const chatBody = consistent(table, (body) => {
  const { thinking, max_completion_tokens, max_tokens } = body
  const most = max_completion_tokens ?? max_tokens
  return (
    budgetFault(thinking, most) ?? logprobsFault(body) ?? functionsFault(body) ?? openFault(body)
  )
})

export type ChatBody = v.InferOutput<typeof table>

function logprobsFault({ logprobs, top_logprobs: input }: ChatBody): Fault | undefined {
  if (logprobs || !input) return undefined
  return { path: ['top_logprobs'], message: '0 or left out unless logprobs is true', input }
}

/** Returns the conflict between `continue_final_message`, `add_generation_prompt` and messages. */
function openFault(body: ChatBody): Fault | undefined {
  const { messages, continue_final_message: goesOn, add_generation_prompt: opens } = body
  if (goesOn ? opens === true : opens === false) {
    const message = goesOn
      ? 'false or left out when continue_final_message is true'
      : 'true or left out unless continue_final_message is true'
    return { path: ['add_generation_prompt'], message, input: opens }
  }
  if (!goesOn) return undefined
  const last = messages.length - 1
  const begun = messages[last]
  if (begun?.role !== 'assistant') {
    const message = 'false or left out unless the last message has role assistant'
    return { path: ['continue_final_message'], message, input: goesOn }
  }
  for (const field of ['tool_calls', 'function_call', 'reasoning_content', 'reasoning'] as const) {
    const input = begun[field]
    if (!input || (Array.isArray(input) && input.length === 0)) continue
    const message = 'left out when continue_final_message is true'
    return { path: ['messages', last, field], message, input }
  }
  return begunFault(messages, body)
}

/**
 * Returns the fields without effect. `max_completion_tokens` wins over `max_tokens`, and a
 * reasoning budget over an effort. Functions are called one at a time.
 */
export function ignoredByChat(body: ChatBody): string[] {
  const { max_tokens: older, max_completion_tokens: newer } = body
  const limit = older && newer && older !== newer ? ['max_tokens'] : []
  const several = hasFunctions(body) && body.parallel_tool_calls ? ['parallel_tool_calls'] : []
  return [...limit, ...several, ...reasoningOf(body).ignored]
}

/** Converts the body to a generation request. */
export function chatRequest(given: ChatBody): GenerationRequest {
  const body = withTools(given)
  const { stop, max_completion_tokens, max_tokens, logprobs, top_logprobs } = body
  const messages = calls.nameResults(body.messages.map(chatMessage))
  return {
    model: body.model,
    ...(body.continue_final_message ? beginWith(messages) : { messages }),
    maxTokens: max_completion_tokens ?? max_tokens ?? undefined,
    sampling: samplingOf(body),
    stop: typeof stop === 'string' ? [stop] : (stop ?? []),
    tools: calls.toolUse(
      (body.tools ?? []).map((told) => calls.toolOf(told.function)),
      calls.choiceOf(body.tool_choice),
      calls.mayCallSeveral(body),
    ),
    format: formatOf(body.response_format),
    reasoningBudget: reasoningOf(body).budget,
    logprobs: logprobs ? (top_logprobs ?? 0) : undefined,
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function chatPlaces(body: ChatBody): Places {
  const schema = body.response_format?.type === 'json_object' ? 'schema' : 'json_schema.schema'
  return {
    rename: [
      ...(hasFunctions(body) ? functionPlaces : []),
      [/^tools\[(\d+)\]\.(?=name|parameters)/, 'tools[$1].function.'],
      [/^format\.schema/, `response_format.${schema}`],
      [/^format\b/, 'response_format'],
    ],
    reasoning: reasoningOf(body).fields,
  }
}

function chatMessage(
  message: ReturnType<typeof withTools>['messages'][number],
  index: number,
): ChatMessage {
  if (message.role === 'user') return userOf(message, index)
  const content = textOf(message.content)
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content }
    case 'assistant': {
      const reasoning = message.reasoning_content ?? message.reasoning
      const toolCalls = message.tool_calls?.map(({ id, function: { name, arguments: text } }) => ({
        id: calls.callId(id),
        name,
        arguments: calls.argumentsOf(text),
      }))
      return {
        role: 'assistant',
        content: content || (message.refusal ?? ''),
        ...(reasoning && { reasoning }),
        ...(toolCalls && toolCalls.length > 0 && { toolCalls }),
      }
    }
    case 'tool': {
      const { tool_call_id: id, name } = message
      return { role: 'tool', toolCallId: calls.callId(id ?? ''), name: name ?? '', content }
    }
  }
}

function textOf(given: v.InferOutput<typeof contentRule>): string {
  if (typeof given === 'string') return given
  return (given ?? []).map((part) => (part.type === 'text' ? part.text : part.refusal)).join('')
}

function userOf({ content }: { content?: v.InferOutput<typeof shownRule> }, index: number) {
  if (typeof content === 'string') return userMessage([content])
  return userMessage(
    (content ?? []).map((part, at) =>
      part.type === 'text' ? part.text : imageOf(part, `messages[${index}].content[${at}]`),
    ),
  )
}

function formatOf(given: ChatBody['response_format']): AnswerFormat | undefined {
  if (!given || given.type === 'text') return undefined
  if (given.type === 'grammar') return { type: 'grammar', grammar: given.grammar }
  const schema = given.type === 'json_schema' ? (given.json_schema.schema ?? {}) : given.schema
  return schema ? { type: 'json_schema', schema } : { type: 'json_object' }
}
