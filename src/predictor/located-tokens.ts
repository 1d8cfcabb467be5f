/** Finds the part of a text that each of its tokens stands for. */
import type { Tokenizer } from '@huggingface/tokenizers'
import { BYTES } from '../engine/text/vocabulary.ts'
import { isObject } from '../values/objects.ts'

/** A token of a text without those around it. Places count UTF-16 units, as JavaScript does. */
export interface LocatedToken {
  start: number
  end: number
  /** Number of the word that it belongs to. Words are what the tokenizer divides a text into first. */
  word: number
  /** `true` if it continues the word of the token before it, as transformers decides that. */
  isPart: boolean
}

/** Function that returns the places of the tokens of a text. */
export type Locate = (text: string) => LocatedToken[]

/** Creates the function for a tokenizer. `own` is the content of its `tokenizer.json`. */
export function createLocator(own: unknown, tokenizer: Tokenizer): Locate {
  const { model, pre_tokenizer: division, post_processor: around } = isObject(own) ? own : {}
  const isBytes = JSON.stringify(division ?? null).includes('"ByteLevel"')
  const trims = JSON.stringify(around ?? null).includes('"trim_offsets":true')
  const prefix = isObject(model) ? String(model['continuing_subword_prefix'] ?? '') : ''
  const unknown = isObject(model) ? model['unk_token'] : undefined
  return (text) => {
    const { tokens } = tokenizer.encode(text, { add_special_tokens: false })
    const words = divideWords(text, tokens, prefix, tokenizer)
    const surfaces = tokens.map((token, at) =>
      token === unknown ? (words[at]?.text ?? token) : withoutPrefix(token, prefix),
    )
    const spans = isBytes ? alignBytes(text, tokens, trims) : alignCharacters(text, surfaces)
    return spans.map(([start, end], at) => {
      const [token = '', word = 0] = [tokens[at], words[at]?.index]
      const isPart =
        token !== unknown &&
        (prefix === ''
          ? start > 0 && !text.slice(start - 1, start + 1).includes(' ')
          : countCharacters(token) !== countCharacters(text.slice(start, end)))
      return { start, end, word, isPart }
    })
  }
}

const countCharacters = (text: string): number => Array.from(text).length

const withoutPrefix = (token: string, prefix: string): string =>
  prefix !== '' && token.startsWith(prefix) && token !== prefix ? token.slice(prefix.length) : token

/** Returns the word of each token, by the tokenizer's own division of the text. */
function divideWords(text: string, tokens: readonly string[], prefix: string, parts: Tokenizer) {
  const { normalizer, pre_tokenizer: divide, model } = parts
  const normalized = normalizer ? normalizer(text) : text
  const words = divide ? divide(normalized, { section_index: 0 }) : [normalized]
  const divided = model ? words.map((word) => model([word])) : []
  const isWhole = divided.flat().join('\0') === tokens.join('\0')
  if (isWhole)
    return divided.flatMap((own, index) => own.map(() => ({ index, text: words[index] })))
  // Text with tokens of its own, such as `[MASK]`, is divided there before.
  let index = -1
  return tokens.map((token) => {
    if (prefix === '' ? /^[▁Ġ]/.test(token) : !token.startsWith(prefix)) index += 1
    return { index: Math.max(0, index), text: token }
  })
}

type Span = [start: number, end: number]

const SPACE = 32

function alignBytes(text: string, tokens: readonly string[], trims: boolean): Span[] {
  const utf8 = new TextEncoder()
  const bytes: number[] = []
  const owners: Span[] = []
  let place = 0
  for (const character of text) {
    for (const byte of utf8.encode(character)) {
      bytes.push(byte)
      owners.push([place, place + character.length])
    }
    place += character.length
  }
  let cursor = 0
  return tokens.map((token) => {
    const known = Array.from(token, (character) => BYTES.get(character))
    const isKnown = known.every((byte) => byte !== undefined)
    const wanted = isKnown ? known : [...utf8.encode(token)]
    const isHere = (part: readonly number[]) =>
      part.every((byte, at) => bytes[cursor + at] === byte)
    // The tokenizer may have put a space before the text.
    const own = wanted[0] === SPACE && !isHere(wanted) ? wanted.slice(1) : wanted
    const [first, last] = [owners[cursor], owners[cursor + own.length - 1]]
    cursor += own.length
    let [start, end] = [first?.[0] ?? text.length, last?.[1] ?? text.length]
    if (trims) {
      while (start < end && /\s/.test(text.charAt(start))) start += 1
      while (end > start && /\s/.test(text.charAt(end - 1))) end -= 1
    }
    return [start, end]
  })
}

/** Returns what is compared of a text and its tokens: letters without marks, in lower case. */
const fold = (text: string): string =>
  text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}|\p{Cc}|\p{Cf}|\s|▁|<\/w>/gu, '')

/** Number of characters in which a token is searched if the text goes on otherwise. */
const MAX_SKIPPED = 64

function alignCharacters(text: string, surfaces: readonly string[]): Span[] {
  const characters: { start: number; end: number; rest: string }[] = []
  let place = 0
  for (const character of text) {
    characters.push({ start: place, end: place + character.length, rest: fold(character) })
    place += character.length
  }
  let cursor = 0
  return surfaces.map((surface): Span => {
    let wanted = fold(surface)
    while (cursor < characters.length && characters[cursor]?.rest === '') cursor += 1
    if (wanted === '')
      return [characters[cursor]?.start ?? text.length, characters[cursor]?.start ?? text.length]
    cursor = findFrom(characters, cursor, wanted)
    const first = characters[cursor]
    let last = first
    while (wanted !== '') {
      const character = characters[cursor]
      if (!character) break
      const { rest } = character
      if (wanted.startsWith(rest)) {
        wanted = wanted.slice(rest.length)
        cursor += 1
      } else if (rest.startsWith(wanted)) {
        // Further tokens stand for the rest of the character.
        character.rest = rest.slice(wanted.length)
        wanted = ''
      } else break
      if (rest !== '') last = character
    }
    return [first?.start ?? text.length, last?.end ?? text.length]
  })
}

/** Returns the first place at which a folded text begins, or `from` if there is none nearby. */
function findFrom(characters: readonly { rest: string }[], from: number, wanted: string): number {
  for (let at = from; at < Math.min(characters.length, from + MAX_SKIPPED); at++) {
    const { rest = '' } = characters[at] ?? {}
    if (rest !== '' && (wanted.startsWith(rest) || rest.startsWith(wanted))) return at
  }
  return from
}
