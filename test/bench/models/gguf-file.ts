/** Writes GGUF, the file format of llama.cpp: settings, then tensors. */
import { closeSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Types of tensors, by their numbers in ggml.h. */
export const TENSOR_TYPES = { f32: 0, f16: 1, q4_0: 2, q8_0: 8 } as const

export type TensorType = (typeof TENSOR_TYPES)[keyof typeof TENSOR_TYPES]

export interface GgufTensor {
  name: string
  type: TensorType
  /** Inputs and outputs of a matrix, or the length of a vector. */
  shape: number[]
  create(): Uint8Array
}

export type GgufSetting = [name: string, value: Uint8Array]

const VERSION = 3
/** Bytes of which each tensor's place is a multiple: the default of GGUF. */
const ALIGNMENT = 32

/** Writes the file. Its name is only there when it is whole. */
export function writeGgufFile(
  path: string,
  settings: readonly GgufSetting[],
  tensors: readonly GgufTensor[],
): void {
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(`${path}.part`, 'w')
  let offset = 0
  const places = tensors.map((tensor) => {
    const place = offset
    offset += align(byteLength(tensor))
    return place
  })
  const head = createHead(settings, tensors, places)
  writeSync(file, head, 0, head.length, 0)
  tensors.forEach((tensor, index) => {
    const content = tensor.create()
    if (content.length !== byteLength(tensor)) {
      throw new Error(`${tensor.name} has ${content.length} bytes, not ${byteLength(tensor)}.`)
    }
    writeSync(file, content, 0, content.length, align(head.length) + (places[index] as number))
  })
  closeSync(file)
  renameSync(`${path}.part`, path)
}

/**
 * Reorders the rows of each head: llama.cpp rotates neighbors, and ONNX files a row and the one half a
 * head behind it.
 */
export function interleave<T extends Float32Array | Uint16Array>(
  rows: T,
  length: number,
  head: number,
): T {
  const reordered = rows.slice() as T
  for (let row = 0; row < rows.length / length; row += 1) {
    const position = row % head
    const from = row - position + Math.floor(position / 2) + (position % 2) * (head / 2)
    reordered.set(rows.subarray(from * length, (from + 1) * length), row * length)
  }
  return reordered
}

/** Bytes of 32 numbers, by type. */
const BLOCK_BYTES: Readonly<Record<TensorType, number>> = { 0: 128, 1: 64, 2: 18, 8: 34 }

function byteLength({ type, shape }: GgufTensor): number {
  const count = shape.reduce((product, length) => product * length, 1)
  return (count / 32) * BLOCK_BYTES[type]
}

const align = (length: number): number => Math.ceil(length / ALIGNMENT) * ALIGNMENT

function createHead(
  settings: readonly GgufSetting[],
  tensors: readonly GgufTensor[],
  places: readonly number[],
): Uint8Array {
  return Buffer.concat([
    Buffer.from('GGUF'),
    uint32(VERSION),
    uint64(tensors.length),
    uint64(settings.length),
    ...settings.flatMap(([name, value]) => [text(name), value]),
    ...tensors.flatMap(({ name, type, shape: lengths }, index) => [
      text(name),
      uint32(lengths.length),
      ...lengths.map(uint64),
      uint32(type),
      uint64(places[index] as number),
    ]),
  ])
}

/** Numbers of the types of settings. */
const TYPES = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const

const typed = (type: keyof typeof TYPES, ...parts: Uint8Array[]): Uint8Array =>
  Buffer.concat([uint32(TYPES[type]), ...parts])

/** Values of settings. */
export const value = {
  number: (given: number) => typed('uint32', uint32(given)),
  float: (given: number) => typed('float32', new Uint8Array(Float32Array.of(given).buffer)),
  flag: (given: boolean) => typed('bool', Buffer.of(+given)),
  string: (given: string) => typed('string', text(given)),
  strings: (given: readonly string[]) =>
    // As one argument, since a vocabulary has more words than a call may have arguments.
    typed('array', uint32(TYPES.string), uint64(given.length), Buffer.concat(given.map(text))),
  integers: (given: readonly number[]) =>
    typed('array', uint32(TYPES.int32), uint64(given.length), bytesOf(Int32Array.from(given))),
  floats: (given: readonly number[]) =>
    typed('array', uint32(TYPES.float32), uint64(given.length), bytesOf(Float32Array.from(given))),
}

const bytesOf = ({ buffer }: Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer>): Uint8Array =>
  new Uint8Array(buffer)

const text = (given: string): Uint8Array =>
  Buffer.concat([uint64(Buffer.byteLength(given)), Buffer.from(given)])

const uint32 = (given: number): Uint8Array => new Uint8Array(Uint32Array.of(given).buffer)

const uint64 = (given: number): Uint8Array =>
  new Uint8Array(BigUint64Array.of(BigInt(given)).buffer)
