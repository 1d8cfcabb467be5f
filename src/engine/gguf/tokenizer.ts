/**
 * Turns the tokenizer in the metadata of a GGUF file into the content of a `tokenizer.json`. It makes
 * the same tokens of a text as llama.cpp does, but text of a conversation never becomes a special
 * token.
 */
import { shorten } from '../../values/text.ts'
import type { AddedToken, TokenizerFile } from '../text/vocabulary.ts'
import type { Metadata } from './header.ts'
import {
  findBoolean,
  findNumbers,
  findText,
  findTexts,
  findTokenId,
  type Numbers,
  wrongValue,
} from './metadata.ts'
import { findPreTokenizer, type PreTokenizer } from './pre-tokenizers.ts'

/** Tokenizer of a GGUF file. */
export interface GgufTokenizer {
  /** Content of tokenizer.json. */
  file: TokenizerFile
  /** Texts of the special tokens by the names that chat templates use, such as `bos_token`. */
  tokenNames: Readonly<Record<string, string>>
  /** `true` if every prompt begins with the BOS token, even if the chat template writes none. */
  addsBos: boolean
  /** Ids of the tokens that end an answer, in rising order. */
  endTokens: readonly number[]
}

/** Kinds of tokens, as `tokenizer.ggml.token_type` numbers them. */
const KINDS = { normal: 1, unknown: 2, control: 3, userDefined: 4 }

/** The tokens of a file. */
interface Vocabulary {
  /** Texts by id. All are different, and none is empty. */
  texts: readonly string[]
  /** Kinds by id. */
  kinds: Int32Array
  ids: ReadonlyMap<string, number>
}

/** Returns the tokenizer. Throws `model_unusable` if the metadata has none, or a wrong one. */
export function readTokenizer(metadata: Metadata): GgufTokenizer {
  const model = findText(metadata, 'tokenizer.ggml.model')
  if (model !== 'gpt2' && model !== 'llama') {
    const found = model === undefined ? 'none' : `"${shorten(model)}"`
    throw wrongValue('tokenizer.ggml.model', `must be "gpt2" or "llama", got ${found}`)
  }
  const vocabulary = readVocabulary(metadata)
  const tokenIds = findTokenIds(metadata, vocabulary, model === 'llama' ? SENTENCE_PIECE_IDS : {})
  const endTokens = findEndTokens(vocabulary, tokenIds)
  const { file, addsBos } =
    model === 'llama'
      ? toSentencePiece(metadata, vocabulary, tokenIds.unk)
      : toByteLevel(metadata, vocabulary)
  const named = Object.entries(tokenIds).flatMap(([name, id]) => {
    const text = id === undefined ? undefined : vocabulary.texts[id]
    return text === undefined ? [] : [[`${name}_token`, text] as const]
  })
  return {
    file,
    tokenNames: Object.fromEntries(named),
    addsBos:
      (findBoolean(metadata, 'tokenizer.ggml.add_bos_token') ?? addsBos) &&
      tokenIds.bos !== undefined,
    endTokens,
  }
}

function readVocabulary(metadata: Metadata): Vocabulary {
  const key = 'tokenizer.ggml.tokens'
  const listed = findTexts(metadata, key) ?? []
  if (listed.length === 0) throw wrongValue(key, 'must list the tokens, and there is none')
  const ids = new Map<string, number>()
  const texts = listed.map((listedText, id) => {
    let text = listedText === '' ? `[EMPTY_${id}]` : listedText
    const same = ids.get(text)
    // Several texts that are not UTF-8 are read as the same one.
    if (same !== undefined && text.includes('\uFFFD')) text = `[INVALID_${id}]`
    else if (same !== undefined)
      throw wrongValue(key, `has the text "${shorten(text)}" twice, as tokens ${same} and ${id}`)
    ids.set(text, id)
    return text
  })
  const kinds = findPerToken(metadata, 'tokenizer.ggml.token_type', texts.length)
  return { texts, ids, kinds: kinds ? Int32Array.from(kinds) : new Int32Array(texts.length) }
}

/** Returns an array that has a number for each token; `undefined` if there is none. */
function findPerToken(metadata: Metadata, key: string, size: number): Numbers | undefined {
  const numbers = findNumbers(metadata, key)
  if (!numbers || numbers.length === size) return numbers
  throw wrongValue(key, `has ${numbers.length} values, and there are ${size} tokens`)
}

/** Names of tokens in templates, and in the keys of GGUF files. */
const NAMED_KEYS = {
  bos: 'bos',
  eos: 'eos',
  unk: 'unknown',
  sep: 'seperator',
  pad: 'padding',
  eot: 'eot',
  eom: 'eom',
  fim_pad: 'fim_pad',
  fim_rep: 'fim_rep',
  fim_sep: 'fim_sep',
} as const

type TokenIds = Partial<Record<keyof typeof NAMED_KEYS, number>>

/** Ids of SentencePiece tokenizers, if a file does not have others. */
const SENTENCE_PIECE_IDS: TokenIds = { unk: 0, bos: 1, eos: 2 }

function findTokenIds(metadata: Metadata, { texts }: Vocabulary, defaults: TokenIds): TokenIds {
  const ids: TokenIds = {}
  for (const name of Object.keys(NAMED_KEYS) as (keyof typeof NAMED_KEYS)[]) {
    const key = `tokenizer.ggml.${NAMED_KEYS[name]}_token_id`
    const id = findTokenId(metadata, key, texts.length) ?? defaults[name]
    if (id !== undefined && id < texts.length) ids[name] = id
  }
  return ids
}

/** Texts of tokens that end an answer in any model, whether or not a key of the file names them. */
const END_TEXTS =
  '<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> ' +
  '<|endoftext|> </s> <|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> ' +
  '<eos> <turn|> <|tool_response> <｜end▁of▁sentence｜> [e~['

/** Texts of tokens that pad, or come between files of code. Behind one an answer would be over. */
const CODE_TEXTS = [
  ['fim_pad', '<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]'],
  ['fim_rep', '<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>'],
  ['fim_sep', '<|file_sep|>'],
] as const

/**
 * Returns the ids of the tokens that end an answer: the named ones, and those with a usual text,
 * which become control tokens.
 */
function findEndTokens({ ids, kinds }: Vocabulary, tokenIds: TokenIds): number[] {
  const idsOf = (texts: string): number[] => texts.split(' ').flatMap((text) => ids.get(text) ?? [])
  const found = idsOf(END_TEXTS)
  for (const [name, texts] of CODE_TEXTS)
    if (tokenIds[name] === undefined) found.push(...idsOf(texts).slice(0, 1))
  for (const id of found) kinds[id] = KINDS.control
  const { eos, eot, eom, fim_pad: pad, fim_rep: repository, fim_sep: file } = tokenIds
  const named = [eos, eot, eom, pad, repository, file].filter((id) => id !== undefined)
  const ends = new Set([...found, ...named])
  const has = (text: string): boolean => ends.has(ids.get(text) ?? -1)
  const remove = (text: string, kind: number): void => {
    const id = ids.get(text) ?? -1
    ends.delete(id)
    kinds[id] = kind
  }
  // In these families such a token ends a part of an answer, or is text.
  const calls = has('<|call|>') || has('<|calls|>')
  if (calls && (has('<|return|>') || has('<|flush|>'))) remove('<|end|>', KINDS.userDefined)
  if (has('<|tool_response>')) remove('</s>', KINDS.normal)
  return [...ends].toSorted((one, other) => one - other)
}

/** Returns the tokens that are found in a text before it is split. */
function listAddedTokens({ texts, kinds }: Vocabulary, strips: boolean): AddedToken[] {
  const added: (AddedToken & { normalized: boolean })[] = []
  for (const [id, content] of texts.entries()) {
    const kind = kinds[id]
    const special = kind === KINDS.control || kind === KINDS.unknown
    if (!special && kind !== KINDS.userDefined) continue
    const rstrip = strips && !UNSTRIPPED.has(content)
    added.push({ id, content, special, normalized: false, ...(rstrip && { rstrip }) })
  }
  return added
}

/** Tokens of Phi-3 that keep the white space behind them. */
const UNSTRIPPED: ReadonlySet<string> = new Set(['<unk>', '<s>', '<|endoftext|>'])

/** Returns the tokenizer of bytes whose neighbors are merged by a list. */
function toByteLevel(metadata: Metadata, vocabulary: Vocabulary) {
  const way = findPreTokenizer(findText(metadata, 'tokenizer.ggml.pre') ?? 'default')
  const file = {
    added_tokens: listAddedTokens(vocabulary, isPhi3(metadata)),
    normalizer: null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: listSteps(way) },
    model: {
      type: 'BPE',
      vocab: toRecord(vocabulary),
      merges: readMerges(metadata, vocabulary),
      ignore_merges: way.ignoresMerges ?? false,
    },
    post_processor: null,
    decoder: { type: 'ByteLevel' },
  }
  return { file, addsBos: way.addsBos ?? false }
}

const listSteps = ({ rules }: PreTokenizer): object[] => [
  ...rules.map((rule) => ({
    type: 'Split',
    pattern: { Regex: rule },
    behavior: 'Isolated',
    invert: false,
  })),
  { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
]

const toRecord = ({ texts }: Vocabulary): Record<string, number> =>
  Object.fromEntries(texts.map((text, id) => [text, id]))

/** Returns the pairs that become one token, the most important first. */
function readMerges(metadata: Metadata, { ids }: Vocabulary): [string, string][] {
  const key = 'tokenizer.ggml.merges'
  const listed = findTexts(metadata, key)
  if (!listed) throw wrongValue(key, 'is missing, which a tokenizer of the kind "gpt2" needs')
  const seen = new Set<string>()
  return listed.flatMap((pair, index): [string, string][] => {
    if (seen.has(pair)) return []
    seen.add(pair)
    // The first part may begin with a space.
    const space = pair.indexOf(' ', 1)
    const [left, right] = [pair.slice(0, space), pair.slice(space + 1)]
    const unknown = [left, right, left + right].find((part) => !ids.has(part))
    if (space > 0 && unknown === undefined) return [[left, right]]
    const why = space > 0 ? `"${shorten(unknown ?? '')}" is no token` : 'it is no pair'
    throw wrongValue(key, `has the wrong pair ${index}, "${shorten(pair)}": ${why}`)
  })
}

/** Returns the tokenizer of characters whose neighbors are merged by the scores of tokens. */
function toSentencePiece(metadata: Metadata, vocabulary: Vocabulary, unknown?: number) {
  const key = 'tokenizer.ggml.scores'
  const scores = findPerToken(metadata, key, vocabulary.texts.length)
  const wrong = scores ? Array.from(scores).findIndex((score) => !Number.isFinite(score)) : -1
  if (wrong >= 0) throw wrongValue(key, `has the score ${scores?.[wrong]} of token ${wrong}`)
  const prefixes = findBoolean(metadata, 'tokenizer.ggml.add_space_prefix') ?? true
  const file = {
    added_tokens: listAddedTokens(vocabulary, isPhi3(metadata)),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        ...(prefixes ? [{ type: 'Prepend', prepend: '▁' }] : []),
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    model: {
      type: 'BPE',
      vocab: toRecord(vocabulary),
      merges: [],
      scores: scores ? Array.from(scores) : vocabulary.texts.map(() => 0),
      byte_fallback: true,
      unk_token: unknown === undefined ? null : (vocabulary.texts[unknown] ?? null),
    },
    post_processor: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(prefixes ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
      ],
    },
  }
  return { file, addsBos: true }
}

/** Returns `true` for Phi-3, whose tokens remove the white space behind them. */
const isPhi3 = (metadata: Metadata): boolean =>
  /phi-?3/i.test(findText(metadata, 'general.name') ?? '')
