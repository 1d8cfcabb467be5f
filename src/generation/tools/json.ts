/** Calls whose arguments are a JSON object: as a part of a larger object, or after a name. */
import type { Constraint } from '../../constraint/index.ts'
import type { Tool } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import { argumentsConstraint, type CallSyntax, constant, sequence } from './format.ts'
import { type Reader, readJson, type Source } from './reader.ts'

const NAMES = ['name', 'tool_name']
const ARGUMENTS = ['arguments', 'parameters']

/** Keys of a call that is a JSON object. */
interface ObjectKeys {
  /** Key of the number of the call among its answer's calls. Default: it has none. */
  number?: string
  /** Key of the tool's name. Default: the name itself is the key of the arguments. */
  name?: string
  arguments?: string
}

/** The syntax of calls that are JSON objects with these keys. */
export function objectCall({ number, name, arguments: key = '' }: ObjectKeys): CallSyntax {
  const before = number === undefined ? '{' : `{"${number}": "`
  const named = (tool: string): string =>
    `${number === undefined ? '' : '", '}${
      name === undefined ? '' : `"${name}": ${JSON.stringify(tool)}, `
    }${name === undefined ? JSON.stringify(tool) : `"${key}"`}: `
  return {
    isObject: true,
    tag: (tool) => {
      const own = argumentsConstraint(tool)
      const begin = named(tool.name)
      if (number === undefined)
        return { type: 'tagged', begin: before + begin, content: own, end: '}' }
      const digits: Constraint = { type: 'pattern', pattern: '[0-9]{1,3}' }
      const content = sequence(digits, constant(begin), own)
      return { type: 'tagged', begin: before, content, end: '}' }
    },
    read: (source) => readObject(source, name === undefined),
    write: (call, index) =>
      `${before}${number === undefined ? '' : index}${named(call.name)}${call.arguments}}`,
  }
}

/**
 * Reads an object with the name and the arguments of a call, with keys in any order and additional
 * keys. With `isNameKey`, the name of a tool may be the key of its arguments. Returns `false` if the
 * text is not such an object.
 */
export function* readObject(source: Source, isNameKey = false): Reader<boolean> {
  if (!(yield* source.consume('{'))) return false
  let tool: Tool | undefined
  let earlyArguments: string | undefined
  let isCalled = false

  for (;;) {
    yield* source.skipSpace()
    if ((yield* source.peek()) !== '"') return false
    const key = String(parseJson(yield* readJson(source)))
    yield* source.skipSpace()
    if (!(yield* source.consume(':'))) return false
    yield* source.skipSpace()
    const keyTool = isNameKey && !tool ? source.tool(key) : undefined
    tool ??= keyTool
    if (ARGUMENTS.includes(key) || keyTool) {
      if (tool && !isCalled && (yield* source.peek()) === '{') {
        isCalled = true
        source.call(tool)
        if (!(yield* source.readArguments())) return false
      } else {
        earlyArguments = objectText(yield* readJson(source))
        if (earlyArguments === undefined) return false
      }
    } else {
      const value = parseJson(yield* readJson(source))
      if (value === undefined) return false
      if (NAMES.includes(key)) {
        tool = source.tool(String(value))
        if (!tool) return false
      }
    }
    yield* source.skipSpace()
    if (yield* source.consume(',')) continue
    // Small models forget the last brace. The arguments are complete nevertheless.
    if (!(yield* source.consume('}')) && (!isCalled || (source.isEnded && source.isTruncated)))
      return false
    break
  }
  if (!tool) return false
  if (!isCalled) {
    source.call(tool)
    source.args(earlyArguments ?? '{}')
  }
  return source.done()
}

/** Returns the text of an object, which may be JSON inside a string; otherwise `undefined`. */
function objectText(json: string | undefined): string | undefined {
  const value = parseJson(json)
  const text = typeof value === 'string' ? value : json
  return isObject(typeof value === 'string' ? parseJson(value) : value) ? text : undefined
}

function parseJson(json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json)
  } catch {
    return undefined
  }
}

/** Marks of a call with a name and then a JSON object. */
interface NamedMarks {
  /** Text before the name. */
  before: string
  /** Text between the name, or the number, and the arguments. */
  between: string
  /** Text between the name and the number of the call. Default: there is no number. */
  beforeNumber?: string
  /** Text after the arguments. */
  after: string
  /** Mark with which a call begins, if models write other text before the name. */
  begin?: string
  /** Marks that models write between the name and the arguments, too. Default: none. */
  marks?: readonly string[]
  /** Marks that models write after the arguments, too. Default: none. */
  ends?: readonly string[]
  /** Words that models write before the name. Default: none. */
  kinds?: RegExp
}

/** The syntax of calls that are a name and a JSON object, with these marks. */
export function namedCall(own: NamedMarks): CallSyntax {
  const { before, between, beforeNumber, after, begin: mark = before, kinds } = own
  const headMarks = [...between.split(/\s+/), ...(own.marks ?? [])].filter((text) => text !== '')
  const endMarks = [...after.split(/\s+/), ...(own.ends ?? [])].filter((text) => text !== '')
  return {
    tag: (tool) => {
      const begin = before + tool.name + (beforeNumber ?? between)
      const value = argumentsConstraint(tool)
      if (beforeNumber === undefined) return { type: 'tagged', begin, content: value, end: after }
      const digits: Constraint = { type: 'pattern', pattern: '[0-9]{1,3}' }
      return {
        type: 'tagged',
        begin,
        content: sequence(digits, constant(between), value),
        end: after,
      }
    },
    *read(source, isBegun) {
      yield* source.skipSpace()
      if (!isBegun && !(yield* source.consumeAny([before, mark]))) return false
      yield* source.skipSpace()
      if ((yield* source.peek()) === '{') {
        // Some models write the name as a part of the object.
        if (!(yield* readObject(source))) return false
      } else {
        const tool = yield* readHeader(source, headMarks, kinds)
        if (!tool) return false
        source.call(tool)
        if (!(yield* source.readArguments())) return false
        source.done()
      }
      do yield* source.skipSpace()
      while (yield* source.consumeAny(endMarks))
      source.keep()
      return !source.isCut
    },
    write: ({ name, arguments: text }, index) => {
      const number = beforeNumber === undefined ? '' : `${beforeNumber}${index}`
      return `${before}${name}${number}${between}${text}${after}`
    },
  }
}

/** Maximum number of words before the arguments of a call: name, kind, id, number and such. */
const MAX_HEADER_WORDS = 6

/** Reads the text between the first mark and the arguments, and returns the tool that it names. */
function* readHeader(
  source: Source,
  marks: readonly string[],
  kinds: RegExp | undefined,
): Reader<Tool | undefined> {
  let tool: Tool | undefined
  for (let words = 0; words < MAX_HEADER_WORDS;) {
    yield* source.skipSpace()
    if ((yield* source.peek()) === '{') return tool
    if (yield* source.consumeAny(marks)) continue
    const word = yield* source.consumeRun(/[\w.:/-]+/y)
    if (word === '') return undefined
    words += 1
    tool ??= source.tool(word) ?? source.tool(word.replace(/^functions\.|:\d+$/g, ''))
    if (!tool && !kinds?.test(word)) return undefined
  }
  return undefined
}
