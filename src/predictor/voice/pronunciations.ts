/** Reads dictionaries of pronunciations: words with phonemes of the IPA, or with those of CMUdict. */

/** Pronunciations of words. */
export interface Pronunciations {
  /** Returns the phonemes of a word, or of its parts; `undefined` if there are none. */
  find(word: string): string | undefined
}

/**
 * Phonemes of CMUdict, which are those of General American, as espeak-ng writes its voice `en-us`. Vowels
 * without stress that it writes in another way follow with a 0.
 */
const ARPABET: Readonly<Record<string, string>> = {
  AA: 'ɑː',
  AE: 'æ',
  AH: 'ʌ',
  AH0: 'ə',
  AO: 'ɔː',
  AW: 'aʊ',
  AY: 'aɪ',
  B: 'b',
  CH: 'tʃ',
  D: 'd',
  DH: 'ð',
  EH: 'ɛ',
  ER: 'ɜː',
  ER0: 'ɚ',
  EY: 'eɪ',
  F: 'f',
  G: 'ɡ',
  HH: 'h',
  IH: 'ɪ',
  IY: 'iː',
  IY0: 'i',
  JH: 'dʒ',
  K: 'k',
  L: 'l',
  M: 'm',
  N: 'n',
  NG: 'ŋ',
  OW: 'oʊ',
  OY: 'ɔɪ',
  P: 'p',
  R: 'ɹ',
  S: 's',
  SH: 'ʃ',
  T: 't',
  TH: 'θ',
  UH: 'ʊ',
  UW: 'uː',
  V: 'v',
  W: 'w',
  Y: 'j',
  Z: 'z',
  ZH: 'ʒ',
}

/** Marks of the stress of a vowel by its digit. They stand before the vowel, as espeak-ng has them. */
const STRESS: Readonly<Record<string, string>> = { 1: 'ˈ', 2: 'ˌ' }

const ARPABET_WORD = /^[A-Z]{1,2}[0-2]?( +[A-Z]{1,2}[0-2]?)*$/

/**
 * Reads a dictionary with a word and its phonemes in each line. Of several pronunciations, the first one
 * counts. Lines that begin with `;;;` or `#` are comments.
 */
export function parseDictionary(text: string): Pronunciations {
  const known = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith(';;;') || line.startsWith('#')) continue
    // The phonemes of a line follow a tab, or else the first space.
    const [, word, phonemes = ''] = /^([^\t]+?)(?:\t+| +)(.+)$/.exec(line.trim()) ?? []
    // CMUdict has further pronunciations as `word(2)`.
    if (word === undefined || word.endsWith(')')) continue
    const key = toKey(word)
    if (!known.has(key)) known.set(key, phonemes)
  }
  const findWhole = (word: string): string | undefined => {
    const phonemes = known.get(toKey(word))
    return phonemes === undefined ? undefined : toPhonemes(phonemes)
  }
  const find = (word: string): string | undefined => {
    const parts = word.split(/[-‐]/)
    const found = parts.flatMap((part) => findWhole(part) ?? [])
    const joined = found.length === parts.length ? found.join(' ') : undefined
    return findWhole(word) ?? joined
  }
  return { find }
}

const toKey = (word: string): string =>
  word.normalize('NFC').toLowerCase().replaceAll('’', "'").replace(/'$/, '')

/** Returns the phonemes of a line, without slashes around them and spaces between them. */
function toPhonemes(line: string): string {
  // Others follow after a comma.
  const [text = ''] = line.replace(/ +#.*$/, '').split(/\s*,\s*/)
  if (ARPABET_WORD.test(text))
    return text
      .split(/ +/)
      .map((symbol) => {
        const name = symbol.replace(/\d$/, '')
        return (STRESS[symbol.slice(name.length)] ?? '') + (ARPABET[symbol] ?? ARPABET[name] ?? '')
      })
      .join('')
  return text.replaceAll(/^[/[]|[/\]]$|\s/g, '')
}
