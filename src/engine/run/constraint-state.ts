/** Applies a constraint to one answer: which tokens are allowed next, and which are forced. */
import { InoriginError } from '../../error.ts'
import type { Constraint, Matcher } from '../../constraint/index.ts'
import type { ModelConstraints } from './model-constraints.ts'

/** Dependencies of {@link createConstraintState}. */
export interface ConstraintStateOptions {
  constraints: ModelConstraints
  /** Tokenizes forced text. Special tokens in it count. */
  encode: (text: string) => readonly number[]
  signal: AbortSignal
}

/** The constraint and the forced tokens of one answer. */
export interface ConstraintState {
  /** Forced tokens that come next. The caller removes them from the front. */
  readonly forcedTokens: number[]
  /** `true` without a constraint. */
  readonly isUnconstrained: boolean
  /**
   * Replaces the constraint from here on. `null` removes it. Rejects with `invalid_request` if it
   * is not supported.
   */
  setConstraint(constraint: Constraint | null): Promise<void>
  /** Forces a text. Throws if the constraint does not allow it. */
  forceText(text: string): void
  /**
   * Returns the token mask of the next token, which is valid until the next call; `null` allows all
   * tokens. Throws `constraint_dead_end` if the mask allows none.
   */
  tokenMask(): Int32Array | null
  /** Accepts a sampled token. Throws if the constraint does not allow it. */
  accept(token: number): void
  /** Frees the matcher. */
  close(): void
}

/** Creates the state of an answer without a constraint. */
export function createConstraintState({
  constraints,
  encode,
  signal,
}: ConstraintStateOptions): ConstraintState {
  let matcher: Matcher | null = null
  const forcedTokens: number[] = []

  const collectForced = (): void => {
    if (forcedTokens.length === 0 && matcher) forcedTokens.push(...takeForced(matcher, encode))
  }

  const setConstraint: ConstraintState['setConstraint'] = async (constraint) => {
    matcher?.close()
    matcher = null
    try {
      matcher = constraint && (await constraints.open(constraint, signal))
    } catch (thrown) {
      throw InoriginError.from(thrown)
    }
    collectForced()
  }

  const forceText: ConstraintState['forceText'] = (text) => {
    for (const token of encode(text)) {
      if (matcher && !matcher.accept(token)) throw contradiction()
      forcedTokens.push(token)
    }
    collectForced()
  }

  const tokenMask: ConstraintState['tokenMask'] = () => {
    const mask = matcher?.mask() ?? null
    if (mask?.every((word) => word === 0)) throw deadEnd()
    return mask
  }

  const accept: ConstraintState['accept'] = (token) => {
    if (matcher && !matcher.accept(token)) throw contradiction()
    collectForced()
  }
  return {
    forcedTokens,
    get isUnconstrained() {
      return matcher === null
    },
    setConstraint,
    forceText,
    tokenMask,
    accept,
    close: () => matcher?.close(),
  }
}

/**
 * Accepts tokens as soon as they are certain, so that the text they force in turn is found.
 *
 * The last token of a forced text is left to the sampler if a longer token may replace it. A model
 * whose vocabulary has `{"` as one token does not know how to continue after `{`.
 */
function takeForced(matcher: Matcher, encode: ConstraintStateOptions['encode']): number[] {
  const text = completeText(matcher.forced())
  if (text === '') return []
  const tokens = encode(text)
  const taken: number[] = []
  for (const [index, token] of tokens.entries()) {
    if (index === tokens.length - 1 && matcher.canExtend(token)) break
    if (!matcher.accept(token)) break
    taken.push(token)
  }
  return taken
}

/** Returns the text of UTF-8 without an incomplete character at its end. */
const completeText = (bytes: Uint8Array): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })

const deadEnd = (): InoriginError =>
  new InoriginError(
    'unavailable',
    'No token of this model can continue the answer within its format, grammar or tools. Use ' +
      'another format or another model.',
    { code: 'constraint_dead_end' },
  )

const contradiction = (): InoriginError =>
  new InoriginError('internal', 'A token of the answer violates its constraint.')
