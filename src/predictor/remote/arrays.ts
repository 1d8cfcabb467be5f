/**
 * Reads and writes arrays as predictor clients do: one NumPy `.npy` file in a ZIP archive.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
import { InoriginError } from '../../error.ts'
import { crc32, readStream } from '../../values/bytes.ts'
import { ARRAYS, countElements, type Elements } from '../../values/elements.ts'
import { throwInvalidInput } from '../../values/input-errors.ts'

export type NumberType = keyof typeof ARRAYS

/** Numbers with a shape. float16 is stored as bits, bool as bytes of 0 and 1. */
export interface ArrayElements extends Elements {
  type: NumberType
  data: InstanceType<(typeof ARRAYS)[NumberType]>
}

/** Returns the name of a type in a header, such as `f4`, without the character for the byte order. */
const codeOf = (type: NumberType) => `${type[0]}${ARRAYS[type].BYTES_PER_ELEMENT}`

const NPY_MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]
/** Alignment in bytes of the numbers, to which the header is padded. */
const HEADER_ALIGNMENT_BYTES = 64
const ARCHIVE_ENTRY = 'arr_0.npy'
/** Largest size of all arrays of a request after their decompression and conversion: 64 MiB. */
export const MAX_ARRAY_BYTES = 2 ** 26
/** Largest number of dimensions of an array, the same as in NumPy. */
export const MAX_DIMENSIONS = 64
/** Largest number of elements that are reordered in the host worker; 0.35 s on two cores. */
const MAX_REORDERED_ELEMENTS = 2 ** 22
/** Largest header of an array in bytes, the same limit as in NumPy. */
const MAX_HEADER_BYTES = 10_000

const isNpy = (bytes: Uint8Array): boolean => NPY_MAGIC.every((byte, at) => bytes[at] === byte)

/** Returns `true` if {@link decodeArray} can read bytes of this format. */
export const isArrayFile = (bytes: Uint8Array): boolean => isZip(bytes) || isNpy(bytes)

/** Elements in the order of a NumPy file: row-major order, or column-major if `isTransposed`. */
interface FileElements extends ArrayElements {
  shape: readonly number[]
  isTransposed: boolean
}

/** Resolves with the one array in a NumPy file. Rejects beyond `mostBytes` of an archive. */
export const decodeArray = async (
  bytes: Uint8Array<ArrayBuffer>,
  path: string,
  mostBytes: number,
): Promise<FileElements> =>
  decodeNpy(isZip(bytes) ? await unzipArray(bytes, path, mostBytes) : bytes, path)

async function unzipArray(archive: Uint8Array<ArrayBuffer>, path: string, mostBytes: number) {
  try {
    const file = readZip(archive)
    if (!file?.name.endsWith('.npy'))
      return throwInvalidInput(path, 'must contain exactly one .npy file.')
    if (file.size > mostBytes) {
      const what = `${path}: decompresses to more than ${mostBytes} bytes. Send less at once.`
      throw new InoriginError('too_large', what, { code: 'request_too_large', param: path })
    }
    if (file.method === STORED) return file.stored
    if (file.method === DEFLATED) return await inflate(file, path)
    const what = `is an archive that is compressed by method ${file.method}.`
    return throwInvalidInput(path, `${what} Send it with method 8 (deflate).`)
  } catch (cause) {
    if (cause instanceof InoriginError) throw cause
    return throwInvalidInput(path, 'is an archive that is damaged.', cause)
  }
}

/** Decompresses up to the declared size, in steps, since a small input can take minutes. */
async function inflate({ stored, size }: ZipFile, path: string): Promise<Uint8Array> {
  let from = 0
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (from >= stored.length) return controller.close()
      controller.enqueue(stored.subarray(from, from + INFLATE_STEP_BYTES))
      from += INFLATE_STEP_BYTES
    },
  })
  const whole = new Uint8Array(size)
  let at = 0
  const pieces = readStream(source.pipeThrough(new DecompressionStream('deflate-raw')))
  for await (const piece of pieces) {
    if (at + piece.length > size)
      throwInvalidInput(path, 'is an archive with more bytes than it declares.')
    whole.set(piece, at)
    at += piece.length
  }
  if (at < size) throwInvalidInput(path, 'is an archive with fewer bytes than it declares.')
  return whole
}

function decodeNpy(bytes: Uint8Array, path: string): FileElements {
  const view = viewOf(bytes)
  if (!isNpy(bytes) || bytes.length < 12) throwInvalidInput(path, 'is not a NumPy array.')
  const isFirst = view.getUint8(6) === 1
  const from = isFirst ? 10 : 12
  const to = from + (isFirst ? view.getUint16(8, true) : view.getUint32(8, true))
  if (to - from > MAX_HEADER_BYTES) throwInvalidInput(path, 'has a NumPy header that is too long.')
  const header = new TextDecoder('latin1').decode(bytes.subarray(from, to))
  const descr = /'descr'\s*:\s*'([<>=|]?)(\w+)'/.exec(header)
  const dimensions = /'shape'\s*:\s*\(([^)]*)\)/.exec(header)?.[1]
  if (!descr || dimensions === undefined)
    return throwInvalidInput(path, 'has an invalid NumPy header.')
  const [, order = '', code = ''] = descr
  const type = (Object.keys(ARRAYS) as NumberType[]).find((name) => codeOf(name) === code)
  if (!type || order === '>') {
    const what = `arrays of ${order}${code} are not supported.`
    return throwInvalidInput(path, `${what} Send little-endian numbers or booleans.`)
  }
  const shape = parseDimensions(dimensions, path)
  const elements = decodeElements(type, bytes.subarray(to), shape, path)
  return { ...elements, shape, isTransposed: /'fortran_order'\s*:\s*True/.test(header) }
}

/** Parses the content of the parentheses of a shape, such as `2, 3` or `2,`. */
function parseDimensions(dimensions: string, path: string): number[] {
  const parts = dimensions.split(',').map((part) => part.trim())
  // A shape of one dimension ends with a comma, and one of none is empty.
  if (parts.at(-1) === '') parts.pop()
  if (!parts.every((part) => /^\d+$/.test(part) && Number.isSafeInteger(Number(part))))
    throwInvalidInput(path, 'has a NumPy header whose shape is not a list of whole numbers.')
  if (parts.length > MAX_DIMENSIONS)
    throwInvalidInput(path, `must have at most ${MAX_DIMENSIONS} dimensions.`)
  return parts.map(Number)
}

/** Returns the numbers in raw little-endian bytes. Throws `invalid_request` that names `path`. */
export function decodeElements(
  type: NumberType,
  bytes: Uint8Array,
  shape: readonly number[] | null,
  path: string,
): ArrayElements {
  const { BYTES_PER_ELEMENT: width } = ARRAYS[type]
  if (bytes.length % width !== 0)
    throwInvalidInput(path, `has ${bytes.length} bytes, but each ${type} takes ${width}.`)
  const length = bytes.length / width
  const wanted = shape ? countElements(shape) : length
  if (shape && wanted !== length) {
    const what = `shape [${shape.join(', ')}] is ${wanted} elements, but data has ${length}.`
    throwInvalidInput(path, what)
  }
  // The copy starts at offset 0, which is aligned for every type.
  const data = new ARRAYS[type](bytes.slice().buffer)
  return { type, data, shape }
}

/** Returns the elements in row-major order. Throws `invalid_request` if they are too many. */
export function toRowMajor({ type, data, shape, isTransposed }: FileElements, path: string) {
  // An axis of length 1 has no effect on the order, and each one costs time for each element.
  const lengths = shape.filter((length) => length !== 1)
  if (!isTransposed || lengths.length <= 1) return { type, data, shape }
  if (data.length > MAX_REORDERED_ELEMENTS)
    throwInvalidInput(
      path,
      `has ${data.length} elements in column-major order, of at most ${MAX_REORDERED_ELEMENTS}. ` +
        'Send it in row-major order, as numpy.ascontiguousarray returns it.',
    )
  return { type, data: reorder(type, data, lengths), shape }
}

function reorder(type: NumberType, data: ArrayElements['data'], lengths: readonly number[]) {
  const rows = new ARRAYS[type](data.length)
  const index = new Int32Array(lengths.length)
  const steps = lengths.map((_, axis) => countElements(lengths.slice(0, axis)))
  let from = 0
  for (let at = 0; at < data.length; at += 1) {
    rows[at] = data[from] as never
    let axis = lengths.length - 1
    for (; axis >= 0 && index[axis] === lengths[axis]! - 1; axis -= 1) {
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
  const code = `${data.BYTES_PER_ELEMENT === 1 ? '|' : '<'}${codeOf(type)}`
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
  return writeZip(ARCHIVE_ENTRY, bytes)
}

// Reads and writes ZIP archives of one file, as NumPy does.
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT

const LOCAL_HEADER_SIGNATURE = 0x04034b50
const DIRECTORY_SIGNATURE = 0x02014b50
const END_SIGNATURE = 0x06054b50

/** Bytes of each header without its variable fields. */
const [LOCAL_HEADER_BYTES, DIRECTORY_ENTRY_BYTES, END_RECORD_BYTES] = [30, 46, 22]

const MAX_COMMENT_BYTES = 2 ** 16 - 1
const STORED = 0
const DEFLATED = 8
/** Date of a file: 1 January 1980, the first that ZIP can represent. */
const ZIP_DATE = 0x21
/** Compressed bytes per decompression step. Each can expand to at most about 1000 bytes. */
const INFLATE_STEP_BYTES = 2 ** 14

/** File in an archive, with the size and compression method that the archive declares. */
interface ZipFile {
  name: string
  size: number
  method: number
  /** Bytes as they are in the archive. */
  stored: Uint8Array<ArrayBuffer>
}

const isZip = (bytes: Uint8Array) =>
  bytes.length > 3 && viewOf(bytes).getUint32(0, true) === LOCAL_HEADER_SIGNATURE

/** Returns the only file in an archive, or `undefined`. Throws any error if it is damaged. */
function readZip(archive: Uint8Array<ArrayBuffer>): ZipFile | undefined {
  const view = viewOf(archive)
  let end = archive.length - END_RECORD_BYTES
  const start = end - MAX_COMMENT_BYTES
  while (view.getUint32(end, true) !== END_SIGNATURE) {
    end -= 1
    if (end < start) throw new Error('The archive has no end record.')
  }
  if (view.getUint16(end + 8, true) !== 1) return undefined
  const entry = view.getUint32(end + 16, true)
  const nameStart = entry + DIRECTORY_ENTRY_BYTES
  const name = archive.subarray(nameStart, nameStart + view.getUint16(entry + 28, true))
  const from = LOCAL_HEADER_BYTES + view.getUint16(26, true) + view.getUint16(28, true)
  return {
    name: new TextDecoder().decode(name),
    size: view.getUint32(entry + 24, true),
    method: view.getUint16(entry + 10, true),
    stored: archive.subarray(from, from + view.getUint32(entry + 20, true)),
  }
}

/** Returns an archive with one uncompressed file. */
function writeZip(fileName: string, content: Uint8Array): Uint8Array {
  const name = new TextEncoder().encode(fileName)
  const checksumAndSizes = [crc32(content), content.length, content.length]
  const directory = LOCAL_HEADER_BYTES + name.length + content.length
  const endRecord = directory + DIRECTORY_ENTRY_BYTES + name.length
  const bytes = new Uint8Array(endRecord + END_RECORD_BYTES)
  const view = viewOf(bytes)
  const writeUint32s = (at: number, all: readonly number[]) =>
    all.forEach((number, place) => view.setUint32(at + 4 * place, number, true))

  // The fields say version 2.0 and no compression.
  writeUint32s(0, [LOCAL_HEADER_SIGNATURE, 20, 0])
  view.setUint16(12, ZIP_DATE, true)
  writeUint32s(14, [...checksumAndSizes, name.length])
  writeUint32s(directory, [DIRECTORY_SIGNATURE, (20 << 16) | 20, 0, ZIP_DATE << 16])
  writeUint32s(directory + 16, [...checksumAndSizes, name.length])
  writeUint32s(endRecord, [END_SIGNATURE, 0, 0x10001, endRecord - directory, directory])
  bytes.set(name, LOCAL_HEADER_BYTES)
  bytes.set(content, LOCAL_HEADER_BYTES + name.length)
  bytes.set(name, directory + DIRECTORY_ENTRY_BYTES)
  return bytes
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  new DataView(buffer, byteOffset, byteLength)
