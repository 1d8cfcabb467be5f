/** Creates the constraints of a model from its tokenizer. */
import { createConstraints } from '../constraint/constraints.ts'
import type { Constraints } from '../constraint/contract.ts'
import type { ModelConfig } from '../text/config.ts'
import { readVocabulary, tokenBytes } from '../text/vocabulary.ts'

/**
 * Returns the constraints of a model. Reads the vocabulary at the first `open`, since most answers
 * have no constraint.
 */
export function constraintsOf({ tokenizer, tokenizerConfig, endTokens }: ModelConfig): Constraints {
  let made: Constraints | null = null

  const make = (): Constraints => {
    const { names, special } = readVocabulary(tokenizer, tokenizerConfig)
    return createConstraints({
      bytes: tokenBytes(tokenizer, tokenizerConfig),
      special: new Map([...special].map((id) => [names[id] ?? '', id])),
      endTokens: [...endTokens],
    })
  }
  return {
    open: (...order) => (made ??= make()).open(...order),
    close: () => made?.close(),
  }
}
