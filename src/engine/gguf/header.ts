/**
 * Reads the head of a GGUF file: its metadata, and where its tensors are. The values of tensors are
 * not read. All counts, sizes and offsets are compared with the file's size before memory is
 * allocated for them, because a file may come from anywhere.
 */
import { shorten } from '../../values/text.ts'
import { modelUnusable } from '../failure.ts'
import { isTensorType, nameOfType, TENSOR_TYPES, type TensorType } from './types.ts'

/** A file that can be read at any place. */
export interface ByteSource {
  /** Size of the file in bytes. */
  size: number
  /** Resolves with the bytes from the offset `from` to the offset `to`, which is exclusive. */
  read(from: number, to: number): Promise<Uint8Array>
}

/** Returns a file of the browser as a source. */
export const toByteSource = (file: Blob): ByteSource => ({
  size: file.size,
  read: async (from, to) => new Uint8Array(await file.slice(from, to).arrayBuffer()),
})

/** Numbers of an array of metadata. */
export type NumberArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigUint64Array
  | BigInt64Array

/** Value of a key of the metadata. An integer beyond 2^53 is a bigint. */
export type MetadataValue =
  | string
  | number
  | bigint
  | boolean
  | readonly string[]
  | readonly boolean[]
  | NumberArray

/** Metadata by its keys, such as `general.architecture`. */
export type Metadata = ReadonlyMap<string, MetadataValue>

/** A tensor of a file. */
export interface TensorInfo {
  name: string
  /** Number of values in each dimension. Neighbors in the first dimension are neighbors in the file. */
  shape: readonly number[]
  type: TensorType
  /** Offset of the first byte in the file. */
  offset: number
  /** Size in bytes. */
  bytes: number
}

/** The head of a GGUF file. */
export interface Gguf {
  /** Version of the format: 2 or 3. */
  version: number
  metadata: Metadata
  /** Tensors in the order of their offsets. */
  tensors: readonly TensorInfo[]
  /** Offset of the data of tensors: the end of the head. */
  dataOffset: number
}

/**
 * Greatest size of a head in bytes. The vocabulary takes most of it: 262,144 tokens of Gemma 3 take
 * 13 MB with their merges. The limit is a guess.
 */
const MAX_HEAD_BYTES = 64 * 2 ** 20

/** Greatest number of values in all arrays of the metadata together; a guess. */
const MAX_ARRAY_VALUES = 4 * 2 ** 20

/** Greatest number of keys, and of tensors; a guess. The largest models have 2,000 tensors. */
const MAX_ENTRIES = 2 ** 16

/** Greatest size of a text in bytes; a guess. The longest ones are chat templates, of some 100 kB. */
const MAX_TEXT_BYTES = 16 * 2 ** 20

/** Greatest size in bytes of the name of a key or a tensor; the format's own limit for keys. */
const MAX_NAME_BYTES = 2 ** 16 - 1

/** Greatest number of dimensions of a tensor. */
const MAX_DIMENSIONS = 4

/** The letters `GGUF`. */
const MAGIC = 0x46554747

/** Alignment of tensors in bytes, unless the metadata has another one. */
const DEFAULT_ALIGNMENT = 32

/** Versions that differ in nothing that this reader meets: the third one added big-endian files. */
const VERSIONS: readonly number[] = [2, 3]

/** Greatest alignment in bytes; a guess. */
const MAX_ALIGNMENT = 2 ** 20

/**
 * Resolves with the head of a file. Rejects with `model_unusable` if it is no GGUF file, or a wrong
 * or unsupported one; the message says where.
 */
export async function readGguf(source: ByteSource): Promise<Gguf> {
  const cursor = new Cursor(source)
  const [version, tensorCount, keyCount] = await readStart(cursor)
  const metadata = await readMetadata(cursor, keyCount)
  const alignment = readAlignment(metadata)
  const found = await readTensors(cursor, tensorCount, alignment)
  const dataOffset = Math.ceil(cursor.at / alignment) * alignment
  const tensors = found
    .map((tensor) => ({ ...tensor, offset: dataOffset + tensor.offset }))
    .toSorted((one, other) => one.offset - other.offset)
  assertPlaces(tensors, source.size)
  return { version, metadata, tensors, dataOffset }
}

async function readStart(
  cursor: Cursor,
): Promise<[version: number, tensors: number, keys: number]> {
  cursor.place = 'the start'
  await cursor.require(8)
  if (cursor.uint32() !== MAGIC) throw modelUnusable('it is no GGUF file: it does not begin so.')
  const version = cursor.uint32()
  if (version > 0 && version % 2 ** 16 === 0)
    throw modelUnusable('the GGUF file is big-endian, which is not supported.')
  if (!VERSIONS.includes(version))
    throw modelUnusable(`the GGUF file has version ${version}, and only 2 and 3 are supported.`)
  await cursor.require(16)
  const tensors = cursor.count('tensors', MIN_TENSOR_BYTES)
  return [version, tensors, cursor.count('keys', MIN_KEY_BYTES)]
}

/** Fewest bytes of a key with its value, and of a tensor: the lengths and types of both. */
const [MIN_KEY_BYTES, MIN_TENSOR_BYTES] = [8 + 1 + 4 + 1, 8 + 1 + 4 + 8 + 4 + 8]

async function readMetadata(cursor: Cursor, count: number): Promise<Metadata> {
  const metadata = new Map<string, MetadataValue>()
  const budget = { values: MAX_ARRAY_VALUES }
  for (let index = 0; index < count; index += 1) {
    cursor.place = `the key ${index + 1} of ${count} of the metadata`
    const key = await cursor.text(MAX_NAME_BYTES)
    cursor.place = `the metadata \`${shorten(key)}\``
    if (metadata.has(key)) throw cursor.failure('is there twice')
    metadata.set(key, await readValue(cursor, budget))
  }
  return metadata
}

/** Number of the type of a text, of an array, and of a boolean. */
const [BOOLEAN, TEXT, ARRAY] = [7, 8, 9]

/** Types of numbers by their numbers in a file. */
const NUMBERS: ReadonlyMap<number, new (buffer: ArrayBuffer) => NumberArray> = new Map<
  number,
  new (buffer: ArrayBuffer) => NumberArray
>([
  [0, Uint8Array],
  [1, Int8Array],
  [2, Uint16Array],
  [3, Int16Array],
  [4, Uint32Array],
  [5, Int32Array],
  [6, Float32Array],
  [10, BigUint64Array],
  [11, BigInt64Array],
  [12, Float64Array],
])

async function readValue(cursor: Cursor, budget: { values: number }): Promise<MetadataValue> {
  await cursor.require(4)
  const type = cursor.uint32()
  if (type === TEXT) return cursor.text(MAX_TEXT_BYTES)
  if (type === ARRAY) return readArray(cursor, budget)
  if (type === BOOLEAN) return (await readBooleans(cursor, 1))[0] === true
  const value = (await readNumbers(cursor, type, 1))[0] ?? 0
  if (typeof value === 'number') return value
  const rounded = Number(value)
  return Number.isSafeInteger(rounded) ? rounded : value
}

async function readArray(cursor: Cursor, budget: { values: number }): Promise<MetadataValue> {
  await cursor.require(12)
  const type = cursor.uint32()
  if (type === ARRAY) throw cursor.failure('is an array of arrays, which is not supported')
  const count = cursor.count('values', type === TEXT ? 8 : sizeOfNumber(type), budget.values)
  budget.values -= count
  if (type === BOOLEAN) return readBooleans(cursor, count)
  if (type !== TEXT) return readNumbers(cursor, type, count)
  const texts: string[] = []
  const { place } = cursor
  for (let index = 0; index < count; index += 1) {
    cursor.place = `${place}, value ${index + 1} of ${count}`
    // A wait for each of hundreds of thousands of texts would take longer than all the rest.
    texts.push(cursor.textInWindow() ?? (await cursor.text(MAX_TEXT_BYTES)))
  }
  return texts
}

async function readBooleans(cursor: Cursor, count: number): Promise<boolean[]> {
  await cursor.require(count)
  return Array.from(cursor.bytes(count), (byte) => {
    if (byte > 1) throw cursor.failure(`has the byte ${byte} as a boolean`)
    return byte === 1
  })
}

async function readNumbers(cursor: Cursor, type: number, count: number): Promise<NumberArray> {
  const bytes = count * sizeOfNumber(type)
  const Numbers = NUMBERS.get(type)
  if (!Numbers) throw cursor.failure(`has the type ${type}, which is not known`)
  await cursor.require(bytes)
  return new Numbers(cursor.bytes(bytes).slice().buffer)
}

/** Returns the bytes of a number or a boolean; 1 for a type that is not known. */
const sizeOfNumber = (type: number): number => NUMBERS.get(type)?.prototype.BYTES_PER_ELEMENT ?? 1

function readAlignment(metadata: Metadata): number {
  const alignment = metadata.get('general.alignment') ?? DEFAULT_ALIGNMENT
  const isPower = (value: number): boolean => value > 0 && Number.isInteger(Math.log2(value))
  if (typeof alignment === 'number' && isPower(alignment) && alignment <= MAX_ALIGNMENT)
    return alignment
  throw modelUnusable(
    `the metadata \`general.alignment\` of the GGUF file must be a power of two up to ${MAX_ALIGNMENT}.`,
  )
}

async function readTensors(
  cursor: Cursor,
  count: number,
  alignment: number,
): Promise<TensorInfo[]> {
  const tensors: TensorInfo[] = []
  const names = new Set<string>()
  for (let index = 0; index < count; index += 1) {
    cursor.place = `the tensor ${index + 1} of ${count}`
    const name = await cursor.text(MAX_NAME_BYTES)
    cursor.place = `the tensor \`${shorten(name)}\``
    if (names.has(name)) throw cursor.failure('is there twice')
    names.add(name)
    const tensor = await readTensor(cursor, name)
    if (tensor.offset % alignment !== 0)
      throw cursor.failure(`has the offset ${tensor.offset}, no multiple of ${alignment}`)
    tensors.push(tensor)
  }
  return tensors
}

async function readTensor(cursor: Cursor, name: string): Promise<TensorInfo> {
  await cursor.require(4)
  const dimensions = cursor.uint32()
  if (dimensions < 1 || dimensions > MAX_DIMENSIONS)
    throw cursor.failure(`has ${dimensions} dimensions, and 1 to ${MAX_DIMENSIONS} are possible`)
  await cursor.require(dimensions * 8 + 12)
  const shape = Array.from({ length: dimensions }, () => cursor.uint64())
  const type = nameOfType(cursor.uint32())
  const offset = cursor.uint64()
  if (!isTensorType(type)) {
    const known = Object.keys(TENSOR_TYPES).join(', ')
    throw cursor.failure(`has the type ${type}, which is not supported. Supported are ${known}`)
  }
  const block = TENSOR_TYPES[type]
  const [row = 0] = shape
  if (row % block.values !== 0)
    throw cursor.failure(
      `has rows of ${row} values, no multiple of ${block.values} as ${type} needs`,
    )
  const values = shape.reduce((product, length) => product * length, 1)
  const bytes = (values / block.values) * block.bytes
  if (values < 1 || !Number.isSafeInteger(bytes) || !Number.isSafeInteger(values))
    throw cursor.failure(`has the shape ${shape.join(' x ')}, which is not possible`)
  return { name, shape, type, offset, bytes }
}

/** Throws if a tensor is outside the file or inside another one. */
function assertPlaces(tensors: readonly TensorInfo[], size: number): void {
  let end = 0
  let before = ''
  for (const { name, offset, bytes } of tensors) {
    const subject = `the tensor \`${shorten(name)}\` of the GGUF file`
    if (offset + bytes > size) {
      const why = `ends at the byte ${offset + bytes}, and the file has ${size} bytes`
      throw modelUnusable(`${subject} ${why}. The file may have been cut off.`)
    }
    if (offset < end) throw modelUnusable(`${subject} overlaps the tensor \`${shorten(before)}\`.`)
    end = offset + bytes
    before = name
  }
}

/** Smallest number of bytes to read from the file at once. */
const WINDOW_BYTES = 2 ** 20

/** Reads the head from its start to its end, through a window. */
class Cursor {
  readonly #source: ByteSource
  /** Offset of the window in the file. */
  #start = 0
  #window: DataView = new DataView(new ArrayBuffer(0))
  /** Offset of the next byte in the file. */
  at = 0
  /** Name of what is read, for errors. */
  place = ''

  constructor(source: ByteSource) {
    this.#source = source
  }

  /** Number of bytes that the head may still have. */
  get left(): number {
    return Math.min(this.#source.size, MAX_HEAD_BYTES) - this.at
  }

  /** Resolves when the next `count` bytes are in the window. Rejects if the head ends before. */
  async require(count: number): Promise<void> {
    if (this.#isInWindow(count)) return
    if (count > this.left) throw this.#cutOff(count)
    const end = Math.min(this.#source.size, this.at + Math.max(count, WINDOW_BYTES))
    const { buffer, byteOffset, length } = await this.#source.read(this.at, end)
    this.#start = this.at
    this.#window = new DataView(buffer, byteOffset, length)
    if (!this.#isInWindow(count))
      throw this.failure('cannot be read: the file is shorter than it was')
  }

  #isInWindow(count: number): boolean {
    return this.at + count <= this.#start + this.#window.byteLength
  }

  #cutOff(count: number): Error {
    if (this.#source.size <= MAX_HEAD_BYTES)
      return this.failure(`needs ${count} bytes at the byte ${this.at}, behind the end of the file`)
    return this.failure(`ends behind ${MAX_HEAD_BYTES} bytes, the limit of metadata`)
  }

  /** Returns the next 4 bytes as an integer. They must be in the window, as for all that follow. */
  uint32(): number {
    const value = this.#window.getUint32(this.at - this.#start, true)
    this.at += 4
    return value
  }

  /** Returns the next 8 bytes as an integer. */
  uint64(): number {
    const value = this.#window.getBigUint64(this.at - this.#start, true)
    this.at += 8
    const rounded = Number(value)
    if (!Number.isSafeInteger(rounded))
      throw this.failure(`has the number ${value}, which is too large`)
    return rounded
  }

  /**
   * Returns the next 8 bytes as a number of things that need at least `bytes` each. Throws if there
   * are more than `limit`, or more than the rest of the head can hold.
   */
  count(what: string, bytes: number, limit = MAX_ENTRIES): number {
    const count = this.uint64()
    if (count > limit || count * bytes > this.left)
      throw this.failure(`says that there are ${count} ${what}, more than the file can have`)
    return count
  }

  /** Returns a view of the next bytes, which is only valid until the window moves. */
  bytes(count: number): Uint8Array {
    const { buffer, byteOffset } = this.#window
    const view = new Uint8Array(buffer, byteOffset + this.at - this.#start, count)
    this.at += count
    return view
  }

  /** Resolves with a text of at most `maxBytes`, whose length is before it. */
  async text(maxBytes: number): Promise<string> {
    await this.require(8)
    const length = this.uint64()
    if (length > maxBytes || length > this.left)
      throw this.failure(
        `has a text of ${length} bytes, longer than ${Math.min(maxBytes, this.left)}`,
      )
    await this.require(length)
    return decoder.decode(this.bytes(length))
  }

  /** Returns the next text if it is in the window; `null` if {@link text} must read it. */
  textInWindow(): string | null {
    if (!this.#isInWindow(8)) return null
    const { at } = this
    const length = this.uint64()
    if (this.#isInWindow(length)) return decoder.decode(this.bytes(length))
    this.at = at
    return null
  }

  /** Returns the error for what is read now. */
  failure(why: string): Error {
    return modelUnusable(`${this.place} of the GGUF file ${why}.`)
  }
}

/** Texts that are not UTF-8 get replacement characters: a few vocabularies have such tokens. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
