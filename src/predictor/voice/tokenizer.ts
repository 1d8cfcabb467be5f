/** Tokenizers of voices, which read letters or phonemes in place of parts of words. */
import { isObject } from '../../values/objects.ts'
import type { TextTokenizer, Tokenize } from '../text.ts'
import { createLetters } from './letters.ts'
import { createPhonemes } from './phonemes.ts'
import { parseDictionary } from './pronunciations.ts'

/**
 * Creates the tokenizer of a voice. `own` is the `vocab.json` of VITS, with the settings of its
 * `tokenizer_config.json`, or the configuration of a voice of Piper, with its dictionary.
 */
export function createVoiceTokenizer(
  own: Readonly<Record<string, unknown>>,
  settings: Readonly<Record<string, unknown>>,
  dictionary: string | undefined,
): TextTokenizer {
  const { phoneme_id_map: map } = own
  if (!isObject(map)) return toReader(createLetters(own, settings))
  const words = dictionary === undefined ? null : parseDictionary(dictionary)
  return toReader(createPhonemes(map, own['phoneme_type'] === 'text' ? 'text' : words))
}

/** Returns a tokenizer that only reads texts. A voice writes none, and its steps need no places. */
const toReader = (read: (text: string, path: string) => number[]): TextTokenizer => {
  const tokenize: Tokenize = (text, { path = 'text' } = {}) => {
    const ids = read(text, path)
    return { ids, types: ids.map(() => 0) }
  }
  return { tokenize, locate: () => [], decode: () => '', idOf: () => undefined }
}
