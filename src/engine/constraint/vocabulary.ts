/** Converts a model's tokens into the form that xgrammar takes. */
import { BYTES } from '../text/decoder-stages.ts'
import type { GrammarCompiler, TokenizerInfo, Xgrammar } from './library.ts'

export interface TokenTable {
  /** Bytes of each token by id; `null` if the token has no text. */
  bytes: readonly (Uint8Array | null)[]
  /** Ids of the special tokens, by the text that names them. */
  special: ReadonlyMap<string, number>
  /** Ids of the tokens that end an answer. */
  endTokens: readonly number[]
}

export interface CompiledVocabulary {
  compiler: GrammarCompiler
  close(): void
}

/** Text of tokens without text. No text has this byte, so only unconstrained text allows it. */
const NO_TEXT = String.fromCharCode(0xff)

/** Compiles the vocabulary. Special tokens in `visible` stand for the text that names them. */
export async function compileVocabulary(
  { GrammarCompiler, TokenizerInfo }: Xgrammar,
  table: TokenTable,
  visible: readonly string[],
): Promise<CompiledVocabulary> {
  const spelled = new Map(visible.map((name) => [table.special.get(name), name]))
  const encoder = new TextEncoder()
  const encoded: string[] = []
  for (const [id, own] of table.bytes.entries()) {
    const name = spelled.get(id)
    const bytes = name === undefined ? own : encoder.encode(name)
    encoded.push(bytes && bytes.length > 0 ? byteLevel(bytes) : NO_TEXT)
  }
  const info: TokenizerInfo = await TokenizerInfo.createTokenizerInfo(
    encoded,
    'byte_level',
    false,
    encoded.length,
    [...table.endTokens],
  )
  const compiler = await GrammarCompiler.createGrammarCompiler(info, false)
  const close = (): void => {
    compiler.dispose()
    info.dispose()
  }
  return { compiler, close }
}

/** Characters for all bytes, as GPT-2 and later byte-level tokenizers assign them. */
const CHARACTERS = [...BYTES.keys()]

const byteLevel = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => CHARACTERS[byte]).join('')
