/** Schema of `POST /v1/embeddings`, its conversion to a request, and the response. */
import * as v from 'valibot'
import type { EmbeddingEvent, EmbeddingRequest, Embeddings } from '../types/index.ts'
import type { Encoder } from './answer.ts'
import { toBase64 } from './base64.ts'
import {
  atLeast,
  atMost,
  filled,
  flag,
  not,
  object,
  oneOf,
  optional,
  refused,
  unsupported,
} from './fields.ts'
import type { Places } from './places.ts'
import { JSON_TYPE } from './reply.ts'
import { elsewhere } from './shared.ts'

/** Largest number of texts in a request. Clients send batches of up to this size. */
const MAX_TEXTS = 2048

const texts = v.pipe(
  atMost(MAX_TEXTS, 'strings', v.array(filled, 'a string or an array of strings')),
  v.minLength(1, 'an array with at least one string'),
)

/** Refuses token ids, because clients compute them with the tokenizer of another model. */
const tokens = not('send the text itself: each model has its own tokenizer')

const inputRule = v.lazy((input): typeof filled | typeof texts | typeof tokens => {
  if (typeof input === 'string') return filled
  const first: unknown = Array.isArray(input) ? input[0] : undefined
  return typeof first === 'number' || Array.isArray(first) ? tokens : texts
})

const CUT = 'split long texts into several'
const off = optional(unsupported(flag, (is) => !is, CUT))
const cutNone = unsupported(v.string(), (way) => way === 'NONE', CUT)
const on = optional(unsupported(flag, (is) => is))
const floats = optional(unsupported(v.unknown(), (value) => value === 'float'))

/** Schema of the body. Fields of other servers that would change a vector are refused. */
export const embeddingsBody = object({
  model: filled,
  input: inputRule,
  encoding_format: optional(oneOf(['float', 'base64'])),
  dimensions: optional(atLeast(1)),
  messages: elsewhere('send input instead'),
  prompt: elsewhere('send input instead'),
  stream: optional(unsupported(flag, (is) => !is)),
  input_type: optional(not("put the model's own prefix before the text")),
  task: optional(not("put the model's own prefix before the text")),
  prompt_name: optional(not("put the model's own prefix before the text")),
  truncate: optional(
    v.lazy((input): typeof off | typeof cutNone => (typeof input === 'string' ? cutNone : off)),
  ),
  truncation: off,
  truncate_prompt_tokens: refused,
  late_chunking: optional(unsupported(flag, (is) => !is)),
  add_special_tokens: on,
  normalize: on,
  normalized: on,
  output_dimension: elsewhere('send dimensions instead'),
  output_dtype: floats,
  embedding_type: floats,
  embedding_types: refused,
})

export type EmbeddingsBody = v.InferOutput<typeof embeddingsBody>

/** Converts the body to a request. */
export function embeddingsRequest({ model, input, dimensions }: EmbeddingsBody): EmbeddingRequest {
  return { model, input: [input].flat(), dimensions: dimensions ?? undefined }
}

/** Returns the mapping from fields of the request to those of the body. */
export function embeddingsPlaces({ input }: EmbeddingsBody): Places {
  return { rename: typeof input === 'string' ? [[/^input\[0\]/, 'input']] : [], reasoning: [] }
}

/** Encodes embeddings as one JSON body. Spaces are sent ahead of it as heartbeats. */
export function embeddingsJson({
  model,
  encoding_format,
}: Pick<EmbeddingsBody, 'model' | 'encoding_format'>): Encoder<EmbeddingEvent> {
  const form = encoding_format === 'base64' ? base64 : (vector: Float32Array) => [...vector]
  return {
    type: JSON_TYPE,
    encode(event) {
      if (event.type === 'heartbeat') return ' '
      const { tokens: count } = event.embeddings
      const data = vectorsOf(event.embeddings).map((vector, index) => ({
        object: 'embedding',
        index,
        embedding: form(vector),
      }))
      const usage = { prompt_tokens: count, total_tokens: count }
      return JSON.stringify({ object: 'list', data, model, usage })
    },
  }
}

function vectorsOf({ vectors, dimensions }: Embeddings): Float32Array[] {
  return Array.from({ length: vectors.length / dimensions }, (_unused, index) =>
    vectors.subarray(index * dimensions, (index + 1) * dimensions),
  )
}

/** Encodes a vector as base64 of float32 in little-endian order, the byte order of all browsers. */
function base64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return toBase64(new Uint8Array(buffer, byteOffset, byteLength))
}
