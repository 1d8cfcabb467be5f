/** Creates the constraints of a model from its tokenizer. */
import { createConstraintCompiler } from '../constraint/compiler.ts'
import type { ConstraintCompiler } from '../constraint/types.ts'
import type { ModelConfig } from '../text/config.ts'
import { listTokenBytes, readVocabulary } from '../text/vocabulary.ts'

/**
 * Returns the constraints of a model. Reads the vocabulary at the first `open`, since most answers
 * have no constraint.
 */
export function createModelConstraints({
  tokenizer,
  tokenizerConfig,
  endTokens,
}: ModelConfig): ConstraintCompiler {
  let created: ConstraintCompiler | null = null

  const create = (): ConstraintCompiler => {
    const { names, special } = readVocabulary(tokenizer, tokenizerConfig)
    return createConstraintCompiler({
      bytes: listTokenBytes(tokenizer, tokenizerConfig),
      special: new Map([...special].map((id) => [names[id] ?? '', id])),
      endTokens: [...endTokens],
    })
  }
  return {
    open: (...args) => (created ??= create()).open(...args),
    close: () => created?.close(),
  }
}
