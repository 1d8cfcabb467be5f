/**
 * Hides places of a text from a search for words: the character at each place is replaced by a
 * private-use one that stands for it. Lengths stay, and whitespace is left for templates to trim.
 */
import { InoriginError } from '../../error.ts'
import { createMatcher } from './matcher.ts'

export interface Disguise {
  /**
   * Hides what could be the beginning, the middle or the end of a word, whatever is cut off the text
   * or put around it; `enclosed`: but for what stands right before it.
   */
  on(text: string, enclosed?: boolean): string
  /** The text as it was. */
  off(text: string): string
}

/** Opens a disguise of these words per conversation. */
export function createDisguises(words: readonly string[]): (around: string) => Disguise {
  // Words begin and end with signs for the most part: without those no part of a text can be one.
  const edges = new Set(
    words.flatMap((word) => [word.charAt(0), word.charAt(word.length - 1)]).filter(isSign),
  )
  const edge = new RegExp(`[${[...edges].map((sign) => `\\u{${hex(sign)}}`).join('')}]`, 'gu')
  const all = createMatcher(words)
  const others = words.filter((word) => !edges.has(word.charAt(0)))
  const rest = others.length > 0 ? createMatcher(others) : null

  return (around) => {
    const standIns = createStandIns(around)
    const on: Disguise['on'] = (text, enclosed = false) => {
      // Templates may trim.
      const continues = !enclosed && (all.continues(text) || all.continues(text.trim()))
      // Half of a surrogate pair alone would not survive a template that writes JSON.
      const beginning = continues ? text.search(/[^\s\uD800-\uDFFF]/) : -1
      let hidden = edges.size > 0 ? text.replace(edge, standIns.of) : text
      for (const place of [beginning, ...(rest?.starts(text) ?? [])]) {
        if (place < 0 || hidden.charAt(place) !== text.charAt(place)) continue
        hidden = hidden.slice(0, place) + standIns.of(text.charAt(place)) + hidden.slice(place + 1)
      }
      return hidden
    }
    return { on, off: standIns.off }
  }
}

const isSign = (character: string): boolean => /[^\s\p{L}\p{N}\uD800-\uDFFF]/u.test(character)
const hex = (character: string): string => character.charCodeAt(0).toString(16)

interface StandIns {
  of(character: string): string
  off(text: string): string
}

/** Characters that occur in the texts around, escaped or not, stand for nothing else. */
function createStandIns(around: string): StandIns {
  const used = new Set(around.match(/[\uE000-\uF8FF]/g))
  for (const [, digits = ''] of around.matchAll(/\\u([ef][0-9a-f]{3})/gi)) {
    used.add(String.fromCharCode(Number.parseInt(digits, 16)))
  }
  const standIns = new Map<string, string>()
  const originals = new Map<string, string>()
  let code = 0xe000

  const add = (character: string): string => {
    while (used.has(String.fromCharCode(code))) code += 1
    // The last ones are left for marks.
    if (code > 0xf7ff) {
      throw new InoriginError(
        'invalid_request',
        'The messages use too many private-use characters.',
        { param: 'messages' },
      )
    }
    const standIn = String.fromCharCode(code)
    code += 1
    standIns.set(character, standIn)
    originals.set(standIn, character)
    return standIn
  }
  return {
    of: (character) => standIns.get(character) ?? add(character),
    off: (text) =>
      text
        .replace(/[\uE000-\uF8FF]/g, (character) => originals.get(character) ?? character)
        // As templates write them that want nothing but ASCII.
        .replace(/\\u([ef][0-9a-f]{3})/g, (escaped, digits: string) => {
          const character = String.fromCharCode(Number.parseInt(digits, 16))
          return originals.get(character) ?? escaped
        }),
  }
}
