/** Makes random schemas and values, in which keywords meet that people seldom write together. */

export type Random = () => number

export function createRandom(seed: number): Random {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    return (state >>> 8) / 2 ** 24
  }
}

const NAMES = ['a', 'b', 'ab', 'c']
const TEXTS = ['', 'a', 'b', 'ab', 'abc']
const PATTERNS = ['^a', 'b$', '^a?$', 'b']
const SCALARS = [null, true, false, 0, 1, 2, 2.5, -1, ...TEXTS]

export class RandomSchemas {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  #pick<Value>(values: readonly Value[]): Value {
    const value = values[Math.floor(this.#random() * values.length)]
    if (value === undefined) throw new Error('There is nothing to pick from.')
    return value
  }

  #some<Value>(values: readonly Value[], share = 0.5): Value[] {
    return values.filter(() => this.#random() < share)
  }

  #byName(depth: number): Record<string, unknown> {
    return Object.fromEntries(this.#some(NAMES).map((name) => [name, this.schema(depth)]))
  }

  #list(depth: number, most = 3): unknown[] {
    return Array.from({ length: 1 + Math.floor(this.#random() * most) }, () => this.schema(depth))
  }

  value(depth = 2): unknown {
    const choice = depth === 0 ? 0 : this.#random()
    if (choice < 0.4) return this.#pick(SCALARS)
    if (choice < 0.65)
      return Array.from({ length: Math.floor(this.#random() * 4) }, () => this.value(depth - 1))
    return Object.fromEntries(this.#some(NAMES).map((name) => [name, this.value(depth - 1)]))
  }

  /** Returns a schema whose references lead to `#/$defs/a` and `#/$defs/b`. */
  root(): Record<string, unknown> {
    const root = this.schema(3)
    const $defs = { a: this.schema(2), b: this.schema(2) }
    return typeof root === 'boolean' ? { $defs } : { ...(root as object), $defs }
  }

  schema(depth: number): unknown {
    if (depth === 0 || this.#random() < 0.1)
      return this.#pick([true, false, {}, { type: 'string' }, { type: 'integer' }, { const: 'a' }])
    const makers = this.#makers(depth - 1)
    const keywords = this.#random() < 0.4 ? [['type', this.#type()]] : []
    const count = 1 + Math.floor(this.#random() * 3)
    for (let at = 0; at < count; at++) {
      const [keyword, make] = this.#pick(makers)
      keywords.push([keyword, make()])
    }
    return Object.fromEntries(keywords)
  }

  #type(): unknown {
    const types = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object']
    return this.#random() < 0.7
      ? this.#pick(types)
      : [...new Set([this.#pick(types), this.#pick(types)])]
  }

  #makers(depth: number): (readonly [string, () => unknown])[] {
    const schema = (): unknown => this.schema(depth)
    const count = (): number => Math.floor(this.#random() * 3)
    return [
      ['enum', () => [this.value(1), this.value(1), this.value(1)]],
      ['const', () => this.value(1)],
      ['minimum', () => this.#pick([-1, 0, 1, 1.5])],
      ['maximum', () => this.#pick([0, 1, 2, 2.5])],
      ['exclusiveMinimum', () => this.#pick([-1, 0, 1])],
      ['exclusiveMaximum', () => this.#pick([1, 2, 3])],
      ['multipleOf', () => this.#pick([1, 2, 0.5])],
      ['minLength', count],
      ['maxLength', count],
      ['pattern', () => this.#pick(PATTERNS)],
      ['properties', () => this.#byName(depth)],
      ['properties', () => this.#byName(depth)],
      ['required', () => this.#some(NAMES)],
      ['required', () => this.#some(NAMES, 0.3)],
      ['additionalProperties', schema],
      ['additionalProperties', () => false],
      ['patternProperties', () => Object.fromEntries([[this.#pick(PATTERNS), schema()]])],
      [
        'propertyNames',
        () =>
          this.#pick([
            { pattern: '^a' },
            { enum: ['a', 'c'] },
            { maxLength: 1 },
            { type: 'string' },
          ]),
      ],
      ['minProperties', count],
      ['maxProperties', count],
      ['unevaluatedProperties', () => false],
      [
        'dependentRequired',
        () => Object.fromEntries(this.#some(NAMES).map((name) => [name, this.#some(NAMES)])),
      ],
      ['dependentSchemas', () => this.#byName(depth)],
      ['items', schema],
      ['prefixItems', () => this.#list(depth)],
      ['minItems', count],
      ['maxItems', count],
      ['uniqueItems', () => true],
      ['contains', schema],
      ['maxContains', count],
      ['minContains', count],
      ['unevaluatedItems', () => false],
      ['allOf', () => this.#list(depth)],
      ['anyOf', () => this.#list(depth)],
      ['oneOf', () => this.#list(depth)],
      ['not', schema],
      ['if', schema],
      ['then', schema],
      ['else', schema],
      ['$ref', () => this.#pick(['#/$defs/a', '#/$defs/b', '#'])],
    ]
  }
}
