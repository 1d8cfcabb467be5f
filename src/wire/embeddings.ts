/** Schema of `POST /v1/embeddings`, its conversion to a request, and the response. */
import * as v from 'valibot'
import type { EmbeddingEvent, Embeddings } from '../types/index.ts'
import type { EventEncoder } from './response-body.ts'
import { toBase64 } from '../values/bytes.ts'
import * as f from './fields.ts'
import { JSON_TYPE } from './http.ts'
import { renamedField } from './shared-fields.ts'

/** Largest number of texts in a request. Clients send batches of up to this size. */
const MAX_TEXTS = 2048

const texts = v.pipe(
  f.withMaxLength(
    MAX_TEXTS,
    'strings',
    v.array(f.nonEmptyString, 'a string or an array of strings'),
  ),
  f.notEmpty('an array with at least one string'),
)

/** Refuses token ids, because clients compute them with the tokenizer of another model. */
const rejectedTokens = f.rejectedWith('send the text itself: each model has its own tokenizer')

const isTokens = (input: unknown): boolean =>
  Array.isArray(input) && (typeof input[0] === 'number' || Array.isArray(input[0]))

const inputSchema = f.stringOr(f.nonEmptyString, f.when(isTokens, rejectedTokens, texts))

const SPLIT_ADVICE = 'split long texts into several'
const endOrNone = f.unsupported(
  f.string,
  (way) => ['NONE', 'END'].includes(way),
  `send "END", or ${SPLIT_ADVICE}`,
)
const enabledFlag = f.unsupported(f.flag, (is) => is)
const floatEncoding = f.unsupported(v.unknown(), (value) => value === 'float')
const rejectedPrefix = f.optional(f.rejectedWith("put the model's own prefix before the text"))

/** Schema of the body. Fields of other servers that would change a vector are refused. */
export const embeddingsBodySchema = f.object({
  model: f.tagString,
  input: inputSchema,
  encoding_format: f.optional(f.oneOf(['float', 'base64'])),
  dimensions: f.optional(f.integerAtLeast(1)),
  messages: renamedField('send input instead'),
  prompt: renamedField('send input instead'),
  stream: f.unsupported(f.flag, (is) => !is),
  input_type: rejectedPrefix,
  task: rejectedPrefix,
  prompt_name: f.optional(f.nonEmptyString),
  truncate: f.optional(f.stringOr(endOrNone, f.flag)),
  truncation: f.optional(f.flag),
  truncate_prompt_tokens: f.rejectedField,
  late_chunking: f.unsupported(f.flag, (is) => !is),
  add_special_tokens: enabledFlag,
  normalize: enabledFlag,
  normalized: enabledFlag,
  output_dimension: renamedField('send dimensions instead'),
  output_dtype: floatEncoding,
  embedding_type: floatEncoding,
  embedding_types: f.rejectedField,
})

type EmbeddingsBody = v.InferOutput<typeof embeddingsBodySchema>

/** Converts the body to a request, with the mapping of its fields back to the body's. */
export function parseEmbeddings(body: EmbeddingsBody) {
  const { model, input, dimensions, prompt_name: promptName } = body
  const wanted = body.truncate ?? body.truncation ?? undefined
  const truncate = typeof wanted === 'string' ? wanted === 'END' : wanted
  const fieldNames: f.FieldNames = {
    rename: typeof input === 'string' ? [[/^input\[0\]/, 'input']] : [],
    reasoning: [],
  }
  return {
    request: {
      model,
      input: [input].flat(),
      dimensions: dimensions ?? undefined,
      ...(promptName && { promptName }),
      ...(truncate !== undefined && { truncate }),
    },
    fieldNames,
  }
}

/** Encodes embeddings as one JSON body. Spaces are sent ahead of it as heartbeats. */
export function embeddingsEncoder(body: EmbeddingsBody): EventEncoder<EmbeddingEvent> {
  const { model, encoding_format } = body
  const encodeVector = encoding_format === 'base64' ? base64 : (vector: Float32Array) => [...vector]
  return {
    type: JSON_TYPE,
    encode(event) {
      if (event.type === 'heartbeat') return ' '
      const { tokens: count } = event.embeddings
      const data = splitVectors(event.embeddings).map((vector, index) => {
        return { object: 'embedding', index, embedding: encodeVector(vector) }
      })
      const usage = { prompt_tokens: count, total_tokens: count }
      return JSON.stringify({ object: 'list', data, model, usage })
    },
  }
}

function splitVectors({ vectors, dimensions }: Embeddings): Float32Array[] {
  return Array.from({ length: vectors.length / dimensions }, (_unused, index) =>
    vectors.subarray(index * dimensions, (index + 1) * dimensions),
  )
}

/** Encodes a vector as base64 of float32 in little-endian order, the byte order of all browsers. */
function base64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return toBase64(new Uint8Array(buffer, byteOffset, byteLength))
}
