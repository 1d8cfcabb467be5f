/** Checks the body of `POST /v1/chat/completions` and converts it to a generation request. */
import type * as v from 'valibot'
import type { AnswerFormat, ChatMessage, GenerationRequest } from '../types/index.ts'
import { beginWith, begunFault } from './begun.ts'
import { type ChatBody, chatFields, type contentRule, type shownRule } from './chat-schema.ts'
import { consistent } from './fields.ts'
import type { Fault } from './fields.ts'
import { functionPlaces, functionsFault, hasFunctions, withTools } from './functions.ts'
import { imageOf, userMessage } from './images.ts'
import type { Places } from './places.ts'
import { budgetFault, reasoningOf } from './reasoning.ts'
import { samplingOf } from './sampling.ts'
import * as calls from './tools.ts'

export const chatBody = consistent(chatFields, (body) => {
  const { thinking, max_completion_tokens, max_tokens } = body
  const most = max_completion_tokens ?? max_tokens
  return (
    budgetFault(thinking, most) ?? logprobsFault(body) ?? functionsFault(body) ?? openFault(body)
  )
})

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
