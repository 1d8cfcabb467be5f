/** Detokenizes piece by piece. Text that was returned never changes later. */
import { createDecoderStages, type DecoderStage } from './decoder-stages.ts'
import type { TokenizerFile } from './tokenizer-file.ts'
import { readVocabulary } from './vocabulary.ts'

/** Detokenizer of one text. */
export interface Detokenizer {
  /**
   * Returns the text that has become certain. It is empty for a part of a character and for special
   * tokens that are not visible.
   */
  push(token: number): string
  /** Drops the bytes of an incomplete character before another text follows. */
  drop(): void
}

/**
 * Reads a tokenizer and returns a function that creates a detokenizer for each text. `visible`
 * lists the special tokens whose text is returned. `continues` is `true` if the text continues
 * another one.
 */
export function createDetokenizerFactory(
  file: TokenizerFile,
  config: object,
): (visible?: readonly string[], continues?: boolean) => Detokenizer {
  const { names, added, special } = readVocabulary(file, config)
  const createStages = createDecoderStages(file.decoder)

  return (visible = [], continues = false) => {
    const stages = createStages(continues)
    return {
      push: (token) => {
        const name = names[token]
        if (name === undefined || (special.has(token) && !visible.includes(name))) return ''
        return pushThrough(stages, name, added.has(token))
      },
      drop: () => stages.forEach((stage) => stage.drop?.()),
    }
  }
}

function pushThrough(stages: readonly DecoderStage[], text: string, added: boolean): string {
  let texts = [text]
  for (const stage of stages) texts = texts.flatMap((each) => stage.push(each, added))
  return texts.join('')
}
