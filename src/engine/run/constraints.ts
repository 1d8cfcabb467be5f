/** Applies a constraint to one answer: which tokens are allowed next, and which are forced. */
import type {
  Constraint,
  ConstraintCompiler,
  ConstraintError,
  Matcher,
} from '../../constraint/index.ts'
import { type ErrorCode, type ErrorKind, InoriginError } from '../../error.ts'
import type { ModelConfig } from '../text/config.ts'
import { listTokenBytesInTasks, readVocabulary } from '../text/vocabulary.ts'
import { Yielder } from './yielder.ts'

/** The constraint and the forced tokens of one answer. */
export class ConstraintState {
  /** Forced tokens that come next. The caller removes them from the front. */
  readonly forcedTokens: number[] = []
  readonly #options: ConstraintStateOptions
  #matcher: Matcher | null = null

  constructor(options: ConstraintStateOptions) {
    this.#options = options
  }

  /** `true` without a constraint. */
  get isUnconstrained(): boolean {
    return this.#matcher === null
  }

  /** Replaces or removes the constraint. Rejects with `invalid_request` if it is not supported. */
  async setConstraint(constraint: Constraint | null): Promise<void> {
    const { constraints, signal } = this.#options
    this.close()
    this.#matcher = null
    try {
      this.#matcher = constraint && (await constraints.open(constraint, signal))
    } catch (thrown) {
      throw InoriginError.from(thrown)
    }
    this.#collectForced()
  }

  /** Forces a text. Throws if the constraint does not allow it. */
  forceText(text: string): void {
    for (const token of this.#options.encode(text)) {
      this.#accept(token)
      this.forcedTokens.push(token)
    }
    this.#collectForced()
  }

  /**
   * Returns the token mask of the next token, which is valid until the next call; `null` allows all
   * tokens. Throws `constraint_dead_end` if the mask allows none.
   */
  tokenMask(): Int32Array | null {
    const mask = this.#matcher?.mask() ?? null
    if (!mask?.every((word) => word === 0)) return mask
    throw new InoriginError(
      'unavailable',
      'No token of this model can continue the answer within its format, grammar or tools. Use ' +
        'another format or another model.',
      { code: 'constraint_dead_end' },
    )
  }

  /** Accepts a sampled token. Throws if the constraint does not allow it. */
  accept(token: number): void {
    this.#accept(token)
    this.#collectForced()
  }

  /** Frees the matcher. */
  close(): void {
    this.#matcher?.close()
  }

  #accept(token: number): void {
    if (this.#matcher?.accept(token) === false)
      throw new InoriginError('internal', 'A token of the answer violates its constraint.')
  }

  #collectForced(): void {
    if (this.forcedTokens.length > 0 || !this.#matcher) return
    this.forcedTokens.push(...takeForced(this.#matcher, this.#options.encode))
  }
}

/** Dependencies of {@link ConstraintState}. */
export interface ConstraintStateOptions {
  constraints: Pick<ModelConstraints, 'open'>
  /** Tokenizes forced text. Special tokens in it count. */
  encode: (text: string) => readonly number[]
  signal: AbortSignal
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

/** Compiles the constraints of one model. Errors are those of requests. */
export class ModelConstraints {
  readonly #config: ModelConfig
  readonly #folder: string
  #compiler: Promise<ConstraintCompiler> | null = null

  /** @param folder URL of the folder of the constraints' engine. */
  constructor(config: ModelConfig, folder: string) {
    this.#config = config
    this.#folder = folder
  }

  /**
   * Starts a text that must satisfy the constraint. Compiles the constraint if it is not cached.
   * The engine is loaded at the first call, since most answers have no constraint. Rejects with
   * `invalid_request` if the constraint is not supported.
   */
  async open(constraint: Constraint, signal: AbortSignal): Promise<Matcher> {
    try {
      this.#compiler ??= this.#createCompiler().catch((error: unknown) => {
        this.#compiler = null
        throw error
      })
      return withRequestErrors(await (await this.#compiler).open(constraint, signal))
    } catch (thrown) {
      throw toRequestError(thrown)
    }
  }

  close(): void {
    void this.#compiler?.then((compiler) => compiler.close())
  }

  async #createCompiler(): Promise<ConstraintCompiler> {
    const { createConstraintCompiler } = await import('../../constraint/index.ts')
    const { tokenizer, tokenizerConfig, endTokens } = this.#config
    const vocabulary = readVocabulary(tokenizer, tokenizerConfig)
    const yielder = new Yielder()
    const bytes = await listTokenBytesInTasks(tokenizer, vocabulary, () => yielder.next())
    yielder.close()
    const { names, special } = vocabulary
    return createConstraintCompiler({
      bytes,
      special: new Map([...special].map((id) => [names[id] ?? '', id])),
      endTokens: [...endTokens],
      wasm: new URL('llguidance.wasm', this.#folder),
      createWorker: () => {
        const script = new URL('vocabulary-worker.js', this.#folder)
        return new Worker(script, { type: 'module', name: 'inorigin vocabulary' })
      },
    })
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

/** Kinds of the errors that are not the fault of a request. */
const KINDS: Readonly<Record<string, ErrorKind>> = {
  constraint_trap: 'internal',
  constraint_missing: 'unavailable',
}

function toRequestError(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || thrown.name !== 'ConstraintError') {
    return InoriginError.from(thrown)
  }
  // The class is loaded with the compiler.
  const { message, code, path, keyword } = thrown as ConstraintError
  const isSchema = code === 'unsupported_constraint' && path !== undefined
  return new InoriginError(KINDS[code] ?? 'invalid_request', message, {
    code: isSchema ? 'unsupported_schema' : (code as ErrorCode),
    cause: thrown,
    ...(path && { param: path }),
    ...((path ?? keyword) && { details: { path, keyword } }),
  })
}
