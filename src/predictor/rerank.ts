/** Scores how well documents answer a query, with a predictor that reads pairs of texts. */
import type { Reranker } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { Ranking, RerankRequest } from '../types/index.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import {
  createBatches,
  MAX_REQUEST_TOKENS,
  type TextPredictor,
  YIELD_INTERVAL_MS,
} from './embed.ts'
import type { TokenRow } from './text.ts'

/** Tokenizes the query with each document, which is cut to what the model reads. */
export async function tokenizePairs(
  predictor: TextPredictor,
  { rerank: { input } }: Reranker,
  { query, documents }: RerankRequest,
  signal: AbortSignal,
): Promise<TokenRow[]> {
  const rows: TokenRow[] = []
  let total = 0
  let start = performance.now()
  for (const [index, pair] of documents.entries()) {
    if (performance.now() - start > YIELD_INTERVAL_MS) {
      await new Promise((resolve) => setTimeout(resolve))
      start = performance.now()
    }
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const row = predictor.tokenize(input, query, `documents[${index}]`, { pair, isCut: true })
    rows.push(row)
    total += row.ids.length
    if (total <= MAX_REQUEST_TOKENS) continue
    const what = `documents have more than ${MAX_REQUEST_TOKENS} tokens, the limit of one request.`
    throw new InoriginError('invalid_request', `${what} Send fewer at once.`, {
      code: 'invalid_value',
      param: 'documents',
    })
  }
  return rows
}

/** Resolves with the scores of tokenized pairs. Pairs of similar length share a batch. */
export async function scorePairs(
  predictor: TextPredictor,
  { tag, rerank: { input, output } }: Reranker,
  rows: readonly TokenRow[],
  signal: AbortSignal,
): Promise<Ranking> {
  const scores = Array<number>(rows.length).fill(0)
  for (const indices of createBatches(rows)) {
    const batch = indices.flatMap((index) => rows[index] ?? [])
    const { outputs } = await predictor.predictTokens(input, batch, signal)
    const value = outputs[output]
    // A single number of the shape [1] is returned as such.
    const data = typeof value === 'number' ? [value] : (value as { data?: unknown } | null)?.data
    const own = Array.from((data ?? []) as ArrayLike<number>)
    if (own.length !== indices.length)
      throwPredictorUnusable(tag, `outputs.${output}`, `it is not ${indices.length} numbers.`)
    for (const [row, index] of indices.entries()) scores[index] = own[row] ?? 0
  }
  if (!scores.every(Number.isFinite)) {
    const what = `${tag} produced NaN or Infinity. Try another device: serve({ device: 'wasm' }).`
    throw new InoriginError('internal', what, { code: 'not_finite' })
  }
  return { scores, tokens: rows.reduce((sum, { ids }) => sum + ids.length, 0) }
}
