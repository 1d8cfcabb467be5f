/**
 * Reads and writes arrays as predictor clients do: one NumPy `.npy` file in a ZIP archive.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
import { Inflate, unzipSync, type UnzipFileInfo } from 'fflate'
import { InoriginError } from '../error.ts'
import { crc32 } from '../values/crc32.ts'
import { ARRAYS, type Elements, countElements } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'

export type NumberType = keyof typeof ARRAYS

/** Numbers with a shape. float16 is stored as bits, bool as bytes of 0 and 1. */
export type ArrayElements = Elements & {
  type: NumberType
  data: InstanceType<(typeof ARRAYS)[NumberType]>
}

/** Names of the types in the header, without the character for the byte order. */
const CODES: Readonly<Record<NumberType, string>> = {
  float16: 'f2',
  float32: 'f4',
  float64: 'f8',
  int8: 'i1',
  int16: 'i2',
  int32: 'i4',
  int64: 'i8',
  uint8: 'u1',
  uint16: 'u2',
  uint32: 'u4',
  uint64: 'u8',
  bool: 'b1',
}

const NPY_MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]
const ZIP_MAGIC = [0x50, 0x4b, 0x03, 0x04]
/** Alignment in bytes of the numbers, to which the header is padded. */
const HEADER_ALIGNMENT_BYTES = 64
const ARCHIVE_ENTRY = 'arr_0.npy'
/** Date of the file in the archive: 1 January 1980, the first that ZIP can represent. */
const ZIP_DATE = 0x21

/** Bytes of a ZIP local file header without its variable fields. */
const ZIP_HEADER_BYTES = 30

/** Compressed bytes per decompression step. Each can expand to at most about 1000 bytes. */
const INFLATE_STEP_BYTES = 2 ** 14

/** Largest array in an archive: 64 MiB, because a small archive can decompress to any size. */
const MAX_UNZIPPED_BYTES = 2 ** 26

/** Largest number of dimensions of an array, the same as in NumPy. */
export const MAX_DIMENSIONS = 64

/** Largest header of an array in bytes, the same limit as in NumPy. */
const MAX_HEADER_BYTES = 10_000

const startsWith = (bytes: Uint8Array, mark: readonly number[]): boolean =>
  mark.every((byte, at) => bytes[at] === byte)

/** Returns `true` if {@link decodeArray} can read bytes of this format. */
export function isArrayFile(bytes: Uint8Array): boolean {
  return startsWith(bytes, ZIP_MAGIC) || startsWith(bytes, NPY_MAGIC)
}

/** Returns the one array in a NumPy file. Throws an error that names `path`. */
export function decodeArray(bytes: Uint8Array<ArrayBuffer>, path: string): ArrayElements {
  return decodeNpy(startsWith(bytes, ZIP_MAGIC) ? unzipArray(bytes, path) : bytes, path)
}

/** Returns the content of the only file in an archive. */
function unzipArray(archive: Uint8Array, path: string): Uint8Array {
  const files: UnzipFileInfo[] = []
  try {
    // The filter rejects every file, so only the directory of the archive is read.
    unzipSync(archive, { filter: (file) => files.push(file) < 0 })
    const [file, ...others] = files
    if (!file?.name.endsWith('.npy') || others.length > 0) {
      return throwInvalidInput(path, 'must contain exactly one .npy file.')
    }
    if (file.originalSize > MAX_UNZIPPED_BYTES) throw tooLarge(path)
    const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength)
    const start = ZIP_HEADER_BYTES + view.getUint16(26, true) + view.getUint16(28, true)
    const content = archive.subarray(start, start + file.size)
    return file.compression === 0 ? content : inflateExactly(content, file.originalSize, path)
  } catch (cause) {
    if (cause instanceof InoriginError) throw cause
    return throwInvalidInput(path, 'is an archive that is damaged.', cause)
  }
}

/** Decompresses up to the declared size only: a small input can expand to minutes of work. */
function inflateExactly(content: Uint8Array, bytes: number, path: string): Uint8Array {
  const whole = new Uint8Array(bytes)
  let at = 0
  const inflate = new Inflate((piece) => {
    if (at + piece.length > bytes)
      throwInvalidInput(path, 'is an archive with more bytes than it declares.')
    whole.set(piece, at)
    at += piece.length
  })
  for (let start = 0; start < content.length; start += INFLATE_STEP_BYTES) {
    inflate.push(
      content.subarray(start, start + INFLATE_STEP_BYTES),
      start + INFLATE_STEP_BYTES >= content.length,
    )
  }
  if (at < bytes) throwInvalidInput(path, 'is an archive with fewer bytes than it declares.')
  return whole
}

function tooLarge(path: string): InoriginError {
  const what = `${path}: decompresses to more than ${MAX_UNZIPPED_BYTES} bytes. Send less at once.`
  return new InoriginError('too_large', what, { code: 'request_too_large', param: path })
}

function decodeNpy(bytes: Uint8Array, path: string): ArrayElements {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!startsWith(bytes, NPY_MAGIC) || bytes.length < 12)
    throwInvalidInput(path, 'is not a NumPy array.')
  const isFirst = view.getUint8(6) === 1
  const from = isFirst ? 10 : 12
  const to = from + (isFirst ? view.getUint16(8, true) : view.getUint32(8, true))
  if (to - from > MAX_HEADER_BYTES) throwInvalidInput(path, 'has a NumPy header that is too long.')
  const header = new TextDecoder('latin1').decode(bytes.subarray(from, to))
  const descr = /'descr'\s*:\s*'([<>=|]?)(\w+)'/.exec(header)
  const dimensions = /'shape'\s*:\s*\(([^)]*)\)/.exec(header)?.[1]
  if (!descr || dimensions === undefined)
    return throwInvalidInput(path, 'has an invalid NumPy header.')
  const type = (Object.keys(CODES) as NumberType[]).find((name) => CODES[name] === descr[2])
  if (!type || descr[1] === '>') {
    throwInvalidInput(
      path,
      `arrays of ${descr[1]}${descr[2]} are not supported. Send little-endian numbers or booleans.`,
    )
  }
  const shape = dimensions
    .split(',')
    .filter((part) => part.trim() !== '')
    .map(Number)
  if (shape.length > MAX_DIMENSIONS)
    throwInvalidInput(path, `must have at most ${MAX_DIMENSIONS} dimensions.`)
  const elements = decodeElements(type, bytes.subarray(to), shape, path)
  const isTransposed = /'fortran_order'\s*:\s*True/.test(header)
  return isTransposed ? { ...elements, data: toRowMajor(elements, shape) } : elements
}

/** Returns the numbers in raw little-endian bytes. Throws `invalid_request` that names `path`. */
export function decodeElements(
  type: NumberType,
  bytes: Uint8Array,
  shape: readonly number[] | null,
  path: string,
): ArrayElements {
  const { BYTES_PER_ELEMENT: width } = ARRAYS[type]
  if (bytes.length % width !== 0) {
    throwInvalidInput(path, `has ${bytes.length} bytes, but each ${type} takes ${width}.`)
  }
  const length = bytes.length / width
  if (shape && countElements(shape) !== length) {
    throwInvalidInput(
      path,
      `shape [${shape.join(', ')}] is ${countElements(shape)} elements, but data has ${length}.`,
    )
  }
  // The copy starts at offset 0, which is aligned for every type.
  const data = new ARRAYS[type](bytes.slice().buffer)
  return { type, data, shape }
}

/** Converts numbers from column-major to row-major order. */
function toRowMajor(
  { type, data }: ArrayElements,
  shape: readonly number[],
): ArrayElements['data'] {
  const rows = new ARRAYS[type](data.length)
  const index = new Int32Array(shape.length)
  const steps = shape.map((_, axis) => countElements(shape.slice(0, axis)))
  let from = 0
  for (let at = 0; at < data.length; at += 1) {
    rows[at] = data[from] as never
    let axis = shape.length - 1
    for (; axis >= 0 && index[axis] === shape[axis]! - 1; axis -= 1) {
      from -= index[axis]! * steps[axis]!
      index[axis] = 0
    }
    if (axis < 0) break
    index[axis]! += 1
    from += steps[axis]!
  }
  return rows
}

/** Returns an archive with that one array. */
export function encodeArray({ type, data, shape }: ArrayElements): Uint8Array {
  const code = `${data.BYTES_PER_ELEMENT === 1 ? '|' : '<'}${CODES[type]}`
  const lengths = (shape ?? [data.length]).map((length) => `${length},`).join(' ')
  const text = `{'descr': '${code}', 'fortran_order': False, 'shape': (${lengths}), }`
  const start = NPY_MAGIC.length + 4
  const padded =
    Math.ceil((start + text.length + 1) / HEADER_ALIGNMENT_BYTES) * HEADER_ALIGNMENT_BYTES - start
  const header = new TextEncoder().encode(`${text.padEnd(padded - 1)}\n`)
  const bytes = new Uint8Array(start + padded + data.byteLength)
  bytes.set([...NPY_MAGIC, 1, 0, padded & 255, padded >>> 8])
  bytes.set(header, start)
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), start + padded)
  return zipArray(bytes)
}

/**
 * Returns an archive with one uncompressed file. The library's own function would add its
 * compressor, half of its size, to a script that must stay small.
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
 */
function zipArray(file: Uint8Array): Uint8Array {
  const name = new TextEncoder().encode(ARCHIVE_ENTRY)
  const checksumAndSizes = [crc32(file), file.length, file.length]
  const [head, index, end] = [ZIP_HEADER_BYTES, 46, 22]
  const bytes = new Uint8Array(head + index + end + 2 * name.length + file.length)
  const view = new DataView(bytes.buffer)
  const directory = head + name.length + file.length
  const endRecord = directory + index + name.length
  const writeUint32s = (at: number, all: readonly number[]): void =>
    all.forEach((number, place) => view.setUint32(at + 4 * place, number, true))

  // The fields say version 2.0 and no compression.
  writeUint32s(0, [0x04034b50, 20, 0])
  view.setUint16(12, ZIP_DATE, true)
  writeUint32s(14, [...checksumAndSizes, name.length])
  writeUint32s(directory, [
    0x02014b50,
    (20 << 16) | 20,
    0,
    ZIP_DATE << 16,
    ...checksumAndSizes,
    name.length,
  ])
  writeUint32s(endRecord, [0x06054b50, 0, 0x10001, index + name.length, directory])
  bytes.set(name, head)
  bytes.set(file, head + name.length)
  bytes.set(name, directory + index)
  return bytes
}
