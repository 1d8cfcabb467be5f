/** Text that is nothing but text to tokens, by a tokenizer that does not know those of structure. */
import { Tokenizer } from '@huggingface/tokenizers'
import { modelUnusable } from '../failure.ts'
import type { AddedToken, TokenizerFile } from './file.ts'

export interface PlainEncoder {
  /** As the model's tokenizer does, `first` where the text opens the prompt, without structure. */
  encode(text: string, first: boolean): number[]
  /** What the tokenizer makes of a text before it looks for tokens in it. */
  normalise(text: string): string
}

/**
 * `structure` are the added tokens that text never becomes, `rest` those that it may. Changes `file`.
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
  // The library prepends a space to the first section of each call; only one of ours is the first.
  const following = usesFirst(file.pre_tokenizer) ? laterPreTokenizer(file, config) : opening

  const encode: PlainEncoder['encode'] = (text, first) => {
    tokenizer.pre_tokenizer = first ? opening : following
    const { ids } = tokenizer.encode(text, { add_special_tokens: false })
    if (ids.some((id) => id === undefined)) {
      throw modelUnusable(
        'its tokenizer has no token for some of the text and none for the unknown.',
      )
    }
    return ids
  }
  return { encode, normalise: (text) => tokenizer.normalizer?.normalize(text) ?? text }
}

/**
 * Takes the structural tokens out of the vocabulary, where some tokenizers list them too. The
 * unknown token stays: it is what a character without a token becomes.
 */
function forget({ model }: TokenizerFile, structure: readonly AddedToken[]): void {
  const { vocab, unk_token: unknown } = model
  for (const { id, content } of structure) {
    if (Array.isArray(vocab)) {
      // Pieces are numbered by position; an empty one is never found.
      const piece = vocab[id]
      if (piece?.[0] === content) piece[0] = ''
    } else if (content !== unknown) delete vocab[content]
  }
}

const usesFirst = (preTokenizer: unknown): boolean =>
  JSON.stringify(preTokenizer ?? null).includes('"prepend_scheme":"first"')

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

function build(file: object, config: object): Tokenizer {
  try {
    return new Tokenizer(file, config)
  } catch (cause) {
    throw modelUnusable(`its tokenizer cannot be read (${String(cause)}).`, cause)
  }
}
