/** Calls whose arguments are tags within tags. */
import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { JsonSchema } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import {
  type CallSyntax,
  findItems,
  findParameters,
  jsonCallTag,
  type Parameter,
  parametersConstraint,
} from './format.ts'
import type { Reader, Source } from './reader.ts'
import {
  findParameterSchema,
  isTagName,
  isVerbatim,
  readTaggedValue,
  toValueTag,
} from './tagged.ts'

/** Name of the tag of an element of an array. */
const ITEM = 'item'
/** Maximum number of tags in each other. Deeper ones are text. */
const MAX_DEPTH = 24

/**
 * The syntax of calls such as `<invoke name="send"><to>Ada</to><copies><item>Bo</item></copies>
 * </invoke>`, with a mark before each tag.
 */
export function nestedCall(mark: string): CallSyntax {
  const before = `${mark}<invoke name="`
  const after = `${mark}</invoke>`

  const toTag = (parameter: Parameter): TaggedConstraint => {
    const { name, schema } = parameter
    const [begin, end] = [`${mark}<${name}>`, `${mark}</${name}>`]
    const content = isVerbatim(schema) ? null : toContent(parameter)
    return content ? { type: 'tagged', begin, content, end } : toValueTag(parameter, begin, end)
  }
  /** Returns the constraint of elements or members; `null` if the value is written as JSON. */
  const toContent = (parameter: Parameter): Constraint | null => {
    const items = findItems(parameter.schema)
    if (items !== null) {
      const tags = [toTag({ ...parameter, name: ITEM, schema: items })]
      return { type: 'separated', tags, separator: '', required: false, single: false }
    }
    const all = findParameters({ ...parameter, parameters: parameter.schema }, isTagName)
    return all && all.length > 0 ? parametersConstraint('', all, toTag) : null
  }

  return {
    tag(tool) {
      const all = isTagName(tool.name) ? findParameters(tool, isTagName) : null
      if (!all) return jsonCallTag(tool)
      const content = parametersConstraint('', all, toTag)
      return { type: 'tagged', begin: `${before}${tool.name}">`, content, end: after }
    },
    textTag: (name, content) => ({
      type: 'tagged',
      begin: `${before}${name}">${mark}<input>`,
      content,
      end: `${mark}</input>${after}`,
    }),
    *read(source) {
      yield* source.skipSpace()
      if (!(yield* source.consume(before))) return false
      const tool = source.tool(yield* source.consumeRun(/[^\s<>"]+/y))
      if (!tool || !(yield* source.consume('">'))) return false
      source.call(tool)
      source.args('{')
      yield* source.skipSpace()
      const options = { mark, end: 'invoke', schema: tool.parameters, depth: 0 }
      const rest = yield* readMembers(source, options)
      if (rest !== null) return source.completeArguments(`${rest}}`)
      source.args('}')
      return source.done()
    },
    write({ name, arguments: text }) {
      const values = Object.entries(JSON.parse(text) as Record<string, unknown>)
      const tags = values.map(([key, value]) => writeTag(mark, key, value))
      return `${before}${name}">${tags.join('')}${after}`
    },
  }
}

interface NestedOptions {
  mark: string
  /** Name of the tag that ends the members. */
  end: string
  /** Schema of the object or array; `undefined` if it is unknown. */
  schema: JsonSchema | undefined
  /** Number of tags around these. */
  depth: number
}

/**
 * Reads the members of an object or the elements of an array, and emits them as JSON without its
 * brackets. Returns `null` if they are complete. Otherwise, returns the text that completes them.
 *
 * @param isFirst `true` if the beginning of the first tag has been read, up to its name.
 */
function* readMembers(
  source: Source,
  options: NestedOptions,
  isFirst = false,
  isArray = false,
): Reader<string | null> {
  const { mark, end, schema, depth } = options
  for (let comma = ''; ; comma = ', ') {
    if (!(isFirst && comma === '')) {
      yield* source.skipSpace()
      if (yield* source.consume(`${mark}</${end}>`)) return null
      if (!(yield* source.consume(`${mark}<`))) return ''
    }
    const name = yield* source.consumeRun(/[^\s<>]+/y)
    if (name === '' || !(yield* source.consume('>'))) return ''
    const own = isArray ? findItemSchema(schema) : findParameterSchema(schema, name)
    const before = isArray ? comma : `${comma}${JSON.stringify(name)}: `
    const rest = yield* readNested(source, before, { mark, end: name, schema: own, depth })
    if (rest !== null) return rest
  }
}

function findItemSchema(schema: JsonSchema | undefined): JsonSchema | undefined {
  const items = typeof schema === 'object' ? schema['items'] : undefined
  return isObject(items) ? items : undefined
}

/** Reads a value after its tag, and emits it after the text `before`. */
function* readNested(
  source: Source,
  before: string,
  { mark, end, schema, depth }: NestedOptions,
): Reader<string | null> {
  const after = `${mark}</${end}>`
  const type = typeof schema === 'object' ? schema['type'] : undefined
  if (isVerbatim(schema) || depth >= MAX_DEPTH)
    return yield* readTaggedValue(source, { before, after, schema })
  if (yield* source.consume(after)) {
    source.args(`${before}${type === 'array' ? '[]' : type === 'object' ? '{}' : '""'}`)
    return null
  }
  if (!(yield* source.consume(`${mark}<`)))
    return yield* readTaggedValue(source, { before, after, schema })
  // Without a schema, the name of the first tag decides.
  const isArray = type === 'array' || (type !== 'object' && (yield* startsWithItem(source)))
  source.args(`${before}${isArray ? '[' : '{'}`)
  const inner = { mark, end, schema, depth: depth + 1 }
  const rest = yield* readMembers(source, inner, true, isArray)
  if (rest === null) source.args(isArray ? ']' : '}')
  return rest === null ? null : `${rest}${isArray ? ']' : '}'}`
}

function* startsWithItem(source: Source): Reader<boolean> {
  yield* source.has(ITEM.length + 1)
  return source.text.startsWith(`${ITEM}>`, source.at)
}

function writeTag(mark: string, name: string, value: unknown): string {
  return `${mark}<${name}>${writeNested(mark, value)}${mark}</${name}>`
}

function writeNested(mark: string, value: unknown): string {
  if (typeof value === 'string') return value
  // An empty list or object has no tags to be written as.
  if (Array.isArray(value) && value.length > 0)
    return value.map((each) => writeTag(mark, ITEM, each)).join('')
  if (!isObject(value) || Object.keys(value).length === 0) return JSON.stringify(value)
  return Object.entries(value)
    .map(([name, each]) => writeTag(mark, name, each))
    .join('')
}
