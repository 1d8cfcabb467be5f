/** The variable `loop` of a loop, and objects that count. */
import { bind, NO_ARGUMENTS, REQUIRED } from './functions.ts'
import { type Budget, TemplateError, typeError } from './errors.ts'
import { equals } from './operators.ts'
import { type Arguments, Builtin, Callable, PyObject, Undefined, type Value } from './values.ts'

/** State of a loop. A template that calls it runs the loop again, one level deeper. */
export class Loop extends Callable {
  readonly typeName = 'LoopContext'
  readonly #items: readonly Value[]
  readonly #depth: number
  readonly #budget: Budget
  readonly #recurse: ((items: Value, depth: number) => string) | null
  /** Position of the current item. */
  index = 0
  #seen: readonly Value[] | null = null

  /** `recurse` runs the loop with other items; it is `null` if the loop is not recursive. */
  constructor(
    items: readonly Value[],
    depth: number,
    budget: Budget,
    recurse: ((items: Value, depth: number) => string) | null,
  ) {
    super()
    this.#items = items
    this.#depth = depth
    this.#budget = budget
    this.#recurse = recurse
  }

  override call(args: Arguments): Value {
    const [items = null] = bind('__call__', { iterable: REQUIRED }, args)
    if (this.#recurse) return this.#recurse(items, this.#depth + 1)
    throw typeError("The loop must have the 'recursive' marker to be called recursively.")
  }

  override attribute(name: string): Value | undefined {
    const { length } = this.#items
    switch (name) {
      case 'index':
        return BigInt(this.index + 1)
      case 'index0':
        return BigInt(this.index)
      case 'revindex':
        return BigInt(length - this.index)
      case 'revindex0':
        return BigInt(length - this.index - 1)
      case 'first':
        return this.index === 0
      case 'last':
        return this.index === length - 1
      case 'length':
        return BigInt(length)
      case 'depth':
        return BigInt(this.#depth)
      case 'depth0':
        return BigInt(this.#depth - 1)
      case 'previtem':
        return this.#itemAt(this.index - 1, 'there is no previous item')
      case 'nextitem':
        return this.#itemAt(this.index + 1, 'there is no next item')
      case 'cycle':
        return new Builtin('cycle', ({ positional }) => {
          const value = positional[this.index % positional.length]
          if (value === undefined) throw typeError('no items for cycling given')
          return value
        })
      case 'changed':
        return new Builtin('changed', ({ positional }) => this.#changed(positional))
      default:
        return undefined
    }
  }

  override size(): number {
    return this.#items.length
  }

  override toText(): string {
    return `<LoopContext ${this.index + 1}/${this.#items.length}>`
  }

  #itemAt(index: number, message: string): Value {
    const item = this.#items[index]
    return item === undefined ? new Undefined(message) : item
  }

  /** Returns `true` if the values differ from those of the last call. */
  #changed(values: readonly Value[]): boolean {
    const isSame = this.#seen !== null && equals([...this.#seen], [...values], this.#budget)
    this.#seen = values
    return !isSame
  }
}

/** Result of `cycler()`, which gives its values in turn. */
export class Cycler extends PyObject {
  readonly typeName = 'Cycler'
  readonly #items: readonly Value[]
  #index = 0

  constructor({ positional }: Arguments) {
    super()
    if (positional.length === 0)
      throw new TemplateError('TemplateRuntimeError', 'at least one item has to be provided')
    this.#items = positional
  }

  override attribute(name: string): Value | undefined {
    const current = this.#items[this.#index] ?? null
    if (name === 'current') return current
    if (name === 'next') {
      return new Builtin('next', () => {
        const value = this.#items[this.#index] ?? null
        this.#index = (this.#index + 1) % this.#items.length
        return value
      })
    }
    if (name !== 'reset') return undefined
    return new Builtin('reset', () => {
      this.#index = 0
      return null
    })
  }
}

/** Result of `joiner()`, which gives its separator on all calls but the first. */
export class Joiner extends Callable {
  readonly typeName = 'Joiner'
  readonly #separator: Value
  #isUsed = false

  constructor(args: Arguments) {
    super()
    const [separator = ''] = bind('joiner', { sep: ', ' }, args)
    this.#separator = separator
  }

  override call(args: Arguments = NO_ARGUMENTS): Value {
    bind('joiner', {}, args)
    if (this.#isUsed) return this.#separator
    this.#isUsed = true
    return ''
  }
}
