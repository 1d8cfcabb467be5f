/** Matches one text against a grammar. */
import type { CompiledGrammar } from './compile.ts'
import { ConstraintError } from './constraint.ts'
import { type Instance, nextTask } from './instance.ts'
import type { Loosened } from './schema/plain.ts'

/** Methods of a matcher that callers use. */
export type Matcher = Pick<
  EngineMatcher,
  'loosened' | 'mask' | 'accept' | 'forced' | 'canExtend' | 'close'
>

/** Bytes of a text that are accepted in one task. At 20 us a token, they take less than 20 ms. */
const TEXT_PIECE_BYTES = 1000

/** Matches a text against a constraint, token by token. All methods throw {@link ConstraintError} if that fails. */
export class EngineMatcher {
  /**
   * Keywords of schemas that are not kept: those that restrict nothing, those that the engine does not have, and
   * `schema` for a schema that it refuses as a whole.
   */
  readonly loosened: readonly Loosened[]
  readonly #instance: Instance
  readonly #number: number
  readonly #mask: Int32Array
  readonly #names: ReadonlyMap<number, Uint8Array>
  readonly #onClose: (hasFailed: boolean) => void
  #hasMask = false
  #hasFailed = false
  #isClosed = false

  /**
   * @param words - Words of a mask.
   * @param names - Names of special tokens by id.
   */
  constructor(
    instance: Instance,
    { number, loosened }: CompiledGrammar,
    words: number,
    names: ReadonlyMap<number, Uint8Array>,
    onClose: (hasFailed: boolean) => void,
  ) {
    this.loosened = loosened
    this.#instance = instance
    this.#number = instance.open(number)
    this.#mask = new Int32Array(words)
    this.#names = names
    this.#onClose = onClose
  }

  /**
   * Returns the token mask of the next token: one bit for each token in 32-bit words, lowest bit first. It is empty
   * where no token can follow. The array belongs to the matcher and is valid until its next token is accepted.
   */
  mask(): Int32Array {
    if (this.#hasMask) return this.#mask
    // The masks of several answers are read after a run of the model, when another call may have grown the memory, which
    // detaches all views of it. The copy takes about 1 us.
    this.#mask.set(this.#call(() => this.#instance.mask(this.#number, this.#mask.length)))
    this.#hasMask = true
    return this.#mask
  }

  /** Accepts the next token. Returns `false` and changes nothing if it may not come next. */
  accept(token: number): boolean {
    const isAccepted = this.#call(() => this.#instance.accept(this.#number, token))
    if (isAccepted) this.#hasMask = false
    return isAccepted
  }

  /** Returns the bytes that must come next, with special tokens as the texts that name them. */
  forced(): Uint8Array {
    const bytes = this.#call(() => this.#instance.forced(this.#number))
    return nameSpecialTokens(bytes, this.#names)
  }

  /** Returns `true` if a longer token that begins like this one may come in its place. */
  canExtend(token: number): boolean {
    return this.#call(() => this.#instance.canExtend(this.#number, token))
  }

  /** Accepts a text in pieces of one task each. Rejects if it may not come next. */
  async acceptText(text: string, signal: AbortSignal): Promise<void> {
    const bytes = new TextEncoder().encode(text)
    for (let start = 0; start < bytes.length;) {
      let end = start + TEXT_PIECE_BYTES
      // A character is not divided.
      while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end += 1
      const piece = bytes.subarray(start, end)
      const isAccepted = this.#call(() => this.#instance.acceptText(this.#number, piece))
      if (!isAccepted) {
        const what = 'No text that begins with this prefix satisfies the constraint.'
        throw new ConstraintError('unsupported_constraint', what)
      }
      start = end
      if (start < bytes.length) await nextTask()
      signal.throwIfAborted()
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (!this.#hasFailed) this.#instance.close(this.#number)
    this.#onClose(this.#hasFailed)
  }

  #call<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
  }
}

/** Returns the bytes with the name of each special token in place of its id; up to a token without a name. */
function nameSpecialTokens(bytes: Uint8Array, names: ReadonlyMap<number, Uint8Array>): Uint8Array {
  // UTF-8 has no such byte.
  if (!bytes.includes(0xff)) return bytes
  const named: number[] = []
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] === 0xff) {
      const end = bytes.indexOf(CLOSING_BRACKET, at)
      const name = names.get(Number(new TextDecoder().decode(bytes.subarray(at + 2, end))))
      if (end < 0 || !name) break
      named.push(...name)
      at = end
    } else named.push(bytes[at] as number)
  }
  return Uint8Array.from(named)
}

const CLOSING_BRACKET = 0x5d
