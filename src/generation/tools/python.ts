/** Calls in Python syntax. */
import type { Constraint } from '../../constraint/index.ts'
import {
  type CallSyntax,
  constant,
  findParameters,
  findPlainType,
  jsonCallTag,
  type Parameter,
  parametersConstraint,
  valueConstraint,
} from './format.ts'
import { type Reader, readValue, type Source } from './reader.ts'

/**
 * The syntax of calls such as `send(to="Ada", urgent=True)`. Strings stand in double quotes, nested
 * values are JSON. A tool whose schema restricts more than each parameter on its own is called with
 * a JSON object. Models with this syntax write that, too.
 */
export const pythonCall: CallSyntax = {
  tag: (tool) => {
    const all = findParameters(tool, isIdentifier)
    if (!all) return jsonCallTag(tool)
    return {
      type: 'tagged',
      begin: `${tool.name}(`,
      content: parametersConstraint(', ', all, toArgumentTag),
      end: ')',
    }
  },
  read: readCall,
  write: ({ name, arguments: text }) => {
    const all = Object.entries(JSON.parse(text) as Record<string, unknown>)
    const shown = all.map(
      ([key, one]) => `${key}=${PYTHON_LITERALS.get(one) ?? JSON.stringify(one)}`,
    )
    return `${name}(${shown.join(', ')})`
  },
}

const PYTHON_LITERALS = new Map<unknown, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
])

const isIdentifier = (name: string): boolean => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)

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

function* readCall(source: Source): Reader<boolean> {
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
