/** What the chat style had before tools: functions, called one at a time and without an id. */
import * as v from 'valibot'
import type { ChatBody } from './chat.ts'
import { filled, listOf, object, oneOf, optional } from './fields.ts'
import type { Fault } from './fields.ts'
import type { Places } from './places.ts'
import { argumentsText, functionFields } from './tools.ts'

const word = oneOf(['auto', 'none'])
const named = object({ name: filled })

export const functionsFields = {
  functions: optional(listOf(object(functionFields))),
  function_call: optional(
    v.lazy((input): typeof word | typeof named => (typeof input === 'string' ? word : named)),
  ),
}

/** A call, in a message of the assistant. */
export const functionCall = optional(object({ name: filled, arguments: argumentsText }))

type Message = ChatBody['messages'][number]

/** A body without them: what they say is said of tools. */
type ToolsBody = Omit<ChatBody, 'messages'> & {
  messages: Array<Exclude<Message, { role: 'function' }>>
}

/** Whether it offers functions; its answer then calls one in their form. */
export const hasFunctions = ({ functions }: ChatBody): boolean => Boolean(functions?.length)

/** What is said of functions and of tools is not to contradict each other. */
export function functionsFault(body: ChatBody): Fault | undefined {
  const { functions, function_call: called, tools, tool_choice: choice } = body
  if (!functions?.length) {
    if (!called || typeof called === 'string') return undefined
    const message = 'auto, none or left out where there are no functions'
    return { path: ['function_call'], message, input: called }
  }
  if (tools?.length) {
    const message = 'left out where there are tools'
    return { path: ['functions'], message, input: functions }
  }
  const type = typeof choice === 'object' ? choice?.type : choice
  const isSame = type === 'none' && (!called || called === 'none')
  if (!type || type === 'auto' || isSame) return undefined
  const message = 'left out where there are functions; send function_call instead'
  return { path: ['tool_choice'], message, input: choice }
}

/** The same, said of tools: a call gets an id, and what follows of its name is its result. */
export function withTools(body: ChatBody): ToolsBody {
  const ids = new Map<string, string>()
  const messages = body.messages.map((message, index) => inTools(message, index, ids))
  if (!hasFunctions(body)) return { ...body, messages }
  const { functions, function_call: called } = body
  return {
    ...body,
    messages,
    tools: functions?.map((told) => ({ type: 'function', function: told })),
    tool_choice:
      typeof called === 'object' && called
        ? { type: 'function', function: called }
        : (called ?? body.tool_choice),
    parallel_tool_calls: false,
  }
}

function inTools(
  message: Message,
  index: number,
  ids: Map<string, string>,
): ToolsBody['messages'][number] {
  if (message.role === 'function') {
    const { name, content } = message
    return { role: 'tool', tool_call_id: ids.get(name), name, content }
  }
  if (message.role !== 'assistant' || !message.function_call) return message
  const { function_call: called, ...rest } = message
  const id = `call_function_${index}`
  ids.set(called.name, id)
  return { ...rest, tool_calls: [...(rest.tool_calls ?? []), { id, function: called }] }
}

/** Where in a body with functions the fields of its request are. */
export const functionPlaces: Places['rename'] = [
  [/^tools\b/, 'functions'],
  [/^tool_choice\b/, 'function_call'],
]
