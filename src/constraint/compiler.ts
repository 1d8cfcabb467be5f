/** Compiles the constraints of one model, and matches texts against them. */
import { compileConstraint, type CompiledGrammar, limitDepth } from './compile.ts'
import { type Constraint, ConstraintError } from './constraint.ts'
import type { Instance } from './instance.ts'
import { EngineMatcher, type Matcher } from './matcher.ts'
import { buildHere, buildInWorker, packVocabulary } from './vocabulary.ts'

/** The module `llguidance.wasm`: its URL, its bytes, or a function that resolves with them. */
export type WasmSource = URL | string | Uint8Array | (() => Promise<Uint8Array>)

export interface ConstraintCompilerOptions {
  /** Bytes of each token by id; `null` if the token has no text. */
  bytes: readonly (Uint8Array | null)[]
  /** Ids of the special tokens, by the text that names them. */
  special: ReadonlyMap<string, number>
  /** Ids of the tokens that end an answer. */
  endTokens: readonly number[]
  wasm: WasmSource
  /** Starts a worker that runs `vocabulary-worker.ts`. Without it, this thread is blocked for about a second. */
  createWorker?: () => Worker
}

/** Largest number of cached grammars. Grammars in use are never evicted. */
const MAX_CACHED_GRAMMARS = 16

/** Milliseconds without a matcher until the instance, of 100 MB, is freed. To build it again takes a second. */
const IDLE_MS = 5 * 60_000

/** Bytes that grammars may add to an instance, whose memory never shrinks. Forty tools take 20 MB. */
const MAX_GRAMMAR_BYTES = 256 * 2 ** 20

/** Creates the compiler of a model. */
export const createConstraintCompiler = (options: ConstraintCompilerOptions): ConstraintCompiler =>
  new ConstraintCompiler(options)

/** A grammar with the number of open matchers. */
type Grammar = CompiledGrammar & { users: number }

/** An instance, and what was compiled for it. */
class Engine {
  readonly instance: Instance
  /** Bytes of memory with the vocabulary alone. */
  readonly #vocabularyBytes: number
  /** Grammars by the digest of their constraint, the least recently used first. */
  readonly #grammars = new Map<string, Promise<Grammar>>()
  #users = 0

  constructor(instance: Instance) {
    this.instance = instance
    this.#vocabularyBytes = instance.memoryBytes
  }

  get isIdle(): boolean {
    return this.#users === 0
  }

  /** `true` if a new instance is better, as after a trap, or if grammars took much memory. */
  get isSpent(): boolean {
    const grammarBytes = this.instance.memoryBytes - this.#vocabularyBytes
    return this.instance.isBroken || grammarBytes > MAX_GRAMMAR_BYTES
  }

  /** Resolves with the grammar, which is in use until `release` is called with it. */
  async use(digest: string, create: () => Promise<CompiledGrammar>): Promise<Grammar> {
    this.#users += 1
    const compiled = this.#grammars.get(digest) ?? create().then((each) => ({ ...each, users: 0 }))
    this.#grammars.delete(digest)
    this.#grammars.set(digest, compiled)
    try {
      const grammar = await compiled
      grammar.users += 1
      return grammar
    } catch (error) {
      this.#users -= 1
      if (this.#grammars.get(digest) === compiled) this.#grammars.delete(digest)
      throw error
    }
  }

  /** Ends a use. A grammar with which a text failed is not used again, since texts share its lexer. */
  release(digest: string, grammar: Grammar, hasFailed: boolean): void {
    this.#users -= 1
    grammar.users -= 1
    if (hasFailed) this.#grammars.delete(digest)
    void this.#evict()
  }

  async #evict(): Promise<void> {
    for (const [digest, compiled] of this.#grammars) {
      if (this.#grammars.size <= MAX_CACHED_GRAMMARS) return
      const grammar = await compiled.catch(() => null)
      if (!grammar || grammar.users > 0 || this.#grammars.get(digest) !== compiled) continue
      this.#grammars.delete(digest)
      if (!this.instance.isBroken) this.instance.dropGrammar(grammar.number)
    }
  }
}

/** Compiler of the constraints of one model. It loads nothing before the first {@link open}. */
export class ConstraintCompiler {
  readonly #options: ConstraintCompilerOptions
  readonly #names: ReadonlyMap<number, Uint8Array>
  readonly #closing = new AbortController()
  #module: Promise<WebAssembly.Module> | null = null
  #starting: Promise<Engine> | null = null
  #engine: Engine | null = null
  #idleTimer: ReturnType<typeof setTimeout> | undefined

  constructor(options: ConstraintCompilerOptions) {
    this.#options = options
    const encoder = new TextEncoder()
    this.#names = new Map(Array.from(options.special, ([name, id]) => [id, encoder.encode(name)]))
  }

  /** Bytes of memory that the module has; 0 while it is not loaded. */
  get memoryBytes(): number {
    return this.#engine?.instance.memoryBytes ?? 0
  }

  /**
   * Starts a text that must satisfy the constraint. Compiles the constraint if it is not cached. Rejects with
   * {@link ConstraintError} if it is not supported, and with the reason of the signal when that aborts.
   */
  async open(constraint: Constraint, signal: AbortSignal): Promise<Matcher> {
    const engine = await this.#ready(signal)
    try {
      return await this.#openIn(engine, constraint, signal)
    } finally {
      this.#freeWhenIdle()
    }
  }

  /** Frees everything. Matchers that are open go on. */
  close(): void {
    this.#closing.abort(new Error('The compiler of constraints is closed.'))
    clearTimeout(this.#idleTimer)
    this.#free()
    this.#module = null
  }

  async #ready(signal: AbortSignal): Promise<Engine> {
    signal.throwIfAborted()
    this.#closing.signal.throwIfAborted()
    clearTimeout(this.#idleTimer)
    if (this.#engine?.instance.isBroken) this.#free()
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = null
      throw error
    })
    return unlessAborted(this.#starting, signal)
  }

  async #start(): Promise<Engine> {
    const { bytes, endTokens, createWorker, wasm } = this.#options
    const { signal } = this.#closing
    this.#module ??= loadModule(wasm).catch((error: unknown) => {
      this.#module = null
      throw error
    })
    const module = await this.#module
    const vocabulary = packVocabulary(bytes, endTokens)
    const copied = createWorker && (await buildInWorker(module, vocabulary, createWorker, signal))
    const engine = new Engine(copied ?? (await buildHere(module, vocabulary)))
    signal.throwIfAborted()
    this.#engine = engine
    return engine
  }

  #free(): void {
    this.#engine = null
    this.#starting = null
  }

  /** Frees the engine at once if it is spent, and else if no matcher is opened for some time. */
  #freeWhenIdle(): void {
    clearTimeout(this.#idleTimer)
    if (!this.#engine?.isIdle) return
    if (this.#engine.isSpent) return this.#free()
    this.#idleTimer = setTimeout(() => this.#free(), IDLE_MS)
    // In Node, the timer must not keep the process.
    Object(this.#idleTimer).unref?.()
  }

  async #openIn(engine: Engine, constraint: Constraint, signal: AbortSignal): Promise<Matcher> {
    const { text, whole } =
      constraint.type === 'rest' ? constraint : { text: '', whole: constraint }
    const { instance } = engine
    const { special, bytes } = this.#options
    const digest = await digestOf(whole)
    const grammar = await unlessAborted(
      engine.use(digest, () => compileConstraint(instance, whole, special)),
      signal,
      // The compilation goes on without this caller.
      (unused) => engine.release(digest, unused, false),
    )
    const words = Math.ceil(bytes.length / 32)
    const matcher = new EngineMatcher(instance, grammar, words, this.#names, (hasFailed) => {
      engine.release(digest, grammar, hasFailed)
      this.#freeWhenIdle()
    })
    try {
      await matcher.acceptText(text, signal)
      return matcher
    } catch (error) {
      matcher.close()
      throw error
    }
  }
}

async function digestOf(constraint: Constraint): Promise<string> {
  const text = limitDepth(() => JSON.stringify(constraint))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => String.fromCharCode(byte)).join('')
}

/** Rejects at once when the signal aborts, and `discard` gets what the work resolves with after that. */
function unlessAborted<Result>(
  work: Promise<Result>,
  signal: AbortSignal,
  discard?: (result: Result) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let isAborted = false
    const stop = (): void => {
      isAborted = true
      reject(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
    work
      .then((result) => (isAborted ? discard?.(result) : resolve(result)), reject)
      .finally(() => signal.removeEventListener('abort', stop))
    if (signal.aborted) stop()
  })
}

async function loadModule(wasm: WasmSource): Promise<WebAssembly.Module> {
  if (typeof wasm === 'string' || wasm instanceof URL) {
    const bytes = await fetchBytes(wasm, 'default')
    // A file that a proxy changed, or that was stored only in part, is requested once more.
    return WebAssembly.compile(bytes).catch(async () =>
      WebAssembly.compile(await fetchBytes(wasm, 'reload')).catch((cause: unknown) => {
        throw missing(wasm, 'It is not a WASM module of this version, or WASM is forbidden.', cause)
      }),
    )
  }
  const bytes = typeof wasm === 'function' ? await wasm() : wasm
  return WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>)
}

/** Resolves with the bytes of a file of any content type. */
async function fetchBytes(url: URL | string, cache: RequestCache): Promise<ArrayBuffer> {
  const response = await fetch(url, { cache }).catch((cause: unknown) => {
    throw missing(url, 'The server did not answer.', cause)
  })
  if (!response.ok) throw missing(url, `It has the status ${response.status}.`)
  return response.arrayBuffer()
}

const missing = (url: URL | string, why: string, cause?: unknown): ConstraintError =>
  new ConstraintError('constraint_missing', `${url} could not be loaded. ${why}`, { cause })
