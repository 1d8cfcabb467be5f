import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { ToolCall } from '../../types/index.ts'
import {
  type CallableTool,
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
import { readList, readObject } from './json.ts'
import { type Reader, readValue, type Source } from './reader.ts'

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

function* readCalls(source: Source): Reader<boolean> {
  if (!(yield* readList(source, readCall))) return false
  yield* source.skipSpace()
  return yield* source.consume(CLOSE)
}

function* readCall(source: Source): Reader<boolean> {
  if ((yield* source.peek()) === '{') return yield* readObject(source)
  const tool = source.tool(yield* source.consumeRun(/[^\s()[\]{},]+/y))
  if (!tool || !(yield* source.consume('('))) return false
  source.call(tool)
  source.args('{')
  yield* source.skipSpace()
  for (let separator = ''; !(yield* source.consume(')')); separator = ', ') {
    if (separator !== '' && !(yield* source.consume(','))) return source.completeArguments('}')
    yield* source.skipSpace()
    const name = yield* source.consumeRun(/[^\s=(),]+/y)
    yield* source.skipSpace()
    if (name === '' || !(yield* source.consume('='))) return source.completeArguments('}')
    source.args(`${separator}${JSON.stringify(name)}: `)
    yield* source.skipSpace()
    const rest = yield* readValue(source, (json) => source.args(json))
    if (rest !== null) return source.completeArguments(`${rest}}`)
    yield* source.skipSpace()
  }
  source.args('}')
  return source.done()
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
