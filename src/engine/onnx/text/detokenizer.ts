/** Tokens to text, piece by piece: what is told so far never has to be taken back. */
import { createStages, type Stage } from './decoding.ts'
import type { TokenizerFile } from './tokenizer.ts'

export interface Detokenizer {
  /**
   * The text that is certain now; empty while a character is incomplete. Special tokens have none.
   */
  push(token: number): string
  /** What is left, with replacement characters where the model ended in the middle of one. */
  flush(): string
}

/** Reads a tokenizer once; each call of the result begins a new text. */
export function createDecoding(file: TokenizerFile, config: object): () => Detokenizer {
  const texts: string[] = []
  const { vocab } = file.model
  if (Array.isArray(vocab)) vocab.forEach(([piece], id) => (texts[id] = piece))
  else for (const [piece, id] of Object.entries(vocab)) texts[id] = piece
  for (const { id, content } of file.added_tokens) texts[id] = content

  const alsoSpecial = new Set(additionalSpecial(config))
  const added = new Set(file.added_tokens.map(({ id }) => id))
  const special = new Set(
    file.added_tokens
      .filter((token) => token.special === true || alsoSpecial.has(token.content))
      .map(({ id }) => id),
  )
  const open = createStages(file.decoder)

  return () => {
    const stages = open()
    return {
      push: (token) => {
        const text = texts[token]
        if (text === undefined || special.has(token)) return ''
        return feed(stages, text, added.has(token))
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

function additionalSpecial(config: object): string[] {
  const listed = 'additional_special_tokens' in config ? config.additional_special_tokens : []
  return Array.isArray(listed) ? listed.filter((each) => typeof each === 'string') : []
}
