/** Reads texts for voices, whose tokens are letters or phonemes in place of parts of words. */
import { isObject } from '../../values/objects.ts'
import { createLetters } from './letters.ts'
import { createPhonemes } from './phonemes.ts'
import { parseDictionary } from './pronunciations.ts'

/** Returns the tokens of a text. Throws `invalid_request` that begins with the path for others. */
type ReadText = (text: string, path: string) => number[]

/**
 * Creates the reader of a voice. `own` is the `vocab.json` of VITS, with the settings of its
 * `tokenizer_config.json`, or the configuration of a voice of Piper, with its dictionary.
 */
export function createReader(
  own: Readonly<Record<string, unknown>>,
  settings: Readonly<Record<string, unknown>>,
  dictionary: string | undefined,
): ReadText {
  const { phoneme_id_map: map, phoneme_type: kind } = own
  if (!isObject(map)) return createLetters(own, settings)
  const words = dictionary === undefined ? null : parseDictionary(dictionary)
  return createPhonemes(map, kind === 'text' ? kind : words)
}
