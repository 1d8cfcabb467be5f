/**
 * Hides places of a text from a search for words: the character at each place is replaced by a
 * private-use one that stands for it. Lengths stay, and whitespace is left for templates to trim.
 */
import { InoriginError } from '../../../error.ts'

export interface Disguise {
  /** Hides the given places, and the beginning too where it `continues` a word before it. */
  on(text: string, places: readonly number[], continues: boolean): string
  /** The text as it was. */
  off(text: string): string
}

/** `texts` are all the texts around; characters that occur in them stand for nothing else. */
export function createDisguise(texts: readonly string[]): Disguise {
  const used = new Set(texts.flatMap((text) => text.match(/[\uE000-\uF8FF]/g) ?? []))
  const standIns = new Map<string, string>()
  const originals = new Map<string, string>()
  let code = 0xe000

  const standInFor = (character: string): string => {
    const known = standIns.get(character)
    if (known !== undefined) return known
    while (used.has(String.fromCharCode(code))) code += 1
    if (code > 0xf8ff) {
      throw new InoriginError(
        'invalid_request',
        'The messages use too many private-use characters.',
        {
          param: 'messages',
        },
      )
    }
    const standIn = String.fromCharCode(code)
    code += 1
    standIns.set(character, standIn)
    originals.set(standIn, character)
    return standIn
  }

  return {
    on: (text, places, continues) => {
      // Half of a surrogate pair alone would not survive a template that writes JSON.
      const beginning = continues ? text.search(/[^\s\uD800-\uDFFF]/) : -1
      const all = beginning < 0 || places.includes(beginning) ? places : [beginning, ...places]
      let hidden = ''
      let from = 0
      for (const place of all.toSorted((a, b) => a - b)) {
        hidden += text.slice(from, place) + standInFor(text.charAt(place))
        from = place + 1
      }
      return hidden + text.slice(from)
    },
    off: (text) =>
      text.replace(/[\uE000-\uF8FF]/g, (character) => originals.get(character) ?? character),
  }
}
