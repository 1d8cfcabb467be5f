/** What a model's tokenizer.json says. */

/** One entry of `added_tokens` in tokenizer.json. */
export interface AddedToken {
  id: number
  content: string
  special?: boolean
  lstrip?: boolean
  rstrip?: boolean
}

/** The parts of tokenizer.json that are read here. */
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
