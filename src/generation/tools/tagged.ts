/** Reads the text between `<tool_call>` and `</tool_call>`. */
import type { JsonSchema } from '../../types/index.ts'
import { typeOf } from './arguments.ts'
import type { Sink } from './format.ts'
import { mend, readObject } from './json.ts'
import { type Reading, type Source, peek, space, take, until } from './reading.ts'

export const OPEN = '<tool_call>'
export const CLOSE = '</tool_call>'
export const BETWEEN = `\n${CLOSE}\n${OPEN}\n`

/** Reads one call, either a JSON object or a function in its own tags. */
export function* readTagged(source: Source, sink: Sink): Reading<boolean> {
  yield* space(source)
  const read = (yield* peek(source)) === '<' ? readFunction : readObject
  if (!(yield* read(source, sink))) return false
  yield* space(source)
  return yield* take(source, CLOSE)
}

/** Reads `<function=name><parameter=name>value</parameter></function>`. */
function* readFunction(source: Source, sink: Sink): Reading<boolean> {
  if (!(yield* take(source, '<function='))) return false
  const tool = sink.tool(((yield* until(source, '>')) ?? '').trim())
  if (!tool) return false
  sink.call(tool)
  sink.args('{')
  let comma = ''
  for (;;) {
    yield* space(source)
    if (!(yield* take(source, '<parameter='))) break
    const name = yield* until(source, '>')
    const value = name === null ? null : yield* until(source, '</parameter>')
    if (name === null || value === null) return mend(source, sink, '}')
    // One line break at each end belongs to the format. All other white space is part of the value.
    const text = value.replace(/^\n/, '').replace(/\n$/, '')
    const json = toJson(text, schemaOf(tool.parameters, name.trim()))
    sink.args(`${comma}${JSON.stringify(name.trim())}: ${json}`)
    comma = ', '
  }
  if (!(yield* take(source, '</function>'))) return mend(source, sink, '}')
  sink.args('}')
  sink.done()
  return true
}

/** Returns a value as JSON. Quotes it unless it is valid JSON and may be something but a string. */
function toJson(text: string, schema: JsonSchema | undefined): string {
  if (isString(schema)) return JSON.stringify(text)
  const json = PYTHON[text.trim()] ?? text.trim()
  try {
    JSON.parse(json)
    return json
  } catch {
    return JSON.stringify(text)
  }
}
const PYTHON: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' }

/** Returns `true` if values of such a parameter are written without quotes. */
export const isString = (schema: JsonSchema | undefined): boolean =>
  schema !== undefined && (typeOf(schema) === 'string' || wordsOf(schema) !== null)

/** Returns the strings that a schema lists in `enum`; `null` if it is not such a list. */
export function wordsOf(schema: JsonSchema): readonly string[] | null {
  if (typeof schema === 'boolean') return null
  const { enum: words, ...rest } = schema
  if (!Array.isArray(words) || words.length === 0 || typeOf(rest) !== 'string') return null
  return words.every((word): word is string => typeof word === 'string' && !word.includes('<'))
    ? words
    : null
}

function schemaOf(parameters: JsonSchema, name: string): JsonSchema | undefined {
  if (typeof parameters === 'boolean') return undefined
  const all: unknown = parameters['properties']
  if (typeof all !== 'object' || all === null || !Object.hasOwn(all, name)) return undefined
  const schema: unknown = Reflect.get(all, name)
  return typeof schema === 'object' && schema !== null ? { ...schema } : undefined
}
