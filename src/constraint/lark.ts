/** Writes a constraint as a grammar in the engine's Lark syntax. */
import {
  type Constraint,
  ConstraintError,
  type JsonConstraint,
  type JsonSchema,
  type TaggedConstraint,
} from './constraint.ts'
import {
  type Characters,
  childrenOf,
  choice,
  EMPTY,
  type EnginePart,
  type Expression,
  type FreeText,
  isEmpty,
  type Lexeme,
  type Lexemes,
  memoize,
  repeat,
  type Rule,
  sequence,
  type Symbol,
  text,
  type TextExpression,
} from './expression.ts'
import { readGrammar, readLark } from './grammars.ts'
import { divide } from './lexemes.ts'
import { ANY_CHARACTER, setsOf } from './pattern/characters.ts'
import { PatternError, toWholePattern } from './pattern.ts'
import { write, writeCount } from './pattern/node.ts'

/** Options of the engine for all JSON: one space after each `,` and `:`, and no other white space. */
const JSON_OPTIONS = { whitespace_flexible: false, item_separator: ', ', key_separator: ': ' }

/** Escapes in JSON. Without those by number, no name escapes its schema, but control characters need them. */
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
  return new SourceWriter(lexemes).write(lexemes.root)
}

type Triggered = Extract<Constraint, { type: 'triggered' }>
type Grammar = Extract<Constraint, { type: 'grammar' }>

class Builder {
  readonly rules = new Map<string, Expression>()
  readonly #tokens: Tokens
  readonly #json: (part: JsonConstraint) => JsonSchema
  /** Builds a part that nothing ends. An answer with reasoning and one without it have the same. */
  readonly #buildOnce = memoize((part: Constraint) => this.#build(part, ''))
  readonly #jsonPart = memoize((written: string): EnginePart => {
    const first = firstCharacters(JSON.parse(written).type)
    return { type: 'engine', kind: 'json', source: `%json ${written}`, first }
  })
  /** Number of grammars, each of which has a prefix for the names of its rules. */
  #scopes = 0

  constructor(tokens: Tokens, json: (part: JsonConstraint) => JsonSchema) {
    this.#tokens = tokens
    this.#json = json
  }

  /** Builds a part. `stop` is the text that ends it, and becomes part of the result. */
  build(part: Constraint, stop: string): Expression {
    return stop ? this.#build(part, stop) : this.#buildOnce(part)
  }

  #build(part: Constraint, stop: string): Expression {
    const ended = (expression: Expression): Expression => sequence(expression, this.#text(stop))
    switch (part.type) {
      case 'text':
        return this.#freeText(stop)
      case 'sequence':
        return this.#sequence(part.parts, stop)
      case 'choice': {
        const parts = part.parts.map((each) => this.build(each, stop))
        return { type: 'choice', parts, prefersJson: true }
      }
      case 'triggered':
        if (stop) throw unended()
        return this.#triggered(part)
      case 'tagged':
        return this.#tagged(part, stop)
      case 'constant':
        return ended(this.#text(part.text))
      case 'json':
        return ended(this.#schema(part))
      case 'pattern':
        return ended(readPattern(part.pattern, part.flags))
      case 'grammar':
        return ended(this.#grammar(part))
      case 'separated': {
        const tags = choice(...part.tags.map((tag) => this.#tagged(tag, '')))
        const more = part.single ? EMPTY : repeat(sequence(this.#text(part.separator), tags), 0)
        const list = sequence(tags, more)
        return ended(part.required ? list : repeat(list, 0, 1))
      }
      case 'rest':
        throw invalid('A constraint of the rest of a text stands only at the top.')
    }
  }

  #text(value: string): Expression {
    return sequence(...this.#tokens.split(value))
  }

  /** Returns any text. With `stop`, it ends at the first `stop`. */
  #freeText(stop: string): Expression {
    const parts = this.#tokens.split(stop)
    const [first] = parts
    if (first === undefined) return { type: 'free', words: [], end: null }
    if (first.type === 'text' && parts.length === 1)
      return { type: 'free', words: [stop], end: stop }
    // A token may also be spelled out, which readers of the answer would take for the token.
    return sequence({ type: 'free', words: [stop], end: null }, ...parts)
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
    // Free text contains no trigger, even if tokens of the trigger are spelled out.
    const other: Expression = { type: 'free', words: triggers, end: null }
    const calls = choice(
      ...triggers.map((trigger) => {
        const pieces = this.#tokens.split(trigger)
        const tags = part.tags.filter(({ begin }) => begin.startsWith(trigger))
        const rest = choice(...tags.map((tag) => this.#tagged(tag, '', trigger)))
        return pieces.length === 1 && pieces[0]?.type === 'text'
          ? sequence({ type: 'free', words: triggers, end: trigger }, rest)
          : sequence(other, ...pieces, rest)
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
    return this.#jsonPart(JSON.stringify({ ...Object(schema), 'x-guidance': options }))
  }

  #grammar({ grammar, syntax }: Grammar): Expression {
    const findToken = (name: string): EnginePart | null => this.#tokens.find(name)
    if (syntax === 'lark') {
      const source = `%lark {\n${readLark(grammar, findToken)}\n}`
      return { type: 'engine', kind: 'lark', source, first: ANY_CHARACTER }
    }
    this.#scopes += 1
    return readGrammar(grammar, syntax ?? 'ebnf', {
      scope: `g${this.#scopes}.`,
      rules: this.rules,
      findToken,
      toText: (value) => this.#text(value),
    })
  }
}

function readPattern(source: string, flags?: string): Expression {
  try {
    return toWholePattern(source, flags)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw invalid(`The pattern is not supported: it has ${error.message}.`)
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

/** Returns the characters with which a value of the types can begin. */
function firstCharacters(type: unknown): Characters {
  const known = [type].flat().map((each) => FIRST_OF_TYPE[String(each)])
  const characters = known.includes(undefined) ? Object.values(FIRST_OF_TYPE) : known
  return setsOf(characters.join(''))
}

const unended = (): ConstraintError =>
  invalid('Free text must come last or be followed by a fixed text.')

const invalid = (message: string): ConstraintError =>
  new ConstraintError('unsupported_constraint', message)

class Tokens {
  readonly #ids: ReadonlyMap<string, number>
  /** Matches the name of a token, the longest one first. */
  readonly #form: RegExp
  readonly #part = memoize((source: string): EnginePart => {
    return { type: 'engine', kind: 'token', source, first: [] }
  })

  constructor(ids: ReadonlyMap<string, number>) {
    this.#ids = ids
    const names = [...ids.keys()].filter((name) => name !== '').sort((a, b) => b.length - a.length)
    const forms = names.map((name) => name.replaceAll(/\W/g, String.raw`\$&`))
    this.#form = new RegExp(`(${forms.join('|') || '(?!)'})`)
  }

  /** Returns the token of a name such as `<think>`, or of an id such as `<[5]>`. */
  find(name: string): EnginePart | null {
    const id = this.#ids.get(name)
    if (id !== undefined) return this.#part(`<[${id}]>`)
    // The engine knows ranges of ids as well.
    return /^<\[[\^\d,*-]+\]>$/.test(name) ? this.#part(name) : null
  }

  /** Divides a text into special tokens and the texts between them. */
  split(value: string): readonly (TextExpression | EnginePart)[] {
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value))
      throw invalid('A text of the constraint contains an invalid character.')
    // The names stand at the odd places.
    return value
      .split(this.#form)
      .map((piece, at) => (at % 2 === 1 && this.find(piece)) || text(piece))
      .filter((part) => !isEmpty(part))
  }
}

// Writes rules and lexemes as a grammar in the engine's Lark syntax.

/** Number of rules and lexemes that contain each other. More of them would exhaust the engine's stack. */
const MAX_DEPTH = 150
/** Number of groups of a regular expression that contain each other. The engine takes 250 nodes of any kind. */
const MAX_GROUP_DEPTH = 25

class SourceWriter {
  /** Rules of the language that are lexemes or parts of them. */
  readonly #expressions: ReadonlyMap<string, Expression>
  readonly #names = new Map<Rule, string>()
  /** Returns the literal or the name of an expression. */
  readonly #atom = memoize((expression: Expression): string => {
    this.#enter()
    const atom = this.#writeAtom(expression)
    this.#depth -= 1
    return atom
  })
  readonly #ruleAtom = memoize((name: string): string => {
    const body = this.#expressions.get(name)
    return body ? this.#atom(body) : '""'
  })
  /** Names of lexemes and of engine rules, by their source. */
  readonly #definitions = new Map<string, string>()
  readonly #rules: string[] = []
  #depth = 0

  constructor({ expressions }: Lexemes) {
    this.#expressions = expressions
  }

  /** Writes a grammar with the rule `start`. */
  write(root: Rule): string {
    this.#rule(root)
    const definitions = [...this.#definitions].map(([source, name]) => `${name}: ${source}`)
    return `${[...this.#rules, ...definitions].join('\n')}\n`
  }

  #rule(rule: Rule): string {
    const known = this.#names.get(rule)
    if (known !== undefined) return known
    const name = this.#names.size === 0 ? 'start' : `r${this.#names.size}`
    this.#names.set(rule, name)
    this.#enter()
    const alternatives = rule.alternatives.map((symbols) =>
      symbols.length === 0 ? '""' : symbols.map((symbol) => this.#symbol(symbol)).join(' '),
    )
    this.#depth -= 1
    this.#rules.push(`${name}: ${alternatives.join(' | ')}`)
    return name
  }

  #enter(): void {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) {
      throw new ConstraintError(
        'unsupported_constraint',
        `The constraint has more than ${MAX_DEPTH} rules that contain each other. Make it flatter.`,
      )
    }
  }

  #symbol(symbol: Symbol): string {
    if (symbol.type === 'lexeme') return this.#lexeme(symbol.lexeme)
    if (symbol.type === 'rule') return this.#rule(symbol.rule)
    return this.#symbol(symbol.symbol) + writeCount(symbol.min, symbol.max)
  }

  #lexeme({ expression, limits }: Lexeme): string {
    const atom = this.#atom(expression)
    if (!limits) return atom
    const { beginnings, isShortest } = limits
    const refused = beginnings.map((each) => `${this.#atom(each)} ${ANY_TEXT}`)
    if (isShortest) refused.push(`${atom} ${SOME_TEXT}`)
    return this.#define([atom, ...refused.map((each) => `~(${each})`)].join(' & '), 'T')
  }

  #writeAtom(expression: Expression): string {
    if (isEmpty(expression)) return '""'
    if (expression.type === 'text') return writeText(expression.text)
    if (expression.type === 'engine') {
      const { kind, source } = expression
      return kind === 'token' ? source : this.#define(source, 'e')
    }
    return expression.type === 'rule'
      ? this.#ruleAtom(expression.name)
      : this.#define(this.#body(expression), 'T')
  }

  /** Returns the name of a lexeme, or of a rule if the prefix is lower case. */
  #define(source: string, prefix: 'T' | 'e'): string {
    const known = this.#definitions.get(source) ?? `${prefix}${this.#definitions.size}`
    this.#definitions.set(source, known)
    return known
  }

  /** Returns what defines a lexeme. Parts that are no regular expression have a name each. */
  #body(expression: Expression): string {
    if (isPattern(expression)) return `/${write(expression) || '(?:)'}/`
    switch (expression.type) {
      case 'free':
        return writeFreeText(expression)
      case 'sequence':
        return expression.parts.map((part) => this.#atom(part)).join(' ')
      case 'choice':
        return expression.parts.map((part) => this.#atom(part)).join(' | ')
      case 'repeat':
        return this.#atom(expression.part) + writeCount(expression.min, expression.max)
      default:
        return this.#atom(expression)
    }
  }
}

const ANY_TEXT = '/(?s:.*)/'
const SOME_TEXT = '/(?s:.+)/'

/** Writes free text. Whatever ends it ends the lexeme, so no text of it begins with another one. */
function writeFreeText({ words, end }: FreeText): string {
  if (words.length === 0) return ANY_TEXT
  const all = `(${words.map(writeText).join(' | ')})`
  return end === null
    ? `${ANY_TEXT} & ~(${ANY_TEXT} ${all} ${ANY_TEXT})`
    : `${ANY_TEXT} ${writeText(end)} & ~(${ANY_TEXT} ${all} ${SOME_TEXT})`
}

/** Returns `true` if the expression is a regular expression of the engine, refers to no rule, and is not too deep. */
const isPattern = (expression: Expression, depth = 0): boolean =>
  depth <= MAX_GROUP_DEPTH &&
  !['free', 'rule', 'engine'].includes(expression.type) &&
  childrenOf(expression).every((part) => isPattern(part, depth + 1))

/** Writes a string literal, which is JSON but for the character U+007F. */
const writeText = (value: string): string => JSON.stringify(value).replaceAll('\x7f', '\\u007f')
