/** Creates the constraints of a model from its tokenizer. */
import { createConstraints } from '../constraint/constraints.ts'
import type { Constraints } from '../constraint/contract.ts'
import type { ModelConfig } from '../text/config.ts'
import { readVocabulary, tokenBytes } from '../text/vocabulary.ts'

/**
 * Returns the constraints of a model. Reads the vocabulary at the first `open`, since most answers
 * have no constraint.
 */
export function createModelConstraints({
  tokenizer,
  tokenizerConfig,
  endTokens,
}: ModelConfig): Constraints {
  let created: Constraints | null = null

  const create = (): Constraints => {
    const { names, special } = readVocabulary(tokenizer, tokenizerConfig)
    return createConstraints({
      bytes: tokenBytes(tokenizer, tokenizerConfig),
      special: new Map([...special].map((id) => [names[id] ?? '', id])),
      endTokens: [...endTokens],
    })
  }
  return {
    open: (...args) => (created ??= create()).open(...args),
    close: () => created?.close(),
  }
}
