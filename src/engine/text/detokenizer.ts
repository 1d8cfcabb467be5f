/** Tokens to text, piece by piece: what is told so far never has to be taken back. */
import { createStages, type Stage } from './decoding.ts'
import type { TokenizerFile } from './file.ts'
import { readVocabulary } from './vocabulary.ts'

export interface Detokenizer {
  /**
   * The text that is certain now; empty while a character is incomplete, and for special tokens that
   * are not told.
   */
  push(token: number): string
  /** Forgets the bytes of a character that is not whole, where another text is to follow. */
  drop(): void
}

/**
 * Reads a tokenizer once; each call of the result begins a new text, in which the `visible` ones of
 * the special tokens are told. `begun`: what it goes on from is somewhere else.
 */
export function createDecoding(
  file: TokenizerFile,
  config: object,
): (visible?: readonly string[], begun?: boolean) => Detokenizer {
  const { names, added, special } = readVocabulary(file, config)
  const open = createStages(file.decoder)

  return (visible = [], begun = false) => {
    const stages = open(begun)
    return {
      push: (token) => {
        const name = names[token]
        if (name === undefined || (special.has(token) && !visible.includes(name))) return ''
        return feed(stages, name, added.has(token))
      },
      drop: () => stages.forEach((stage) => stage.drop?.()),
    }
  }
}

function feed(stages: readonly Stage[], text: string, added: boolean): string {
  let texts = [text]
  for (const stage of stages) texts = texts.flatMap((each) => stage.push(each, added))
  return texts.join('')
}
