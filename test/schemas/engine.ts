/** Compiles schemas with the real module, and asks which texts their grammars take. */
import { readFileSync } from 'node:fs'
import { ConstraintError } from '../../src/constraint/constraint.ts'
import { Instance } from '../../src/constraint/instance.ts'
import { writeLark } from '../../src/constraint/lark.ts'
import type { Vocabulary } from './vocabulary.ts'

const WASM = new URL('../../src/constraint/llguidance.wasm', import.meta.url)

export class SchemaEngine {
  readonly #module = new WebAssembly.Module(readFileSync(WASM))
  readonly #vocabulary: Vocabulary
  #instance: Instance | undefined

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary
  }

  /** Compiles a schema as it is, written as the compiler of constraints writes it. Throws {@link ConstraintError}. */
  async compile(schema: Readonly<Record<string, unknown>>): Promise<Grammar> {
    if (!this.#instance || this.#instance.isBroken) {
      this.#instance = await Instance.open(this.#module)
      const { packed, endTokens } = this.#vocabulary
      this.#instance.setVocabulary(packed, endTokens)
    }
    const source = writeLark({ type: 'json', schema }, new Map(), () => schema)
    const grammar = this.#instance.compile(source)
    return new Grammar(this.#instance, this.#vocabulary, grammar)
  }
}

export class Grammar {
  readonly #instance: Instance
  readonly #vocabulary: Vocabulary
  readonly #grammar: number

  constructor(instance: Instance, vocabulary: Vocabulary, grammar: number) {
    this.#instance = instance
    this.#vocabulary = vocabulary
    this.#grammar = grammar
  }

  /** Returns `true` if the whole text is one of the grammar. Adds the time of each mask to `times`. */
  takes(text: string, times?: number[]): boolean {
    const matcher = this.#instance.open(this.#grammar)
    try {
      const words = Math.ceil(this.#vocabulary.size / 32)
      for (const token of [...this.#vocabulary.encode(text), this.#vocabulary.endTokens[0] ?? 0]) {
        if (times) {
          const start = performance.now()
          this.#instance.mask(matcher, words)
          times.push(performance.now() - start)
        }
        if (!this.#instance.accept(matcher, token)) return false
      }
      return true
    } finally {
      if (!this.#instance.isBroken) this.#instance.close(matcher)
    }
  }

  close(): void {
    if (!this.#instance.isBroken) this.#instance.dropGrammar(this.#grammar)
  }
}

/** Returns why a schema or a text failed. Other errors are thrown again. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof ConstraintError)) throw thrown
  return `${thrown.code === 'constraint_trap' ? 'trap: ' : ''}${thrown.message}`
}
