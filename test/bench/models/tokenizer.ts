/** A tokenizer of any size for models that are only measured: each token is one character. */

/** First of 42,720 rare characters; the next plane follows it, so that nothing merges or splits. */
const FIRST_CHARACTER = 0x20000

/** Returns the text of a token. */
export const characterOf = (token: number): string => String.fromCodePoint(FIRST_CHARACTER + token)

/** Returns tokenizer.json. */
export function createTokenizer(vocabulary: number): object {
  const vocab = Object.fromEntries(
    Array.from({ length: vocabulary }, (_, token) => [characterOf(token), token]),
  )
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: 'Fuse' },
    model: { type: 'BPE', vocab, merges: [], unk_token: null, byte_fallback: false },
  }
}
