/** Tokens of voices, compared with those of transformers and Piper. */
import { describe, expect, test } from 'vitest'
import { createReader } from '../../../src/predictor/voice/reader.ts'
import { PIPER_CONFIG, toPiperIds } from '../../support/voices.ts'

describe('A voice that reads letters', () => {
  // The letters of mms-tts-eng, whose padding is the letter k.
  const vocabulary = Object.fromEntries(
    Array.from("kbqzx_yjvw'tu-ofcaipghdsrnlme ", (letter, at) => [letter, at]),
  )
  const padding = { pad_token: 'k' }
  const read = (text: string, changes: object = {}) =>
    createReader(vocabulary, { ...padding, ...changes }, undefined)(text, 'input')

  // By VitsTokenizer of transformers 4.57.
  test.each([
    ['Kit, make!', [0, 0, 18, 0, 11, 0, 29, 0, 27, 0, 17, 0, 0, 0, 28, 0]],
    ['kk a', [0, 0, 0, 29, 0, 17, 0]],
    ['  a b ', [0, 17, 0, 29, 0, 1, 0]],
  ])('has the tokens of Python for %j', (text, ids) => {
    expect(read(text)).toEqual(ids)
  })

  test('takes a line break for a space, and has no blanks if they are not added', () => {
    expect(read('a\nb', { add_blank: false })).toEqual([17, 29, 1])
  })

  test('has no tokens for silent signs', () => expect(read('“…” 🙂️')).toEqual([]))

  test('names letters, digits and signs that it lacks, each once', () => {
    expect(() => read('é 5é €')).toThrow(/^input: the voice cannot say "é", "5", "€"\. Write/)
  })

  test('of Romanian has one form of the letter ț', () => {
    const settings = { language: 'ron', add_blank: false }
    expect(createReader({ k: 0, ţ: 1 }, settings, undefined)('Țț', 'input')).toEqual([1, 1])
  })
})

describe('A voice of Piper', () => {
  const read = (text: string, dictionary?: string, changes: object = {}) =>
    createReader({ ...PIPER_CONFIG, ...changes }, {}, dictionary)(text, 'input')

  const CMUDICT = [
    ';;; a comment',
    'HELLO  HH AH0 L OW1',
    'HELLO(1)  HH EH0 L OW1',
    'this DH IH1 S # another comment',
    "dog's  D AO1 G Z",
    'under  AH1 N D ER0',
    'bird  B ER1 D',
    'lady  L EY1 D IY0',
    'into  IH2 N T UW1',
  ].join('\r\n')

  test.each([
    ['Hello', 'həlˈoʊ'],
    ['  “Hello”, this - HELLO?!', 'həlˈoʊ, ðˈɪs həlˈoʊ?!'],
    ['Dog’s bird.', 'dˈɔːɡz bˈɜːd.'],
    ['under-lady into', 'ˈʌndɚ lˈeɪdi ˌɪntˈuː'],
    ["'Hello' [[ðə]] (this)", 'həlˈoʊ ðə ðˈɪs'],
  ])('reads %j by CMUdict', (text, phonemes) => {
    expect(read(text, CMUDICT)).toEqual(toPiperIds(phonemes))
  })

  test('reads a dictionary of IPA, whose first pronunciation counts', () => {
    const dictionary = 'hello\t/həˈloʊ/, /hɛˈloʊ/\nbird b ɜː d\nhello\t/hoʊ/'
    expect(read('hello bird', dictionary)).toEqual(toPiperIds('həˈloʊ bɜːd'))
  })

  test('names words that its dictionary lacks', () => {
    expect(() => read('Hello 5 blue-lady, under 10% €', CMUDICT)).toThrow(
      'input: the dictionary of the voice lacks "5", "blue-lady", "10", "%", "€". Add them to it,',
    )
  })

  test('without a dictionary reads phonemes only', () => {
    expect(read('[[həlˈoʊ]]!')).toEqual(toPiperIds('həlˈoʊ!'))
    expect(() => read('Hello')).toThrow(/has no dictionary, so it cannot say "Hello"\. Add it with/)
  })

  test('names a phoneme that it lacks', () => {
    expect(() => read('[[ʘa]]')).toThrow('input: the voice cannot say "ʘ".')
  })

  test('has no tokens for signs alone', () => expect(read(' – ... “!”', CMUDICT)).toEqual([]))

  test('of letters reads small ones, without marks of their own', () => {
    const text = { phoneme_type: 'text' }
    expect(read('Lamb’s, _^“too”', undefined, text)).toEqual(toPiperIds('lambs, too'))
    expect(() => read('x5', undefined, text)).toThrow('input: the voice cannot say "x".')
  })
})
