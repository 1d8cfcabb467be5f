/** Schemas and conversions of tools, tool choice and earlier tool calls that all styles share. */
import * as v from 'valibot'
import type { Tool, ToolUse } from '../types/index.ts'
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
import { findSchemaText } from './schema-texts.ts'

const parallel = { disable_parallel_tool_use: f.optional(f.flag) }
const named = { name: f.nonEmptyString }
/** Accepts the mode of a choice among some tools. */
export const mode = f.oneOf(['auto', 'required'])
const referenceType = f.optional(f.oneOf(['function', 'custom']))

/** Accepts an object of the type `custom` by one rule, and any other value by another. */
export const customOr = <Custom extends v.GenericSchema, Other extends v.GenericSchema>(
  custom: Custom,
  other: Other,
) => f.typeOr((type) => type === 'custom', custom, other)

/** Accepts a tool choice: a word, or an object of the style. */
export const choiceOf = <const Kinds extends Parameters<typeof f.taggedUnion>[1]>(kinds: Kinds) =>
  f.optional(f.stringOr(f.oneOf(['auto', 'none', 'required']), f.taggedUnion('type', kinds)))

/** Accepts the tool choice of the chat and the Anthropic style, since clients mix them. */
export const toolChoice = choiceOf({
  auto: parallel,
  none: parallel,
  any: parallel,
  tool: { ...named, ...parallel },
  function: { function: f.object(named) },
  allowed_tools: {
    allowed_tools: f.object({
      mode,
      tools: f.arrayOf(
        customOr(
          f.object({ type: f.oneOf(['custom']), custom: f.object(named) }),
          f.object({ type: referenceType, function: f.object(named) }),
        ),
      ),
    }),
  },
  custom: { custom: f.object(named) },
})

type Named = { name: string }

/** Tool choice of responses, whose objects have no inner ones. */
type ResponsesChoice =
  | { type: 'function' | 'custom'; name: string }
  | { type: 'allowed_tools'; mode: v.InferOutput<typeof mode>; tools: readonly Named[] }

/** Fields of a body of any style that say how its tools may be called. */
export interface ToolFields {
  tool_choice?: v.InferOutput<typeof toolChoice> | ResponsesChoice
  parallel_tool_calls?: boolean | null | undefined
}

/** Returns the tool settings, or `undefined` if there are no tools and no call is required. */
export function toToolUse(tools: readonly Tool[], body: ToolFields): ToolUse | undefined {
  const { tool_choice: sent, parallel_tool_calls: parallelCalls } = body
  const choice = toChoice(sent)
  if (tools.length === 0 && choice.choice !== 'required') return undefined
  const isDisabled =
    isObject(sent) && 'disable_parallel_tool_use' in sent && sent.disable_parallel_tool_use
  return { tools, ...choice, parallel: parallelCalls !== false && isDisabled !== true }
}

function toChoice(sent: ToolFields['tool_choice']): Pick<ToolUse, 'choice' | 'only'> {
  if (typeof sent !== 'object' || sent === null) return { choice: sent ?? 'auto' }
  switch (sent.type) {
    case 'auto':
    case 'none':
      return { choice: sent.type }
    case 'any':
      return { choice: 'required' }
    case 'allowed_tools': {
      const allowed = 'mode' in sent ? sent : sent.allowed_tools
      return { choice: allowed.mode, only: allowed.tools.map(nameOf) }
    }
    default:
      return { choice: 'required', only: [nameOf(sent)] }
  }
}

const nameOf = (reference: Named | { custom: Named } | { function: Named }): string => {
  if ('name' in reference) return reference.name
  return 'custom' in reference ? reference.custom.name : reference.function.name
}

/** Fields of a function definition, the same in all styles. */
export const functionFields = {
  ...named,
  description: f.optional(f.string),
  parameters: f.optional(f.anyObject),
  strict: f.optional(f.flag),
}

type FunctionDefinition = v.InferOutput<v.ObjectSchema<typeof functionFields, undefined>>

/** Converts a function definition to a tool. One without parameters takes an empty object. */
export function toTool({ name, description, parameters, strict }: FunctionDefinition): Tool {
  const parametersText = findSchemaText(parameters)
  return {
    name,
    ...(description && { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    ...(parametersText !== undefined && { parametersText }),
    ...(strict && { strict }),
  }
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
export const normalizeArguments = (text: string): string => (text.trim() === '' ? '{}' : text)

/** Converts the id of a call to one that is the same in all styles, which a client may mix. */
export const toCallId = (id: string): string => id.replace(/^toolu_/, 'call_')

/** Converts the id of a call to the Anthropic style. */
export const toToolUseId = (id: string): string => id.replace(/^call_/, 'toolu_')

// Custom tools, which are called with a text. For the model, it is the argument `input`.

const grammarFields = { syntax: f.oneOf(['lark', 'regex']), definition: f.nonEmptyString }

const customFieldsWith = <const Grammar extends v.ObjectEntries>(grammar: Grammar) => ({
  ...named,
  description: f.optional(f.string),
  format: f.optional(f.taggedUnion('type', { text: {}, grammar })),
})

/** Fields of a custom tool in chat completions, and in responses. */
export const chatCustomFields = customFieldsWith({ grammar: f.object(grammarFields) })
export const responsesCustomFields = customFieldsWith(grammarFields)

type CustomFields = typeof chatCustomFields | typeof responsesCustomFields

/** Converts a custom tool. Without a format, it takes any text. */
export function toCustomTool(
  definition: v.InferOutput<v.ObjectSchema<CustomFields, undefined>>,
): Tool {
  const { name, description, format } = definition
  const input = format && 'grammar' in format ? { ...format.grammar, type: format.type } : format
  // The host derives the parameters from `input`.
  return { ...toTool({ name, description }), parameters: true, input: input ?? { type: 'text' } }
}

/** Returns the arguments of an earlier call of a custom tool, as a model writes them. */
export const toInputArguments = (input: string): string => `{"input": ${JSON.stringify(input)}}`
