import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { ToolCall } from '../../types/index.ts'
import {
  type CallableTool,
  type CallSink,
  constant,
  findParameters,
  findPlainType,
  framedConstraints,
  jsonCallTag,
  type Parameter,
  parametersConstraint,
  type ToolFormat,
  valueConstraint,
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
  ...framedConstraints(
    { trigger: OPEN, lead: constant('['), separator: ', ', close: `]${CLOSE}` },
    toCallTag,
  ),
  read: readCalls,
  write: (calls) => `${OPEN}[${calls.map(writeCall).join(', ')}]${CLOSE}`,
}

const isIdentifier = (name: string): boolean => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)

function toCallTag(tool: CallableTool): TaggedConstraint {
  const all = findParameters(tool, isIdentifier)
  if (!all) return jsonCallTag('arguments')(tool)
  return {
    type: 'tagged',
    begin: `${tool.name}(`,
    content: parametersConstraint(', ', all, toArgumentTag),
    end: ')',
  }
}

const toArgumentTag = (parameter: Parameter): Constraint => ({
  type: 'tagged',
  begin: `${parameter.name}=`,
  content: toValueConstraint(parameter),
  end: '',
})

function toValueConstraint(parameter: Parameter): Constraint {
  const type = findPlainType(parameter.schema)
  if (type === 'null') return constant('None')
  if (type !== 'boolean') return valueConstraint(parameter)
  return { type: 'choice', parts: [constant('True'), constant('False')] }
}

function* readCalls(source: Source, sink: CallSink): Reader<boolean> {
  if (!(yield* readList(source, sink, readCall))) return false
  yield* skipSpace(source)
  return yield* consume(source, CLOSE)
}

function* readCall(source: Source, sink: CallSink): Reader<boolean> {
  if ((yield* peek(source)) === '{') return yield* readObject(source, sink)
  const tool = sink.tool(yield* consumeRun(source, /[^\s()[\]{},]+/y))
  if (!tool || !(yield* consume(source, '('))) return false
  sink.call(tool)
  sink.args('{')
  yield* skipSpace(source)
  for (let separator = ''; !(yield* consume(source, ')')); separator = ', ') {
    if (separator !== '' && !(yield* consume(source, ',')))
      return completeArguments(source, sink, '}')
    yield* skipSpace(source)
    const name = yield* consumeRun(source, /[^\s=(),]+/y)
    yield* skipSpace(source)
    if (name === '' || !(yield* consume(source, '='))) return completeArguments(source, sink, '}')
    sink.args(`${separator}${JSON.stringify(name)}: `)
    yield* skipSpace(source)
    const rest = yield* readValue(source, sink.args)
    if (rest !== null) return completeArguments(source, sink, `${rest}}`)
    yield* skipSpace(source)
  }
  sink.args('}')
  sink.done()
  return true
}

function writeCall({ name, arguments: text }: ToolCall): string {
  const all = Object.entries(JSON.parse(text) as Record<string, unknown>)
  const shown = all.map(([key, one]) => `${key}=${PYTHON_LITERALS.get(one) ?? JSON.stringify(one)}`)
  return `${name}(${shown.join(', ')})`
}
const PYTHON_LITERALS = new Map<unknown, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
])
