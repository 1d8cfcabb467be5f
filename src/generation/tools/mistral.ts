import type { TaggedConstraint } from '../../engine/constraint.ts'
import type { Tool } from '../../types/index.ts'
import {
  constant,
  framed,
  jsonTag,
  sequence,
  type Sink,
  type ToolFormat,
  writeJson,
} from './format.ts'
import { mend, readList, readObject } from './json.ts'
import { type Reading, type Source, peek, run, space, take } from './reading.ts'
import { readValue } from './value.ts'

const TRIGGER = '[TOOL_CALLS]'
const ARGUMENTS = '[ARGS]'
const ID = '[CALL_ID]'

const shared = {
  markers: [TRIGGER, ARGUMENTS, ID],
  triggers: [TRIGGER],
  read,
} satisfies Partial<ToolFormat>

/** The format of Mistral's models up to 2025: a JSON list after `[TOOL_CALLS]`. */
export const mistral: ToolFormat = {
  ...shared,
  name: 'mistral',
  detect: (template) => template.includes(TRIGGER),
  // Their older tokenizers put a space before the list.
  ...framed(
    { trigger: TRIGGER, lead: { type: 'pattern', pattern: ' ?\\[' }, separator: ', ', close: ']' },
    jsonTag('arguments'),
  ),
  write: (calls) => `${TRIGGER}[${calls.map(writeJson('arguments')).join(', ')}]`,
}

/** The format of Ministral 3: `[TOOL_CALLS]`, a name, `[ARGS]` and a JSON object for each call. */
export const mistralArgs: ToolFormat = {
  ...shared,
  name: 'mistral-args',
  detect: (template) => template.includes(TRIGGER) && template.includes(ARGUMENTS),
  forced: (tools, parallel) =>
    sequence(constant(TRIGGER), {
      type: 'separated',
      tags: tools.map((tool) => argsTag('', tool)),
      separator: TRIGGER,
      required: true,
      single: !parallel,
    }),
  free: (tools, parallel) => ({
    type: 'triggered',
    triggers: [TRIGGER],
    tags: tools.map((tool) => argsTag(TRIGGER, tool)),
    required: false,
    single: !parallel,
  }),
  write: (calls) =>
    calls.map((call) => `${TRIGGER}${call.name}${ARGUMENTS}${call.arguments}`).join(''),
}

const argsTag = (before: string, { name, parameters }: Tool): TaggedConstraint => ({
  type: 'tagged',
  begin: `${before}${name}${ARGUMENTS}`,
  content: { type: 'json', schema: parameters },
  end: '',
})

/** Reads a list, or one call by name. */
function* read(source: Source, sink: Sink): Reading<boolean> {
  yield* space(source)
  if ((yield* peek(source)) === '[') return yield* readList(source, sink, readObject)
  const tool = sink.tool(yield* run(source, /[^[{\s]+/y))
  if (!tool) return false
  // Some models write an id of their own before the arguments.
  if (yield* take(source, ID)) yield* run(source, /[^[]+/y)
  yield* take(source, ARGUMENTS)
  yield* space(source)
  if ((yield* peek(source)) !== '{') return false
  sink.call(tool)
  const rest = yield* readValue(source, sink.args)
  if (rest !== null) return mend(source, sink, rest)
  sink.done()
  return true
}
