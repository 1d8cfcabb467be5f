/** Vectors of texts by a predictor that makes them. */
import type { Embedder } from '../catalog/schema.ts'
import type { ErrorCode } from '../error-codes.ts'
import { InoriginError } from '../error.ts'
import type { EmbeddingRequest, Embeddings } from '../types/index.ts'
import { unusable } from '../values/refuse.ts'
import type { OpenPredictor } from './run.ts'

/** Most tokens of the texts of one request. */
export const MOST_TOKENS = 300_000
/** Most tokens that are computed at once, all texts counted as long as the longest. */
const BATCH_TOKENS = 2 ** 13
/** Characters beyond which a text's beginning is read first, for each token that it may have. */
const CHARACTERS = 64
/** Milliseconds of reading after which others get a chance, and an abort is heard. */
const PATIENCE = 20

type Tokens = readonly number[]

/** Refuses a length of vectors that the model does not make; needs nothing of it but its entry. */
export function checkDimensions({ tag, embeddings }: Embedder, wanted: number | undefined): void {
  const { dimensions, shortens = false } = embeddings
  if (wanted === undefined || wanted === dimensions || (shortens && wanted < dimensions)) return
  const what = `dimensions must be ${shortens ? `at most ${dimensions}` : dimensions}, not ${wanted}`
  const why = shortens ? '' : ', and what is cut off them would be missed'
  throw invalid(`${what}: the vectors of ${tag} have ${dimensions} numbers${why}.`, {
    code: 'invalid_value',
    param: 'dimensions',
  })
}

/**
 * The tokens of every text; refuses, by its place such as `input[3]`, a text that is too long, before
 * anything is computed.
 */
export async function readTexts(
  predictor: OpenPredictor,
  { tag, embeddings }: Embedder,
  { input }: EmbeddingRequest,
  signal: AbortSignal,
): Promise<Tokens[]> {
  const { input: name, maxInputTokens: most } = embeddings
  const tooLong = (path: string, tokens: number, least = '') => {
    const what = `${path} is too long: ${least}${tokens} tokens > ${most} maximum of ${tag}.`
    return invalid(`${what} Cut it into several texts.`, {
      code: 'context_length_exceeded',
      param: path,
    })
  }
  const rows: Tokens[] = []
  let total = 0
  let start = performance.now()
  for (const [index, text] of input.entries()) {
    if (performance.now() - start > PATIENCE) {
      await new Promise((resolve) => setTimeout(resolve))
      start = performance.now()
    }
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const path = `input[${index}]`
    if (text.length > most * CHARACTERS) {
      // To tokenise megabytes takes seconds; a cut word is not worth as many tokens as are allowed.
      const least = predictor.read(name, text.slice(0, most * CHARACTERS), path).length
      if (least > 2 * most) throw tooLong(path, least, 'more than ')
    }
    const tokens = predictor.read(name, text, path)
    if (tokens.length > most) throw tooLong(path, tokens.length)
    rows.push(tokens)
    total += tokens.length
    if (total > MOST_TOKENS) {
      const what = `input has more than ${MOST_TOKENS} tokens, which is the most of one request.`
      throw invalid(`${what} Send fewer texts at once.`, { code: 'invalid_value', param: 'input' })
    }
  }
  return rows
}

/**
 * Their vectors, in their order. Texts of like length are computed together, in batches between which
 * others have their turn and an abort is heard.
 */
export async function embedTexts(
  predictor: OpenPredictor,
  entry: Embedder,
  rows: readonly Tokens[],
  wanted: number | undefined,
  signal: AbortSignal,
): Promise<Embeddings> {
  const { input, output, dimensions: size } = entry.embeddings
  const dimensions = wanted ?? size
  const vectors = new Float32Array(rows.length * dimensions)
  for (const places of batchesOf(rows)) {
    const batch = places.map((place) => rows[place] ?? [])
    const { outputs } = await predictor.predictRead(input, batch, signal)
    const made = vectorsOf(outputs[output], batch.length, entry)
    places.forEach((place, row) => {
      const vector = made.subarray(row * size, (row + 1) * size)
      vectors.set(shortened(vector, dimensions), place * dimensions)
    })
  }
  return { vectors, dimensions, tokens: rows.reduce((sum, { length }) => sum + length, 0) }
}

/** Places of texts that are computed together. */
export function batchesOf(rows: readonly Tokens[]): number[][] {
  const lengthOf = (place: number): number => rows[place]?.length ?? 0
  const batches: number[][] = []
  for (const place of [...rows.keys()].toSorted((one, other) => lengthOf(one) - lengthOf(other))) {
    const batch = batches.at(-1)
    // The shortest come first, so that this one is the longest yet.
    if (batch && (batch.length + 1) * lengthOf(place) <= BATCH_TOKENS) batch.push(place)
    else batches.push([place])
  }
  return batches
}

function vectorsOf(value: unknown, texts: number, { tag, embeddings }: Embedder): Float32Array {
  const { output, dimensions } = embeddings
  const data = (value as { data?: unknown } | undefined)?.data
  if (!(data instanceof Float32Array) || data.length !== texts * dimensions) {
    return unusable(tag, `outputs.${output}`, `it is not ${texts} x ${dimensions} numbers.`)
  }
  if (data.every(Number.isFinite)) return data
  const what = `${tag} computed vectors with numbers that are none. Try another device`
  throw new InoriginError('internal', `${what}: serve({ device: 'wasm' }).`, { code: 'not_finite' })
}

/** The beginning of a vector, made as long as the whole was. */
function shortened(vector: Float32Array, dimensions: number): Float32Array {
  if (dimensions === vector.length) return vector
  const beginning = vector.subarray(0, dimensions)
  const scale = Math.hypot(...vector) / (Math.hypot(...beginning) || 1)
  return beginning.map((number) => number * scale)
}

function invalid(message: string, details: { code: ErrorCode; param: string }): InoriginError {
  return new InoriginError('invalid_request', message, details)
}
