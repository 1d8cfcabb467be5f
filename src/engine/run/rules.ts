/** What an answer has to be: the tokens that may come next, and those that must. */
import { InoriginError } from '../../error.ts'
import type { Constraint } from '../constraint.ts'
import type { Constraints, Matcher } from '../constraint/contract.ts'

export interface RulesOptions {
  constraints: Constraints
  /** Tokens of a text that is written for the model, structural ones included. */
  encode: (text: string) => readonly number[]
  signal: AbortSignal
}

export interface Rules {
  /** Tokens that come next without a choice; taken from its front by whoever writes them. */
  readonly given: number[]
  /** There is no constraint. */
  readonly free: boolean
  /** The answer keeps this one from here on, and no other. */
  follow(constraint: Constraint | null): Promise<void>
  /** This text comes next; throws where the constraint is against it. */
  write(text: string): void
  /** Of the next token, a bit for each that may be chosen; `null`: all. Rejects where none may. */
  mask(): Promise<Int32Array | null>
  /** A token was chosen. */
  accept(token: number): void
  close(): void
}

export function createRules({ constraints, encode, signal }: RulesOptions): Rules {
  let matcher: Matcher | null = null
  const given: number[] = []

  /**
   * Tokens are accepted when they are certain, so that what they force in turn is told. The last of a
   * text is not where a longer one may stand for it: a model that has learnt `{"` as one token does
   * not know how to go on behind `{`, so it chooses.
   */
  const force = (): void => {
    const text = given.length === 0 ? (matcher?.forced() ?? '') : ''
    if (text === '') return
    const tokens = encode(text)
    for (const [index, token] of tokens.entries()) {
      if (index === tokens.length - 1 && matcher?.goesOn(token)) return
      if (!matcher?.accept(token)) return
      given.push(token)
    }
  }

  const follow: Rules['follow'] = async (constraint) => {
    matcher?.close()
    matcher = null
    try {
      matcher = constraint && (await constraints.open(constraint, signal))
    } catch (thrown) {
      throw InoriginError.from(thrown)
    }
    force()
  }

  const write: Rules['write'] = (text) => {
    for (const token of encode(text)) {
      if (matcher && !matcher.accept(token)) throw contradiction()
      given.push(token)
    }
    force()
  }

  const mask: Rules['mask'] = async () => {
    const bits = (await matcher?.mask()) ?? null
    if (bits?.every((word) => word === 0)) throw deadEnd()
    return bits
  }

  const accept: Rules['accept'] = (token) => {
    if (matcher && !matcher.accept(token)) throw contradiction()
    force()
  }
  return {
    given,
    get free() {
      return matcher === null
    },
    follow,
    write,
    mask,
    accept,
    close: () => matcher?.close(),
  }
}

const deadEnd = (): InoriginError =>
  new InoriginError(
    'unavailable',
    'No token of this model continues the answer as its format, grammar or tools demand. Ask for ' +
      'another format, or use another model.',
    { code: 'constraint_dead_end' },
  )

const contradiction = (): InoriginError =>
  new InoriginError('internal', 'A token was written that the constraint of the answer refuses.')
