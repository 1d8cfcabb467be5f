/** Compiles schemas of objects: listed properties in the order of the schema, then others. */
import type { Compiler } from './types.ts'
import {
  choice,
  EMPTY,
  type Expression,
  isNothing,
  NOTHING,
  repeat,
  sequence,
  text,
} from './expression.ts'
import { listedOf, rangeOf, typesOf } from './flat.ts'
import { children, type Flat, flatten } from './flatten.ts'
import { COLON, COMMA, quoted, writeString } from './literal.ts'
import { otherNames } from './other-names.ts'
import { get, has, named, type Node, rejectSchema, under } from './node.ts'
import { isMatch, patternOf } from './patterns.ts'
import { strings } from './strings.ts'
import { isValid, isValidForFlat, propertyOf, requiredOf } from './validate.ts'
import { shorten } from '../../values/shorten.ts'

interface Pair {
  /** Expression of name and value, without a comma. */
  text: Expression
  required: boolean
}

export function objects(flat: Flat, compiler: Compiler): Expression {
  const [min, max] = rangeOf(flat, 'Properties')
  const names = namesOf(flat, compiler)
  const required = new Set(requiredOf(flat, compiler.context))
  const pairs = names.map((name): Pair => {
    const allowed = isValid(children(flat, 'propertyNames'), name, compiler.context)
    const value = allowed ? compiler.value(propertyOf(flat, name, compiler.context)) : NOTHING
    const label = text(writeString(name) + COLON)
    return { text: sequence(label, value), required: required.has(name) }
  })
  const others = othersOf(flat, names, min, compiler)
  const possible = pairs.filter((pair) => !isNothing(pair.text)).length
  if (!isNothing(others) && min > possible + 1) {
    const part = flat.find((each) => has(each, 'minProperties'))
    rejectSchema(
      under(part?.path ?? '', 'minProperties'),
      'is not supported: names that the schema does not list may repeat. List more properties, ' +
        `or require at most ${possible + 1}.`,
    )
  }
  return sequence(text('{'), inOrder(pairs, others, min, max, compiler), text('}'))
}

/** Returns the names that the schema lists, in its order. */
function namesOf(flat: Flat, { context }: Compiler): string[] {
  const open = flat.some((part) => has(part, 'additionalProperties'))
  const listed = children(flat, 'propertyNames').flatMap((part) =>
    flatten([part], context).flatMap((each) => listedOf(each, context) ?? []),
  )
  return [
    ...new Set(
      [
        ...flat.flatMap((part) => [...named(part, 'properties').keys()]),
        ...requiredOf(flat, context),
        ...(open || flat.every((part) => !has(part, 'properties')) ? listed : []),
      ].filter((name) => typeof name === 'string'),
    ),
  ]
}

/** Returns a pair whose name the schema does not list; `NOTHING` if the schema allows none. */
function othersOf(
  flat: Flat,
  names: readonly string[],
  min: number,
  compiler: Compiler,
): Expression {
  const { context, value } = compiler
  const byPattern = flat.filter((part) => named(part, 'patternProperties').size > 0)
  if (byPattern.length > 0) return matching(flat, byPattern, names, compiler)
  const mentionsAdditional = flat.some((part) => has(part, 'additionalProperties'))
  if (!mentionsAdditional && names.length >= Math.max(1, min)) return NOTHING
  const content = value(children(flat, 'additionalProperties'))
  const rules = children(flat, 'propertyNames')
  const kinds = flatten(rules, context)
  const name = choice(
    ...kinds.flatMap((kind): Expression[] => {
      if (listedOf(kind, context) || !typesOf(kind).includes('string')) return []
      const free = strings(kind, context)
      if (free.type === 'string' && free.min === 0 && free.max === Infinity && plain(kind)) {
        return [otherNames(names, context.steps)]
      }
      const clash = names.find((each) => isValidForFlat(kind, each, context))
      if (clash !== undefined) {
        rejectSchema(
          kind[0]?.path ?? '',
          `is not supported together with the property ${JSON.stringify(shorten(clash))}.`,
        )
      }
      return [free]
    }),
  )
  return sequence(name, text(COLON), content)
}

const plain = (kind: Flat): boolean =>
  kind.every((part) => !['pattern', 'format', 'maxLength'].some((keyword) => has(part, keyword)))

/** Returns a pair whose name matches the only pattern. */
function matching(
  flat: Flat,
  [part, ...more]: readonly Node[],
  names: readonly string[],
  { context, value }: Compiler,
): Expression {
  if (!part) return NOTHING
  const path = under(part.path, 'patternProperties')
  const [entry, ...others] = named(part, 'patternProperties')
  const [pattern, schema] = entry ?? ['', part]
  if (others.length + more.length > 0) rejectSchema(path, 'has several patterns. Use only one.')
  if (names.some((name) => isMatch(pattern, name, context))) {
    rejectSchema(path, 'has a pattern that matches a listed property. Exclude it from the pattern.')
  }
  if (get(part, 'additionalProperties') !== false) {
    rejectSchema(path, 'is supported only with `additionalProperties: false`.')
  }
  if (children(flat, 'propertyNames').length > 0)
    rejectSchema(path, 'is not supported together with `propertyNames`.')
  const rest = children(
    flat.filter((each) => each !== part),
    'additionalProperties',
  )
  return sequence(
    quoted(patternOf(pattern, context), context.steps),
    text(COLON),
    value([schema, ...rest]),
  )
}

/**
 * Returns the pairs in their order. They are counted only as far as limits require it. Names that
 * no schema lists may repeat, so that only one of them counts towards the minimum.
 */
function inOrder(
  pairs: readonly Pair[],
  others: Expression,
  min: number,
  max: number,
  { context: { steps }, define }: Compiler,
): Expression {
  const comma = text(COMMA)
  const most = Math.max(1, min, max === Infinity ? 0 : max)
  const cached = new Map<string, Expression>()

  const behind = (index: number, count: number): Expression => {
    const key = `${index} ${Math.min(count, most)}`
    const made = cached.get(key) ?? place(index, Math.min(count, most))
    cached.set(key, made)
    return made
  }

  /** Returns the texts from a pair on. They become a rule if there is a choice. */
  const place = (index: number, count: number): Expression =>
    pairs[index]?.required || (index === pairs.length && isNothing(others))
      ? from(index, count)
      : define(() => from(index, count))

  const from = (index: number, count: number): Expression => {
    const lead = count > 0 ? comma : EMPTY
    const pair = pairs[index]
    if (!pair) return last(count, lead)
    const skipped = pair.required ? NOTHING : behind(index + 1, count)
    const full = max < Infinity && count >= max
    const taken =
      full || isNothing(pair.text)
        ? NOTHING
        : sequence(lead, pair.text, behind(index + 1, count + 1))
    const made = choice(taken, skipped)
    // Consecutive required pairs become one sequence, which is copied for each of them.
    steps.spend(1 + (taken.type === 'sequence' ? taken.parts.length : 0))
    return made
  }

  const last = (count: number, lead: Expression): Expression => {
    const room = max === Infinity ? Infinity : max - count
    const done = count >= min ? EMPTY : NOTHING
    if (isNothing(others) || room <= 0 || count + 1 < min) return done
    return choice(done, sequence(lead, others, repeat(sequence(comma, others), 0, room - 1)))
  }
  // Working from the last to the first keeps the stack flat, however many there are.
  for (let index = pairs.length; index > 0; index--) {
    for (let count = 0; count <= Math.min(index, most); count++) behind(index, count)
  }
  return behind(0, 0)
}
