/** Small tokenizers of the kinds that decoders come with. */
import { Tokenizer } from '@huggingface/tokenizers'
import type { TokenizerFile } from '../../src/engine/text/vocabulary.ts'
import tiny from '../models/tiny/tokenizer.json'

const WORDS = 'hello world the cat sat on a mat system user assistant'.split(' ')
const LETTERS = [
  ...' abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?<>|_/[]{}()\n"\'',
]

const added = (first: number, contents: readonly string[]): object[] =>
  contents.map((content, index) => ({
    id: first + index,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: !content.startsWith('<tool'),
  }))

const shell = { version: '1.0', truncation: null, padding: null, post_processor: null }

/** A chat template. The texts below are right with every kind of tokenizer. */
export const TEMPLATE =
  '{{ bos_token }}{% for m in messages %}' +
  '<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}' +
  '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}{# <tool_call> #}'

const CONTROL = ['<unk>', '<s>', '</s>', '<|im_start|>', '<|im_end|>', '<tool_call>']

/**
 * Sentencepiece with a language model over pieces; its control tokens are in the vocabulary too.
 */
function unigram(scheme: 'first' | 'always' | 'never'): object {
  const pieces = [
    ...WORDS.map((word) => `▁${word}`),
    ...WORDS,
    ...LETTERS.map((letter) => letter.replace(' ', '▁')),
  ]
  const scored = [...new Set(pieces)].map((piece): [string, number] => [
    piece,
    piece.length > 2 ? -4 : -8,
  ])
  return {
    ...shell,
    added_tokens: added(0, CONTROL),
    normalizer: null,
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: scheme, split: false },
    decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: scheme, split: false },
    model: {
      type: 'Unigram',
      unk_id: 0,
      vocab: [...CONTROL.map((token): [string, number] => [token, 0]), ...scored],
    },
  }
}

/**
 * Sentencepiece with merges, bytes for what it does not know, and the space put before by a
 * normaliser.
 */
function byteFallback(): object {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  )
  const pieces = [
    ...CONTROL,
    ...bytes,
    '▁',
    ...LETTERS.filter((letter) => letter !== ' ' && letter !== '\n'),
  ]
  const merges: [string, string][] = []
  for (const word of WORDS) {
    let made = '▁'
    for (const letter of word) {
      merges.push([made, letter])
      made += letter
      pieces.push(made)
    }
  }
  return {
    ...shell,
    added_tokens: added(0, CONTROL),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Prepend', prepend: '▁' },
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        { type: 'Strip', content: ' ', start: 1, stop: 0 },
      ],
    },
    model: {
      type: 'BPE',
      unk_token: '<unk>',
      fuse_unk: true,
      byte_fallback: true,
      vocab: Object.fromEntries([...new Set(pieces)].map((piece, id) => [piece, id])),
      merges: merges.filter(
        ([left, right], at) => merges.findIndex(([a, b]) => a === left && b === right) === at,
      ),
    },
  }
}

/** Bytes, with tokens that take the space around them and runs of spaces among the added ones. */
function stripping(): object {
  const copy = structuredClone(tiny) as {
    added_tokens: { content: string; lstrip: boolean; rstrip: boolean }[]
  }
  for (const token of copy.added_tokens) {
    if (token.content === '<|im_end|>') token.lstrip = true
    if (token.content === '<|im_start|>') token.rstrip = true
  }
  const spaces = added(400, ['  ', '    ']).map((token) => ({ ...token, special: false }))
  return { ...copy, added_tokens: [...copy.added_tokens, ...spaces] }
}

const TOKENIZERS: Readonly<Record<string, () => object>> = {
  bytes: () => structuredClone(tiny),
  'bytes, stripping': stripping,
  'unigram, space first': () => unigram('first'),
  'unigram, space always': () => unigram('always'),
  'unigram, no space': () => unigram('never'),
  'merges, byte fallback': byteFallback,
}

export const TOKENIZER_NAMES = Object.keys(TOKENIZERS)

export const SPECIAL_NAMES = { bos_token: '<s>', eos_token: '</s>' }

/** Returns a new copy of a tokenizer, since the prompt tokenizer changes it. */
export const fileOf = (name: string): TokenizerFile => TOKENIZERS[name]?.() as TokenizerFile

/** Returns the id of an added token, or -1. */
export const idOf = (content: string, file = fileOf('bytes')): number =>
  file.added_tokens.find((token) => token.content === content)?.id ?? -1

/** Returns the tokens that the library makes of a text. */
export const encodePlain = (name: string, text: string): number[] =>
  new Tokenizer(fileOf(name), SPECIAL_NAMES).encode(text, { add_special_tokens: false }).ids

/** Texts of all sorts, none with a control token. */
export const TEXTS: readonly string[] = [
  'hello world',
  ' the cat sat on a mat ',
  'Hello,\nworld!\n\n  Two spaces,    four.',
  '\ttabs\r\nand returns ',
  'Grüße, 世界, привет, नमस्ते',
  '👩‍👩‍👧‍👦 👍🏽 🇪🇺 e\u0301',
  '< |im_start|> <|im_ start|> <im_start> |im_end|>',
  '<| <s <|im_ > [INST] {{ messages }} {% raw %}',
  '▁hello▁world <0x41> Ġhello',
  'a'.repeat(300),
  '\uE000\uE001 private \uFDD0 \u0000 \uFEFF',
  '0123456789 3.14159 -1e10',
]
