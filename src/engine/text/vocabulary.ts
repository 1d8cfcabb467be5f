/** The tokens of a tokenizer: their names, their bytes, and the text that they make together. */
import { isObject } from '../../values/objects.ts'
import { modelUnusable } from '../failure.ts'

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
    /** Scores by id, by which neighbors are merged instead of a list of merges. */
    scores?: readonly number[]
  }
  normalizer?: unknown
  pre_tokenizer: unknown
  decoder: unknown
}

/** Tokens of a tokenizer. */
interface Vocabulary {
  /** Names of the tokens by id, as written before decoding. Unused ids are `undefined`. */
  readonly names: readonly (string | undefined)[]
  /** Ids of added tokens, which stand for exactly their name. */
  readonly added: ReadonlySet<number>
  /** Ids of the added tokens that are special: they structure a text and are not part of it. */
  readonly special: ReadonlySet<number>
}

/** Reads the tokens of a tokenizer. `config` is tokenizer_config.json. */
export function readVocabulary(file: TokenizerFile, config: object): Vocabulary {
  const names: (string | undefined)[] = []
  const { vocab } = file.model
  if (Array.isArray(vocab)) vocab.forEach(([piece], id) => (names[id] = piece))
  // With 150,000 names, a list of entries would take 120 ms and this takes 40 ms.
  else for (const piece of Object.keys(vocab)) names[vocab[piece] as number] = piece
  for (const { id, content } of file.added_tokens) names[id] = content

  const additionalSpecialTexts = new Set(readAdditionalSpecial(config))
  const special = file.added_tokens.filter(
    (token) => token.special === true || additionalSpecialTexts.has(token.content),
  )
  return {
    names,
    added: new Set(file.added_tokens.map(({ id }) => id)),
    special: new Set(special.map(({ id }) => id)),
  }
}

/** Returns the texts of `additional_special_tokens`. */
function readAdditionalSpecial(config: object): string[] {
  const listed = 'additional_special_tokens' in config ? config.additional_special_tokens : []
  const texts = Array.isArray(listed)
    ? listed.map((each: unknown) => (isObject(each) ? each['content'] : each))
    : []
  return texts.filter((each) => typeof each === 'string')
}

/** Detokenizer of one text, piece by piece. Text that was returned never changes later. */
export interface Detokenizer {
  /** Returns the text that became certain: none for hidden tokens and parts of a character. */
  push(token: number): string
  /** Drops the bytes of an incomplete character before another text follows. */
  drop(): void
}

/**
 * Reads a tokenizer and returns a function that creates a detokenizer for each text. `visible`
 * lists the special tokens whose text is returned. `continues` is `true` if the text continues
 * another one. Throws `model_unusable` for decoders that cannot work piece by piece.
 */
export function createDetokenizerFactory(file: TokenizerFile, config: object) {
  const vocabulary = readVocabulary(file, config)
  const decoder = readDecoder(file.decoder)

  return (visible: readonly string[] = [], continues = false): Detokenizer => {
    const readToken = createTokenReader(decoder, vocabulary, visible)
    const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
    const strips = decoder.strips.map(({ content = ' ', start = 0, stop = 0 }) =>
      createStrip(content, continues ? 0 : start, stop),
    )
    return {
      push: (token) => {
        const bytes = readToken(vocabulary.names[token], token)
        let text = bytes ? utf8.decode(bytes, { stream: true }) : ''
        for (const stripPart of strips) text = stripPart(text)
        return text
      },
      drop: () => void utf8.decode(),
    }
  }
}

/** Returns a function that strips both ends of a text that arrives in parts. */
function createStrip(content: string, start: number, stop: number): (part: string) => string {
  let left = start
  let heldText = ''
  return (part) => {
    const text = strip(part, content, left, 0)
    left = text === '' ? left - part.length : 0
    const all = heldText + text
    const certainText = strip(all, content, 0, stop)
    heldText = all.slice(certainText.length)
    return certainText
  }
}

/**
 * Returns the exact bytes, by id, that each token adds in the middle of a text. They are `null` for
 * unused ids and for special tokens, except the `visible` ones.
 */
export function listTokenBytes(
  file: TokenizerFile,
  config: object,
  visible: readonly string[] = [],
): (Uint8Array | null)[] {
  const vocabulary = readVocabulary(file, config)
  return Array.from(
    vocabulary.names,
    createTokenReader(readDecoder(file.decoder), vocabulary, visible),
  )
}

/** Tokens that are read in one task. 5,000 byte-level tokens of Qwen3 take 14 ms at most. */
const TOKENS_PER_TASK = 5_000

/** Lists the same bytes of a vocabulary, and calls `nextTask` between two parts of them. */
export async function listTokenBytesInTasks(
  file: TokenizerFile,
  vocabulary: Vocabulary,
  nextTask: () => Promise<void>,
): Promise<(Uint8Array | null)[]> {
  const read = createTokenReader(readDecoder(file.decoder), vocabulary, [])
  const bytes: (Uint8Array | null)[] = []
  for (let id = 0; id < vocabulary.names.length; id += 1) {
    if (id % TOKENS_PER_TASK === 0) await nextTask()
    bytes.push(read(vocabulary.names[id], id))
  }
  return bytes
}

/** Returns a function that returns the bytes of a token by its name and id. */
function createTokenReader(
  { steps }: Decoder,
  { added, special }: Vocabulary,
  visible: readonly string[],
) {
  const utf8 = new TextEncoder()
  return (name: string | undefined, id: number): Uint8Array | null => {
    if (name === undefined || (special.has(id) && !visible.includes(name))) return null
    let text = name
    for (const step of steps) {
      const result = step(text, added.has(id))
      if (typeof result !== 'string') return result
      text = result
    }
    return utf8.encode(text)
  }
}

/** Part of the `decoder` of tokenizer.json. */
interface DecoderConfig {
  type: string
  decoders?: DecoderConfig[]
  pattern?: { String?: string; Regex?: string }
  content?: string
  replacement?: string
  start?: number
  stop?: number
}

/** Turns the name of a token into its bytes, or into the text for the next step. */
type SpellingStep = (text: string, added: boolean) => string | Uint8Array

/** The `decoder` of tokenizer.json. */
interface Decoder {
  /** Steps from the name of a token to the bytes that it adds in the middle of a text. */
  steps: readonly SpellingStep[]
  /** Decoders that strip the ends of the whole text. */
  strips: readonly DecoderConfig[]
}

function readDecoder(config: unknown): Decoder {
  const chain = flatten(config as DecoderConfig | null)
  const fuse = chain.findIndex(({ type }) => type === 'Fuse')
  const isFused = (index: number): boolean => fuse >= 0 && index > fuse
  return {
    steps: chain.map((each, index) => toSpellingStep(each, isFused(index))),
    strips: chain.flatMap((each, index) => {
      // Metaspace removes the space before the first word.
      if (each.type === 'Metaspace') return { type: 'Strip', content: ' ', start: 1 }
      return each.type === 'Strip' && isFused(index) ? each : []
    }),
  }
}

/** Returns the decoders of nested sequences as one list. */
function flatten(config: DecoderConfig | null): DecoderConfig[] {
  if (!config) throw modelUnusable('its tokenizer has no decoder.')
  return config.type === 'Sequence' ? (config.decoders ?? []).flatMap(flatten) : [config]
}

/** Returns one decoder as a step. With `fused`, it decodes the whole text instead of tokens. */
function toSpellingStep(config: DecoderConfig, fused: boolean): SpellingStep {
  const { type, content = '', replacement = '▁', start = 0, stop = 0 } = config
  switch (type) {
    case 'ByteLevel':
      return (text, added) =>
        added ? text : Uint8Array.from(text, (character) => BYTES.get(character) ?? 0)
    case 'ByteFallback':
      return (text) => {
        // A token like `<0xE2>` is a byte of a character without a token of its own.
        const digits = /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1]
        return digits === undefined ? text : Uint8Array.of(Number.parseInt(digits, 16))
      }
    case 'Metaspace':
      return (text) => text.replaceAll(replacement, ' ')
    case 'Fuse':
      return (text) => text
    case 'Replace': {
      const pattern = config.pattern?.String
      // A longer pattern in a fused text could span two tokens.
      if (pattern === undefined || (fused && pattern.length > 1)) break
      return (text) => text.replaceAll(pattern, content)
    }
    case 'Strip':
      return (text) => (fused ? text : strip(text, content, start, stop))
  }
  throw modelUnusable(`its tokenizer has an unsupported decoder (${JSON.stringify(config)}).`)
}

/** Removes up to `start` and `stop` occurrences of `content` from the two ends. */
function strip(text: string, content: string, start: number, stop: number): string {
  let from = 0
  while (from < start && text.charAt(from) === content) from += 1
  let to = text.length
  while (text.length - to < stop && to > from && text.charAt(to - 1) === content) to -= 1
  return text.slice(from, to)
}

/** Bytes by their characters, as in GPT-2: printable Latin-1 for itself, others from U+0100. */
export const BYTES: ReadonlyMap<string, number> = listBytes()

function listBytes(): Map<string, number> {
  const bytes = new Map<string, number>()
  let unprintable = 0
  for (let byte = 0; byte < 256; byte += 1) {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad)
    bytes.set(String.fromCharCode(printable ? byte : 0x100 + unprintable), byte)
    if (!printable) unprintable += 1
  }
  return bytes
}
