/**
 * Chooses the length of prefill chunks, so that decoding continues meanwhile and a cancel takes
 * effect.
 */

/** Lengths of prefill chunks, adapted to measured times. */
interface ChunkSizer {
  /**
   * Returns the length of the next chunk in tokens, predicted from the times of earlier chunks. It
   * is longer if the prompt is `alone`, so that no other answer waits.
   */
  chunkTokens(alone: boolean): number
  /**
   * Records a chunk of `tokens` that was submitted at `start`, in milliseconds. `done` resolves
   * when the device has computed it. The result resolves after the time is recorded.
   */
  record(tokens: number, start: number, done: Promise<void>): Promise<void>
}

/** Longest time of a chunk in milliseconds while other answers wait. */
const MAX_CHUNK_MS = 200

/**
 * Longest time of a chunk in milliseconds while no other answer waits. With two chunks queued on
 * the device, a new or canceled request waits for both.
 */
const MAX_CHUNK_ALONE_MS = 500

/** A chunk may take as long as this many decode steps, even if that exceeds the limits above. */
const MAX_CHUNK_DECODE_STEPS = 3

/** Shortest chunk in tokens. */
const MIN_CHUNK_TOKENS = 16

/** Longest chunk in tokens before the first measurement. */
const MAX_FIRST_CHUNK_TOKENS = 64

/**
 * Largest growth factor between chunks. Predictions far from all measured lengths are unreliable.
 */
const MAX_CHUNK_GROWTH = 4

/** Length of a chunk in tokens and its time in milliseconds. */
interface Measurement {
  tokens: number
  ms: number
}

/**
 * Creates chunk lengths that double from 16 tokens up to `maxTokens`. There are few of them
 * because a device may compile a shader for each.
 */
export function createChunkSizer(maxTokens: number): ChunkSizer {
  const lengths = [maxTokens]
  for (let length = MIN_CHUNK_TOKENS; length < maxTokens; length *= 2) lengths.splice(-1, 0, length)
  let latest: Measurement | null = null
  /** Latest measurement of a clearly different length. */
  let reference: Measurement | null = null
  let deviceFreeAt = 0

  /**
   * Returns the milliseconds that one more token costs. It is less than the average, because every
   * chunk has a fixed cost.
   */
  const msPerToken = ({ tokens, ms }: Measurement): number => {
    const average = ms / tokens
    if (!reference) return average / 2
    const measured = (ms - reference.ms) / (tokens - reference.tokens)
    return Math.min(average, Math.max(average / 8, measured))
  }

  const predictMs = (measurement: Measurement, tokens: number): number =>
    measurement.ms + msPerToken(measurement) * (tokens - measurement.tokens)

  const chunkTokens: ChunkSizer['chunkTokens'] = (alone) => {
    const known = latest
    const targetMs = alone ? MAX_CHUNK_ALONE_MS : MAX_CHUNK_MS
    const limitMs =
      known && reference
        ? Math.max(targetMs, MAX_CHUNK_DECODE_STEPS * predictMs(known, 1))
        : targetMs
    const fits = (candidate: number): boolean =>
      known
        ? predictMs(known, candidate) <= limitMs && candidate <= MAX_CHUNK_GROWTH * known.tokens
        : candidate <= MAX_FIRST_CHUNK_TOKENS
    return lengths.findLast(fits) ?? (lengths[0] as number)
  }

  const record: ChunkSizer['record'] = async (tokens, start, done) => {
    await done
    const now = performance.now()
    // The device may have started this chunk only after it finished the earlier ones.
    const ms = now - Math.max(start, deviceFreeAt)
    deviceFreeAt = now
    if (tokens < Math.min(MIN_CHUNK_TOKENS, maxTokens)) return
    if (latest && Math.max(tokens / latest.tokens, latest.tokens / tokens) >= 2) reference = latest
    latest = { tokens, ms }
  }
  return { chunkTokens, record }
}
