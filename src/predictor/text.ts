/** Tokenizes texts and encodes them as tensors. */
import { Tokenizer } from '@huggingface/tokenizers'
import type { Implementation, PredictorEntry, TextLayout } from '../catalog/schema.ts'
import type { Files } from '../engine/engine.ts'
import { ARRAYS, type ElementType } from '../values/elements.ts'
import { throwInvalidInput, throwPredictorUnusable } from '../values/input-errors.ts'
import type { RawTensor } from './tensor.ts'

/** Largest number of tokens of a call, with every text padded to the longest. */
const MAX_CALL_TOKENS = 2 ** 18

/** Function that returns the tokens of a text, including the special tokens around it. */
type Tokenize = (text: string) => readonly number[]

/** Tokenizers by the names of their resources. */
export type Tokenizers = ReadonlyMap<string, Tokenize>

/** Loads the tokenizers of the bindings. Rejects with `unavailable` if one cannot be used. */
export async function openTokenizers(
  { tag }: PredictorEntry,
  { bindings = {} }: Implementation,
  files: Files,
): Promise<Tokenizers> {
  const names = Object.values(bindings).flatMap(({ text }) => text?.tokenizer ?? [])
  const opened = [...new Set(names)].map(async (name): Promise<[string, Tokenize]> => {
    const fail = (why: string, cause?: unknown) =>
      throwPredictorUnusable(tag, `resources.${name}`, why, cause)
    const config = files.get(name.replace(/[^/]*$/, 'tokenizer_config.json'))
    const file = files.get(name) ?? fail('the file is missing.')
    try {
      const own = JSON.parse(await file.text())
      const tokenizer = new Tokenizer(own, JSON.parse((await config?.text()) ?? '{}'))
      return [name, (text) => tokenizer.encode(text).ids]
    } catch (cause) {
      return fail(`not a tokenizer (${String(cause)}).`, cause)
    }
  })
  return new Map(await Promise.all(opened))
}

/** Encoding of a text parameter. */
export interface TextTensorSpec {
  layout: TextLayout
  tokenize: Tokenize
}

/** Tokenizes a text. Throws `invalid_request` that names `path` if some of it has no token. */
export function tokenizeText(text: string, { tokenize }: TextTensorSpec, path: string) {
  const tokens = tokenize(text)
  if (tokens.some((token) => token === undefined))
    throwInvalidInput(path, 'the tokenizer has no token for some of the text.')
  return tokens
}

/** Encodes texts as the tensor of tokens, with the mask and the token types, by tensor name. */
export function encodeText(
  texts: readonly string[],
  tensor: string,
  type: ElementType,
  spec: TextTensorSpec,
  path: string,
): Map<string, RawTensor> {
  if (texts.length === 0) throwInvalidInput(path, 'must have at least one text.')
  const { most: maxTokens } = spec.layout
  const rows = texts.map((text, index) => {
    const at = texts.length > 1 ? `${path}[${index}]` : path
    const tokens = tokenizeText(text, spec, at)
    const what = `the text has ${tokens.length} tokens, but the maximum is ${maxTokens}.`
    if (tokens.length > maxTokens) throwInvalidInput(at, `${what} Shorten it.`)
    return tokens
  })
  return encodeTokens(rows, tensor, type, spec, path)
}

/** Encodes tokenized texts, like {@link encodeText}. */
export function encodeTokens(
  rows: readonly (readonly number[])[],
  tensor: string,
  type: ElementType,
  { layout }: TextTensorSpec,
  path: string,
): Map<string, RawTensor> {
  const length = rows.reduce((longest, row) => Math.max(longest, row.length), 1)
  if (rows.length * length > MAX_CALL_TOKENS) {
    const what = `${rows.length} texts of up to ${length} tokens are more than ${MAX_CALL_TOKENS}`
    throwInvalidInput(path, `${what} tokens. Send fewer texts at once.`)
  }
  if (!layout.mask && rows.some((row) => row.length !== length))
    throwInvalidInput(path, 'the model takes texts of equal length only; send them one by one.')

  const tensors = new Map<string, RawTensor>()
  const add = (name: string | undefined, write: (row: readonly number[], at: number) => number) => {
    if (!name) return
    const flat = rows.flatMap((row) => Array.from({ length }, (_, at) => write(row, at)))
    const data =
      type === 'int64' ? BigInt64Array.from(flat, BigInt) : ARRAYS[type as 'int32'].from(flat)
    tensors.set(name, { type, data, shape: [rows.length, length] })
  }
  add(tensor, (row, at) => row[at] ?? 0)
  add(layout.mask, (row, at) => Number(at < row.length))
  add(layout.types, () => 0)
  return tensors
}
