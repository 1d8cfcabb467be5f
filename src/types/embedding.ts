import type { Tag } from './model.ts'

/** What `POST /v1/embeddings` decodes to. */
export interface EmbeddingRequest {
  model: Tag
  /** At least one text, none of them empty. */
  input: readonly string[]
  /** How long the vectors are to be; absent: as long as the model makes them. */
  dimensions?: number
}

/** A vector for each text, in the order of the texts. */
export interface Embeddings {
  /** One vector after the other. */
  vectors: Float32Array<ArrayBuffer>
  /** Length of each. */
  dimensions: number
  /** Tokens of all texts, with those that the tokenizer puts around them. */
  tokens: number
}

/** What an embedding tells while it runs. */
export type EmbeddingEvent =
  /** Not done, but alive; every 10 s. */
  { type: 'heartbeat' } | { type: 'finish'; embeddings: Embeddings }
