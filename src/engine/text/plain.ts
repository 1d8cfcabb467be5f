/** Tokenizes plain text, with a tokenizer that does not know special tokens. */
import { Tokenizer } from '@huggingface/tokenizers'
import { modelUnusable } from '../failure.ts'
import type { AddedToken, TokenizerFile } from './file.ts'

/** Tokenizer of plain text. */
export interface PlainEncoder {
  /**
   * Tokenizes a text as the model's tokenizer does, but without special tokens. `first` is `true`
   * for the text at the start of the prompt.
   */
  encode(text: string, first: boolean): number[]
  /** Returns the text after the tokenizer's normalization. */
  normalise(text: string): string
}

/**
 * Creates a tokenizer in which text never becomes a token of `structure` but may become one of
 * `rest`. Changes `file`.
 */
export function createPlainEncoder(
  file: TokenizerFile,
  config: object,
  structure: readonly AddedToken[],
  rest: readonly AddedToken[],
): PlainEncoder {
  forget(file, structure)
  const tokenizer = build({ ...file, added_tokens: rest }, config)
  const opening = tokenizer.pre_tokenizer
  // The library prepends a space to the first section of each call, but only one section is the
  // first in the prompt.
  const following = usesFirst(file.pre_tokenizer) ? laterPreTokenizer(file, config) : opening

  const encode: PlainEncoder['encode'] = (text, first) => {
    tokenizer.pre_tokenizer = first ? opening : following
    const { ids } = tokenizer.encode(text, { add_special_tokens: false })
    if (ids.some((id) => id === undefined)) {
      throw modelUnusable('its tokenizer lacks a token for some of the text.')
    }
    return ids
  }
  return { encode, normalise: (text) => tokenizer.normalizer?.normalize(text) ?? text }
}

/**
 * Removes the special tokens from the vocabulary, where some tokenizers list them too. The unknown
 * token stays, because characters without a token become it.
 */
function forget({ model }: TokenizerFile, structure: readonly AddedToken[]): void {
  const { vocab, unk_token: unknown } = model
  for (const { id, content } of structure) {
    if (Array.isArray(vocab)) {
      // The index of a piece is its id, so it is emptied instead of removed. An empty piece is
      // never found.
      const piece = vocab[id]
      if (piece?.[0] === content) piece[0] = ''
    } else if (content !== unknown) delete vocab[content]
  }
}

const usesFirst = (preTokenizer: unknown): boolean =>
  JSON.stringify(preTokenizer ?? null).includes('"prepend_scheme":"first"')

/** Returns the pre-tokenizer for sections after the first, which prepends no space. */
function laterPreTokenizer(file: TokenizerFile, config: object): Tokenizer['pre_tokenizer'] {
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
  return build(parts, config).pre_tokenizer
}

/** Creates a tokenizer. Throws `model_unusable` if the file is invalid. */
function build(file: object, config: object): Tokenizer {
  try {
    return new Tokenizer(file, config)
  } catch (cause) {
    throw modelUnusable(`its tokenizer cannot be read (${String(cause)}).`, cause)
  }
}
