/** Schema of `POST /v1/rerank`, its conversion to a request, and the response. */
import * as v from 'valibot'
import type { RerankEvent, RerankRequest } from '../types/index.ts'
import type { EventEncoder } from './response-body.ts'
import * as f from './fields.ts'
import { createId, JSON_TYPE } from './http.ts'

/** Largest number of documents in a request, as other servers have it. */
const MAX_DOCUMENTS = 1000

/** A text, or an object with one, as some clients send it. */
const documentSchema = f.stringOr(
  f.nonEmptyString,
  v.object({ text: f.nonEmptyString }, 'a string, or an object with a text'),
)

/** Schema of the body. Fields of other servers that would change a score are refused. */
export const rerankBodySchema = f.object({
  model: f.tagString,
  query: f.nonEmptyString,
  documents: v.pipe(
    f.withMaxLength(
      MAX_DOCUMENTS,
      'documents',
      v.array(documentSchema, 'an array of strings or objects with a text'),
    ),
    f.notEmpty('an array with at least one document'),
  ),
  top_n: f.optional(f.integerAtLeast(1)),
  return_documents: f.optional(f.flag),
  rank_fields: f.rejectedField,
  max_chunks_per_doc: f.rejectedField,
  max_tokens_per_doc: f.rejectedField,
  truncation: f.unsupported(f.flag, (is) => is, 'leave it out: long documents are cut'),
  stream: f.unsupported(f.flag, (is) => !is),
})

type RerankBody = v.InferOutput<typeof rerankBodySchema>

/** Converts the body to a request. */
export const parseRerank = ({ model, query, documents }: RerankBody): RerankRequest => ({
  model,
  query,
  documents: documents.map((one) => (typeof one === 'string' ? one : one.text)),
})

/**
 * Encodes the best documents as one JSON body, the best first. Spaces are sent ahead of it as
 * heartbeats.
 */
export const rerankEncoder = (
  { model, top_n: count, return_documents: hasDocuments }: RerankBody,
  { documents }: RerankRequest,
): EventEncoder<RerankEvent> => ({
  type: JSON_TYPE,
  encode(event) {
    if (event.type === 'heartbeat') return ' '
    const { scores, tokens } = event.ranking
    const results = scores
      .map((score, index) => ({ index, relevance_score: score }))
      .toSorted((one, other) => other.relevance_score - one.relevance_score)
      .slice(0, count ?? undefined)
      .map((result) =>
        hasDocuments ? { ...result, document: { text: documents[result.index] ?? '' } } : result,
      )
    const usage = { prompt_tokens: tokens, total_tokens: tokens }
    const meta = { api_version: { version: '1' }, billed_units: { search_units: 1 } }
    return JSON.stringify({ id: createId('rerank_'), object: 'list', model, results, usage, meta })
  },
})
