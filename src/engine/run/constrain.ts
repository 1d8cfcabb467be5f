/** What the constraints of a model have to know of its tokens. */
import { createConstraints } from '../constraint/constraints.ts'
import type { Constraints } from '../constraint/contract.ts'
import type { ModelConfig } from '../text/config.ts'
import { readVocabulary, tokenBytes } from '../text/vocabulary.ts'

/** Reads nothing before the first one is asked for; most answers have none. */
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
