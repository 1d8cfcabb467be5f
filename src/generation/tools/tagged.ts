/** Reads and writes calls between `<tool_call>` and `</tool_call>`. */
import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { JsonSchema, ToolCall } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import {
  type CallableTool,
  constant,
  findParameters,
  findPlainType,
  framedConstraints,
  jsonCallTag,
  larkOf,
  type Parameter,
  parametersConstraint,
  type ToolFormat,
  valueConstraint,
  writeJsonCall,
} from './format.ts'
import { readObject } from './json.ts'
import { LITERALS, type Reader, type Source } from './reader.ts'

const OPEN = '<tool_call>'
const CLOSE = '</tool_call>'
const BETWEEN = `\n${CLOSE}\n${OPEN}\n`

/** Returns a format that writes each call between these tags. */
const taggedFormat = (
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
function* readTagged(source: Source): Reader<boolean> {
  yield* source.skipSpace()
  const read = (yield* source.peek()) === '<' ? readFunction : readObject
  if (!(yield* read(source))) return false
  yield* source.skipSpace()
  return yield* source.consume(CLOSE)
}

/** Reads `<function=name><parameter=name>value</parameter></function>`. */
function* readFunction(source: Source): Reader<boolean> {
  if (!(yield* source.consume('<function='))) return false
  const tool = source.tool(((yield* source.consumeUntil('>')) ?? '').trim())
  if (!tool) return false
  source.call(tool)
  source.args('{')
  let comma = ''
  for (;;) {
    yield* source.skipSpace()
    if (!(yield* source.consume('<parameter='))) break
    const name = yield* source.consumeUntil('>')
    const value = name === null ? null : yield* source.consumeUntil('</parameter>')
    if (name === null || value === null) return source.completeArguments('}')
    // One line break at each end belongs to the format. All other white space is part of the value.
    const text = value.replace(/^\n/, '').replace(/\n$/, '')
    const json = toJson(text, findParameterSchema(tool.parameters, name.trim()))
    source.args(`${comma}${JSON.stringify(name.trim())}: ${json}`)
    comma = ', '
  }
  if (!(yield* source.consume('</function>'))) return source.completeArguments('}')
  source.args('}')
  return source.done()
}

/** Returns a value as JSON. Quotes it unless it is valid JSON and may be something but a string. */
export function toJson(text: string, schema: JsonSchema | undefined): string {
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
const isVerbatimString = (schema: JsonSchema | undefined): boolean =>
  schema !== undefined && (findPlainType(schema) === 'string' || findStringEnum(schema) !== null)

/** Returns the strings that a schema lists in `enum`; `null` if it is not such a list. */
function findStringEnum(schema: JsonSchema): readonly string[] | null {
  if (typeof schema === 'boolean') return null
  const { enum: values, ...rest } = schema
  if (!Array.isArray(values) || values.length === 0 || findPlainType(rest) !== 'string') return null
  return values.every((word): word is string => typeof word === 'string' && !word.includes('<'))
    ? values
    : null
}

/** Returns the schema of a parameter; `undefined` if there is none. */
export function findParameterSchema(parameters: JsonSchema, name: string): JsonSchema | undefined {
  if (typeof parameters === 'boolean') return undefined
  const { properties } = parameters
  if (!isObject(properties) || !Object.hasOwn(properties, name)) return undefined
  const schema = properties[name]
  return isObject(schema) ? schema : undefined
}

/**
 * The format of Hermes, Qwen 2.5 and 3, SmolLM3 and Granite 4: a JSON object in `<tool_call>` tags
 * for each call. Models without a format of their own use it, too.
 */
export const hermes: ToolFormat = {
  name: 'hermes',
  // Other formats use the same tags around different content.
  detect: (template) => template.includes(OPEN) && /["']arguments\\?["']:/.test(template),
  ...taggedFormat(jsonCallTag('arguments'), writeJsonCall('arguments')),
}

/**
 * The format of Qwen3-Coder and Qwen 3.5: a function with its parameters in tags, within
 * `<tool_call>` tags. Strings are written verbatim, other values as JSON. A tool whose schema
 * restricts more than each parameter on its own is called with a JSON object. Earlier models
 * learned that format.
 */
export const xml: ToolFormat = {
  name: 'xml',
  detect: (template) =>
    [OPEN, '<function=', '<parameter='].every((mark) => template.includes(mark)),
  ...taggedFormat(toCallTag, writeXmlCall),
}

const isTagName = (name: string): boolean => /^[^\s<>]+$/.test(name)

function toCallTag(tool: CallableTool): TaggedConstraint {
  const all = isTagName(tool.name) ? findParameters(tool, isTagName) : null
  if (!all) return jsonCallTag('arguments')(tool)
  return {
    type: 'tagged',
    begin: `<function=${tool.name}>`,
    content: parametersConstraint('', all, toParameterTag),
    end: '\n</function>',
  }
}

function toParameterTag(parameter: Parameter): Constraint {
  return toValueTag(parameter, `\n<parameter=${parameter.name}>\n`, '\n</parameter>')
}

/** Returns the constraint of a value between two marks: a string verbatim, others as JSON. */
export function toValueTag(parameter: Parameter, begin: string, end: string): Constraint {
  const { schema } = parameter
  const choices = findStringEnum(schema)
  if (choices)
    return { type: 'tagged', begin, content: { type: 'choice', parts: choices.map(constant) }, end }
  if (!isVerbatimString(schema))
    return { type: 'tagged', begin, content: valueConstraint(parameter), end }
  // Text ends at the tag. The model itself writes the line break before the tag.
  return { type: 'tagged', begin, content: { type: 'text' }, end: end.trimStart() }
}

function writeXmlCall({ name, arguments: text }: ToolCall): string {
  const values = Object.entries(JSON.parse(text) as Record<string, unknown>)
  const tags = values.map(([key, value]) => {
    const shown = typeof value === 'string' ? value : JSON.stringify(value)
    return `<parameter=${key}>\n${shown}\n</parameter>\n`
  })
  return `<function=${name}>\n${tags.join('')}</function>`
}
