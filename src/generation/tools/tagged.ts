/** Calls with each argument in tags of its own. */
import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { JsonSchema, Tool } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import {
  argumentsConstraint,
  type CallSyntax,
  constant,
  findParameters,
  findPlainType,
  jsonCallTag,
  type Parameter,
  parametersConstraint,
  sequence,
  valueConstraint,
} from './format.ts'
import { escapeJson, parseValue, type Reader, type Source } from './reader.ts'

/** Marks of a call whose arguments stand in tags. */
export interface TagMarks {
  /** Text before the tool's name. */
  before: string
  afterName: string
  /** Text after the arguments. */
  after: string
  /** Tags of an argument. A line break within them does not belong to the value. */
  argument: {
    before: string
    /** Text between the name and the value, for all values or for strings only. */
    afterName: string
    /** Text between the name and a value that is no string. Default: as for strings. */
    afterNameOfOther?: string
    after: string
    /** Marks within the tags around a string with special characters. Default: there are none. */
    verbatim?: readonly [open: string, close: string]
  }
  /**
   * `true` if a call has its tags even if its arguments are JSON, since no section tells that it is a
   * call. Default: `false`.
   */
  tagsJson?: boolean
}

/**
 * The syntax of calls with these marks. Strings are written verbatim, other values as JSON. A tool
 * whose schema restricts more than each parameter on its own is called with a JSON object. Earlier
 * models learned that format.
 */
export function taggedCall(marks: TagMarks): CallSyntax {
  const { before, afterName, after, argument } = marks
  const afterNameOf = (isText: boolean): string =>
    isText ? argument.afterName : (argument.afterNameOfOther ?? argument.afterName)
  return {
    tag(tool) {
      const all = isTagName(tool.name) ? findParameters(tool, isTagName) : null
      if (!all && !marks.tagsJson) return jsonCallTag(tool)
      const content = all
        ? parametersConstraint('', all, (parameter) => {
            const isText = isVerbatim(parameter.schema)
            const begin = `${argument.before}${parameter.name}${afterNameOf(isText)}`
            return toValueTag(parameter, begin, argument.after, argument.verbatim)
          })
        : argumentsConstraint(tool)
      return { type: 'tagged', begin: `${before}${tool.name}${afterName}`, content, end: after }
    },
    textTag: (name, content) => ({
      type: 'tagged',
      begin: `${before}${name}${afterName}${argument.before}input${argument.afterName}`,
      content,
      end: argument.after + after,
    }),
    *read(source, isBegun) {
      yield* source.skipSpace()
      return (isBegun || (yield* source.consume(before))) && (yield* readTagged(source, marks))
    },
    write({ name, arguments: text }) {
      const values = Object.entries(JSON.parse(text) as Record<string, unknown>)
      const tags = values.map(([key, value]) => {
        const isText = typeof value === 'string'
        const [open, close] = (isText && /[<&\n]/.test(value) && argument.verbatim) || ['', '']
        const shown = isText ? open + value + close : JSON.stringify(value)
        return `${argument.before}${key}${afterNameOf(isText)}${shown}${argument.after}`
      })
      return `${before}${name}${afterName}${tags.join('')}${after}`
    },
  }
}

/** Returns `true` if a name can stand in a tag. */
export const isTagName = (name: string): boolean => /^[^\s<>"]+$/.test(name)

/** Reads a call from its name on. */
function* readTagged(source: Source, marks: TagMarks): Reader<boolean> {
  const { afterName, after, argument, tagsJson } = marks
  const tool = source.tool(yield* source.consumeRun(/[^\s<>"]+/y))
  if (!tool || !(yield* source.consume(afterName.trim()))) return false
  source.call(tool)
  if (tagsJson && (yield* source.peek()) === '{') {
    if (!(yield* source.readArguments())) return false
    yield* source.consume(after)
    return source.done()
  }
  source.args('{')
  let comma = ''
  for (;;) {
    yield* source.skipSpace()
    if (!(yield* source.consume(argument.before.trim()))) break
    const name = yield* source.consumeRun(/[^\s<>"]+/y)
    const isText = name === '' ? null : yield* readAfterName(source, argument)
    if (isText === null) return source.completeArguments('}')
    const before = `${comma}${JSON.stringify(name)}: `
    comma = ', '
    const schema = isText === undefined ? findParameterSchema(tool.parameters, name) : isText
    const [open, close] = argument.verbatim ?? []
    const isMarked = open !== undefined && (yield* source.consume(open))
    const rest = yield* isMarked && close !== undefined
      ? readTaggedValue(source, { before, after: close, schema: true })
      : readTaggedValue(source, { before, after: argument.after, schema })
    if (rest === null && isMarked) yield* source.consume(argument.after)
    if (rest !== null) return source.completeArguments(`${rest}}`)
  }
  if (!(yield* source.consume(after.trim()))) return source.completeArguments('}')
  source.args('}')
  return source.done()
}

/**
 * Reads the text between a name and its value. Returns `true` if it says that the value is a string,
 * `false` if it says that it is not, and `undefined` if it does not say. `null` if it is no such text.
 */
function* readAfterName(
  source: Source,
  { afterName, afterNameOfOther }: TagMarks['argument'],
): Reader<boolean | undefined | null> {
  if (afterNameOfOther !== undefined) {
    if (yield* source.consume(afterName)) return true
    return (yield* source.consume(afterNameOfOther)) ? false : null
  }
  for (const mark of afterName.trim().split(/(?<=>)\s*/)) {
    yield* source.skipSpace()
    if (!(yield* source.consume(mark))) return null
  }
  return undefined
}

/**
 * Reads a value up to the text `after` and emits it as JSON after `before`; strings as they arrive.
 * Returns `null` if the value is complete. Otherwise, returns the text that completes the JSON.
 *
 * @param options.schema The schema of the value, or `true` for a string and `false` for JSON.
 */
export function* readTaggedValue(
  source: Source,
  { before, after, schema }: { before: string; after: string; schema: JsonSchema | undefined },
): Reader<string | null> {
  const hasBreaks = after.startsWith('\n')
  const isString = schema === true || isVerbatim(schema)
  if (hasBreaks) yield* source.consume('\n')
  let whole = ''
  // The last line break is a part of the value unless the tag follows.
  let held = ''
  if (isString) source.args(`${before}"`)
  const isOver = yield* source.consumeUntil(after.trim(), (text) => {
    const more = held + text
    held = hasBreaks && more.endsWith('\n') ? '\n' : ''
    const certain = more.slice(0, more.length - held.length)
    if (!isString) whole += certain
    else if (certain !== '') source.args(escapeJson(certain))
  })
  if (isString && !isOver) return `${escapeJson(held)}"`
  if (!isOver) return ''
  source.args(isString ? '"' : `${before}${toJson(whole, schema)}`)
  return null
}

/** Returns a value as JSON. Quotes it unless it is a value that may be something but a string. */
function toJson(text: string, schema: JsonSchema | undefined): string {
  const json = schema !== undefined && isVerbatim(schema) ? undefined : parseValue(text)
  return json ?? JSON.stringify(text)
}

/** Returns `true` if values of a parameter are written without quotes. */
export const isVerbatim = (schema: JsonSchema | undefined): boolean =>
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

/** Returns the schema of a parameter; `undefined` if there is none. */
export function findParameterSchema(
  parameters: Tool['parameters'] | undefined,
  name: string,
): JsonSchema | undefined {
  if (parameters === undefined || typeof parameters === 'boolean') return undefined
  const { properties } = parameters
  if (!isObject(properties) || !Object.hasOwn(properties, name)) return undefined
  const schema = properties[name]
  return isObject(schema) ? schema : undefined
}

/** Returns the constraint of a value between two marks: a string verbatim, others as JSON. */
export function toValueTag(
  parameter: Parameter,
  begin: string,
  end: string,
  verbatim?: TagMarks['argument']['verbatim'],
): TaggedConstraint {
  const { schema } = parameter
  const choices = findStringEnum(schema)
  if (choices)
    return { type: 'tagged', begin, content: { type: 'choice', parts: choices.map(constant) }, end }
  if (!isVerbatim(schema))
    return { type: 'tagged', begin, content: valueConstraint(parameter), end }
  // Text ends at the tag. The model itself writes the line break before the tag.
  const content = verbatim ? toMarkedText(verbatim) : TEXT
  return { type: 'tagged', begin, content, end: end.trimStart() }
}

const TEXT: Constraint = { type: 'text' }

/** Returns the constraint of a text that the marks enclose, or that begins with no mark and no tag. */
const toMarkedText = ([open, close]: readonly [string, string]): Constraint => ({
  type: 'choice',
  parts: [
    { type: 'tagged', begin: open, content: TEXT, end: close },
    constant(''),
    sequence({ type: 'pattern', pattern: '[^<]|<[^!/]' }, TEXT),
  ],
})
