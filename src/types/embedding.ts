import type { Route, Tag } from './model.ts'

/** The parsed body of `POST /v1/embeddings`. */
export interface EmbeddingRequest {
  model: Tag
  /** Texts to embed: at least one, and none of them empty. */
  input: readonly string[]
  /** Length of the vectors. Default: the length that the model produces. */
  dimensions?: number
  /** The only place where the request may be answered. Default: any that the catalog allows. */
  route?: Route
}

/** One vector for each text, in the order of the texts. */
export interface Embeddings {
  /** All vectors, concatenated. */
  vectors: Float32Array<ArrayBuffer>
  /** Length of each vector. */
  dimensions: number
  /** Number of tokens of all texts, including the special tokens that the tokenizer adds. */
  tokens: number
}

/** An event of a running embedding request. */
export type EmbeddingEvent =
  /** A sign of life, sent when there was no other event for about 10 s. */
  { type: 'heartbeat' } | { type: 'finish'; embeddings: Embeddings }
