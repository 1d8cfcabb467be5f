/** Lists the tokens of a tokenizer by id: their names, their bytes, and which ones are special. */
import { isObject } from '../../values/objects.ts'
import { modelUnusable } from '../failure.ts'

/** Tokens of a tokenizer. */
interface Vocabulary {
  /**
   * Names of the tokens by id, as the tokenizer writes them before decoding. Unused ids are
   * `undefined`.
   */
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
  return Array.from(vocabulary.names, createTokenReader(file, vocabulary, visible))
}

/** Tokens that are read in one task. 5,000 byte-level tokens of Qwen3 take 14 ms at most. */
const TOKENS_PER_TASK = 5_000

/** Lists the same bytes of a vocabulary, and calls `nextTask` between two parts of them. */
export async function listTokenBytesInTasks(
  file: TokenizerFile,
  vocabulary: Vocabulary,
  nextTask: () => Promise<void>,
): Promise<(Uint8Array | null)[]> {
  const read = createTokenReader(file, vocabulary, [])
  const bytes: (Uint8Array | null)[] = []
  for (let id = 0; id < vocabulary.names.length; id += 1) {
    if (id % TOKENS_PER_TASK === 0) await nextTask()
    bytes.push(read(vocabulary.names[id], id))
  }
  return bytes
}

/** Returns a function that returns the bytes of a token by its name and id. */
function createTokenReader(
  file: TokenizerFile,
  { added, special }: Vocabulary,
  visible: readonly string[],
) {
  const spellToken = createTokenSpeller(file.decoder)
  return (name: string | undefined, id: number): Uint8Array | null =>
    name === undefined || (special.has(id) && !visible.includes(name))
      ? null
      : spellToken(name, added.has(id))
}

/** Returns the texts of `additional_special_tokens`. */
function readAdditionalSpecial(config: object): string[] {
  const listed = 'additional_special_tokens' in config ? config.additional_special_tokens : []
  const texts = Array.isArray(listed)
    ? listed.map((each: unknown) => (isObject(each) ? each['content'] : each))
    : []
  return texts.filter((each) => typeof each === 'string')
}

// Implements the `decoder` of tokenizer.json, as stages that process one token at a time and as the
// bytes of a token.

/** One stage of a streaming decoder. */
interface DecoderStage {
  /** Returns the text that a token adds, in parts. `added` tokens stand for themselves. */
  push(text: string, added: boolean): string[]
  /** Drops the bytes of an incomplete character. */
  drop?(): void
}

/** Decoder configuration in tokenizer.json. */
interface Config {
  type: string
  decoders?: Config[]
  pattern?: { String?: string; Regex?: string }
  content?: string
  replacement?: string
  start?: number
  stop?: number
}

/**
 * Returns a function that creates the stages of one text. Its argument is `true` if the text
 * continues another one. Throws `model_unusable` for decoders that cannot work piece by piece.
 */
function createDecoderStages(decoder: unknown): (continues: boolean) => DecoderStage[] {
  const chain = flatten(decoder as Config | null)
  const factories = chain.map((config, index) =>
    stageFactory(
      config,
      chain.slice(0, index).some(({ type }) => type === 'Fuse'),
    ),
  )
  return (continues) => factories.map((open) => open(continues))
}

/**
 * Returns a function for the bytes that a token adds in the middle of a text. `added` tokens stand
 * for themselves.
 */
function createTokenSpeller(decoder: unknown): (name: string, added: boolean) => Uint8Array {
  const chain = flatten(decoder as Config | null)
  const fuse = chain.findIndex(({ type }) => type === 'Fuse')
  const fusedStrips = chain.filter(
    ({ type }, index) => type === 'Strip' && fuse >= 0 && index > fuse,
  )
  const steps = chain.filter((config) => !fusedStrips.includes(config)).map(toSpellingStep)
  const utf8 = new TextEncoder()

  return (name, added) => {
    let text = name
    for (const step of steps) {
      const result = step(text, added)
      if (typeof result !== 'string') return result
      text = result
    }
    return utf8.encode(text)
  }
}

/** Returns a function that applies one decoder to a token. */
function toSpellingStep(config: Config): (text: string, added: boolean) => string | Uint8Array {
  const { type, content = '', replacement = '▁', start = 0, stop = 0 } = config
  const pattern = type === 'Metaspace' ? replacement : config.pattern?.String
  if (type === 'ByteLevel') return (text, added) => (added ? text : levelBytes(text))
  if (type === 'Strip') return (text) => strip(text, content, start, stop)
  if (type === 'ByteFallback') {
    return (text) => {
      const byte = fallbackByte(text)
      return byte === null ? text : Uint8Array.of(byte)
    }
  }
  if (pattern === undefined) return (text) => text
  return (text) => text.replaceAll(pattern, type === 'Metaspace' ? ' ' : content)
}

/** Returns the decoders of nested sequences as one list. */
function flatten(config: Config | null): Config[] {
  if (!config) throw modelUnusable('its tokenizer has no decoder.')
  return config.type === 'Sequence' ? (config.decoders ?? []).flatMap(flatten) : [config]
}

/**
 * Returns a factory of one stage. With `fused`, its inputs are parts of one text instead of tokens.
 */
function stageFactory(config: Config, fused: boolean): (continues: boolean) => DecoderStage {
  const { type, content = '', replacement = '▁', start = 0, stop = 0 } = config
  switch (type) {
    case 'ByteLevel':
      return byteLevel
    case 'ByteFallback':
      return byteFallback
    case 'Metaspace':
      return (continues) => metaspace(replacement, continues)
    case 'Fuse':
      return () => mapStage((text) => text)
    case 'Replace': {
      const pattern = config.pattern?.String
      // A longer pattern in a fused text could span two parts.
      if (pattern === undefined || (fused && pattern.length > 1)) break
      return () => mapStage((text) => text.replaceAll(pattern, content))
    }
    case 'Strip':
      return fused
        ? (continues) => stripText(content, continues ? 0 : start, stop)
        : () => mapStage((text) => strip(text, content, start, stop))
  }
  throw modelUnusable(`its tokenizer has an unsupported decoder (${JSON.stringify(config)}).`)
}

const mapStage = (change: (text: string) => string): DecoderStage => ({
  push: (text) => [change(text)],
})

const levelBytes = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(text, (character) => BYTES.get(character) ?? 0)

/** Returns the byte of a token like `<0xE2>`, or `null`. */
function fallbackByte(text: string): number | null {
  const digits = /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1]
  return digits === undefined ? null : Number.parseInt(digits, 16)
}

/** Decodes tokens that write each byte as a printable character. */
function byteLevel(): DecoderStage {
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
  return {
    push: (text, added) => {
      if (added) return [utf8.decode(), text]
      return [utf8.decode(levelBytes(text), { stream: true })]
    },
    drop: () => void utf8.decode(),
  }
}

/**
 * Decodes tokens like `<0xE2>`, one per byte, which encode characters without a token of their own.
 */
function byteFallback(): DecoderStage {
  const open = (): TextDecoder => new TextDecoder('utf-8', { ignoreBOM: true })
  let utf8 = open()
  let bytes = false
  const end = (): string => {
    const rest = bytes ? utf8.decode() : ''
    bytes = false
    utf8 = open()
    return rest
  }
  return {
    push: (text) => {
      const byte = fallbackByte(text)
      if (byte === null) return [end(), text]
      bytes = true
      return [utf8.decode(Uint8Array.of(byte), { stream: true })]
    },
    drop: () => void end(),
  }
}

/** Decodes marks into spaces and removes the space before the first word. */
function metaspace(replacement: string, continues: boolean): DecoderStage {
  let first = !continues
  return mapStage((text) => {
    const spaced = text.replaceAll(replacement, ' ')
    const plain = first && spaced.startsWith(' ') ? spaced.slice(1) : spaced
    first = false
    return plain
  })
}

/** Removes up to `start` and `stop` occurrences of `content` from the two ends. */
function strip(text: string, content: string, start: number, stop: number): string {
  let from = 0
  while (from < start && text.charAt(from) === content) from += 1
  let to = text.length
  while (text.length - to < stop && to > from && text.charAt(to - 1) === content) to -= 1
  return text.slice(from, to)
}

/** Strips both ends of a text that arrives in parts. */
function stripText(content: string, start: number, stop: number): DecoderStage {
  let left = start
  let heldText = ''
  return {
    push: (part) => {
      let text = part
      while (left > 0 && text !== '') {
        if (text.charAt(0) !== content) left = 0
        else {
          text = text.slice(1)
          left -= 1
        }
      }
      const all = heldText + text
      const certainText = strip(all, content, 0, stop)
      heldText = all.slice(certainText.length)
      return [certainText]
    },
  }
}

/**
 * Bytes by the character that stands for them, as in GPT-2: printable Latin-1 for itself, the
 * others from U+0100.
 */
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

// Detokenizes piece by piece. Text that was returned never changes later.

/** Detokenizer of one text. */
export interface Detokenizer {
  /**
   * Returns the text that has become certain. It is empty for a part of a character and for special
   * tokens that are not visible.
   */
  push(token: number): string
  /** Drops the bytes of an incomplete character before another text follows. */
  drop(): void
}

/**
 * Reads a tokenizer and returns a function that creates a detokenizer for each text. `visible`
 * lists the special tokens whose text is returned. `continues` is `true` if the text continues
 * another one.
 */
export function createDetokenizerFactory(
  file: TokenizerFile,
  config: object,
): (visible?: readonly string[], continues?: boolean) => Detokenizer {
  const { names, added, special } = readVocabulary(file, config)
  const createStages = createDecoderStages(file.decoder)

  return (visible = [], continues = false) => {
    const stages = createStages(continues)
    return {
      push: (token) => {
        const name = names[token]
        if (name === undefined || (special.has(token) && !visible.includes(name))) return ''
        return pushThrough(stages, name, added.has(token))
      },
      drop: () => stages.forEach((stage) => stage.drop?.()),
    }
  }
}

function pushThrough(stages: readonly DecoderStage[], text: string, added: boolean): string {
  let texts = [text]
  for (const stage of stages) texts = texts.flatMap((each) => stage.push(each, added))
  return texts.join('')
}

// Types of a model's tokenizer.json.

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
  }
  normalizer?: unknown
  pre_tokenizer: unknown
  decoder: unknown
}
