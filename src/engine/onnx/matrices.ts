/** Numbers of matrices: reads values that are quantized in blocks, and writes them in other forms. */

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
  const matrix = new Float32Array(size * size)
  for (let row = 0; row < size; row += 1) {
    const values = new Float64Array(size)
    values[row] = 1
    rotate(values, size)
    matrix.set(values, row * size)
  }
  return matrix
}

/** Rotates each block of that many values, a power of two, in place. */
function rotate(values: Float64Array, size: number): void {
  const quarter = values.length / 4
  let width = 1
  // A step of four values, each `width` apart, needs half the memory accesses of two steps of two.
  for (; width * 4 <= size; width *= 4)
    for (let step = 0; step < quarter; step += 1) {
      const at = step + 3 * (step - (step & (width - 1)))
      const first = values[at] as number
      const second = values[at + width] as number
      const third = values[at + 2 * width] as number
      const fourth = values[at + 3 * width] as number
      const left = (first + second) / 2
      const right = (third + fourth) / 2
      const leftDifference = (first - second) / 2
      const rightDifference = (third - fourth) / 2
      values[at] = left + right
      values[at + width] = leftDifference + rightDifference
      values[at + 2 * width] = left - right
      values[at + 3 * width] = leftDifference - rightDifference
    }
  if (width === size) return
  for (let step = 0; step < values.length / 2; step += 1) {
    const at = 2 * step - (step & (width - 1))
    const left = (values[at] as number) * Math.SQRT1_2
    const right = (values[at + width] as number) * Math.SQRT1_2
    values[at] = left + right
    values[at + width] = left - right
  }
}

/** Greatest magnitude of the new integers. The value -128 is not used. */
const MAX_INT8 = 127

/** Number of columns that are converted together: neighbors in a row share a line of CPU cache. */
const TILE_COLUMNS = 64

/**
 * Returns rows of matrices side by side as rotated integers, row by row, and the scale of each group
 * of each column. `from` is the first row of a group, and `to` the row after the last of one.
 */
export function toInt8Groups(
  matrices: readonly BlockQuantized[],
  from: number,
  to: number,
): { integers: Int8Array<ArrayBuffer>; scales: Float32Array<ArrayBuffer> } {
  const columns = countColumns(matrices)
  const groupSize = groupSizeOf(matrices[0]?.rows ?? 0)
  const rotationSize = rotationSizeOf(groupSize)
  const integers = new Int8Array((to - from) * columns)
  const scales = new Float32Array(((to - from) / groupSize) * columns)
  forEachPiece(matrices, from, to, groupSize, (values, row, column) => {
    rotate(values, rotationSize)
    let greatest = 0
    for (let at = 0; at < groupSize; at += 1) {
      const magnitude = Math.abs(values[at] as number)
      if (magnitude > greatest) greatest = magnitude
    }
    scales[((row - from) / groupSize) * columns + column] = greatest / MAX_INT8
    const factor = greatest > 0 ? MAX_INT8 / greatest : 0
    let target = (row - from) * columns + column
    for (let at = 0; at < groupSize; at += 1) {
      // The offset makes the number positive, so that cutting its fraction off rounds it.
      integers[target] = (((values[at] as number) * factor + 128.5) | 0) - 128
      target += columns
    }
  })
  return { integers, scales }
}

/** Returns rows of matrices side by side as floats, row by row. `from` and `to` as above. */
export function toFloatRows(
  matrices: readonly BlockQuantized[],
  from: number,
  to: number,
): Float32Array<ArrayBuffer> {
  const columns = countColumns(matrices)
  const floats = new Float32Array((to - from) * columns)
  const pieceRows = groupSizeOf(matrices[0]?.rows ?? 0)
  forEachPiece(matrices, from, to, pieceRows, (values, row, column) => {
    let target = (row - from) * columns + column
    for (let at = 0; at < pieceRows; at += 1) {
      floats[target] = values[at] as number
      target += columns
    }
  })
  return floats
}

const countColumns = (matrices: readonly BlockQuantized[]): number =>
  matrices.reduce((sum, { columns }) => sum + columns, 0)

/**
 * Calls back with the values of each piece of a column: `pieceRows` rows from `row` on, of the
 * column's place among all matrices. The array is used again for the next piece.
 */
function forEachPiece(
  matrices: readonly BlockQuantized[],
  from: number,
  to: number,
  pieceRows: number,
  use: (values: Float64Array, row: number, column: number) => void,
): void {
  // JavaScript calculates in 64 bits, so an array of 64 bits needs no conversions.
  const values = new Float64Array(pieceRows)
  let firstColumn = 0
  for (const matrix of matrices) {
    for (let tile = 0; tile < matrix.columns; tile += TILE_COLUMNS) {
      const tileEnd = Math.min(tile + TILE_COLUMNS, matrix.columns)
      for (let row = from; row < to; row += pieceRows)
        for (let column = tile; column < tileEnd; column += 1) {
          readColumn(matrix, column, row, values)
          use(values, row, firstColumn + column)
        }
    }
    firstColumn += matrix.columns
  }
}

/** Reads values of a column from that row on. */
function readColumn(
  { rows, blockSize, bits, values, scales, zeroPoints }: BlockQuantized,
  column: number,
  from: number,
  into: Float64Array,
): void {
  const blocks = Math.ceil(rows / blockSize)
  const to = from + into.length
  for (let row = from; row < to;) {
    const block = Math.floor(row / blockSize)
    const index = column * blocks + block
    const end = Math.min((block + 1) * blockSize, to)
    const scale = scales[index] as number
    const first = (index - block) * blockSize
    if (bits === 8) {
      const zeroPoint = zeroPoints ? (zeroPoints[index] as number) : 128
      for (; row < end; row += 1)
        into[row - from] = ((values[first + row] as number) - zeroPoint) * scale
      continue
    }
    const zeroPoint = zeroPoints ? halfByte(zeroPoints, column, blocks, block) : 8
    if (row % 2 === 1) {
      into[row - from] = (((values[(first + row) >> 1] as number) >> 4) - zeroPoint) * scale
      row += 1
    }
    for (; row < end; row += 2) {
      const pair = values[(first + row) >> 1] as number
      into[row - from] = ((pair & 15) - zeroPoint) * scale
      // Behind the end of the array, nothing is written.
      into[row - from + 1] = ((pair >> 4) - zeroPoint) * scale
    }
  }
}

/** Returns the zero point of a block of 4-bit values. */
function halfByte(zeroPoints: Uint8Array, column: number, blocks: number, block: number): number {
  const pair = zeroPoints[column * Math.ceil(blocks / 2) + (block >> 1)] as number
  return block % 2 === 0 ? pair & 15 : pair >> 4
}
