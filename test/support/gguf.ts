/** Writes GGUF files for tests. */
import { joinBytes } from '../../src/values/bytes.ts'

/** A value with its type in the file. `texts` and `numbers` are arrays. */
export type Written =
  | { text: string }
  | { texts: readonly string[] }
  | { uint32: number }
  | { uint64: bigint }
  | { int32: number }
  | { float32: number }
  | { boolean: boolean }
  | { int32s: readonly number[] }
  | { float32s: readonly number[] }
  | { booleans: readonly boolean[] }

/** A tensor with its bytes. The first dimension is that of neighbors in the file. */
export interface WrittenTensor {
  name: string
  shape: readonly number[]
  /** Number of the type in the file: 0 is F32, 1 is F16, 8 is Q8_0. */
  type: number
  data: Uint8Array
}

/** Contents of a file. */
export interface GgufContents {
  metadata: Readonly<Record<string, Written>>
  tensors: readonly WrittenTensor[]
  /** Default: 3. */
  version?: number
  /** Multiple of the offsets. Default: 32. */
  alignment?: number
}

const encoder = new TextEncoder()

/** Returns the bytes of a GGUF file. */
export function writeGguf(contents: GgufContents): Uint8Array<ArrayBuffer> {
  const { metadata, tensors, version = 3, alignment = 32 } = contents
  const entries = Object.entries(metadata)
  const head = [
    encoder.encode('GGUF'),
    uint32(version),
    uint64(tensors.length),
    uint64(entries.length),
    ...entries.flatMap(([key, value]) => [...text(key), ...encodeValue(value)]),
  ]
  let offset = 0
  const data: Uint8Array[] = []
  for (const tensor of tensors) {
    head.push(...text(tensor.name), uint32(tensor.shape.length), ...tensor.shape.map(uint64))
    head.push(uint32(tensor.type), uint64(offset))
    const padded = padding(tensor.data.length, alignment)
    data.push(tensor.data, padded)
    offset += tensor.data.length + padded.length
  }
  return joinBytes([...head, padding(joinBytes(head).length, alignment), ...data])
}

const padding = (length: number, alignment: number): Uint8Array =>
  new Uint8Array((alignment - (length % alignment)) % alignment)

/** Encodes a number of 4 bytes. */
export const uint32 = (value: number): Uint8Array => bytesOf(Uint32Array.of(value))

/** Encodes a number of 8 bytes. */
export const uint64 = (value: number | bigint): Uint8Array =>
  bytesOf(BigUint64Array.of(BigInt(value)))

/** Returns the bytes of numbers. */
export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

/** Encodes a text with its length before it. */
export const text = (value: string): Uint8Array[] => {
  const bytes = encoder.encode(value)
  return [uint64(bytes.length), bytes]
}

const array = (type: number, count: number): Uint8Array[] => [
  uint32(9),
  uint32(type),
  uint64(count),
]

function encodeValue(value: Written): Uint8Array[] {
  if ('text' in value) return [uint32(8), ...text(value.text)]
  if ('texts' in value) return [...array(8, value.texts.length), ...value.texts.flatMap(text)]
  if ('uint32' in value) return [uint32(4), uint32(value.uint32)]
  if ('uint64' in value) return [uint32(10), uint64(value.uint64)]
  if ('int32' in value) return [uint32(5), bytesOf(Int32Array.of(value.int32))]
  if ('float32' in value) return [uint32(6), bytesOf(Float32Array.of(value.float32))]
  if ('boolean' in value) return [uint32(7), Uint8Array.of(Number(value.boolean))]
  if ('int32s' in value)
    return [...array(5, value.int32s.length), bytesOf(Int32Array.from(value.int32s))]
  if ('float32s' in value)
    return [...array(6, value.float32s.length), bytesOf(Float32Array.from(value.float32s))]
  return [...array(7, value.booleans.length), Uint8Array.from(value.booleans, Number)]
}
