/** Tokenizes texts and encodes them as tensors. */
import { Tokenizer } from '@huggingface/tokenizers'
import type { Implementation, PredictorEntry, TextLayout } from '../catalog/schema.ts'
import type { Files } from '../engine/engine.ts'
import { ARRAYS, type ElementType } from '../values/elements.ts'
import { throwInvalidInput, throwPredictorUnusable } from '../values/input-errors.ts'
import { createLocator, type Locate } from './located-tokens.ts'
import type { RawTensor } from './tensor.ts'

/** Largest number of tokens of a call, with every text padded to the longest. */
const MAX_CALL_TOKENS = 2 ** 18

/** Tokens of a text, or of a pair of texts, with those around them. */
export interface TokenRow {
  ids: readonly number[]
  /** For each token, 1 if it belongs to the second text of a pair, else 0. */
  types: readonly number[]
  /** For each token, its place in its text; `null` for one around the texts. Absent if not wanted. */
  places?: readonly (TokenPlace | null)[]
}

/** Place of a token: the first or the second text, and the number among the tokens of it. */
interface TokenPlace {
  text: 0 | 1
  index: number
}

/** What the tokenizer returns, whose own type says that types are always there. */
interface Encoded {
  ids: readonly number[]
  token_type_ids: readonly number[]
}

/** Options of {@link Tokenize}. */
interface TokenizeOptions {
  /** Second text of a pair. Default: none. */
  pair?: string | undefined
  /** `true` to leave out the special tokens around the text. Default: false. */
  isPlain?: boolean
  /** Name of the text for errors. */
  path?: string
}

/** Function that returns the tokens of a text. */
export type Tokenize = (text: string, options?: TokenizeOptions) => TokenRow

/** Tokenizer of texts. */
export interface TextTokenizer {
  tokenize: Tokenize
  /** Returns the places of the tokens of a text, without those around it. */
  locate: Locate
  /**
   * Returns the text of tokens. `isPlain` leaves out special tokens. `tidies` says whether spaces before
   * punctuation are removed; default: as the tokenizer's own settings say.
   */
  decode(ids: readonly number[], options?: { isPlain?: boolean; tidies?: boolean }): string
  /** Returns the token of that name; `undefined` if there is none. */
  idOf(token: string): number | undefined
}

/** Tokenizers by the names of their resources. */
export type Tokenizers = ReadonlyMap<string, TextTokenizer>

/** Loads the tokenizers of the bindings. Rejects with `unavailable` if one cannot be used. */
export async function openTokenizers(
  { tag }: PredictorEntry,
  { bindings = {}, decoder }: Implementation,
  files: Files,
): Promise<Tokenizers> {
  const texts = Object.values(bindings).flatMap(({ text }) => text ?? [])
  const names = [
    ...texts.map(({ tokenizer }) => tokenizer),
    ...(decoder ? [decoder.tokenizer] : []),
  ]
  const opened = [...new Set(names)].map(async (name): Promise<[string, TextTokenizer]> => {
    const fail = (why: string, cause?: unknown) =>
      throwPredictorUnusable(tag, `resources.${name}`, why, cause)
    const config = files.get(name.replace(/[^/]*$/, 'tokenizer_config.json'))
    const file = files.get(name) ?? fail('the file is missing.')
    try {
      const own = JSON.parse(await file.text()) as Record<string, unknown>
      const settings = JSON.parse((await config?.text()) ?? '{}') as Record<string, unknown>
      if ('model' in own) return [name, createTextTokenizer(own, settings)]
      const words = texts.find((text) => text.tokenizer === name)?.dictionary
      const dictionary = await files.get(words ?? '')?.text()
      // Few predictors speak, so the code is only loaded for them.
      const { createReader } = await import('./voice/reader.ts')
      return [name, toTokenizer(createReader(own, settings, dictionary))]
    } catch (cause) {
      return fail(`not a tokenizer (${String(cause)}).`, cause)
    }
  })
  return new Map(await Promise.all(opened))
}

/** Returns a tokenizer that only reads. A voice writes no texts, and no step needs the places in one. */
const toTokenizer = (read: (text: string, path: string) => number[]): TextTokenizer => ({
  tokenize(text, { path = 'text' } = {}) {
    const ids = read(text, path)
    return { ids, types: ids.map(() => 0) }
  },
  locate: () => [],
  decode: () => '',
  idOf: () => undefined,
})

/** Creates a tokenizer of the contents of its files. */
export function createTextTokenizer(own: object, settings: object): TextTokenizer {
  const tokenizer = new Tokenizer(own, settings)
  const added = new Map(
    Array.from(tokenizer.get_added_tokens_decoder(), ([id, { content }]) => [content, id]),
  )
  return {
    tokenize(text, { pair, isPlain = false } = {}) {
      const { ids, token_type_ids: types }: Partial<Encoded> & Pick<Encoded, 'ids'> =
        tokenizer.encode(text, {
          text_pair: pair ?? null,
          add_special_tokens: !isPlain,
          return_token_type_ids: true,
        })
      // Without a template of special tokens, the tokenizer returns no types.
      return { ids, types: types ?? ids.map(() => 0) }
    },
    locate: createLocator(own, tokenizer),
    decode: (ids, { isPlain = false, tidies } = {}) =>
      tokenizer.decode([...ids], {
        skip_special_tokens: isPlain,
        ...(tidies !== undefined && { clean_up_tokenization_spaces: tidies }),
      }),
    idOf: (token) => added.get(token) ?? tokenizer.token_to_id(token),
  }
}

/** Encoding of a text parameter. */
export interface TextTensorSpec {
  layout: TextLayout
  tokenizer: TextTokenizer
  /** `true` if steps need the places of tokens. Default: false. */
  isLocated?: boolean
}

/** Characters per token beyond which the beginning of a text that is cut is tokenized first. */
const MAX_CHARACTERS_PER_TOKEN = 64

/** Options of {@link tokenizeText}. */
interface CutOptions {
  /** Second text of a pair. Default: none. */
  pair?: string | undefined
  /** Side at which tokens beyond the maximum are left out; `null` for none. Default: the layout's. */
  cut?: TextLayout['truncate'] | null
}

/**
 * Tokenizes a text, or a pair of texts, and leaves out tokens beyond the maximum at one side. Throws
 * `invalid_request` that names `path` if some of it has no token.
 */
export function tokenizeText(
  text: string,
  spec: TextTensorSpec,
  path: string,
  { pair, cut = spec.layout.truncate ?? null }: CutOptions = {},
): TokenRow {
  const { most } = spec.layout
  const beginning = most * MAX_CHARACTERS_PER_TOKEN
  if (cut === 'end' && pair === undefined && text.length > beginning) {
    // Tokenizing megabytes takes seconds. One more token shows that the text was long enough.
    const row = readTokens(text.slice(0, beginning), spec, path)
    if (row.ids.length > most) return cutTokens(row, text.slice(0, beginning), spec, { cut })
  }
  const row = readTokens(text, spec, path, pair)
  if (cut === null || row.ids.length <= most) return row
  return cutTokens(row, text, spec, { cut, pair })
}

function readTokens(text: string, spec: TextTensorSpec, path: string, pair?: string): TokenRow {
  const { tokenizer, isLocated } = spec
  const row = tokenizer.tokenize(text, { pair, path })
  if (row.ids.some((id) => id === undefined))
    throwInvalidInput(path, 'the tokenizer has no token for some of the text.')
  if (!isLocated) return row
  const spans = findTexts(row.ids, text, pair, tokenizer)
  const places = row.ids.map((_, at): TokenPlace | null => {
    const own = spans.findIndex(({ start, length }) => at >= start && at < start + length)
    return own < 0 ? null : { text: own === 0 ? 0 : 1, index: at - (spans[own]?.start ?? 0) }
  })
  return { ...row, places }
}

/** Returns where the tokens of one or two texts are among those with special tokens around them. */
function findTexts(
  ids: readonly number[],
  text: string,
  pair: string | undefined,
  { tokenize }: TextTokenizer,
): { start: number; length: number }[] {
  let from = 0
  return [text, ...(pair === undefined ? [] : [pair])].map((one) => {
    const body = tokenize(one, { isPlain: true }).ids
    const start = findTokens(ids, body, from)
    from = start + body.length
    return { start, length: body.length }
  })
}

/**
 * Leaves out tokens beyond the maximum, but none of those around the texts. Of a pair, the longer text
 * is cut first, then both to the same length.
 */
function cutTokens(
  row: TokenRow,
  text: string,
  { layout: { most }, tokenizer }: TextTensorSpec,
  { cut, pair }: { cut: 'start' | 'end'; pair?: string | undefined },
): TokenRow {
  const spans = findTexts(row.ids, text, pair, tokenizer)
  const around = row.ids.length - spans.reduce((sum, { length }) => sum + length, 0)
  const kept = shareTokens(
    spans.map(({ length }) => length),
    Math.max(0, most - around),
  )
  return keepTokens(row, (at) =>
    spans.every(({ start, length }, index) => {
      const place = at - start
      const count = kept[index] ?? 0
      if (place < 0 || place >= length) return true
      return cut === 'end' ? place < count : place >= length - count
    }),
  )
}

/** Returns the row with some of its tokens. */
function keepTokens({ ids, types, places }: TokenRow, isKept: (at: number) => boolean): TokenRow {
  const keep = <T>(list: readonly T[]): T[] => list.filter((_, at) => isKept(at))
  return { ids: keep(ids), types: keep(types), ...(places && { places: keep(places) }) }
}

/** Divides a pair into rows of at most `most` tokens, which share `overlap` tokens of the second text. */
function divideTokens(
  row: TokenRow,
  { most }: TextLayout,
  overlap: number,
  path: string,
): TokenRow[] {
  const second = row.places?.filter((place) => place?.text === 1).length ?? 0
  const room = most - (row.ids.length - second)
  if (second <= room) return [row]
  if (room <= overlap)
    throwInvalidInput(path, `is too long: it leaves ${room} of ${most} tokens for the second text.`)
  const count = Math.ceil((second - room) / (room - overlap)) + 1
  return Array.from({ length: count }, (_, window) => {
    const from = window * (room - overlap)
    return keepTokens(row, (at) => {
      const place = row.places?.[at]
      return place?.text !== 1 || (place.index >= from && place.index < from + room)
    })
  })
}

/** Returns the place of consecutive tokens among others, at `from` or after it. */
function findTokens(ids: readonly number[], wanted: readonly number[], from: number): number {
  for (let start = from; start + wanted.length <= ids.length; start++)
    if (wanted.every((id, at) => ids[start + at] === id)) return start
  return from
}

/** Returns how many tokens of one or two texts are kept, `total` together. */
function shareTokens(lengths: readonly number[], total: number): number[] {
  const [one = 0, other] = lengths
  if (other === undefined) return [Math.min(one, total)]
  if (one + other <= total) return [one, other]
  const shorter = Math.min(one, other)
  const longer = Math.max(shorter, total - shorter)
  const half = Math.floor(total / 2)
  const [low, high] = shorter + longer > total ? [half, total - half] : [shorter, longer]
  return one <= other ? [low, high] : [high, low]
}

/**
 * Tokenizes texts. `pairs` has the second text of each. Throws `invalid_request` that names `path` if a
 * text is too long.
 */
export function tokenizeAll(
  texts: readonly string[],
  spec: TextTensorSpec,
  path: string,
  pairs: readonly string[] | null = null,
): TokenRow[] {
  if (texts.length === 0) throwInvalidInput(path, 'must have at least one text.')
  const { most: maxTokens, pair: second, overlap } = spec.layout
  if (pairs && pairs.length !== texts.length) {
    const what = `has ${pairs.length} texts, but there are ${texts.length} first ones.`
    throwInvalidInput(`inputs.${second}`, what)
  }
  if (overlap !== undefined) {
    if (texts.length > 1) throwInvalidInput(path, 'must be one text.')
    const row = tokenizeText(texts[0] ?? '', spec, path, { pair: pairs?.[0], cut: null })
    return divideTokens(row, spec.layout, overlap, path)
  }
  return texts.map((text, index) => {
    const at = texts.length > 1 ? `${path}[${index}]` : path
    const row = tokenizeText(text, spec, at, { pair: pairs?.[index] })
    const what = `the text has ${row.ids.length} tokens, but the maximum is ${maxTokens}.`
    if (row.ids.length > maxTokens) throwInvalidInput(at, `${what} Shorten it.`)
    if (row.ids.length === 0) throwInvalidInput(at, 'has no tokens.')
    return row
  })
}

/** Encodes tokenized texts as the tensor of tokens, with the mask and the token types, by tensor name. */
export function encodeTokens(
  rows: readonly TokenRow[],
  tensor: string,
  type: ElementType,
  { layout }: TextTensorSpec,
  path: string,
): Map<string, RawTensor> {
  const least = layout.length ?? 1
  const length = rows.reduce((longest, { ids }) => Math.max(longest, ids.length), least)
  if (rows.length * length > MAX_CALL_TOKENS) {
    const what = `${rows.length} texts of up to ${length} tokens are more than ${MAX_CALL_TOKENS}`
    throwInvalidInput(path, `${what} tokens. Send fewer texts at once.`)
  }
  if (!layout.mask && layout.length === undefined && rows.some(({ ids }) => ids.length !== length))
    throwInvalidInput(path, 'the model takes texts of equal length only; send them one by one.')

  const tensors = new Map<string, RawTensor>()
  const set = (name: string, flat: readonly number[], shape: number[]) => {
    const data =
      type === 'int64' ? BigInt64Array.from(flat, BigInt) : ARRAYS[type as 'int32'].from(flat)
    tensors.set(name, { type, data, shape })
  }
  const add = (name: string | undefined, write: (row: TokenRow, at: number) => number) => {
    const rowOf = (row: TokenRow) => Array.from({ length }, (_, at) => write(row, at))
    if (name) set(name, rows.flatMap(rowOf), [rows.length, length])
  }
  add(tensor, ({ ids }, at) => ids[at] ?? layout.pad ?? 0)
  add(layout.mask, ({ ids }, at) => Number(at < ids.length))
  add(layout.types, ({ types }, at) => types[at] ?? 0)
  const lengths = rows.map(({ ids }) => ids.length)
  if (layout.lengths) set(layout.lengths, lengths, [rows.length])
  return tensors
}
