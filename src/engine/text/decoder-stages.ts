/**
 * Implements the `decoder` of tokenizer.json, as stages that process one token at a time and as the
 * bytes of a token.
 */
import { modelUnusable } from '../failure.ts'

/** One stage of a streaming decoder. */
export interface DecoderStage {
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
export function createDecoderStages(decoder: unknown): (continues: boolean) => DecoderStage[] {
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
export function createTokenSpeller(decoder: unknown): (name: string, added: boolean) => Uint8Array {
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
