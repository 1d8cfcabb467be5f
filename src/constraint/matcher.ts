/** Matches one text against a grammar. */
import { ConstraintError } from './constraint.ts'
import { type Instance, nextTask } from './instance.ts'
import type { Loosened } from './schema/plain.ts'

/** Matches a text against a constraint, token by token. All methods throw {@link ConstraintError} if that fails. */
export interface Matcher {
  /**
   * Keywords of schemas that are not kept: those that restrict nothing, those that the engine does not have, and
   * `schema` for a schema that it refuses as a whole.
   */
  readonly loosened: readonly Loosened[]
  /**
   * Returns the token mask of the next token: one bit for each token in 32-bit words, lowest bit first. It is empty
   * where no token can follow. The array belongs to the matcher and is valid until its next token is accepted.
   */
  mask(): Int32Array
  /** Accepts the next token. Returns `false` and changes nothing if it may not come next. */
  accept(token: number): boolean
  /** Returns the bytes that must come next, with special tokens as the texts that name them. */
  forced(): Uint8Array
  /** Returns `true` if a longer token that begins like this one may come in its place. */
  canExtend(token: number): boolean
  close(): void
}

/** Bytes of a text that are accepted in one task. At 20 us a token, they take less than 20 ms. */
const TEXT_PIECE_BYTES = 1000

interface EngineMatcherOptions extends Pick<Matcher, 'loosened'> {
  instance: Instance
  number: number
  /** Words of a mask. */
  words: number
  /** Names of special tokens by id. */
  names: ReadonlyMap<number, Uint8Array>
  onClose: (hasFailed: boolean) => void
}

/** A matcher of an instance. */
export class EngineMatcher implements Matcher {
  readonly loosened: readonly Loosened[]
  readonly #options: EngineMatcherOptions
  readonly #mask: Int32Array
  #hasMask = false
  #hasFailed = false
  #isClosed = false

  constructor(options: EngineMatcherOptions) {
    this.#options = options
    this.loosened = options.loosened
    this.#mask = new Int32Array(options.words)
  }

  mask(): Int32Array {
    if (this.#hasMask) return this.#mask
    // The masks of several answers are read after a run of the model, when another call may have grown the memory, which
    // detaches all views of it. The copy takes about 1 us.
    this.#mask.set(this.#call(({ instance, number, words }) => instance.mask(number, words)))
    this.#hasMask = true
    return this.#mask
  }

  accept(token: number): boolean {
    const isAccepted = this.#call(({ instance, number }) => instance.accept(number, token))
    if (isAccepted) this.#hasMask = false
    return isAccepted
  }

  forced(): Uint8Array {
    const { names } = this.#options
    return nameSpecialTokens(
      this.#call(({ instance, number }) => instance.forced(number)),
      names,
    )
  }

  canExtend(token: number): boolean {
    return this.#call(({ instance, number }) => instance.canExtend(number, token))
  }

  /** Accepts a text in pieces of one task each. Rejects if it may not come next. */
  async acceptText(text: string, signal: AbortSignal): Promise<void> {
    const bytes = new TextEncoder().encode(text)
    for (let start = 0; start < bytes.length;) {
      let end = start + TEXT_PIECE_BYTES
      // A character is not divided.
      while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end += 1
      const piece = bytes.subarray(start, end)
      const isAccepted = this.#call(({ instance, number }) => instance.acceptText(number, piece))
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
    const { instance, number, onClose } = this.#options
    if (!this.#hasFailed) instance.close(number)
    onClose(this.#hasFailed)
  }

  #call<Result>(work: (options: EngineMatcherOptions) => Result): Result {
    try {
      return work(this.#options)
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
  }
}

/** Returns the bytes with the name of each special token in place of its id; up to a token without a name. */
function nameSpecialTokens(bytes: Uint8Array, names: ReadonlyMap<number, Uint8Array>): Uint8Array {
  // UTF-8 has no such byte.
  let marker = bytes.indexOf(0xff)
  if (marker < 0) return bytes
  const pieces: Uint8Array[] = []
  let next = 0
  for (; marker >= 0; marker = bytes.indexOf(0xff, next)) {
    const end = bytes.indexOf(CLOSING_BRACKET, marker)
    const name = names.get(Number(new TextDecoder().decode(bytes.subarray(marker + 2, end))))
    pieces.push(bytes.subarray(next, marker))
    if (end < 0 || !name) return join(pieces)
    pieces.push(name)
    next = end + 1
  }
  return join([...pieces, bytes.subarray(next)])
}

const CLOSING_BRACKET = 0x5d

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let next = 0
  for (const piece of pieces) {
    joined.set(piece, next)
    next += piece.length
  }
  return joined
}
