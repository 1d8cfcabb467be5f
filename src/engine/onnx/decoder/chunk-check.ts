/**
 * Finds decoders that compute several tokens wrongly after a cache. Some older exports have a branch
 * for runs with a cache that was made for one token: it has no causal mask, so each of several
 * tokens sees those after it.
 */
import type { Decoder, Logits, Sequence } from '../../decoder.ts'

/** A token before the chunk, and the tokens of the chunk. Every vocabulary has these ids. */
const [FIRST, ...CHUNK] = [0, 1, 2] as const

/** Number of tokens that the check computes. */
export const CHECKED_TOKENS = 1 + CHUNK.length

/**
 * Largest difference between the logits of a chunk and of single tokens, as a part of their spread;
 * a guess. The embedded model `guide` has 0 in fp32 and q4, and 0.022 in q8, where all rows of a run
 * are rounded by one scale.
 */
const MAX_DIFFERENCE = 0.1

/** Resolves to `true` if a chunk after another token has the same logits as its tokens one by one. */
export async function computesChunks(decoder: Pick<Decoder, 'open' | 'maxRows'>): Promise<boolean> {
  const count = Math.min(CHUNK.length, decoder.maxRows ?? Infinity)
  const together = await withSequence(decoder, async (sequence) =>
    takeRows(await sequence.forward(CHUNK, count)),
  )
  const single = await withSequence(decoder, async (sequence) => {
    const rows: Float32Array[] = []
    for (const token of CHUNK) rows.push(...(await takeRows(await sequence.forward([token]))))
    return rows.slice(-count)
  })
  return together.every((row, index) => differenceOf(row, single[index] ?? row) <= MAX_DIFFERENCE)
}

/** Runs the task with a sequence that has one token. */
async function withSequence<T>(
  decoder: Pick<Decoder, 'open'>,
  task: (sequence: Sequence) => Promise<T>,
): Promise<T> {
  const sequence = decoder.open()
  try {
    const logits = await sequence.forward([FIRST])
    logits.release()
    return await task(sequence)
  } finally {
    sequence.close()
  }
}

/** Resolves to all rows of the logits, and releases these. */
async function takeRows(logits: Logits): Promise<Float32Array[]> {
  try {
    const indices = Array.from({ length: logits.rows }, (_, index) => index)
    const rows = await Promise.all(indices.map((index) => logits.row(index)))
    return rows.map((row) => row.slice())
  } finally {
    logits.release()
  }
}

/** Returns the difference of two rows as a part of the spread of the second one. */
function differenceOf(row: Float32Array, expected: Float32Array): number {
  const difference = spreadOf(row.map((logit, index) => logit - (expected[index] ?? 0)))
  return difference === 0 ? 0 : difference / spreadOf(expected)
}

/** Returns the standard deviation. A sum added to all logits changes no probability, nor this. */
function spreadOf(row: Float32Array): number {
  const mean = row.reduce((sum, logit) => sum + logit / row.length, 0)
  return Math.sqrt(row.reduce((sum, logit) => sum + (logit - mean) ** 2 / row.length, 0))
}
