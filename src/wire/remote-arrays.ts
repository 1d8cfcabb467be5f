/**
 * Arrays as predictor clients send and read them: NumPy's files, one `.npy` in a ZIP archive.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
import { Inflate, unzipSync, type UnzipFileInfo } from 'fflate'
import { InoriginError } from '../error.ts'
import { crc32 } from '../values/crc32.ts'
import { ARRAYS, type Elements, size } from '../values/elements.ts'
import { refuse } from '../values/refuse.ts'

export type NumberType = keyof typeof ARRAYS

/** Numbers with a shape; float16 as bits, bool as bytes of 0 and 1. */
export type ArrayElements = Elements & {
  type: NumberType
  data: InstanceType<(typeof ARRAYS)[NumberType]>
}

/** Names of the types in the header, less the letter that tells the order of bytes. */
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

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]
const ZIP = [0x50, 0x4b, 0x03, 0x04]
/** The header's length is such that the numbers begin at a multiple of this. */
const ALIGNMENT = 64
const ENTRY = 'arr_0.npy'
/** The first of January 1980, where days begin in an archive. */
const FIRST_DAY = 0x21

/** Bytes of what stands before a file, but for the file's name and what else is said of it. */
const HEAD = 30

/** Bytes that are unfolded at once, each to a thousand at most. */
const STEP = 2 ** 14

/** Bytes of an array in an archive, 64 MiB: a small archive can unfold to any size. */
const MAX_UNFOLDED_BYTES = 2 ** 26

/** Dimensions of an array: as many as NumPy has. */
export const MAX_DIMENSIONS = 64

/** Bytes of the header of an array, which is what NumPy itself reads. */
const MAX_HEADER_BYTES = 10_000

const begins = (bytes: Uint8Array, mark: readonly number[]): boolean =>
  mark.every((byte, at) => bytes[at] === byte)

/** Whether these are bytes of {@link readArray}. */
export function isArrayFile(bytes: Uint8Array): boolean {
  return begins(bytes, ZIP) || begins(bytes, MAGIC)
}

/** The one array in a NumPy file. Throws what names `path`. */
export function readArray(bytes: Uint8Array<ArrayBuffer>, path: string): ArrayElements {
  return readNpy(begins(bytes, ZIP) ? unfold(bytes, path) : bytes, path)
}

/** The file in an archive that has no other. */
function unfold(archive: Uint8Array, path: string): Uint8Array {
  const files: UnzipFileInfo[] = []
  try {
    // Only what the archive says of itself is read.
    unzipSync(archive, { filter: (file) => files.push(file) < 0 })
    const [file, ...others] = files
    if (!file?.name.endsWith('.npy') || others.length > 0) {
      return refuse(path, 'must hold one array, in one .npy file.')
    }
    if (file.originalSize > MAX_UNFOLDED_BYTES) throw tooLarge(path)
    const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength)
    const start = HEAD + view.getUint16(26, true) + view.getUint16(28, true)
    const content = archive.subarray(start, start + file.size)
    return file.compression === 0 ? content : inflated(content, file.originalSize, path)
  } catch (cause) {
    if (cause instanceof InoriginError) throw cause
    return refuse(path, 'is an archive that cannot be read.', cause)
  }
}

/** As many bytes as that, which is what was said of them: a little can unfold to minutes of work. */
function inflated(content: Uint8Array, bytes: number, path: string): Uint8Array {
  const whole = new Uint8Array(bytes)
  let at = 0
  const inflate = new Inflate((piece) => {
    if (at + piece.length > bytes) refuse(path, 'is an archive that unfolds to more than it says.')
    whole.set(piece, at)
    at += piece.length
  })
  for (let start = 0; start < content.length; start += STEP) {
    inflate.push(content.subarray(start, start + STEP), start + STEP >= content.length)
  }
  if (at < bytes) refuse(path, 'is an archive that unfolds to less than it says.')
  return whole
}

function tooLarge(path: string): InoriginError {
  const what = `${path}: unfolds to more than ${MAX_UNFOLDED_BYTES} bytes. Send less at once.`
  return new InoriginError('too_large', what, { code: 'request_too_large', param: path })
}

function readNpy(bytes: Uint8Array, path: string): ArrayElements {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!begins(bytes, MAGIC) || bytes.length < 12) refuse(path, 'holds no array of NumPy.')
  const isFirst = view.getUint8(6) === 1
  const from = isFirst ? 10 : 12
  const to = from + (isFirst ? view.getUint16(8, true) : view.getUint32(8, true))
  if (to - from > MAX_HEADER_BYTES) refuse(path, 'holds an array that cannot be read.')
  const header = new TextDecoder('latin1').decode(bytes.subarray(from, to))
  const descr = /'descr'\s*:\s*'([<>=|]?)(\w+)'/.exec(header)
  const dimensions = /'shape'\s*:\s*\(([^)]*)\)/.exec(header)?.[1]
  if (!descr || dimensions === undefined) return refuse(path, 'holds an array that cannot be read.')
  const type = (Object.keys(CODES) as NumberType[]).find((name) => CODES[name] === descr[2])
  if (!type || descr[1] === '>') {
    refuse(
      path,
      `holds an array of ${descr[1]}${descr[2]}, and only numbers and truth can be read.`,
    )
  }
  const shape = dimensions
    .split(',')
    .filter((part) => part.trim() !== '')
    .map(Number)
  if (shape.length > MAX_DIMENSIONS) refuse(path, `must have at most ${MAX_DIMENSIONS} dimensions.`)
  const elements = readElements(type, bytes.subarray(to), shape, path)
  const isTransposed = /'fortran_order'\s*:\s*True/.test(header)
  return isTransposed ? { ...elements, data: inRows(elements, shape) } : elements
}

/** Numbers as they lie in memory, the lowest byte first. */
export function readElements(
  type: NumberType,
  bytes: Uint8Array,
  shape: readonly number[] | null,
  path: string,
): ArrayElements {
  const { BYTES_PER_ELEMENT: width } = ARRAYS[type]
  if (bytes.length % width !== 0) {
    refuse(path, `has ${bytes.length} bytes, and each ${type} takes ${width}.`)
  }
  const length = bytes.length / width
  if (shape && size(shape) !== length) {
    refuse(path, `shape [${shape.join(', ')}] is ${size(shape)} elements, but data has ${length}.`)
  }
  // A copy begins where every type may begin.
  const data = new ARRAYS[type](bytes.slice().buffer)
  return { type, data, shape }
}

/** Numbers of which the first index runs fastest, as if the last did. */
function inRows({ type, data }: ArrayElements, shape: readonly number[]): ArrayElements['data'] {
  const rows = new ARRAYS[type](data.length)
  const index = new Int32Array(shape.length)
  const steps = shape.map((_, axis) => size(shape.slice(0, axis)))
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

/** An archive with that one array. */
export function writeArray({ type, data, shape }: ArrayElements): Uint8Array {
  const code = `${data.BYTES_PER_ELEMENT === 1 ? '|' : '<'}${CODES[type]}`
  const lengths = (shape ?? [data.length]).map((length) => `${length},`).join(' ')
  const text = `{'descr': '${code}', 'fortran_order': False, 'shape': (${lengths}), }`
  const start = MAGIC.length + 4
  const padded = Math.ceil((start + text.length + 1) / ALIGNMENT) * ALIGNMENT - start
  const header = new TextEncoder().encode(`${text.padEnd(padded - 1)}\n`)
  const bytes = new Uint8Array(start + padded + data.byteLength)
  bytes.set([...MAGIC, 1, 0, padded & 255, padded >>> 8])
  bytes.set(header, start)
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), start + padded)
  return archived(bytes)
}

/**
 * An archive with one file, as it is. The library would bring its compressor along, half of its size,
 * into a script that has to stay small.
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
 */
function archived(file: Uint8Array): Uint8Array {
  const name = new TextEncoder().encode(ENTRY)
  const about = [crc32(file), file.length, file.length]
  const [head, index, end] = [HEAD, 46, 22]
  const bytes = new Uint8Array(head + index + end + 2 * name.length + file.length)
  const view = new DataView(bytes.buffer)
  const directory = head + name.length + file.length
  const last = directory + index + name.length
  const numbers = (at: number, all: readonly number[]): void =>
    all.forEach((number, place) => view.setUint32(at + 4 * place, number, true))

  // Version 2.0, not compressed.
  numbers(0, [0x04034b50, 20, 0])
  view.setUint16(12, FIRST_DAY, true)
  numbers(14, [...about, name.length])
  numbers(directory, [0x02014b50, (20 << 16) | 20, 0, FIRST_DAY << 16, ...about, name.length])
  numbers(last, [0x06054b50, 0, 0x10001, index + name.length, directory])
  bytes.set(name, head)
  bytes.set(file, head + name.length)
  bytes.set(name, directory + index)
  return bytes
}
