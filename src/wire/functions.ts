/** The deprecated functions of chat completions, called one at a time and without an id. */
import type { ChatBody } from './chat-schema.ts'
import type { FieldConflict } from './fields.ts'
import type { FieldNames } from './field-names.ts'

type Message = ChatBody['messages'][number]

/** Body in which functions have been converted to tools. */
type ToolsBody = Omit<ChatBody, 'messages'> & {
  messages: Array<Exclude<Message, { role: 'function' }>>
}

/** Returns `true` if the body offers functions. The completion then uses `function_call`. */
export const hasFunctions = ({ functions }: ChatBody): boolean => Boolean(functions?.length)

/** Returns the conflict between the fields for functions and those for tools. */
export function findFunctionsConflict(body: ChatBody): FieldConflict | undefined {
  const { functions, function_call: call, tools, tool_choice: choice } = body
  if (!functions?.length) {
    if (!call || typeof call === 'string') return undefined
    const message = 'auto, none or left out unless functions is sent'
    return { path: ['function_call'], message, input: call }
  }
  if (tools?.length) {
    const message = 'left out when tools is sent'
    return { path: ['functions'], message, input: functions }
  }
  const type = typeof choice === 'object' ? choice?.type : choice
  const isSame = type === 'none' && (!call || call === 'none')
  if (!type || type === 'auto' || isSame) return undefined
  const message = 'left out when functions is sent; send function_call instead'
  return { path: ['tool_choice'], message, input: choice }
}

/**
 * Converts functions to tools. A call gets an id, and the next function message with its name
 * becomes the result of the call.
 */
export function convertFunctions(body: ChatBody): ToolsBody {
  const ids = new Map<string, string>()
  const messages = body.messages.map((message, index) => convertMessage(message, index, ids))
  if (!hasFunctions(body)) return { ...body, messages }
  const { functions, function_call: call } = body
  return {
    ...body,
    messages,
    tools: functions?.map((definition) => ({ type: 'function', function: definition })),
    tool_choice:
      typeof call === 'object' && call
        ? { type: 'function', function: call }
        : (call ?? body.tool_choice),
    parallel_tool_calls: false,
  }
}

function convertMessage(
  message: Message,
  index: number,
  ids: Map<string, string>,
): ToolsBody['messages'][number] {
  if (message.role === 'function') {
    const { name, content } = message
    return { role: 'tool', tool_call_id: ids.get(name), name, content }
  }
  if (message.role !== 'assistant' || !message.function_call) return message
  const { function_call: call, ...rest } = message
  const id = `call_function_${index}`
  ids.set(call.name, id)
  return { ...rest, tool_calls: [...(rest.tool_calls ?? []), { id, function: call }] }
}

/** Mapping from fields of the request to those of a body with functions. */
export const functionFieldNames: FieldNames['rename'] = [
  [/^tools\b/, 'functions'],
  [/^tool_choice\b/, 'function_call'],
]
