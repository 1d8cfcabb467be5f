/** Letters of a text as tokens, as the tokenizer of VITS and MMS makes them. */
import { throwInvalidInput } from '../../values/input-errors.ts'
import { isObject } from '../../values/objects.ts'

type Content = Readonly<Record<string, unknown>>

/** Token between all others. */
const BLANK = 0

/** Letters, digits and signs that are read as words. Others, such as quotes, are silent. */
export const SPOKEN = /(?!\uFE0F)[\p{L}\p{M}\p{N}\p{Sc}\p{Sm}%&@#§]/u

/** Returns the function that reads a text. `settings` are those of `tokenizer_config.json`. */
export function createLetters(vocabulary: Content, settings: Content) {
  const tokens = new Map(
    Object.entries(vocabulary).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number',
    ),
  )
  const { add_blank: hasBlanks = true, normalize = true, language, pad_token: pad } = settings
  const padding = isObject(pad) ? pad['content'] : pad
  /** Returns the letter of the vocabulary; `undefined` if there is none. */
  const find = (letter: string): string | undefined => {
    const own = tokens.has(letter) || normalize === false ? letter : letter.toLowerCase()
    const known = language === 'ron' ? own.replaceAll('ț', 'ţ') : own
    return Array.from(known).every((each) => tokens.has(each)) ? known : undefined
  }

  return (text: string, path: string): number[] => {
    const unknown = new Set<string>()
    const letters = Array.from(text.replaceAll(/\s/g, ' ')).flatMap((letter) => {
      const known = find(letter)
      if (known === undefined && SPOKEN.test(letter)) unknown.add(letter)
      return Array.from(known ?? '')
    })
    if (unknown.size > 0) {
      const named = Array.from(unknown, (one) => JSON.stringify(one)).join(', ')
      // Python leaves them out silently.
      throwInvalidInput(path, `the voice cannot say ${named}. Write numbers and signs as words.`)
    }
    const spoken = letters.join('').trim()
    const ids: number[] = []
    let isOpen = false
    for (const letter of spoken) {
      // The padding token is a letter of its own, beside which transformers puts no blanks.
      const isSpecial = letter === padding
      if (hasBlanks && !isSpecial && !isOpen) ids.push(BLANK)
      ids.push(tokens.get(letter) ?? BLANK)
      if (hasBlanks && !isSpecial) ids.push(BLANK)
      isOpen = !isSpecial
    }
    return ids
  }
}
