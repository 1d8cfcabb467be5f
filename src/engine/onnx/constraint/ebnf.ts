/**
 * A grammar in the EBNF of xgrammar, in the few forms of it that do what they say: version 0.1.27 takes
 * ranges of characters for ranges of bytes, so characters beyond ASCII are written byte by byte, and
 * deep brackets overflow its stack, so there are none.
 */
import type { Characters } from '../../schema/characters.ts'
import { inString } from '../../schema/characters.ts'
import type { Dispatch, Expression, Grammar, StringOf } from '../../schema/expression.ts'
import { type Bytes, utf8 } from './utf8.ts'

/** Of longer strings than this, a state for each length costs too much: tens of milliseconds each. */
export const COUNTED = 8

/** Repetitions up to here are a rule each; beyond, they are put together from powers of two. */
const CHAINED = 64

export interface Ebnf {
  source: string
  rules: number
}

/** `exact: false`: strings with limits above {@link COUNTED} have any length. */
export function toEbnf({ root, rules }: Grammar, exact: boolean): Ebnf {
  const lines: string[] = []
  const names = new Map<string, string>()
  const bodies = new Map<string, string>()
  let count = 0
  const fresh = (): string => `r${count++}`

  /** A rule for these alternatives; equal ones share it. */
  const define = (alternatives: readonly string[]): string => {
    const body = alternatives.length > 0 ? alternatives.join(' | ') : '""'
    const known = bodies.get(body)
    if (known) return known
    const name = fresh()
    bodies.set(body, name)
    lines.push(`${name} ::= ${body}`)
    return name
  }

  /** A rule whose alternatives may name it. */
  const loop = (alternatives: (self: string) => readonly string[]): string => {
    const key = alternatives('@').join(' | ')
    const known = bodies.get(key)
    if (known) return known
    const name = fresh()
    bodies.set(key, name)
    lines.push(`${name} ::= ${alternatives(name).join(' | ')}`)
    return name
  }

  const alternatives = (expression: Expression): string[] => {
    if (expression.type === 'choice') return [...new Set(expression.parts.flatMap(alternatives))]
    if (expression.type === 'set') return bytes(expression.set)
    return [term(expression)]
  }

  const times = (part: Expression, min: number, max: number): string => {
    const each = alternatives(part)
    /** `length` times and then the rest, or at any earlier time the end where `open`. */
    const chain = (length: number, rest: string, open: boolean): string => {
      let name = rest
      for (let i = 0; i < length; i++) {
        const next = name
        name = define([...(open ? ['""'] : []), ...each.map((one) => `${one} ${next}`.trim())])
      }
      return name
    }
    const single = define(each)
    const power = (exponent: number): string => {
      let name = single
      for (let i = 0; i < exponent; i++) name = define([`${name} ${name}`])
      return name
    }
    const exactly = (length: number): string => {
      const parts: string[] = []
      for (let i = 0; 2 ** i <= length; i++) {
        if (Math.floor(length / 2 ** i) % 2 === 1) parts.push(power(i))
      }
      return parts.join(' ')
    }
    /** Below a power of two, a part for each bit; beyond it, the power and the rest. */
    const below = (exponent: number): string =>
      exponent === 0 ? '""' : define([below(exponent - 1), `${power(exponent - 1)} ${below(exponent - 1)}`])
    const upTo = (length: number): string => {
      const exponent = Math.floor(Math.log2(length + 1))
      const left = length - 2 ** exponent
      return left < 0
        ? below(exponent)
        : define([below(exponent), `${power(exponent)} ${upTo(left)}`])
    }
    if (max === Infinity) {
      const star = loop((self) => ['""', ...each.map((one) => `${one} ${self}`)])
      return min > CHAINED ? `${exactly(min)} ${star}` : chain(min, star, false)
    }
    if (max <= CHAINED) return chain(min, chain(max - min, '', true), false)
    return `${exactly(min)} ${upTo(max - min)}`.trim()
  }

  const quoted = ({ set, min, max }: StringOf): string => {
    const long = max > COUNTED && max < Infinity
    const low = !exact && min > COUNTED ? 0 : min
    const high = !exact && long ? Infinity : max
    const character = inString(set)
    if (high < Infinity || low > COUNTED) return `"\\"" ${times(character, low, high)} "\\""`
    const each = alternatives(character)
    let rest = loop((self) => ['"\\""', ...each.map((one) => `${one} ${self}`)])
    for (let i = 0; i < low; i++) {
      const next = rest
      rest = define(each.map((one) => `${one} ${next}`))
    }
    return `"\\"" ${rest}`
  }

  const dispatch = ({ triggers, stop, single }: Dispatch): string => {
    const pairs = triggers.map(({ text, rule }) => `(${quote(text)}, ${named(rule)}), `)
    const end = stop === undefined ? 'stop_eos=true, stop_str=()' : `stop_eos=false, stop_str=(${quote(stop)})`
    return define([`TagDispatch(${pairs.join('')}${end}, loop_after_dispatch=${!single})`])
  }

  const term = (expression: Expression): string => {
    switch (expression.type) {
      case 'text':
        return quote(expression.text)
      case 'set':
      case 'choice': {
        const [only, ...others] = alternatives(expression)
        return only !== undefined && others.length === 0 ? only : define(alternatives(expression))
      }
      case 'sequence':
        return expression.parts.map(term).join(' ')
      case 'repeat':
        return times(expression.part, expression.min, expression.max)
      case 'rule':
        return named(expression.name)
      case 'string':
        return quoted(expression)
      case 'dispatch':
        return dispatch(expression)
    }
  }

  const named = (name: string): string => {
    const known = names.get(name)
    if (known) return known
    const id = fresh()
    names.set(name, id)
    const body = rules.get(name)
    lines.push(`${id} ::= ${body ? alternatives(body).join(' | ') : '""'}`)
    return id
  }

  const start = alternatives(root)
  lines.push(`root ::= ${start.join(' | ')}`)
  return { source: lines.join('\n'), rules: lines.length }
}

const bytes = (set: Characters): string[] => utf8(set).map((places) => places.map(place).join(' '))

/** A single byte given twice stays a byte; given once, it is taken for a character. */
function place(ranges: Bytes): string {
  const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`
  const [only] = ranges
  const single = ranges.length === 1 && only && only[0] === only[1]
  const all = single ? [only, only] : ranges
  return `[${all.map(([first, last]) => `${hex(first)}-${hex(last)}`).join('')}]`
}

const quote = (text: string): string =>
  `"${text.replaceAll(/["\\\u0000-\u001f\u007f]/g, (character) =>
    character === '"' || character === '\\'
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}"`
