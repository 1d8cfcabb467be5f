/**
 * Keeps one input of each predictor that callers sent, to measure its implementations on it. Inputs
 * are only in memory, and only until the measurement is complete.
 */
import type { Entry } from '../../catalog/schema.ts'
import type { Tag } from '../../types/index.ts'
import { isInstanceOf } from '../../values/objects.ts'

type Inputs = Record<string, unknown>

/** Largest size in bytes of kept inputs: of one predictor, and number of predictors. */
const MAX_INPUT_BYTES = 16 * 2 ** 20
const MAX_PREDICTORS = 4

/** Maximum number of values that are looked at to find the size of inputs. */
const MAX_SIZED_VALUES = 100_000

export class RecentInputs {
  #kept = new Map<Tag, Inputs>()
  #finished = new Set<Tag>()

  /**
   * Copies inputs that a predictor accepted. It keeps the first ones of an entry with several
   * implementations, if they are not too large.
   */
  keep({ tag, type, implementations }: Entry, inputs: Inputs): void {
    const isWanted = type === 'predictor' && implementations.length > 1
    if (!isWanted || this.#kept.has(tag) || this.#finished.has(tag) || !isSmall(inputs)) return
    this.#kept.set(tag, structuredClone(inputs))
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MAX_PREDICTORS && oldest !== undefined) this.#kept.delete(oldest)
  }

  find(tag: Tag): Inputs | undefined {
    return this.#kept.get(tag)
  }

  /** Drops the inputs of a tag, and keeps no others of it. */
  finish(tag: Tag): void {
    this.#kept.delete(tag)
    this.#finished.add(tag)
  }
}

/** Returns `true` if a copy of the inputs takes at most `MAX_INPUT_BYTES`. */
function isSmall(inputs: Inputs): boolean {
  const pending: unknown[] = [inputs]
  let bytes = 0
  for (let count = 0; pending.length > 0; count += 1) {
    const value = pending.pop()
    bytes += sizeOf(value)
    if (bytes > MAX_INPUT_BYTES || count > MAX_SIZED_VALUES) return false
    if (Array.isArray(value)) {
      if (value.length > MAX_SIZED_VALUES) return false
      pending.push(...value)
    } else if (isPlain(value)) pending.push(...Object.values(value))
  }
  return true
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** Returns the size of a value in bytes, without the values inside it. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 2 * value.length
  if (ArrayBuffer.isView(value)) return value.byteLength
  if (value instanceof Blob) return value.size
  // A camera or decoder waits for the frames that a page holds.
  if (isInstanceOf(value, ['VideoFrame'])) return Infinity
  if (isInstanceOf(value, ['ImageBitmap', 'ImageData'])) {
    const { width, height } = value as ImageBitmap | ImageData
    return 4 * width * height
  }
  return 8
}
