import type { TaggedConstraint } from '../../constraint/index.ts'
import {
  argumentsConstraint,
  type CallableTool,
  type CallSink,
  constant,
  jsonListFormat,
  sequence,
  type ToolFormat,
} from './format.ts'
import { completeArguments, readList, readObject } from './json.ts'
import {
  consume,
  consumeRun,
  peek,
  type Reader,
  readValue,
  skipSpace,
  type Source,
} from './reader.ts'

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
    sequence(constant(TRIGGER), {
      type: 'separated',
      tags: tools.map((tool) => toArgsTag('', tool)),
      separator: TRIGGER,
      required: true,
      single: !parallel,
    }),
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
function* readCalls(source: Source, sink: CallSink): Reader<boolean> {
  yield* skipSpace(source)
  if ((yield* peek(source)) === '[') return yield* readList(source, sink, readObject)
  const tool = sink.tool(yield* consumeRun(source, /[^[{\s]+/y))
  if (!tool) return false
  // Some models write an id of their own before the arguments.
  if (yield* consume(source, ID)) yield* consumeRun(source, /[^[]+/y)
  yield* consume(source, ARGUMENTS)
  yield* skipSpace(source)
  if ((yield* peek(source)) !== '{') return false
  sink.call(tool)
  const rest = yield* readValue(source, sink.args)
  if (rest !== null) return completeArguments(source, sink, rest)
  sink.done()
  return true
}
