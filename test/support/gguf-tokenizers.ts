/** Metadata of GGUF files with small vocabularies. */
import { BYTES } from '../../src/engine/text/vocabulary.ts'
import type { Written } from './gguf.ts'

/** Kinds of tokens by their numbers in a file. */
export const KIND = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 }

type Metadata = Record<string, Written>

/** A token behind those of a vocabulary. */
export type ExtraToken = readonly [text: string, kind: number, score?: number]

/** Special tokens of the two vocabularies, with the first ids. */
const SPECIALS = ['<unk>', '<s>', '</s>', '<|im_start|>', '<|im_end|>']

const isUnknown = (text: string): boolean => text === '<unk>'

const kindOf = (text: string): number => (isUnknown(text) ? KIND.unknown : KIND.control)

/** Returns a tokenizer of bytes with a few merges. `extra` are further tokens. */
export function byteLevelMetadata(
  pre = 'llama-bpe',
  extra: readonly ExtraToken[] = [],
  merges = MERGES,
): Metadata {
  const joined = merges.map((pair) => pair.replace(' ', ''))
  const texts = [...SPECIALS, ...BYTES.keys(), ...joined]
  return {
    'tokenizer.ggml.model': { text: 'gpt2' },
    'tokenizer.ggml.pre': { text: pre },
    'tokenizer.ggml.tokens': { texts: [...texts, ...extra.map(([text]) => text)] },
    'tokenizer.ggml.token_type': {
      int32s: [
        ...texts.map((text, id) => (id < SPECIALS.length ? kindOf(text) : KIND.normal)),
        ...extra.map(([, kind]) => kind),
      ],
    },
    'tokenizer.ggml.merges': { texts: merges },
    'tokenizer.ggml.bos_token_id': { uint32: 1 },
    'tokenizer.ggml.eos_token_id': { uint32: 2 },
    'tokenizer.ggml.unknown_token_id': { uint32: 0 },
  }
}

const MERGES: readonly string[] = ['l l', 'h e', 'll o', 'he llo', 'Ġ hello', 'Ġ Ġ', 'Ċ Ċ']

/** Returns a tokenizer of characters that are merged by score. `extra` are further tokens. */
export function sentencePieceMetadata(extra: readonly ExtraToken[] = []): Metadata {
  const bytes = [...BYTES.values()].map(
    (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  )
  const tokens: ExtraToken[] = [
    ...SPECIALS.map((text) => [text, kindOf(text)] as const),
    ...bytes.map((text) => [text, KIND.byte] as const),
    ...PIECES.map(([text, score]) => [text, KIND.normal, score] as const),
    ...extra,
  ]
  return {
    'tokenizer.ggml.model': { text: 'llama' },
    'tokenizer.ggml.tokens': { texts: tokens.map(([text]) => text) },
    'tokenizer.ggml.scores': { float32s: tokens.map(([, , score = 0]) => score) },
    'tokenizer.ggml.token_type': { int32s: tokens.map(([, kind]) => kind) },
    'tokenizer.ggml.bos_token_id': { uint32: 1 },
    'tokenizer.ggml.eos_token_id': { uint32: 2 },
  }
}

/** `aaa` is made in two ways, `ab` and `bc` have the same score, and `he` is worse than `el`. */
const PIECES: readonly (readonly [text: string, score: number])[] = [
  ...Array.from('▁abcehlo', (text) => [text, -100] as const),
  ['aa', -1],
  ['aaa', -2],
  ['ab', -3],
  ['bc', -3],
  ['el', -4],
  ['he', -5],
  ['ell', -6],
  ['hell', -7],
  ['hello', -8],
  ['▁hello', -9],
  ['▁▁', -10],
]
