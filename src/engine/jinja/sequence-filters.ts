/** Filters of jinja2 for lists and other values with members. */
import { TemplateError, typeError } from './errors.ts'
import { bind, defineAll, type Filter, REQUIRED, type Runtime } from './functions.ts'
import { calculate, isOrdered, withoutDuplicates } from './operators.ts'
import { findLength, iterate, iterateLazily } from './sequences.ts'
import { toCodePoints, toText } from './text.ts'
import {
  type Arguments,
  Dict,
  GroupTuple,
  isTrue,
  PyIterator,
  toCount,
  Tuple,
  typeNameOf,
  toStr,
  Undefined,
  type Value,
} from './values.ts'

// Attributes of members.

/** Returns a function that gets an attribute such as `a.b.0` of a value. */
function attributeGetter(
  runtime: Runtime,
  attribute: Value,
  fallback?: Value,
): (item: Value) => Value {
  if (attribute === null) return (item) => item
  const parts: Value[] =
    typeof attribute === 'string'
      ? attribute.split('.').map((part) => (/^\d+$/.test(part) ? BigInt(part) : part))
      : [attribute]
  return (item) => {
    let value = item
    for (const part of parts) {
      value = runtime.getItem(value, part)
      if (fallback !== undefined && value instanceof Undefined) value = fallback
    }
    return value
  }
}

/** Returns a key for comparison, which ignores the case of texts unless it matters. */
function comparisonKey(
  runtime: Runtime,
  attribute: Value,
  caseSensitive: Value,
): (item: Value) => Value {
  const get = attributeGetter(runtime, attribute)
  if (isTrue(caseSensitive)) return get
  return (item) => ignoreCase(get(item))
}

const ignoreCase = (value: Value): Value =>
  typeof value === 'string' ? value.toLowerCase() : value

/** Sorts values by their keys. Equal ones keep their order. */
function sortBy(
  runtime: Runtime,
  items: readonly Value[],
  keyOf: (item: Value) => Value,
  isReversed: boolean,
): Value[] {
  runtime.budget.items(items.length)
  const keyed = items.map((item) => ({ item, key: keyOf(item) }))
  const [less, more] = isReversed ? [1, -1] : [-1, 1]
  keyed.sort((a, b) => {
    if (isOrdered('<', a.key, b.key, runtime.budget)) return less
    return isOrdered('<', b.key, a.key, runtime.budget) ? more : 0
  })
  return keyed.map(({ item }) => item)
}

function sort(
  runtime: Runtime,
  value: Value,
  isReversed: Value,
  caseSensitive: Value,
  attribute: Value,
): Value[] {
  const attributes = typeof attribute === 'string' ? attribute.split(',') : [attribute]
  const keys = attributes.map((each) => comparisonKey(runtime, each, caseSensitive))
  const keyOf = (item: Value): Value =>
    keys.length === 1 && keys[0] ? keys[0](item) : keys.map((key) => key(item))
  return sortBy(runtime, iterate(value, runtime.budget), keyOf, isTrue(isReversed))
}

function dictSort(
  runtime: Runtime,
  value: Value,
  caseSensitive: Value,
  by: Value,
  isReversed: Value,
): Value[] {
  if (!(value instanceof Dict)) {
    if (value instanceof Undefined) throw value.toError()
    throw new TemplateError('TypeError', `'${typeNameOf(value)}' object has no attribute 'items'`)
  }
  if (by !== 'key' && by !== 'value') {
    const message = 'You can only sort by either "key" or "value"'
    throw new TemplateError('TemplateRuntimeError', message)
  }
  const keyOf = (entry: Value): Value => {
    const key = entry instanceof Tuple ? (entry.items[by === 'key' ? 0 : 1] ?? null) : null
    return isTrue(caseSensitive) ? key : ignoreCase(key)
  }
  const entries = value.entries().map((entry) => new Tuple(entry))
  return sortBy(runtime, entries, keyOf, isTrue(isReversed))
}

function groupBy(
  runtime: Runtime,
  value: Value,
  attribute: Value,
  fallback: Value,
  caseSensitive: Value,
): Value[] {
  const get = attributeGetter(runtime, attribute, fallback === null ? undefined : fallback)
  const keyOf = (item: Value): Value => (isTrue(caseSensitive) ? get(item) : ignoreCase(get(item)))
  const sorted = sortBy(runtime, iterate(value, runtime.budget), keyOf, false)
  const groups: { key: Value; members: Value[] }[] = []
  for (const item of sorted) {
    const key = keyOf(item)
    const group = groups.at(-1)
    // Sorted keys are equal if none is smaller.
    if (group && !isOrdered('<', group.key, key, runtime.budget)) group.members.push(item)
    else groups.push({ key, members: [item] })
  }
  return groups.map(({ members }) => new GroupTuple([get(members[0] ?? null), members]))
}

function unique(
  runtime: Runtime,
  value: Value,
  caseSensitive: Value,
  attribute: Value,
): PyIterator {
  const keyOf = comparisonKey(runtime, attribute, caseSensitive)
  return new PyIterator(withoutDuplicates(iterate(value, runtime.budget), keyOf))
}

const extreme =
  (isBetter: '<' | '>') =>
  (runtime: Runtime, value: Value, caseSensitive: Value, attribute: Value): Value => {
    const keyOf = comparisonKey(runtime, attribute, caseSensitive)
    const [initial, ...rest] = iterate(value, runtime.budget)
    if (initial === undefined) return new Undefined('No aggregated item, sequence was empty.')
    let best = { item: initial, key: keyOf(initial) }
    for (const item of rest) {
      const key = keyOf(item)
      if (isOrdered(isBetter, key, best.key, runtime.budget)) best = { item, key }
    }
    return best.item
  }

function sum(runtime: Runtime, value: Value, attribute: Value, start: Value): Value {
  const get = attributeGetter(runtime, attribute)
  return iterate(value, runtime.budget).reduce(
    (total, item) => calculate('+', total, get(item), runtime.budget),
    start,
  )
}

function join(runtime: Runtime, value: Value, separator: Value, attribute: Value): string {
  const { budget } = runtime
  const get = attributeGetter(runtime, attribute)
  const between = toText(separator, budget)
  let length = 0
  const texts = iterate(value, budget).map((item) => {
    const text = toText(get(item), budget)
    length += text.length + between.length
    budget.assertLength(length)
    return text
  })
  return texts.join(between)
}

// Parts of lists.

function first({ budget }: Runtime, value: Value): Value {
  for (const item of iterateLazily(value, budget)) return item
  return emptySequence('first')
}

function last({ budget }: Runtime, value: Value): Value {
  if (findLength(value, budget) === null) throw typeError(notReversible(value))
  const item = iterate(value, budget).at(-1)
  return item === undefined ? emptySequence('last') : item
}

const emptySequence = (end: string): Undefined =>
  new Undefined(`No ${end} item, sequence was empty.`)

const notReversible = (value: Value): string => `'${typeNameOf(value)}' object is not reversible`

function reverse({ budget }: Runtime, value: Value): Value {
  if (typeof value === 'string') return toCodePoints(value).toReversed().join('')
  return new PyIterator(iterate(value, budget).toReversed(), 'list_reverseiterator')
}

function batch({ budget }: Runtime, value: Value, count: Value, fill: Value): PyIterator {
  const size = toCount(count)
  if (size < 1) throw typeError('batch needs a size of at least 1')
  const items = iterate(value, budget)
  const batches: Value[][] = []
  for (let at = 0; at < items.length; at += size) batches.push(items.slice(at, at + size))
  const rest = batches.at(-1)
  if (fill !== null && rest) {
    budget.items(size)
    while (rest.length < size) rest.push(fill)
  }
  return new PyIterator(batches)
}

function slice({ budget }: Runtime, value: Value, count: Value, fill: Value): PyIterator {
  const items = iterate(value, budget)
  const slices = toCount(count)
  if (slices < 1) throw new TemplateError('ZeroDivisionError', 'integer division or modulo by zero')
  budget.items(slices)
  const size = Math.floor(items.length / slices)
  const longer = items.length % slices
  const parts = Array.from({ length: slices }, (_, at) => {
    const from = at * size + Math.min(at, longer)
    const part = items.slice(from, from + size + (at < longer ? 1 : 0))
    return fill !== null && at >= longer ? [...part, fill] : part
  })
  return new PyIterator(parts)
}

function random({ budget }: Runtime, value: Value): Value {
  const items = iterate(value, budget)
  const item = items[Math.floor(Math.random() * items.length)]
  return item === undefined ? new Undefined('No random item, sequence was empty.') : item
}

// Filters that take a filter or a test.

/** Returns the arguments after the first `count`. */
const restOf = ({ positional, keywords }: Arguments, count: number): Arguments => ({
  positional: positional.slice(count),
  keywords,
})

function map(value: Value, args: Arguments, runtime: Runtime): PyIterator {
  return new PyIterator(mapLazily(value, mapper(args, runtime), runtime))
}

function* mapLazily(
  value: Value,
  change: (item: Value) => Value,
  { budget }: Runtime,
): Generator<Value> {
  if (isTrue(value)) for (const item of iterateLazily(value, budget)) yield change(item)
}

function mapper(args: Arguments, runtime: Runtime): (item: Value) => Value {
  const [name] = args.positional
  if (name !== undefined) {
    const filter = runtime.getFilter(toStr(name))
    const rest = restOf(args, 1)
    return (item) => filter(item, rest, runtime)
  }
  if (!args.keywords.has('attribute'))
    throw new TemplateError('TemplateRuntimeError', 'map requires a filter argument')
  const [attribute = null, fallback] = bind('map', { attribute: REQUIRED, default: null }, args)
  const hasDefault = args.keywords.has('default')
  return attributeGetter(runtime, attribute, hasDefault ? fallback : undefined)
}

/** Creates `select` and the like. `reads` is the number of arguments that name the attribute. */
const selecting =
  (isSelected: boolean, reads: 0 | 1): Filter =>
  (value, args, runtime) => {
    const [attribute = null] = reads === 1 ? args.positional : []
    if (reads === 1 && args.positional.length === 0)
      throw new TemplateError('TemplateRuntimeError', 'Missing parameter for attribute name')
    const get = attributeGetter(runtime, attribute)
    const name = args.positional[reads]
    const test = name === undefined ? null : runtime.getTest(toStr(name))
    const rest = restOf(args, reads + 1)
    const passes = (item: Value): boolean =>
      (test ? test(get(item), rest, runtime) : isTrue(get(item))) === isSelected
    return new PyIterator(filterLazily(value, passes, runtime))
  }

function* filterLazily(
  value: Value,
  passes: (item: Value) => boolean,
  { budget }: Runtime,
): Generator<Value> {
  if (!isTrue(value)) return
  for (const item of iterateLazily(value, budget)) if (passes(item)) yield item
}

const FILL = { count: REQUIRED, fill_with: null } as const
const EXTREME = { case_sensitive: false, attribute: null } as const

/** The filters of this file by their names. */
export const SEQUENCE_FILTERS: readonly (readonly [string, Filter])[] = [
  ...defineAll<Value, Value>({
    batch: [FILL, batch],
    dictsort: [{ case_sensitive: false, by: 'key', reverse: false }, dictSort],
    first: [{}, first],
    groupby: [{ attribute: REQUIRED, default: null, case_sensitive: false }, groupBy],
    join: [{ d: '', attribute: null }, join],
    last: [{}, last],
    list: [{}, ({ budget }, value) => [...iterate(value, budget)]],
    max: [EXTREME, extreme('>')],
    min: [EXTREME, extreme('<')],
    random: [{}, random],
    reverse: [{}, reverse],
    slice: [FILL, slice],
    sort: [{ reverse: false, case_sensitive: false, attribute: null }, sort],
    sum: [{ attribute: null, start: 0n }, sum],
    unique: [{ case_sensitive: false, attribute: null }, unique],
  }),
  ['map', map],
  ['reject', selecting(false, 0)],
  ['rejectattr', selecting(false, 1)],
  ['select', selecting(true, 0)],
  ['selectattr', selecting(true, 1)],
]
