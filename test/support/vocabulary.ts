/** The tokens of the embedded model, as constraints take them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ConstraintCompilerOptions } from '../../src/constraint/index.ts'
import { listTokenBytes, type TokenizerFile } from '../../src/engine/text/vocabulary.ts'

/** A vocabulary as the compiler of constraints takes it. */
export type TokenTable = Pick<ConstraintCompilerOptions, 'bytes' | 'special' | 'endTokens'>

const GUIDE = join(import.meta.dirname, '../../demo/models/guide')

const read = (name: string): unknown => JSON.parse(readFileSync(join(GUIDE, name), 'utf8'))

export function guideVocabulary(): TokenTable {
  const file = read('tokenizer.json') as TokenizerFile
  const bytes = listTokenBytes(file, read('tokenizer_config.json') as object)
  const { eos_token_id: end } = read('config.json') as { eos_token_id: number | number[] }
  const special = file.added_tokens.filter(({ id }) => bytes[id] === null)
  return {
    bytes,
    special: new Map(special.map(({ id, content }) => [content, id])),
    endTokens: [end].flat(),
  }
}

/** A vocabulary of all single bytes, these texts and an end token, which is the last. */
export function smallVocabulary(
  texts: readonly string[],
  special: readonly string[] = [],
): TokenTable {
  const encoder = new TextEncoder()
  const bytes: (Uint8Array | null)[] = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...texts.map((text) => encoder.encode(text)),
  ]
  const names = special.map((name) => [name, bytes.push(null) - 1] as const)
  const end = bytes.push(null) - 1
  return { bytes, special: new Map([...names, ['<end>', end]]), endTokens: [end] }
}
