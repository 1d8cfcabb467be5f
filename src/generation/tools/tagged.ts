/** Reads and writes calls between `<tool_call>` and `</tool_call>`. */
import type { TaggedConstraint } from '../../constraint/index.ts'
import type { JsonSchema, ToolCall } from '../../types/index.ts'
import { findPlainType } from './arguments.ts'
import {
  type CallableTool,
  type CallSink,
  constant,
  framedConstraints,
  larkOf,
  type ToolFormat,
} from './format.ts'
import { completeArguments, readObject } from './json.ts'
import { consume, consumeUntil, peek, type Reader, skipSpace, type Source } from './reader.ts'
import { LITERALS } from './value.ts'

export const OPEN = '<tool_call>'
const CLOSE = '</tool_call>'
const BETWEEN = `\n${CLOSE}\n${OPEN}\n`

/** Returns a format that writes each call between these tags. */
export const taggedFormat = (
  tag: (tool: CallableTool) => TaggedConstraint,
  writeCall: (call: ToolCall) => string,
): Omit<ToolFormat, 'name' | 'detect'> => ({
  markers: [OPEN, CLOSE],
  triggers: [OPEN],
  ...framedConstraints(
    { trigger: OPEN, lead: constant('\n'), separator: BETWEEN, close: `\n${CLOSE}` },
    (tool) => toTextTag(tool) ?? tag(tool),
  ),
  writesPlainText: true,
  read: readTagged,
  write: (calls) => `${OPEN}\n${calls.map(writeCall).join(BETWEEN)}\n${CLOSE}`,
})

/** Returns the call of a custom tool whose text is of a Lark grammar. `null` for other tools. */
function toTextTag(tool: CallableTool): TaggedConstraint | null {
  const grammar = larkOf(tool)
  if (grammar === null) return null
  return {
    type: 'tagged',
    begin: `<function=${tool.name}>\n<parameter=input>\n`,
    content: { type: 'grammar', grammar, syntax: 'lark' },
    end: '\n</parameter>\n</function>',
  }
}

/** Reads one call, either a JSON object or a function in its own tags. */
function* readTagged(source: Source, sink: CallSink): Reader<boolean> {
  yield* skipSpace(source)
  const read = (yield* peek(source)) === '<' ? readFunction : readObject
  if (!(yield* read(source, sink))) return false
  yield* skipSpace(source)
  return yield* consume(source, CLOSE)
}

/** Reads `<function=name><parameter=name>value</parameter></function>`. */
function* readFunction(source: Source, sink: CallSink): Reader<boolean> {
  if (!(yield* consume(source, '<function='))) return false
  const tool = sink.tool(((yield* consumeUntil(source, '>')) ?? '').trim())
  if (!tool) return false
  sink.call(tool)
  sink.args('{')
  let comma = ''
  for (;;) {
    yield* skipSpace(source)
    if (!(yield* consume(source, '<parameter='))) break
    const name = yield* consumeUntil(source, '>')
    const value = name === null ? null : yield* consumeUntil(source, '</parameter>')
    if (name === null || value === null) return completeArguments(source, sink, '}')
    // One line break at each end belongs to the format. All other white space is part of the value.
    const text = value.replace(/^\n/, '').replace(/\n$/, '')
    const json = toJson(text, findParameterSchema(tool.parameters, name.trim()))
    sink.args(`${comma}${JSON.stringify(name.trim())}: ${json}`)
    comma = ', '
  }
  if (!(yield* consume(source, '</function>'))) return completeArguments(source, sink, '}')
  sink.args('}')
  sink.done()
  return true
}

/** Returns a value as JSON. Quotes it unless it is valid JSON and may be something but a string. */
function toJson(text: string, schema: JsonSchema | undefined): string {
  if (isVerbatimString(schema)) return JSON.stringify(text)
  const json = LITERALS.get(text.trim()) ?? text.trim()
  try {
    JSON.parse(json)
    return json
  } catch {
    return JSON.stringify(text)
  }
}

/** Returns `true` if values of such a parameter are written without quotes. */
export const isVerbatimString = (schema: JsonSchema | undefined): boolean =>
  schema !== undefined && (findPlainType(schema) === 'string' || findStringEnum(schema) !== null)

/** Returns the strings that a schema lists in `enum`; `null` if it is not such a list. */
export function findStringEnum(schema: JsonSchema): readonly string[] | null {
  if (typeof schema === 'boolean') return null
  const { enum: values, ...rest } = schema
  if (!Array.isArray(values) || values.length === 0 || findPlainType(rest) !== 'string') return null
  return values.every((word): word is string => typeof word === 'string' && !word.includes('<'))
    ? values
    : null
}

function findParameterSchema(parameters: JsonSchema, name: string): JsonSchema | undefined {
  if (typeof parameters === 'boolean') return undefined
  const all: unknown = parameters['properties']
  if (typeof all !== 'object' || all === null || !Object.hasOwn(all, name)) return undefined
  const schema: unknown = Reflect.get(all, name)
  return typeof schema === 'object' && schema !== null ? { ...schema } : undefined
}
