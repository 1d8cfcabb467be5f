/** Makes the vocabularies with which schemas are tried. */
import { readFileSync } from 'node:fs'

export interface Vocabulary {
  /** Tokens as `setVocabulary` of an instance takes them. */
  packed: Uint8Array
  endTokens: Uint32Array
  size: number
  encode(text: string): readonly number[]
}

/** Each byte is a token. It answers which texts a grammar takes, and is set in no time. */
export function createByteVocabulary(): Vocabulary {
  const tokens = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte))
  return {
    packed: pack([...tokens, new Uint8Array(0)]),
    endTokens: Uint32Array.of(256),
    size: 257,
    encode: (text) => [...new TextEncoder().encode(text)],
  }
}

interface TokenizerFile {
  model: { vocab: Record<string, number> }
  added_tokens: readonly { id: number; content: string }[]
}

/**
 * Reads the vocabulary of a `tokenizer.json` of byte-level BPE. Texts are encoded by the longest
 * token that fits, which costs as many masks as the tokenizer's own tokens, or fewer.
 */
export function readVocabulary(path: string): Vocabulary {
  const file = JSON.parse(readFileSync(path, 'utf8')) as TokenizerFile
  const byteOf = createByteTable()
  const tokens: Uint8Array[] = []
  const ids = new Map<string, number>()
  for (const [text, id] of Object.entries(file.model.vocab)) {
    const bytes = Uint8Array.from(text, (character) => byteOf.get(character) ?? 0)
    tokens[id] = bytes
    ids.set(Buffer.from(bytes).toString('latin1'), id)
  }
  for (const { id } of file.added_tokens) tokens[id] = new Uint8Array(0)
  const end = file.added_tokens.find(({ content }) => content === '<|im_end|>')
  if (!end) throw new Error(`${path} has no token <|im_end|>.`)
  const all = Array.from(tokens, (bytes) => bytes ?? new Uint8Array(0))
  const longest = all.reduce((most, { length }) => Math.max(most, length), 0)
  const encode = (text: string): number[] => {
    const bytes = Buffer.from(text, 'utf8').toString('latin1')
    const found: number[] = []
    for (let at = 0; at < bytes.length;) {
      let length = Math.min(longest, bytes.length - at)
      while (!ids.has(bytes.slice(at, at + length))) length -= 1
      found.push(ids.get(bytes.slice(at, at + length)) ?? 0)
      at += length
    }
    return found
  }
  return { packed: pack(all), endTokens: Uint32Array.of(end.id), size: all.length, encode }
}

/** Byte-level BPE writes each byte as a printable character. */
function createByteTable(): Map<string, number> {
  const printable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
  let others = 0
  const entries = Array.from({ length: 256 }, (_, byte): [string, number] => [
    String.fromCodePoint(printable(byte) ? byte : 256 + others++),
    byte,
  ])
  return new Map(entries)
}

function pack(tokens: readonly Uint8Array[]): Uint8Array {
  const packed = new Uint8Array(tokens.reduce((sum, { length }) => sum + 2 + length, 0))
  const view = new DataView(packed.buffer)
  let at = 0
  for (const token of tokens) {
    view.setUint16(at, token.length, true)
    packed.set(token, at + 2)
    at += 2 + token.length
  }
  return packed
}
