/** Checks the body of `POST /v1/chat/completions` and converts it to a generation request. */
import type * as v from 'valibot'
import type { AnswerFormat, ChatMessage, GenerationRequest } from '../types/index.ts'
import { findPrefillConflict, splitPrefilled } from './prefilled.ts'
import { type ChatBody, type contentSchema, type userContentSchema } from './chat-schema.ts'
import type { FieldConflict } from './fields.ts'
import {
  convertFunctions,
  findFunctionsConflict,
  functionFieldNames,
  hasFunctions,
} from './functions.ts'
import { toImage, toUserMessage } from './images.ts'
import type { FieldNames } from './field-names.ts'
import { findBudgetConflict, toReasoning } from './reasoning.ts'
import { toSampling } from './sampling.ts'
import * as calls from './tools.ts'

/** Returns the first conflict between the fields of a body. */
export function findChatConflict(body: ChatBody): FieldConflict | undefined {
  const { thinking, max_completion_tokens, max_tokens } = body
  const limitTokens = max_completion_tokens ?? max_tokens
  return (
    findBudgetConflict(thinking, limitTokens) ??
    findLogprobsConflict(body) ??
    findFunctionsConflict(body) ??
    findContinueConflict(body)
  )
}

function findLogprobsConflict({
  logprobs,
  top_logprobs: input,
}: ChatBody): FieldConflict | undefined {
  if (logprobs || !input) return undefined
  return { path: ['top_logprobs'], message: '0 or left out unless logprobs is true', input }
}

/** Returns the conflict between `continue_final_message`, `add_generation_prompt` and messages. */
function findContinueConflict(body: ChatBody): FieldConflict | undefined {
  const { messages, continue_final_message: continues, add_generation_prompt: addsPrompt } = body
  if (continues ? addsPrompt === true : addsPrompt === false) {
    const message = continues
      ? 'false or left out when continue_final_message is true'
      : 'true or left out unless continue_final_message is true'
    return { path: ['add_generation_prompt'], message, input: addsPrompt }
  }
  if (!continues) return undefined
  const last = messages.length - 1
  const prefilled = messages[last]
  if (prefilled?.role !== 'assistant') {
    const message = 'false or left out unless the last message has role assistant'
    return { path: ['continue_final_message'], message, input: continues }
  }
  for (const field of ['tool_calls', 'function_call', 'reasoning_content', 'reasoning'] as const) {
    const input = prefilled[field]
    if (!input || (Array.isArray(input) && input.length === 0)) continue
    const message = 'left out when continue_final_message is true'
    return { path: ['messages', last, field], message, input }
  }
  return findPrefillConflict(messages, body)
}

/**
 * Returns the fields without effect. `max_completion_tokens` wins over `max_tokens`, and a
 * reasoning budget over an effort. Functions are called one at a time.
 */
export function ignoredByChat(body: ChatBody): string[] {
  const { max_tokens: deprecated, max_completion_tokens: current } = body
  const limit = deprecated && current && deprecated !== current ? ['max_tokens'] : []
  const parallelCalls =
    hasFunctions(body) && body.parallel_tool_calls ? ['parallel_tool_calls'] : []
  return [...limit, ...parallelCalls, ...toReasoning(body).ignored]
}

/** Converts the body to a generation request. */
export function toChatRequest(value: ChatBody): GenerationRequest {
  const body = convertFunctions(value)
  const { stop, max_completion_tokens, max_tokens, logprobs, top_logprobs } = body
  const messages = calls.withToolNames(body.messages.map(toChatMessage))
  return {
    model: body.model,
    ...(body.continue_final_message ? splitPrefilled(messages) : { messages }),
    maxTokens: max_completion_tokens ?? max_tokens ?? undefined,
    sampling: toSampling(body),
    stop: typeof stop === 'string' ? [stop] : (stop ?? []),
    tools: calls.toToolUse(
      (body.tools ?? []).map((tool) => calls.toTool(tool.function)),
      calls.toToolChoice(body.tool_choice),
      calls.allowsParallelCalls(body),
    ),
    format: toFormat(body.response_format),
    reasoningBudget: toReasoning(body).budget,
    logprobs: logprobs ? (top_logprobs ?? 0) : undefined,
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function chatFieldNames(body: ChatBody): FieldNames {
  const schema = body.response_format?.type === 'json_object' ? 'schema' : 'json_schema.schema'
  return {
    rename: [
      ...(hasFunctions(body) ? functionFieldNames : []),
      [/^tools\[(\d+)\]\.(?=name|parameters)/, 'tools[$1].function.'],
      [/^format\.schema/, `response_format.${schema}`],
      [/^format\b/, 'response_format'],
    ],
    reasoning: toReasoning(body).fields,
  }
}

function toChatMessage(
  message: ReturnType<typeof convertFunctions>['messages'][number],
  index: number,
): ChatMessage {
  if (message.role === 'user') return toChatUserMessage(message, index)
  const content = toText(message.content)
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content }
    case 'assistant': {
      const reasoning = message.reasoning_content ?? message.reasoning
      const toolCalls = message.tool_calls?.map(({ id, function: { name, arguments: text } }) => ({
        id: calls.toCallId(id),
        name,
        arguments: calls.normalizeArguments(text),
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
      return { role: 'tool', toolCallId: calls.toCallId(id ?? ''), name: name ?? '', content }
    }
  }
}

function toText(value: v.InferOutput<typeof contentSchema>): string {
  if (typeof value === 'string') return value
  return (value ?? []).map((part) => (part.type === 'text' ? part.text : part.refusal)).join('')
}

function toChatUserMessage(
  { content }: { content?: v.InferOutput<typeof userContentSchema> },
  index: number,
) {
  if (typeof content === 'string') return toUserMessage([content])
  return toUserMessage(
    (content ?? []).map((part, at) =>
      part.type === 'text' ? part.text : toImage(part, `messages[${index}].content[${at}]`),
    ),
  )
}

function toFormat(value: ChatBody['response_format']): AnswerFormat | undefined {
  if (!value || value.type === 'text') return undefined
  if (value.type === 'grammar') return { type: 'grammar', grammar: value.grammar }
  const schema = value.type === 'json_schema' ? (value.json_schema.schema ?? {}) : value.schema
  return schema ? { type: 'json_schema', schema } : { type: 'json_object' }
}
