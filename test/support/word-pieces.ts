/** A tokenizer of word pieces as that of BERT, with few tokens. */

const TOKENS = '[PAD] [UNK] [CLS] [SEP] [MASK] new york ##shire is far . in it un ##ico ##de'.split(
  ' ',
)

/** The content of `tokenizer.json`. */
export const WORDS = {
  version: '1.0',
  added_tokens: TOKENS.slice(0, 5).map((content, id) => ({ id, content, special: true })),
  normalizer: { type: 'BertNormalizer', lowercase: true, clean_text: true, strip_accents: null },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: {
    type: 'TemplateProcessing',
    single: ['[CLS]', 'A', '[SEP]'].map(toPart),
    pair: ['[CLS]', 'A', '[SEP]', 'B', '[SEP]'].map(toPart),
    special_tokens: Object.fromEntries(
      ['[CLS]', '[SEP]'].map((id) => [id, { id, ids: [TOKENS.indexOf(id)], tokens: [id] }]),
    ),
  },
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
  model: {
    type: 'WordPiece',
    unk_token: '[UNK]',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(TOKENS.map((token, id) => [token, id])),
  },
}

function toPart(id: string) {
  return id.length === 1
    ? { Sequence: { id, type_id: id === 'A' ? 0 : 1 } }
    : { SpecialToken: { id, type_id: 0 } }
}
