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
  /** What is left, with replacement characters where the model ended in the middle of one. */
  flush(): string
}

/**
 * Reads a tokenizer once; each call of the result begins a new text, in which the `visible` ones of
 * the special tokens are told.
 */
export function createDecoding(
  file: TokenizerFile,
  config: object,
): (visible?: readonly string[]) => Detokenizer {
  const { names, added, special } = readVocabulary(file, config)
  const open = createStages(file.decoder)

  return (visible = []) => {
    const stages = open()
    return {
      push: (token) => {
        const name = names[token]
        if (name === undefined || (special.has(token) && !visible.includes(name))) return ''
        return feed(stages, name, added.has(token))
      },
      flush: () => drain(stages),
    }
  }
}

function feed(stages: readonly Stage[], text: string, added: boolean): string {
  let texts = [text]
  for (const stage of stages) texts = texts.flatMap((each) => stage.push(each, added))
  return texts.join('')
}

function drain(stages: readonly Stage[]): string {
  let texts: string[] = []
  for (const stage of stages) {
    texts = [...texts.flatMap((each) => stage.push(each, false)), ...stage.flush()]
  }
  return texts.join('')
}
