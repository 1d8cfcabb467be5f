/** Schemas and conversions of tools, tool choice and earlier tool calls that all styles share. */
import * as v from 'valibot'
import type { ChatMessage, Tool, ToolMessage, ToolUse } from '../types/index.ts'
import {
  findJsonError,
  type JsonCount,
  MAX_DEPTH,
  MAX_NODES,
  MAX_VALUES,
  tooManyValues,
} from '../values/json.ts'
import { isObject } from '../values/objects.ts'
import * as f from './fields.ts'

const parallel = { disable_parallel_tool_use: f.optional(f.flag) }
const namedTool = f.object({ name: f.nonEmptyString })
const functionReference = f.object({
  type: f.optional(f.oneOf(['function', 'custom'])),
  function: namedTool,
})
const customReference = f.object({ type: f.oneOf(['custom']), custom: namedTool })

/** Accepts a reference to a function, or to a custom tool. */
const toolReference = customOr(customReference, functionReference)

/** Accepts a tool choice: a word, or an object of the style. */
export function toolChoiceWordOr<T extends v.GenericSchema>(choice: T) {
  return f.optional(f.stringOr(f.oneOf(['auto', 'none', 'required']), choice))
}

const choice = f.taggedUnion('type', {
  auto: parallel,
  none: parallel,
  any: parallel,
  tool: { name: f.nonEmptyString, ...parallel },
  function: { function: namedTool },
  allowed_tools: {
    allowed_tools: f.object({
      mode: f.oneOf(['auto', 'required']),
      tools: f.arrayOf(toolReference),
    }),
  },
  custom: { custom: namedTool },
})

/** Accepts the tool choice of the chat and the Anthropic style, since clients mix them. */
export const toolChoiceSchema = toolChoiceWordOr(choice)

/** Tool choice, independent of the style. */
export type ParsedToolChoice = Pick<ToolUse, 'choice' | 'only'>

/** Converts a tool choice. */
export function toToolChoice(value: v.InferOutput<typeof toolChoiceSchema>): ParsedToolChoice {
  if (value === null || value === undefined) return { choice: 'auto' }
  if (typeof value === 'string') return { choice: value }
  switch (value.type) {
    case 'auto':
    case 'none':
      return { choice: value.type }
    case 'any':
      return { choice: 'required' }
    case 'tool':
      return { choice: 'required', only: [value.name] }
    case 'function':
      return { choice: 'required', only: [value.function.name] }
    case 'custom':
      return { choice: 'required', only: [value.custom.name] }
    case 'allowed_tools': {
      const { mode, tools } = value.allowed_tools
      const only = tools.map((tool) => ('custom' in tool ? tool.custom : tool.function).name)
      return { choice: mode, only }
    }
  }
}

/** Returns `true` if a completion may have several calls. The field of either style disables it. */
export function allowsParallelCalls(body: {
  parallel_tool_calls?: boolean | null | undefined
  tool_choice?: v.InferOutput<typeof toolChoiceSchema>
}): boolean {
  const { parallel_tool_calls: parallelCalls, tool_choice: requestedChoice } = body
  if (parallelCalls === false) return false
  const hasDisableFlag = isObject(requestedChoice) && 'disable_parallel_tool_use' in requestedChoice
  return !hasDisableFlag || requestedChoice.disable_parallel_tool_use !== true
}

/** Returns the tool settings, or `undefined` if there are no tools and no call is required. */
export function toToolUse(
  tools: readonly Tool[],
  requestedChoice: ParsedToolChoice,
  parallelCalls: boolean,
): ToolUse | undefined {
  if (tools.length === 0 && requestedChoice.choice !== 'required') return undefined
  return { tools, ...requestedChoice, parallel: parallelCalls }
}

/** Fields of a function definition, the same in all styles. */
export const functionFields = {
  name: f.nonEmptyString,
  description: f.optional(f.string),
  parameters: f.optional(f.anyObject),
  strict: f.optional(f.flag),
}

type FunctionDefinition = v.InferOutput<v.ObjectSchema<typeof functionFields, undefined>>

/** Schema of a tool without parameters. */
const NO_ARGUMENTS = { type: 'object', properties: {} } as const

/** Converts a function definition to a tool. */
export function toTool({ name, description, parameters, strict }: FunctionDefinition): Tool {
  return {
    name,
    ...(description && { description }),
    parameters: parameters ?? NO_ARGUMENTS,
    ...(strict && { strict }),
  }
}

/** Accepts an object of the type `custom` by one rule, and any other value by another. */
export function customOr<Custom extends v.GenericSchema, Other extends v.GenericSchema>(
  custom: Custom,
  other: Other,
) {
  return v.lazy((input): Custom | Other =>
    isObject(input) && input['type'] === 'custom' ? custom : other,
  )
}

/** Count of the request whose body is being validated. A rule of valibot gets no context. */
let requestCount: JsonCount | undefined

/** Calls `validate`, in which {@link argumentsText} adds the values of all arguments to `count`. */
export function withArgumentsCount<T>(count: JsonCount, validate: () => T): T {
  requestCount = count
  try {
    return validate()
  } finally {
    requestCount = undefined
  }
}

/**
 * Accepts the arguments of an earlier call: the JSON text of an object, or any text, since a limit
 * may have cut the call. Throws `too_large` if the arguments of the request have too many values.
 */
export const argumentsText = v.lazy((input) => {
  if (typeof input !== 'string' || !input.trimStart().startsWith('{')) return f.string
  switch (findJsonError(input, requestCount)?.type) {
    case 'depth':
      return tooDeepObject
    case 'size':
      if (findJsonError(input)?.type === 'size') return tooLargeObject
      throw tooManyValues('The body and the arguments of its tool calls have')
    default:
      return f.string
  }
})
const tooDeepObject = f.refusedAs(`nested no deeper than ${MAX_DEPTH} levels`)
const tooLargeObject = f.refusedAs(
  `the JSON text of at most ${MAX_VALUES} values and ${MAX_NODES} objects, arrays and members`,
)

/** Returns the arguments of an earlier call. An empty text stands for no arguments. */
export function normalizeArguments(text: string): string {
  return text.trim() === '' ? '{}' : text
}

const MESSAGES_PREFIX = 'toolu_'
const CHAT_PREFIX = 'call_'

/** Converts the id of a call to one that is the same in all styles, which a client may mix. */
export function toCallId(id: string): string {
  return id.startsWith(MESSAGES_PREFIX) ? CHAT_PREFIX + id.slice(MESSAGES_PREFIX.length) : id
}

/** Converts the id of a call to the Anthropic style. */
export function toToolUseId(id: string): string {
  return id.startsWith(CHAT_PREFIX) ? MESSAGES_PREFIX + id.slice(CHAT_PREFIX.length) : id
}

/** Adds the names of the called tools to results without a name. */
export function withToolNames(messages: readonly ChatMessage[]): ChatMessage[] {
  const names = new Map<string, string>()
  return messages.map((message): ChatMessage => {
    if (message.role === 'assistant') {
      for (const { id, name } of message.toolCalls ?? []) names.set(id, name)
    }
    if (message.role !== 'tool' || message.name !== '') return message
    return { ...message, name: names.get(message.toolCallId) ?? '' } satisfies ToolMessage
  })
}

// Custom tools, which are called with a text. For the model, it is the argument `input`.

/** Fields of a custom tool apart from its format, the same in all styles. */
export const customToolFields = { name: f.nonEmptyString, description: f.optional(f.string) }

/** Grammar of the text that a custom tool is called with. */
export const grammarFields = { syntax: f.oneOf(['lark', 'regex']), definition: f.nonEmptyString }

/** Converts a custom tool. Without a format, it takes any text. */
export const toCustomTool = (
  { name, description }: { name: string; description?: string | null | undefined },
  format: Tool['input'] | null,
): Tool => ({
  ...toTool({ name, description }),
  // The host derives them from `input`.
  parameters: true,
  input: format ?? { type: 'text' },
})

/** Returns the arguments of an earlier call of a custom tool, as a model writes them. */
export const toInputArguments = (input: string): string => `{"input": ${JSON.stringify(input)}}`
