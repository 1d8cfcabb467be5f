import type { TaggedConstraint } from '../../constraint/index.ts'
import {
  argumentsConstraint,
  type CallableTool,
  constant,
  jsonListFormat,
  separated,
  sequence,
  type ToolFormat,
} from './format.ts'
import { readList, readObject } from './json.ts'
import type { Reader, Source } from './reader.ts'

const TRIGGER = '[TOOL_CALLS]'
const ARGUMENTS = '[ARGS]'
const ID = '[CALL_ID]'

const shared = {
  markers: [TRIGGER, ARGUMENTS, ID],
  triggers: [TRIGGER],
  read: readCalls,
} satisfies Partial<ToolFormat>

/** The format of Mistral's models up to 2025: a JSON list after `[TOOL_CALLS]`. */
export const mistral: ToolFormat = {
  ...shared,
  name: 'mistral',
  detect: (template) => template.includes(TRIGGER),
  // Their older tokenizers put a space before the list.
  ...jsonListFormat(TRIGGER, { type: 'pattern', pattern: ' ?\\[' }),
}

/** The format of Ministral 3: `[TOOL_CALLS]`, a name, `[ARGS]` and a JSON object for each call. */
export const mistralArgs: ToolFormat = {
  ...shared,
  name: 'mistral-args',
  detect: (template) => template.includes(TRIGGER) && template.includes(ARGUMENTS),
  callsConstraint: (tools, parallel) =>
    sequence(
      constant(TRIGGER),
      separated(
        tools.map((tool) => toArgsTag('', tool)),
        TRIGGER,
        parallel,
      ),
    ),
  textOrCallsConstraint: (tools, parallel) => ({
    type: 'triggered',
    triggers: [TRIGGER],
    tags: tools.map((tool) => toArgsTag(TRIGGER, tool)),
    required: false,
    single: !parallel,
  }),
  write: (calls) =>
    calls.map((call) => `${TRIGGER}${call.name}${ARGUMENTS}${call.arguments}`).join(''),
}

const toArgsTag = (before: string, tool: CallableTool): TaggedConstraint => ({
  type: 'tagged',
  begin: `${before}${tool.name}${ARGUMENTS}`,
  content: argumentsConstraint(tool),
  end: '',
})

/** Reads a list, or one call by name. */
function* readCalls(source: Source): Reader<boolean> {
  yield* source.skipSpace()
  if ((yield* source.peek()) === '[') return yield* readList(source, readObject)
  const tool = source.tool(yield* source.consumeRun(/[^[{\s]+/y))
  if (!tool) return false
  // Some models write an id of their own before the arguments.
  if (yield* source.consume(ID)) yield* source.consumeRun(/[^[]+/y)
  yield* source.consume(ARGUMENTS)
  yield* source.skipSpace()
  if ((yield* source.peek()) !== '{') return false
  source.call(tool)
  return (yield* source.readArguments()) && source.done()
}
