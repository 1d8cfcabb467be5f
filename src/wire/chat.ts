/** Checks the body of `POST /v1/chat/completions` and converts it to a generation request. */
import type * as v from 'valibot'
import type { ChatMessage, GenerationRequest, Tool, ToolCall } from '../types/index.ts'
import { findPrefillConflict, splitPrefilled } from './prefilled.ts'
import { type ChatBody, type contentSchema, type userContentSchema } from './chat-schema.ts'
import { toCustomTool, toInputArguments } from './custom-tools.ts'
import type { FieldConflict } from './fields.ts'
import { findFormatConflict, formatFieldNames, toAnswerFormat } from './formats.ts'
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
    findFormatConflict(body) ??
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
      (body.tools ?? []).map(toChatTool),
      calls.toToolChoice(body.tool_choice),
      calls.allowsParallelCalls(body),
    ),
    format: toAnswerFormat(body),
    reasoningBudget: toReasoning(body).budget,
    logprobs: logprobs ? (top_logprobs ?? 0) : undefined,
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function chatFieldNames(body: ChatBody): FieldNames {
  return {
    rename: [
      ...(hasFunctions(body) ? functionFieldNames : []),
      [/^tools\[(\d+)\]\.input.*/, 'tools[$1].custom.format.grammar.definition'],
      [/^tools\[(\d+)\]\.(?=name|parameters)/, toToolField(body)],
      ...formatFieldNames(body),
    ],
    reasoning: toReasoning(body).fields,
  }
}

/** Returns a function that replaces the place of a tool by that of its definition. */
const toToolField =
  ({ tools }: ChatBody) =>
  (_: string, index: string): string =>
    `tools[${index}].${tools?.[Number(index)]?.type ?? 'function'}.`

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
      const toolCalls = message.tool_calls?.map(toToolCall)
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

function toChatTool(tool: NonNullable<ChatBody['tools']>[number]): Tool {
  if (tool.type === 'function') return calls.toTool(tool.function)
  const { format } = tool.custom
  const input = format?.type === 'grammar' ? { ...format.grammar, type: format.type } : format
  return toCustomTool(tool.custom, input ?? null)
}

type ChatToolCall = NonNullable<
  Extract<ChatBody['messages'][number], { role: 'assistant' }>['tool_calls']
>[number]

function toToolCall(call: ChatToolCall): ToolCall {
  const id = calls.toCallId(call.id)
  if ('custom' in call)
    return { id, name: call.custom.name, arguments: toInputArguments(call.custom.input) }
  const { name, arguments: text } = call.function
  return { id, name, arguments: calls.normalizeArguments(text) }
}
