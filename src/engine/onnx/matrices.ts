/** Numbers of matrices: reads values that are quantized in blocks, and writes them in other forms. */
import { MATRICES_WASM } from './matrices-wasm.ts'

/** A matrix as `MatMulNBits` stores it: column by column, in blocks with a scale each. */
export interface BlockQuantized {
  rows: number
  columns: number
  /** Bits of a value. A byte has two values of 4 bits, the first in its low half. */
  bits: 4 | 8
  /** Number of values with a common scale; it is even. The last block of a column is padded. */
  blockSize: number
  values: Uint8Array
  /** Scale of each block, column by column. */
  scales: Float32Array
  /**
   * Value of each block that means 0, with the bits of a value; each column starts at a whole byte.
   * `null` means half the range, such as 8 for 4 bits.
   */
  zeroPoints: Uint8Array | null
}

/**
 * Maximum number of values along a row with a common scale. docs/decisions/0011-int8-weights-on-wasm.md
 * has the figures of other sizes. The minimum is a guess.
 */
const MAX_GROUP_SIZE = 128
const MIN_GROUP_SIZE = 32

/** Maximum number of neighboring values that are rotated together. */
const MAX_ROTATION = 32

/**
 * Returns the number of values with a common scale in rows of that length, which is a multiple of it.
 * Each group is a product of its own, so an even number of them keeps two threads equally busy.
 */
export function groupSizeOf(rows: number): number {
  for (let size = MAX_GROUP_SIZE; size >= MIN_GROUP_SIZE; size -= MAX_ROTATION)
    if (rows % (2 * size) === 0) return size
  return rows
}

/** Returns the number of values of a group that are rotated together: a power of two. */
export function rotationSizeOf(groupSize: number): number {
  let size = MAX_ROTATION
  while (groupSize % size > 0) size /= 2
  return size
}

/**
 * Returns the matrix that rotates that many values: a Hadamard matrix, which is its own inverse. It
 * gives each result an equal share of each value.
 */
export function rotationMatrix(size: number): Float32Array<ArrayBuffer> {
  const magnitude = 1 / Math.sqrt(size)
  return Float32Array.from({ length: size * size }, (_, at) =>
    isOdd(countOnes(Math.floor(at / size) & (at % size))) ? -magnitude : magnitude,
  )
}

const isOdd = (count: number): boolean => count % 2 === 1

const countOnes = (bits: number): number => (bits === 0 ? 0 : (bits & 1) + countOnes(bits >> 1))

/** Functions of `tools/weights/src/lib.rs`, which has the layout of their arguments. */
interface Exports {
  memory: WebAssembly.Memory
  __heap_base: WebAssembly.Global
  to_int8_groups(matrix: number, target: number, rotationSize: number): void
  to_float_rows(matrix: number, target: number): void
}

/** A page of WebAssembly memory. */
const PAGE_BYTES = 2 ** 16

/** Sizes in bytes of the arguments in memory: seven addresses or numbers each. */
const ARGUMENT_BYTES = 28

/** Bytes of a vector: four values, of as many columns, which are converted together. */
const VECTOR_BYTES = 16

/**
 * Converts matrices in memory of WebAssembly, which grows to the largest ones. With it, the conversion
 * of SmolLM2-135M takes 1.3 to 1.6 s, of which it takes 0.5 s. In JavaScript, it took 3.2 to 3.7 s
 * (Node 20, one core of an AMD EPYC).
 */
export class MatrixConverter {
  readonly #exports: Exports
  #rows = 0
  #columns = 0
  #parts: readonly { address: number; firstColumn: number }[] = []
  /** First byte of memory behind the matrices. */
  #free = 0

  static async open(): Promise<MatrixConverter> {
    const bytes = Uint8Array.from(atob(MATRICES_WASM), (character) => character.charCodeAt(0))
    const { instance } = await WebAssembly.instantiate(bytes)
    return new MatrixConverter(instance.exports as unknown as Exports)
  }

  private constructor(exports: Exports) {
    this.#exports = exports
  }

  /** Copies matrices with equally many rows, which stand side by side. They replace those before. */
  load(matrices: readonly BlockQuantized[]): void {
    const { memory, __heap_base } = this.#exports
    const layout = new Layout(__heap_base.value as number)
    const places = matrices.map((matrix) => ({
      matrix,
      address: layout.place(ARGUMENT_BYTES),
      values: layout.place(matrix.values.length),
      scales: layout.place(matrix.scales.byteLength),
      zeroPoints: matrix.zeroPoints ? layout.place(matrix.zeroPoints.length) : 0,
    }))
    growTo(memory, layout.end)
    const bytes = new Uint8Array(memory.buffer)
    let columns = 0
    this.#parts = places.map(({ matrix, address, values, scales, zeroPoints }) => {
      bytes.set(matrix.values, values)
      bytes.set(asBytes(matrix.scales), scales)
      if (matrix.zeroPoints) bytes.set(matrix.zeroPoints, zeroPoints)
      const sizes = [matrix.bits, matrix.blockSize, matrix.rows, matrix.columns]
      writeNumbers(memory, address, [values, scales, zeroPoints, ...sizes])
      const firstColumn = columns
      columns += matrix.columns
      return { address, firstColumn }
    })
    this.#rows = matrices[0]?.rows ?? 0
    this.#columns = columns
    this.#free = layout.end
  }

  /**
   * Returns rows as rotated integers, row by row, and the scale of each group of each column. `from`
   * is the first row of a group, and `to` the row after the last of one.
   */
  toInt8Groups(
    from: number,
    to: number,
  ): { integers: Int8Array<ArrayBuffer>; scales: Float32Array<ArrayBuffer> } {
    const groupSize = groupSizeOf(this.#rows)
    const rotationSize = rotationSizeOf(groupSize)
    const [elements, scales] = this.#convert(from, to, 1, (matrix, target) =>
      this.#exports.to_int8_groups(matrix, target, rotationSize),
    )
    return { integers: new Int8Array(elements), scales: new Float32Array(scales) }
  }

  /** Returns rows as floats, row by row. `from` and `to` as above. */
  toFloatRows(from: number, to: number): Float32Array<ArrayBuffer> {
    const [elements] = this.#convert(from, to, 4, this.#exports.to_float_rows)
    return new Float32Array(elements)
  }

  /** Calls back for each matrix, and returns the elements and the scales of all. */
  #convert(
    from: number,
    to: number,
    elementBytes: number,
    convert: (matrix: number, target: number) => void,
  ): [elements: ArrayBuffer, scales: ArrayBuffer] {
    const { memory } = this.#exports
    const groupSize = groupSizeOf(this.#rows)
    const count = (to - from) * this.#columns
    const layout = new Layout(this.#free)
    const target = layout.place(ARGUMENT_BYTES)
    const group = layout.place(groupSize * VECTOR_BYTES)
    const elements = layout.place(count * elementBytes)
    const elementsEnd = layout.end
    const scales = layout.place((count / groupSize) * 4)
    growTo(memory, layout.end)
    for (const { address, firstColumn } of this.#parts) {
      const first = [elements + firstColumn * elementBytes, this.#columns, scales + firstColumn * 4]
      writeNumbers(memory, target, [...first, from, to, groupSize, group])
      convert(address, target)
    }
    const { buffer } = memory
    return [buffer.slice(elements, elementsEnd), buffer.slice(scales, layout.end)]
  }
}

/** Places in memory, one after the other. */
class Layout {
  end: number

  constructor(start: number) {
    this.end = start
  }

  /** Returns the address of that many bytes, which a vector can be read from. */
  place(bytes: number): number {
    const address = Math.ceil(this.end / VECTOR_BYTES) * VECTOR_BYTES
    this.end = address + bytes
    return address
  }
}

function growTo(memory: WebAssembly.Memory, bytes: number): void {
  const missing = Math.ceil((bytes - memory.buffer.byteLength) / PAGE_BYTES)
  if (missing > 0) memory.grow(missing)
}

const writeNumbers = ({ buffer }: WebAssembly.Memory, address: number, numbers: number[]): void =>
  new Uint32Array(buffer, address, numbers.length).set(numbers)

const asBytes = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)
