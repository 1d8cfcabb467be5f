/** Applies a constraint to one answer: which tokens are allowed next, and which are forced. */
import type { Constraint, ConstraintCompiler, Matcher } from '../../constraint/index.ts'
import { type ErrorCode, type ErrorKind, InoriginError } from '../../error.ts'
import type { ModelConfig } from '../text/config.ts'
import { listTokenBytesInTasks, readVocabulary } from '../text/vocabulary.ts'
import { createYielder } from './yielder.ts'

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

// Creates the constraints of a model from its tokenizer.

/** Compiles the constraints of one model. Errors are those of requests. */
export interface ModelConstraints {
  /**
   * Starts a text that must satisfy the constraint. Compiles the constraint if it is not cached.
   * Rejects with `invalid_request` if it is not supported.
   */
  open(constraint: Constraint, signal: AbortSignal): Promise<Matcher>
  close(): void
}

/**
 * Returns the constraints of a model. Loads their engine from the folder at the first `open`, since
 * most answers have no constraint.
 */
export function createModelConstraints(config: ModelConfig, folder: string): ModelConstraints {
  let created: Promise<ConstraintCompiler> | null = null

  const create = async (): Promise<ConstraintCompiler> => {
    const { createConstraintCompiler } = await import('../../constraint/index.ts')
    const { tokenizer, tokenizerConfig, endTokens } = config
    const vocabulary = readVocabulary(tokenizer, tokenizerConfig)
    const yielder = createYielder()
    const bytes = await listTokenBytesInTasks(tokenizer, vocabulary, yielder.next)
    yielder.close()
    const { names, special } = vocabulary
    return createConstraintCompiler({
      bytes,
      special: new Map([...special].map((id) => [names[id] ?? '', id])),
      endTokens: [...endTokens],
      wasm: new URL('llguidance.wasm', folder),
      createWorker: () => {
        const script = new URL('vocabulary-worker.js', folder)
        return new Worker(script, { type: 'module', name: 'inorigin vocabulary' })
      },
    })
  }

  const compiler = (): Promise<ConstraintCompiler> => {
    created ??= create().catch((error: unknown) => {
      created = null
      throw error
    })
    return created
  }

  return {
    async open(constraint, signal) {
      try {
        const matcher = await (await compiler()).open(constraint, signal)
        return withRequestErrors(matcher)
      } catch (thrown) {
        throw toRequestError(thrown)
      }
    },
    close: () => void created?.then((each) => each.close()),
  }
}

/** Returns the matcher with the errors of requests. */
function withRequestErrors(matcher: Matcher): Matcher {
  const attempt = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (thrown) {
      throw toRequestError(thrown)
    }
  }
  return {
    loosened: matcher.loosened,
    mask: () => attempt(() => matcher.mask()),
    accept: (token) => attempt(() => matcher.accept(token)),
    forced: () => attempt(() => matcher.forced()),
    canExtend: (token) => attempt(() => matcher.canExtend(token)),
    close: () => matcher.close(),
  }
}

/** Fields of a `ConstraintError`, whose class is loaded with the compiler. */
interface ConstraintFault {
  message: string
  code: string
  path?: string
  keyword?: string
}

/** Kinds of the errors that are not the fault of a request. */
const KINDS: Readonly<Record<string, ErrorKind>> = {
  constraint_trap: 'internal',
  constraint_missing: 'unavailable',
}

function toRequestError(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || thrown.name !== 'ConstraintError') {
    return InoriginError.from(thrown)
  }
  const { message, code, path, keyword } = thrown as unknown as ConstraintFault
  const isSchema = code === 'unsupported_constraint' && path !== undefined
  return new InoriginError(KINDS[code] ?? 'invalid_request', message, {
    code: isSchema ? 'unsupported_schema' : (code as ErrorCode),
    cause: thrown,
    ...(path && { param: path }),
    ...((path ?? keyword) && { details: { path, keyword } }),
  })
}
