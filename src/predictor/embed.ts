/** Computes embeddings of texts with a predictor. */
import type { Embedder } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { EmbeddingRequest, Embeddings } from '../types/index.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import type { OpenPredictor } from './open-predictor.ts'
import type { TokenRow } from './text.ts'

/** Largest number of tokens in all texts of a request. */
export const MAX_REQUEST_TOKENS = 300_000
/** Largest number of tokens in a batch, with every text padded to the longest. */
const MAX_BATCH_TOKENS = 2 ** 13
/**
 * Largest number of scores that an attention head computes for a batch. On the CPU it stores them, in
 * 4 bytes each. A text of more than 2,048 tokens exceeds this by itself.
 */
const MAX_BATCH_SCORES = 2 ** 22
/** Characters per allowed token beyond which the beginning of a text is tokenized first. */
const MAX_CHARACTERS_PER_TOKEN = 64
/** Milliseconds of tokenizing after which the worker handles messages, such as aborts. */
export const YIELD_INTERVAL_MS = 20

/** The part of a predictor that embeds texts. */
export type TextPredictor = Pick<OpenPredictor, 'tokenize' | 'predictTokens'>

/** Throws `invalid_request` if the model cannot return vectors of that length. */
export function assertDimensions({ tag, embeddings }: Embedder, wanted: number | undefined): void {
  const { dimensions, shortens = false } = embeddings
  if (wanted === undefined || wanted === dimensions || (shortens && wanted < dimensions)) return
  const what = `dimensions must be ${shortens ? `at most ${dimensions}` : dimensions}, not ${wanted}`
  const why = shortens ? '' : ' and cannot be shortened'
  throw invalidValue(
    'dimensions',
    `${what}: the vectors of ${tag} have ${dimensions} numbers${why}.`,
  )
}

const invalidValue = (param: string, what: string) =>
  new InoriginError('invalid_request', what, { code: 'invalid_value', param })

/**
 * Tokenizes every text behind the prompt of the request. Rejects with `invalid_request` that names a
 * text which is too long, unless the request or the model cuts it, and a prompt that is unknown.
 */
export async function tokenizeTexts(
  predictor: TextPredictor,
  entry: Embedder,
  { input, promptName, truncate }: EmbeddingRequest,
  signal: AbortSignal,
): Promise<TokenRow[]> {
  const { tag, embeddings } = entry
  const { input: name, maxInputTokens: maxTokens } = embeddings
  const prompt = findPrompt(entry, promptName)
  const tooLong = (path: string, tokens: number, least = '') => {
    const what = `${path} is too long: ${least}${tokens} tokens > ${maxTokens} maximum of ${tag}.`
    return new InoriginError('invalid_request', `${what} Split it into several texts.`, {
      code: 'context_length_exceeded',
      param: path,
    })
  }
  const rows: TokenRow[] = []
  const how = { isCut: truncate }
  let total = 0
  let start = performance.now()
  for (const [index, given] of input.entries()) {
    const text = prompt + given
    if (performance.now() - start > YIELD_INTERVAL_MS) {
      await new Promise((resolve) => setTimeout(resolve))
      start = performance.now()
    }
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const path = `input[${index}]`
    if (text.length > maxTokens * MAX_CHARACTERS_PER_TOKEN) {
      // Tokenizing megabytes takes seconds. The factor 2 allows for the tokens of a cut word.
      const beginning = text.slice(0, maxTokens * MAX_CHARACTERS_PER_TOKEN)
      const least = predictor.tokenize(name, beginning, path, how).ids.length
      if (least > 2 * maxTokens) throw tooLong(path, least, 'more than ')
    }
    const row = predictor.tokenize(name, text, path, how)
    const { length } = row.ids
    if (length > maxTokens) throw tooLong(path, length)
    rows.push(row)
    total += length
    const what = `input has more than ${MAX_REQUEST_TOKENS} tokens, the limit of one request.`
    if (total > MAX_REQUEST_TOKENS) throw invalidValue('input', `${what} Send fewer texts at once.`)
  }
  return rows
}

/** Returns the text before each text. Throws `invalid_request` for a name that the model lacks. */
function findPrompt({ tag, embeddings }: Embedder, name: string | undefined): string {
  const { prompts = {}, defaultPrompt } = embeddings
  const wanted = name ?? defaultPrompt
  if (wanted === undefined) return ''
  if (Object.hasOwn(prompts, wanted)) return prompts[wanted] ?? ''
  const known = Object.keys(prompts).join(', ') || 'none'
  const what = `prompt_name ${JSON.stringify(wanted)} is unknown to ${tag}. Known: ${known}.`
  throw invalidValue('prompt_name', what)
}

/** Resolves with the vectors of tokenized texts. Texts of similar length share a batch. */
export async function embedTexts(
  predictor: TextPredictor,
  entry: Embedder,
  rows: readonly TokenRow[],
  wanted: number | undefined,
  signal: AbortSignal,
): Promise<Embeddings> {
  const { input, output, dimensions: size } = entry.embeddings
  const dimensions = wanted ?? size
  const vectors = new Float32Array(rows.length * dimensions)
  for (const indices of createBatches(rows)) {
    const batch = indices.flatMap((index) => rows[index] ?? [])
    const { outputs } = await predictor.predictTokens(input, batch, signal)
    const batchVectors = parseVectors(outputs[output], batch.length, entry)
    indices.forEach((index, row) => {
      const vector = batchVectors.subarray(row * size, (row + 1) * size)
      vectors.set(shortenVector(vector, dimensions), index * dimensions)
    })
  }
  return { vectors, dimensions, tokens: rows.reduce((sum, { ids }) => sum + ids.length, 0) }
}

/** Groups texts into batches, as their indices. */
export function createBatches(rows: readonly TokenRow[]): number[][] {
  const lengthOf = (index: number): number => rows[index]?.ids.length ?? 0
  const batches: number[][] = []
  for (const index of [...rows.keys()].toSorted((one, other) => lengthOf(one) - lengthOf(other))) {
    const batch = batches.at(-1)
    // Texts are sorted by length, so this one is the longest of the batch.
    const tokens = ((batch?.length ?? 0) + 1) * lengthOf(index)
    const fits = tokens <= MAX_BATCH_TOKENS && tokens * lengthOf(index) <= MAX_BATCH_SCORES
    if (batch && fits) batch.push(index)
    else batches.push([index])
  }
  return batches
}

function parseVectors(value: unknown, texts: number, { tag, embeddings }: Embedder): Float32Array {
  const { output, dimensions } = embeddings
  const data = (value as { data?: unknown } | undefined)?.data
  if (!(data instanceof Float32Array) || data.length !== texts * dimensions)
    throwPredictorUnusable(tag, `outputs.${output}`, `it is not ${texts} x ${dimensions} numbers.`)
  if (data.every(Number.isFinite)) return data
  const what = `${tag} produced NaN or Infinity. Try another device`
  throw new InoriginError('internal', `${what}: serve({ device: 'wasm' }).`, { code: 'not_finite' })
}

/** Returns the first numbers of a vector, scaled to the norm of the whole vector. */
function shortenVector(vector: Float32Array, dimensions: number): Float32Array {
  if (dimensions === vector.length) return vector
  const beginning = vector.subarray(0, dimensions)
  const scale = Math.hypot(...vector) / (Math.hypot(...beginning) || 1)
  return beginning.map((number) => number * scale)
}
