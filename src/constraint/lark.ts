/** Writes a constraint as a grammar in the engine's Lark syntax. */
import type { Constraint, JsonConstraint, JsonSchema, TaggedConstraint } from './constraint.ts'
import { ConstraintError } from './error.ts'
import {
  ANY_CHARACTER,
  type CharacterRange,
  choice,
  EMPTY,
  type EnginePart,
  type Expression,
  normalizeRanges,
  optional,
  NOTHING,
  repeat,
  sequence,
  text,
} from './expression.ts'
import { readEbnf, readGbnf, readLark } from './grammars.ts'
import { writeSource } from './lark-source.ts'
import { divide } from './lexemes.ts'
import { PatternError, toWholePattern } from './pattern.ts'
import type { Pattern } from './pattern/node.ts'
import { Tokens } from './tokens.ts'

/** Options of the engine for all JSON: one space after each `,` and `:`, and no other white space. */
const JSON_OPTIONS = { whitespace_flexible: false, item_separator: ', ', key_separator: ': ' }

/**
 * Escapes in the JSON of a schema. Without those by number, no name can be spelled in a way in which it escapes its
 * schema. A schema that names control characters needs them: the engine would leave out the characters.
 */
const ESCAPES = 'nrbtf\\"'
const CONTROL_CHARACTERS = /\\u00[01]|\x7f|\\x\{(?:[0-7BEF]|1[0-9A-F]|7F)\}/i

/**
 * Writes a constraint as a Lark grammar. `special` has the ids of special tokens by name; a text that contains a name
 * requires the token. `json` rewrites the schema of a part for the engine. Throws {@link ConstraintError} if the
 * constraint is not supported, or if no text satisfies it.
 */
export function writeLark(
  constraint: Constraint,
  special: ReadonlyMap<string, number>,
  json: (part: JsonConstraint) => JsonSchema,
): string {
  const tokens = new Tokens(special)
  if (constraint.type === 'grammar' && constraint.syntax === 'lark')
    return readLark(constraint.grammar, (name) => tokens.find(name))
  const builder = new Builder(tokens, json)
  const root = builder.build(constraint, '')
  const lexemes = divide({ root, rules: builder.rules })
  if (!lexemes) throw invalid('No text can satisfy the constraint.')
  return writeSource(lexemes)
}

type Triggered = Extract<Constraint, { type: 'triggered' }>
type Grammar = Extract<Constraint, { type: 'grammar' }>

/** Converts constraints into expressions. */
class Builder {
  readonly rules = new Map<string, Expression>()
  readonly #tokens: Tokens
  readonly #json: (part: JsonConstraint) => JsonSchema
  /** Parts that nothing ends. An answer with reasoning and one without it have the same. */
  readonly #built = new Map<Constraint, Expression>()
  /** JSON parts by their schema. */
  readonly #schemas = new Map<string, EnginePart>()
  /** Number of grammars, each of which has a prefix for the names of its rules. */
  #scopes = 0

  constructor(tokens: Tokens, json: (part: JsonConstraint) => JsonSchema) {
    this.#tokens = tokens
    this.#json = json
  }

  /** Builds a part. `stop` is the text that ends it, and becomes part of the result. */
  build(part: Constraint, stop: string): Expression {
    if (stop) return this.#build(part, stop)
    const known = this.#built.get(part) ?? this.#build(part, '')
    this.#built.set(part, known)
    return known
  }

  #build(part: Constraint, stop: string): Expression {
    switch (part.type) {
      case 'text':
        return this.#freeText(stop)
      case 'sequence':
        return this.#sequence(part.parts, stop)
      case 'choice':
        return {
          type: 'choice',
          parts: part.parts.map((each) => this.build(each, stop)),
          prefersJson: true,
        }
      case 'triggered':
        if (stop) throw unended()
        return this.#triggered(part)
      case 'tagged':
        return this.#tagged(part, stop)
      default:
        return sequence(this.#closed(part), this.#text(stop))
    }
  }

  #closed(
    part: Exclude<Constraint, { type: 'text' | 'sequence' | 'choice' | 'triggered' | 'tagged' }>,
  ): Expression {
    switch (part.type) {
      case 'constant':
        return this.#text(part.text)
      case 'json':
        return this.#schema(part)
      case 'pattern':
        return readPattern(part.pattern, part.flags)
      case 'grammar':
        return this.#grammar(part)
      case 'separated': {
        const tags = choice(...part.tags.map((tag) => this.#tagged(tag, '')))
        const more = part.single ? EMPTY : repeat(sequence(this.#text(part.separator), tags), 0)
        const list = sequence(tags, more)
        return part.required ? list : optional(list)
      }
      case 'rest':
        throw invalid('A constraint of the rest of a text stands only at the top.')
    }
  }

  #text(value: string): Expression {
    const parts = this.#tokens.split(checked(value))
    return sequence(...parts.map((part) => (typeof part === 'string' ? text(part) : part)))
  }

  /** Returns any text. With `stop`, it ends at the first `stop`. */
  #freeText(stop: string): Expression {
    const [first, ...rest] = this.#tokens.split(checked(stop))
    const tail = rest.map((part) => (typeof part === 'string' ? text(part) : part))
    if (first === undefined) return { type: 'free', words: [], end: null }
    if (typeof first === 'string' && tail.length === 0)
      return { type: 'free', words: [first], end: first }
    // A token may also be spelled out, which readers of the answer would take for the token.
    const head = typeof first === 'string' ? text(first) : first
    return sequence({ type: 'free', words: [stop], end: null }, head, ...tail)
  }

  #sequence(parts: readonly Constraint[], stop: string): Expression {
    const built: Expression[] = []
    parts.forEach((part, index) => {
      const next = parts[index + 1]
      const previous = parts[index - 1]
      if (part.type === 'constant' && previous && endsFreely(previous)) return
      if (!next) built.push(this.build(part, stop))
      else if (!endsFreely(part)) built.push(this.build(part, ''))
      else if (next.type === 'constant' && next.text) {
        built.push(this.build(part, next.text))
        if (index + 2 === parts.length) built.push(this.#text(stop))
      } else throw unended()
    })
    return sequence(...built)
  }

  /** Builds a tag without its trigger, which was written before. */
  #tagged({ begin, content, end }: TaggedConstraint, stop: string, trigger = ''): Expression {
    const opening = this.#text(begin.slice(trigger.length))
    return end
      ? sequence(opening, this.build(content, end), this.#text(stop))
      : sequence(opening, this.build(content, stop))
  }

  #triggered(part: Triggered): Expression {
    const first = choice(...part.tags.map((tag) => this.#tagged(tag, '')))
    if (part.required && part.single) return first
    // A trigger that begins with another one is covered by the shorter one.
    const triggers = part.triggers.filter(
      (trigger, index) =>
        !part.triggers.some((other, at) =>
          trigger === other ? at < index : trigger.startsWith(other),
        ),
    )
    const split = triggers.map((trigger) => ({
      pieces: this.#tokens.split(checked(trigger)),
      rest: choice(
        ...part.tags
          .filter(({ begin }) => begin.startsWith(trigger))
          .map((tag) => this.#tagged(tag, '', trigger)),
      ),
    }))
    // Free text contains no trigger, even if tokens of the trigger are spelled out.
    const other: Expression = { type: 'free', words: triggers, end: null }
    const calls = choice(
      ...split.map(({ pieces, rest }) => {
        const [word, ...more] = pieces
        if (typeof word === 'string' && more.length === 0)
          return sequence({ type: 'free', words: triggers, end: word }, rest)
        const parts = pieces.map((piece) => (typeof piece === 'string' ? text(piece) : piece))
        return sequence(other, ...parts, rest)
      }),
    )
    if (!part.required && part.single) return choice(calls, other)
    const more = sequence(repeat(calls, 0), other)
    return part.required ? sequence(first, more) : more
  }

  #schema(part: JsonConstraint): EnginePart {
    const schema = this.#json(part)
    if (schema === false) throw invalid('No value satisfies the schema.')
    const options = CONTROL_CHARACTERS.test(JSON.stringify(schema))
      ? JSON_OPTIONS
      : { ...JSON_OPTIONS, json_allowed_escapes: ESCAPES }
    // The engine puts the last keyword in the place of the options, so they come last.
    const written = JSON.stringify({ ...(schema === true ? {} : schema), 'x-guidance': options })
    const known = this.#schemas.get(written)
    if (known) return known
    const made: EnginePart = {
      type: 'engine',
      kind: 'json',
      source: `%json ${written}`,
      first: firstCharacters(schema),
    }
    this.#schemas.set(written, made)
    return made
  }

  #grammar({ grammar, syntax }: Grammar): Expression {
    const findToken = (name: string): EnginePart | null => this.#tokens.find(name)
    if (syntax === 'lark') {
      const source = `%lark {\n${readLark(grammar, findToken)}\n}`
      return { type: 'engine', kind: 'lark', source, first: ANY_CHARACTER }
    }
    this.#scopes += 1
    return (syntax === 'gbnf' ? readGbnf : readEbnf)(grammar, {
      scope: `g${this.#scopes}.`,
      rules: this.rules,
      findToken,
      toText: (value) => this.#text(value),
    })
  }
}

function readPattern(source: string, flags?: string): Expression {
  try {
    return toExpression(toWholePattern(source, flags))
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw invalid(`The pattern is not supported: it has ${error.message}.`)
  }
}

/** Returns a pattern without assertions as an expression, which is divided into lexemes like the rest. */
function toExpression(pattern: Pattern): Expression {
  switch (pattern.type) {
    case 'set':
      return pattern.set.length > 0 ? { type: 'set', ranges: pattern.set } : NOTHING
    case 'sequence':
      return sequence(...pattern.parts.map(toExpression))
    case 'choice':
      return choice(...pattern.parts.map(toExpression))
    case 'repeat':
      return repeat(toExpression(pattern.part), pattern.min, pattern.max)
    default:
      throw new TypeError('The pattern has an assertion.')
  }
}

/** Returns `true` if the part continues until something else ends it. */
function endsFreely(part: Constraint): boolean {
  if (part.type === 'text' || part.type === 'triggered') return true
  if (part.type === 'choice') return part.parts.some(endsFreely)
  if (part.type === 'tagged') return part.end === '' && endsFreely(part.content)
  const last = part.type === 'sequence' ? part.parts.at(-1) : undefined
  return last !== undefined && endsFreely(last)
}

const FIRST_OF_TYPE: Readonly<Record<string, string>> = {
  object: '{',
  array: '[',
  string: '"',
  number: '-0123456789',
  integer: '-0123456789',
  boolean: 'tf',
  null: 'n',
}

/** Returns the characters with which a value can begin. */
function firstCharacters(schema: JsonSchema): readonly CharacterRange[] {
  const type = typeof schema === 'boolean' ? undefined : schema['type']
  const types = Array.isArray(type) ? type : [type]
  const known = types.map((each) => FIRST_OF_TYPE[String(each)])
  const characters = known.includes(undefined) ? Object.values(FIRST_OF_TYPE) : known
  const codes = Array.from(characters.join(''), (character) => character.charCodeAt(0))
  return normalizeRanges(codes.map((code) => [code, code]))
}

function checked(value: string): string {
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value))
    throw invalid('A text of the constraint contains an invalid character.')
  return value
}

const unended = (): ConstraintError =>
  invalid('Free text must come last or be followed by a fixed text.')

const invalid = (message: string): ConstraintError =>
  new ConstraintError('unsupported_constraint', message)
