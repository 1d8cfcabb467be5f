import type { Constraint, TaggedConstraint } from '../../engine/constraint.ts'
import type { Tool, ToolCall } from '../../types/index.ts'
import { type Parameter, parameters, separatedBy, typeOf } from './arguments.ts'
import { constant, framed, jsonTag, type Sink, type ToolFormat } from './format.ts'
import { mend, readList, readObject } from './json.ts'
import { type Reading, type Source, peek, run, space, take } from './reading.ts'
import { readValue } from './value.ts'

const OPEN = '<|tool_call_start|>'
const CLOSE = '<|tool_call_end|>'

/**
 * The format of LFM2 and LFM2.5: a list of calls in Python syntax. Strings stand in double quotes.
 * Booleans and null are `True`, `False` and `None`, and nested values are JSON. A tool whose schema
 * restricts more than each parameter on its own is called with a JSON object. These models write
 * that, too.
 */
export const lfm: ToolFormat = {
  name: 'lfm',
  detect: (template) => template.includes(OPEN) || template.includes('List of tools: '),
  markers: [OPEN, CLOSE],
  triggers: [OPEN],
  ...framed({ trigger: OPEN, lead: constant('['), separator: ', ', close: `]${CLOSE}` }, tag),
  read,
  write: (calls) => `${OPEN}[${calls.map(write).join(', ')}]${CLOSE}`,
}

const fits = (name: string): boolean => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)

function tag(tool: Tool): TaggedConstraint {
  const all = parameters(tool, fits)
  if (!all) return jsonTag('arguments')(tool)
  return {
    type: 'tagged',
    begin: `${tool.name}(`,
    content: separatedBy(', ', all, keyword),
    end: ')',
  }
}

const keyword = ({ name, schema }: Parameter): Constraint => ({
  type: 'tagged',
  begin: `${name}=`,
  content: value(schema),
  end: '',
})

function value(schema: Parameter['schema']): Constraint {
  const type = typeOf(schema)
  if (type === 'null') return constant('None')
  if (type !== 'boolean') return { type: 'json', schema }
  return { type: 'choice', parts: [constant('True'), constant('False')] }
}

function* read(source: Source, sink: Sink): Reading<boolean> {
  if (!(yield* readList(source, sink, readOne))) return false
  yield* space(source)
  return yield* take(source, CLOSE)
}

function* readOne(source: Source, sink: Sink): Reading<boolean> {
  if ((yield* peek(source)) === '{') return yield* readObject(source, sink)
  const tool = sink.tool(yield* run(source, /[^\s()[\]{},]+/y))
  if (!tool || !(yield* take(source, '('))) return false
  sink.call(tool)
  sink.args('{')
  yield* space(source)
  for (let before = ''; !(yield* take(source, ')')); before = ', ') {
    if (before !== '' && !(yield* take(source, ','))) return mend(source, sink, '}')
    yield* space(source)
    const name = yield* run(source, /[^\s=(),]+/y)
    yield* space(source)
    if (name === '' || !(yield* take(source, '='))) return mend(source, sink, '}')
    sink.args(`${before}${JSON.stringify(name)}: `)
    yield* space(source)
    const rest = yield* readValue(source, sink.args)
    if (rest !== null) return mend(source, sink, `${rest}}`)
    yield* space(source)
  }
  sink.args('}')
  sink.done()
  return true
}

function write({ name, arguments: text }: ToolCall): string {
  const all = Object.entries(JSON.parse(text) as Record<string, unknown>)
  const shown = all.map(([key, one]) => `${key}=${WORDS.get(one) ?? JSON.stringify(one)}`)
  return `${name}(${shown.join(', ')})`
}
const WORDS = new Map<unknown, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
])
