/** One instance of llguidance's WASM module, which has one vocabulary. */
import { ConstraintError } from './constraint.ts'

/** Functions of `tools/llguidance/src/lib.rs`. */
interface Exports {
  memory: WebAssembly.Memory
  __stack_pointer: WebAssembly.Global<'i32'>
  allocate(length: number): number
  release(address: number, length: number): void
  result(): number
  result_length(): number
  set_vocabulary(tokens: number, length: number, ends: number, endsLength: number): number
  compile(source: number, length: number, maxRowItems: number): number
  drop_grammar(grammar: number): void
  open(grammar: number): number
  close(matcher: number): void
  mask(matcher: number): number
  accept(matcher: number, token: number): number
  accept_text(matcher: number, text: number, length: number): number
  find_forced(matcher: number): void
  can_extend(matcher: number, token: number): number
}

const FAILED = -1

/** Bytes of a page of WASM memory. */
const PAGE_BYTES = 2 ** 16

/** Bytes of stack that a call needs. The stack grows down to address 0, and a trap follows there. */
const MIN_STACK_BYTES = 2 ** 14

/** Items in a row of the parser, about four for each property. The largest object of 11,305 schemas has 587. */
export const MAX_ROW_ITEMS = 5000

/** Reasons of the module that name one of its limits. */
const LIMIT_REASONS =
  /fuel|too (?:many|large|big)|too complex|precomputation failed|stack level exceeded|Current row has/i

/**
 * Calls of the module. A failed call throws {@link ConstraintError} with the module's reason. A trap throws one with
 * the code `constraint_trap`. After that, {@link isBroken} is `true`: texts of other grammars can go on, and new texts
 * need another instance.
 */
export class Instance {
  readonly #exports: Exports
  readonly #stackTop: number
  /** `true` after a trap. */
  isBroken = false

  private constructor(exports: Exports) {
    this.#exports = exports
    this.#stackTop = exports.__stack_pointer.value
  }

  static async open(module: WebAssembly.Module): Promise<Instance> {
    // The module asks for the time in milliseconds, which it only reports.
    const now = (): number => performance.now()
    const env = Object.fromEntries(
      WebAssembly.Module.imports(module).map(({ name }) => [name, now]),
    )
    const { exports } = await WebAssembly.instantiate(module, { env })
    return new Instance(exports as unknown as Exports)
  }

  /** Bytes of memory that the instance has. */
  get memoryBytes(): number {
    return this.#exports.memory.buffer.byteLength
  }

  /** Returns a copy of a part of the memory. Between two calls, the memory is all state of the instance. */
  copyMemory(start: number, end: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#exports.memory.buffer).slice(start, end)
  }

  /** Writes a part of another instance's memory, which has so many bytes as a whole. */
  writeMemory(bytes: Uint8Array, start: number, memoryBytes: number): void {
    const { memory } = this.#exports
    const missing = memoryBytes - memory.buffer.byteLength
    try {
      if (missing > 0) memory.grow(missing / PAGE_BYTES)
    } catch (cause) {
      const what = 'There is not enough memory for constraints. Close other tabs.'
      throw new ConstraintError('constraint_trap', what, { cause })
    }
    new Uint8Array(memory.buffer).set(bytes, start)
  }

  /** Sets the vocabulary, packed as `set_vocabulary` takes it. */
  setVocabulary(tokens: Uint8Array, endTokens: Uint32Array): void {
    const ends = new Uint8Array(endTokens.buffer, endTokens.byteOffset, endTokens.byteLength)
    this.#withInput(tokens, (at, length) =>
      this.#withInput(ends, (endsAt, endsLength) =>
        this.#checked(this.#exports.set_vocabulary(at, length, endsAt, endsLength)),
      ),
    )
  }

  /** Compiles a Lark grammar, whose parser may have so many items in a row. Returns its number. */
  compile(source: string, maxRowItems = MAX_ROW_ITEMS): number {
    return this.#withInput(new TextEncoder().encode(source), (at, length) =>
      this.#checked(this.#exports.compile(at, length, maxRowItems)),
    )
  }

  dropGrammar(grammar: number): void {
    this.#call(() => this.#exports.drop_grammar(grammar))
  }

  /** Starts a text of a grammar, and returns the number of its matcher. */
  open(grammar: number): number {
    return this.#call(() => this.#exports.open(grammar))
  }

  close(matcher: number): void {
    this.#call(() => this.#exports.close(matcher))
  }

  /** Returns the mask of the next token: a view of the memory, which the next call of the instance may detach. */
  mask(matcher: number, words: number): Int32Array {
    const address = this.#call(() => this.#checked(this.#exports.mask(matcher)))
    return new Int32Array(this.#exports.memory.buffer, address >>> 0, words)
  }

  /** Accepts the next token. Returns `false` and changes nothing if it may not come next. */
  accept(matcher: number, token: number): boolean {
    return this.#call(() => this.#checked(this.#exports.accept(matcher, token))) === 1
  }

  /** Accepts a text in UTF-8. Returns `false` if it may not come next; the matcher is of no use then. */
  acceptText(matcher: number, text: Uint8Array): boolean {
    return this.#withInput(
      text,
      (at, length) => this.#checked(this.#exports.accept_text(matcher, at, length)) === 1,
    )
  }

  /** Returns the bytes that must come next. A special token is the byte 0xff and its id in brackets. */
  forced(matcher: number): Uint8Array {
    this.#call(() => this.#exports.find_forced(matcher))
    return this.#result()
  }

  /** Returns `true` if a longer token that begins like this one may come in its place. */
  canExtend(matcher: number, token: number): boolean {
    return this.#call(() => this.#checked(this.#exports.can_extend(matcher, token))) === 1
  }

  #withInput<Result>(bytes: Uint8Array, work: (address: number, length: number) => Result): Result {
    return this.#call(() => {
      const { allocate, release, memory } = this.#exports
      const address = allocate(bytes.length)
      new Uint8Array(memory.buffer, address >>> 0, bytes.length).set(bytes)
      try {
        return work(address, bytes.length)
      } finally {
        if (!this.isBroken) release(address, bytes.length)
      }
    })
  }

  #checked(returned: number): number {
    if (returned !== FAILED) return returned
    const reason = new TextDecoder().decode(this.#result())
    const isLimit = LIMIT_REASONS.test(reason)
    throw new ConstraintError(isLimit ? 'constraint_too_slow' : 'unsupported_constraint', reason)
  }

  #result(): Uint8Array {
    const { result, result_length: length, memory } = this.#exports
    return new Uint8Array(memory.buffer, result() >>> 0, length()).slice()
  }

  #call<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (thrown) {
      if (thrown instanceof ConstraintError) throw thrown
      // The stack is empty between two calls, and a trap leaves it as it was.
      const stackLeft = this.#exports.__stack_pointer.value
      this.#exports.__stack_pointer.value = this.#stackTop
      if (stackLeft < MIN_STACK_BYTES || isStackExhausted(thrown)) {
        const what = 'It has too many parts, or they are nested too deeply.'
        throw new ConstraintError('unsupported_constraint', what, { cause: thrown })
      }
      this.isBroken = true
      throw new ConstraintError('constraint_trap', 'The engine of constraints failed. Try again.', {
        cause: thrown,
      })
    }
  }
}

/** Returns `true` if a call needed more stack than the browser gives. Only its grammar or matcher is lost then. */
const isStackExhausted = (thrown: unknown): boolean =>
  thrown instanceof Error && (thrown.name === 'RangeError' || thrown.name === 'InternalError')

/** Resolves in a task of its own, so that others run before. */
export const nextTask = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve))
