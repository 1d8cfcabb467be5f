/** Texts that a constraint accepts, with the engine and a vocabulary of all single bytes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type {
  Constraint,
  JsonConstraint,
  JsonSchema,
  TaggedConstraint,
} from '../../../src/constraint/constraint.ts'
import type { Instance } from '../../../src/constraint/instance.ts'
import { writeLark } from '../../../src/constraint/lark.ts'
import { buildHere, packVocabulary } from '../../../src/constraint/vocabulary.ts'

const WASM = join(import.meta.dirname, '../../../src/constraint/llguidance.wasm')
const encoder = new TextEncoder()

export interface Vocabulary {
  bytes: readonly (Uint8Array | null)[]
  special: ReadonlyMap<string, number>
  endTokens: readonly number[]
}

/** Returns a vocabulary of all single bytes, some texts, special tokens and an end token. */
export function createVocabulary(texts: readonly string[], names: readonly string[]): Vocabulary {
  const bytes: (Uint8Array | null)[] = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...texts.map((text) => encoder.encode(text)),
  ]
  const special = new Map(names.map((name) => [name, bytes.push(null) - 1]))
  const end = bytes.push(null) - 1
  return { bytes, special, endTokens: [end] }
}

/** Opens an instance of the engine with a vocabulary. */
export async function openInstance({ bytes, endTokens }: Vocabulary): Promise<Instance> {
  const module = new WebAssembly.Module(readFileSync(WASM))
  return buildHere(module, packVocabulary(bytes, endTokens))
}

/** Reads which texts a constraint accepts. */
export class Texts {
  readonly #vocabulary: Vocabulary
  readonly #instance: Instance
  readonly #words: ReadonlyMap<number, readonly number[]>

  private constructor(vocabulary: Vocabulary, instance: Instance) {
    this.#vocabulary = vocabulary
    this.#instance = instance
    this.#words = byFirstByte(vocabulary.bytes)
  }

  static async open(texts: readonly string[], special: readonly string[]): Promise<Texts> {
    const vocabulary = createVocabulary(texts, special)
    return new Texts(vocabulary, await openInstance(vocabulary))
  }

  write(constraint: Constraint, json = keepSchema): string {
    return writeLark(constraint, this.#vocabulary.special, json)
  }

  compile(constraint: Constraint): number {
    return this.#instance.compile(this.write(constraint))
  }

  /**
   * Returns `true` if the grammar accepts a text, both byte by byte and by its longest tokens. Names of special tokens
   * stand for the tokens; between `‹` and `›` they are text.
   */
  takes(grammar: number, text: string): boolean {
    const [bytes, tokens] = [false, true].map((isLong) => this.#takes(grammar, text, isLong))
    if (tokens !== bytes) throw new Error(`Tokens and bytes of this text differ: ${text}`)
    return tokens === true
  }

  /** Returns those of the texts that a constraint accepts. */
  taken(constraint: Constraint, all: readonly string[]): string[] {
    const grammar = this.compile(constraint)
    const taken = all.filter((text) => this.takes(grammar, text))
    this.#instance.dropGrammar(grammar)
    return taken
  }

  #takes(grammar: number, text: string, isLong: boolean): boolean {
    const { bytes, endTokens } = this.#vocabulary
    const matcher = this.#instance.open(grammar)
    try {
      if (!this.#tokens(text, isLong).every((token) => this.#instance.accept(matcher, token)))
        return false
      const mask = this.#instance.mask(matcher, Math.ceil(bytes.length / 32))
      return endTokens.some((token) => (((mask[token >> 5] ?? 0) >>> (token & 31)) & 1) === 1)
    } finally {
      this.#instance.close(matcher)
    }
  }

  #tokens(text: string, isLong: boolean): readonly number[] {
    const [name, id] = [...this.#vocabulary.special].find(([each]) => text.startsWith(each)) ?? []
    if (name !== undefined && id !== undefined)
      return [id, ...this.#tokens(text.slice(name.length), isLong)]
    const spelled = /^‹([^›]*)›/.exec(text)
    if (spelled?.[1] !== undefined)
      return [...encoder.encode(spelled[1]), ...this.#tokens(text.slice(spelled[0].length), isLong)]
    const starts = [...this.#vocabulary.special.keys(), '‹'].map((each) => text.indexOf(each))
    const end = Math.min(text.length, ...starts.filter((at) => at >= 0))
    if (end === 0) return []
    const plain = encoder.encode(text.slice(0, end))
    const words = isLong ? this.#longest(plain) : [...plain]
    return [...words, ...this.#tokens(text.slice(end), isLong)]
  }

  #longest(plain: Uint8Array): readonly number[] {
    const words: number[] = []
    for (let at = 0; at < plain.length;) {
      const ids = this.#words.get(plain[at] ?? 0) ?? []
      const fits = (id: number): boolean =>
        this.#vocabulary.bytes[id]?.every((byte, index) => byte === plain[at + index]) ?? false
      const length = (id: number): number => this.#vocabulary.bytes[id]?.length ?? 0
      const best = ids.filter(fits).reduce((a, b) => (length(b) > length(a) ? b : a))
      words.push(best)
      at += length(best)
    }
    return words
  }
}

/** Expects a constraint to accept some texts and to refuse others. */
export function expectTexts(
  texts: Texts,
  constraint: Constraint,
  right: readonly string[],
  wrong: readonly string[],
): void {
  const taken = texts.taken(constraint, [...right, ...wrong])
  expect(taken, texts.write(constraint)).toEqual(right)
}

function byFirstByte(bytes: Vocabulary['bytes']): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>()
  bytes.forEach((each, id) => {
    const first = each?.[0]
    if (first !== undefined) found.set(first, [...(found.get(first) ?? []), id])
  })
  return found
}

const keepSchema = ({ schema }: JsonConstraint): JsonSchema => schema

export const text = (value: string): Constraint => ({ type: 'constant', text: value })
export const json = (schema: JsonSchema): Constraint => ({ type: 'json', schema })
export const pattern = (source: string): Constraint => ({ type: 'pattern', pattern: source })
export const grammar = (source: string): Constraint => ({ type: 'grammar', grammar: source })
export const sequence = (...parts: Constraint[]): Constraint => ({ type: 'sequence', parts })
export const choice = (...parts: Constraint[]): Constraint => ({ type: 'choice', parts })
export const tag = (begin: string, content: Constraint, end: string): TaggedConstraint => ({
  type: 'tagged',
  begin,
  content,
  end,
})
export const ANY: Constraint = { type: 'text' }
export const NUMBER = json({ type: 'integer' })
