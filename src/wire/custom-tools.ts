/** Custom tools, which are called with a text. For the model, it is the argument `input`. */
import type { Tool } from '../types/index.ts'
import { nonEmptyString, oneOf, optional, string } from './fields.ts'
import { toTool } from './tools.ts'

/** Fields of a custom tool apart from its format, the same in all styles. */
export const customToolFields = { name: nonEmptyString, description: optional(string) }

/** Grammar of the text that a custom tool is called with. */
export const grammarFields = { syntax: oneOf(['lark', 'regex']), definition: nonEmptyString }

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
