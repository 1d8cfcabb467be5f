/** Types of a model's tokenizer.json. */

/** Entry of `added_tokens` in tokenizer.json. */
export interface AddedToken {
  id: number
  content: string
  special?: boolean
  lstrip?: boolean
  rstrip?: boolean
}

/** Parts of tokenizer.json that this folder reads. */
export interface TokenizerFile {
  added_tokens: AddedToken[]
  model: {
    type?: string
    vocab: Record<string, number> | [piece: string, score: number][]
    unk_token?: string | null
    byte_fallback?: boolean
  }
  normalizer?: unknown
  pre_tokenizer: unknown
  decoder: unknown
}
