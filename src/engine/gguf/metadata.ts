/** Reads single keys of the metadata of a GGUF file. An error names the key and its value. */
import { shorten } from '../../values/text.ts'
import { modelUnusable } from '../failure.ts'
import type { Metadata } from './header.ts'

/** Returns the text of a key; `undefined` if there is none. Throws `model_unusable` for others. */
export const findText = (metadata: Metadata, key: string): string | undefined =>
  find(metadata, key, 'a text', (value) => typeof value === 'string')

/** Returns the boolean of a key; `undefined` if there is none. Throws `model_unusable` for others. */
export const findBoolean = (metadata: Metadata, key: string): boolean | undefined =>
  find(metadata, key, 'true or false', (value) => typeof value === 'boolean')

/** Returns the number of a key; `undefined` if there is none. Throws `model_unusable` for others. */
export const findNumber = (metadata: Metadata, key: string): number | undefined =>
  find(metadata, key, 'a finite number', (value): value is number => Number.isFinite(value))

/** Returns the texts of a key; `undefined` if there are none. Throws `model_unusable` for others. */
export const findTexts = (metadata: Metadata, key: string): readonly string[] | undefined =>
  find(
    metadata,
    key,
    'an array of texts',
    (value): value is readonly string[] =>
      Array.isArray(value) && (value.length === 0 || typeof value[0] === 'string'),
  )

/** Numbers in an array, whatever type they have in the file. */
export type Numbers = ArrayLike<number>

/** Returns the numbers of a key; `undefined` if there are none. Throws `model_unusable` for others. */
export const findNumbers = (metadata: Metadata, key: string): Numbers | undefined =>
  find(
    metadata,
    key,
    'an array of numbers of at most 32 bits',
    (value): value is Numbers =>
      ArrayBuffer.isView(value) &&
      !(value instanceof BigInt64Array || value instanceof BigUint64Array),
  )

/**
 * Returns the id of a token under a key; `undefined` if there is none. `size` is the number of
 * tokens. Throws `model_unusable` if there is no such token.
 */
export const findTokenId = (metadata: Metadata, key: string, size: number): number | undefined =>
  find(
    metadata,
    key,
    `an integer from 0 to ${size - 1}, the last of its tokens`,
    (value): value is number =>
      Number.isInteger(value) && Number(value) >= 0 && Number(value) < size,
  )

/** Returns the error for a wrong value of a key. `why` completes the sentence. */
export const wrongValue = (key: string, why: string): Error =>
  modelUnusable(`the metadata \`${shorten(key)}\` of the GGUF file ${why}.`)

function find<T>(
  metadata: Metadata,
  key: string,
  expected: string,
  accepts: (value: unknown) => value is T,
): T | undefined {
  const value: unknown = metadata.get(key)
  if (value === undefined || accepts(value)) return value
  throw wrongValue(key, `must be ${expected}, got ${show(value)}`)
}

/** Returns a value for an error. */
function show(value: unknown): string {
  if (typeof value === 'string') return `"${shorten(value)}"`
  if (ArrayBuffer.isView(value) || Array.isArray(value)) return 'an array of another type'
  return String(value)
}
