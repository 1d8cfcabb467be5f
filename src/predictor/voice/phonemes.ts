/** Phonemes of a text as tokens, as Piper makes them: of letters, or of a dictionary. */
import { throwInvalidInput } from '../../values/input-errors.ts'
import { SPOKEN } from './letters.ts'
import type { Pronunciations } from './pronunciations.ts'

/** Signs of the map that stand around and between the phonemes. */
const BEGIN = '^'
const END = '$'
const PAD = '_'

/** Phonemes in a text, as Piper writes them, a word, or a sign. */
const PARTS = /\[\[(.*?)\]\]|[\p{L}\p{M}\p{N}]+(?:['’\-‐][\p{L}\p{M}\p{N}]+)*['’]?|./gsu
/** Signs that Piper keeps as pauses. */
const PAUSE = /^[,.;:?!]$/
/** Signs that divide words. */
const GAP = /^[\s\p{Pd}…/]$/u

/** Maximum number of words that an error names. */
const MAX_NAMED_WORDS = 5

/**
 * Returns the function that reads a text. `words` has the pronunciations; it is `null` if the voice has
 * no dictionary, and `text` if the letters are the phonemes.
 */
export function createPhonemes(
  map: Readonly<Record<string, unknown>>,
  words: Pronunciations | 'text' | null,
) {
  const idsOf = (phoneme: string): number[] | null => {
    const ids = Object.hasOwn(map, phoneme) ? map[phoneme] : null
    return Array.isArray(ids) ? ids.filter((id) => typeof id === 'number') : null
  }
  const toIds = (phonemes: readonly string[]): number[] => {
    const pad = idsOf(PAD) ?? []
    const body = phonemes.flatMap((one) => [...(idsOf(one) ?? []), ...pad])
    if (body.length === 0) return []
    return [...(idsOf(BEGIN) ?? []), ...pad, ...body, ...(idsOf(END) ?? [])]
  }
  /** Returns the signs that the voice knows. Throws for a letter, mark or digit that it does not. */
  const split = (text: string, path: string): string[] =>
    Array.from(text.normalize('NFD')).filter((sign) => {
      if (idsOf(sign) && sign !== PAD && sign !== BEGIN && sign !== END) return true
      if (SPOKEN.test(sign))
        throwInvalidInput(path, `the voice cannot say ${JSON.stringify(sign)}.`)
      return false
    })

  if (words === 'text')
    return (text: string, path: string) => toIds(split(text.toLowerCase(), path))

  return (text: string, path: string): number[] => {
    const unknown = new Set<string>()
    const phonemes = Array.from(text.matchAll(PARTS)).flatMap(([part, given]) => {
      if (given !== undefined) return split(given, path)
      if (PAUSE.test(part)) return split(part, path)
      if (GAP.test(part)) return [' ']
      if (!SPOKEN.test(part)) return []
      const found = words?.find(part)
      if (found === undefined) unknown.add(part)
      return split(found ?? '', path)
    })
    if (unknown.size > 0) throwUnknown(path, [...unknown], words !== null)
    const spoken = phonemes.filter((one, at) => one !== ' ' || phonemes[at - 1] !== ' ')
    return spoken.some((one) => SPOKEN.test(one)) ? toIds(trim(spoken)) : []
  }
}

const trim = (phonemes: readonly string[]): readonly string[] =>
  phonemes.slice(Number(phonemes[0] === ' '), phonemes.at(-1) === ' ' ? -1 : undefined)

function throwUnknown(path: string, words: readonly string[], hasDictionary: boolean): never {
  const named = words
    .slice(0, MAX_NAMED_WORDS)
    .map((word) => JSON.stringify(word))
    .join(', ')
  const more = words.length > MAX_NAMED_WORDS ? ` and ${words.length - MAX_NAMED_WORDS} more` : ''
  const what = hasDictionary
    ? `the dictionary of the voice lacks ${named}${more}. Add them to it`
    : `the voice has no dictionary, so it cannot say ${named}${more}. Add it with lexicon.txt`
  throwInvalidInput(path, `${what}, or write their phonemes, such as [[həlˈoʊ]].`)
}
