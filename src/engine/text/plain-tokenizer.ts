/** Tokenizes plain text, with a tokenizer that does not know special tokens. */
import { Tokenizer } from '@huggingface/tokenizers'
import { modelUnusable } from '../failure.ts'
import type { AddedToken, TokenizerFile } from './tokenizer-file.ts'

/** Tokenizer of plain text. */
interface PlainTokenizer {
  /**
   * Tokenizes a text as the model's tokenizer does, but without special tokens. `first` is `true`
   * for the text at the start of the prompt.
   */
  encode(text: string, first: boolean): number[]
  /** Returns the text after the tokenizer's normalization. */
  normalize(text: string): string
}

/**
 * Creates a tokenizer in which text never becomes a token of `specialTokens` but may become one of
 * `textTokens`. Changes `file`.
 */
export function createPlainTokenizer(
  file: TokenizerFile,
  config: object,
  specialTokens: readonly AddedToken[],
  textTokens: readonly AddedToken[],
): PlainTokenizer {
  removeFromVocabulary(file, specialTokens)
  const tokenizer = createTokenizer({ ...file, added_tokens: textTokens }, config)
  const firstPreTokenizer = tokenizer.pre_tokenizer
  // The library prepends a space to the first section of each call, but only one section is the
  // first in the prompt.
  const laterPreTokenizer = prependsToFirst(file.pre_tokenizer)
    ? createLaterPreTokenizer(file, config)
    : firstPreTokenizer

  const encode: PlainTokenizer['encode'] = (text, first) => {
    tokenizer.pre_tokenizer = first ? firstPreTokenizer : laterPreTokenizer
    const { ids } = tokenizer.encode(text, { add_special_tokens: false })
    if (ids.some((id) => id === undefined)) {
      throw modelUnusable('its tokenizer lacks a token for some of the text.')
    }
    return ids
  }
  return { encode, normalize: (text) => tokenizer.normalizer?.normalize(text) ?? text }
}

/**
 * Removes the special tokens from the vocabulary, where some tokenizers list them too. The unknown
 * token stays, because characters without a token become it.
 */
function removeFromVocabulary(
  { model }: TokenizerFile,
  specialTokens: readonly AddedToken[],
): void {
  const { vocab, unk_token: unknown } = model
  for (const { id, content } of specialTokens) {
    if (Array.isArray(vocab)) {
      // The index of a piece is its id, so it is emptied instead of removed. An empty piece is
      // never found.
      const piece = vocab[id]
      if (piece?.[0] === content) piece[0] = ''
    } else if (content !== unknown) delete vocab[content]
  }
}

const prependsToFirst = (preTokenizer: unknown): boolean =>
  JSON.stringify(preTokenizer ?? null).includes('"prepend_scheme":"first"')

/** Returns the pre-tokenizer for sections after the first, which prepends no space. */
function createLaterPreTokenizer(file: TokenizerFile, config: object): Tokenizer['pre_tokenizer'] {
  const never = JSON.stringify(file.pre_tokenizer).replaceAll(
    '"prepend_scheme":"first"',
    '"prepend_scheme":"never"',
  )
  const empty = { type: 'BPE', vocab: {}, merges: [] }
  const parts = {
    ...file,
    added_tokens: [],
    model: empty,
    pre_tokenizer: JSON.parse(never) as unknown,
  }
  return createTokenizer(parts, config).pre_tokenizer
}

/** Creates a tokenizer. Throws `model_unusable` if the file is invalid. */
function createTokenizer(file: object, config: object): Tokenizer {
  try {
    return new Tokenizer(file, config)
  } catch (cause) {
    throw modelUnusable(`its tokenizer cannot be read (${String(cause)}).`, cause)
  }
}
