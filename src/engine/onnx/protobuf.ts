/**
 * Protobuf messages, which ONNX files are: read field by field without what is inside of them, as
 * weights may be large, and written anew.
 */

/** Wire types of fields: a number, bytes after their length, and two of a fixed size. */
const NUMBER = 0
const BYTES = 2
const SIZES = new Map([
  [1, 8],
  [5, 4],
])

/** Bytes of a file that are fetched at once. */
const WINDOW = 2 ** 20

/** Where a field's value is. */
export interface Field {
  number: number
  from: number
  to: number
}

/** Bytes of a file, fetched a window at a time. */
export interface Window {
  read(from: number, to: number): Promise<Uint8Array>
}

export function createWindow(file: Blob): Window {
  let start = 0
  let bytes = new Uint8Array(0)
  const read: Window['read'] = async (from, to) => {
    const last = Math.min(to, file.size)
    if (from < start || last > start + bytes.length) {
      start = from
      const end = Math.max(last, from + WINDOW)
      bytes = new Uint8Array(await file.slice(from, end).arrayBuffer())
    }
    return bytes.subarray(from - start, last - start)
  }
  return { read }
}

/** Longest head of a field: a tag and a length, each a number of up to ten bytes. */
const HEAD = 20

/** The fields of a message in a file; ends where the bytes make no sense. */
export async function* fieldsOfFile(file: Window, from: number, to: number): AsyncGenerator<Field> {
  let at = from
  while (at < to) {
    const field = readField(await file.read(at, Math.min(at + HEAD, to)), 0)
    if (!field) return
    yield { number: field.number, from: at + field.from, to: at + field.to }
    at += field.to
  }
}

/** The fields of a message in memory; ends where the bytes make no sense. */
export function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  let at = 0
  while (at < bytes.length) {
    const field = readField(bytes, at)
    if (!field) return
    yield field
    at = field.to
  }
}

/** The field that begins there; `null` where none does. `to` may lie behind the bytes given. */
function readField(bytes: Uint8Array, at: number): Field | null {
  const tag = readNumber(bytes, at)
  if (!tag) return null
  const wire = tag.value % 8
  const number = Math.floor(tag.value / 8)
  if (wire === BYTES) {
    const length = readNumber(bytes, tag.to)
    return length && { number, from: length.to, to: length.to + length.value }
  }
  if (wire === NUMBER) {
    const value = readNumber(bytes, tag.to)
    return value && { number, from: tag.to, to: value.to }
  }
  const size = SIZES.get(wire)
  return size ? { number, from: tag.to, to: tag.to + size } : null
}

function readNumber(bytes: Uint8Array, at: number): { value: number; to: number } | null {
  let value = 0
  for (let index = 0; index < 10; index += 1) {
    const byte = bytes[at + index]
    if (byte === undefined) return null
    value += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) return { value, to: at + index + 1 }
  }
  return null
}

/** A field that holds bytes. */
export const message = (number: number, bytes: Blob): BlobPart[] => [
  new Uint8Array([...varint(number * 8 + BYTES), ...varint(bytes.size)]),
  bytes,
]

/** A number as messages have it: seven bits to a byte, the lowest first. */
export function varint(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) + 128)
  }
}
