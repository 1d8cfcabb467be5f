/** Turns weights that are quantized in blocks into 8-bit integers with one scale per column. */

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

/** Greatest magnitude of the new integers. The value -128 is not used. */
const MAX_INT8 = 127

/** Returns the number of blocks in a column. */
export const countBlocks = ({ rows, blockSize }: Pick<BlockQuantized, 'rows' | 'blockSize'>) =>
  Math.ceil(rows / blockSize)

/** Returns the new scale of each column: its greatest magnitude becomes 127. */
export function columnScales(matrix: BlockQuantized): Float32Array<ArrayBuffer> {
  const { columns, rows, blockSize } = matrix
  const blocks = countBlocks(matrix)
  const values = new Int16Array(blockSize)
  const newScales = new Float32Array(columns)
  for (let column = 0; column < columns; column += 1) {
    let greatest = 0
    for (let block = 0; block < blocks; block += 1) {
      readBlock(matrix, column, block, values)
      const count = Math.min(blockSize, rows - block * blockSize)
      let distance = 0
      for (let at = 0; at < count; at += 1) {
        const value = values[at] as number
        if (value > distance) distance = value
        else if (-value > distance) distance = -value
      }
      const magnitude = distance * Math.abs(matrix.scales[column * blocks + block] as number)
      if (magnitude > greatest) greatest = magnitude
    }
    newScales[column] = greatest / MAX_INT8
  }
  return newScales
}

/** Number of columns that are converted together: neighbors in a row share a line of CPU cache. */
const TILE_COLUMNS = 64

/**
 * Returns rows as integers, row by row. `from` is the first row, a multiple of the block size, and
 * `to` the row after the last.
 */
export function toInt8Rows(
  matrix: BlockQuantized,
  newScales: Float32Array,
  from: number,
  to: number,
): Int8Array<ArrayBuffer> {
  const { columns, blockSize, scales } = matrix
  const blocks = countBlocks(matrix)
  const values = new Int16Array(blockSize)
  const integers = new Int8Array((to - from) * columns)
  for (let tile = 0; tile < columns; tile += TILE_COLUMNS) {
    const tileEnd = Math.min(tile + TILE_COLUMNS, columns)
    for (let row = from; row < to; row += blockSize) {
      const block = row / blockSize
      const count = Math.min(blockSize, to - row)
      for (let column = tile; column < tileEnd; column += 1) {
        readBlock(matrix, column, block, values)
        const newScale = newScales[column] as number
        const factor = newScale > 0 ? (scales[column * blocks + block] as number) / newScale : 0
        let target = (row - from) * columns + column
        for (let at = 0; at < count; at += 1) {
          // The offset makes the number positive, so that cutting its fraction off rounds it.
          integers[target] = (((values[at] as number) * factor + 128.5) | 0) - 128
          target += columns
        }
      }
    }
  }
  return integers
}

/** Reads the values of a block, less its zero point. */
function readBlock(
  { rows, blockSize, bits, values, zeroPoints }: BlockQuantized,
  column: number,
  block: number,
  into: Int16Array,
): void {
  const blocks = Math.ceil(rows / blockSize)
  const index = column * blocks + block
  if (bits === 8) {
    const zeroPoint = zeroPoints ? (zeroPoints[index] as number) : 128
    for (let at = 0; at < blockSize; at += 1) {
      into[at] = (values[index * blockSize + at] as number) - zeroPoint
    }
    return
  }
  let zeroPoint = 8
  if (zeroPoints) {
    const pair = zeroPoints[column * Math.ceil(blocks / 2) + (block >> 1)] as number
    zeroPoint = block % 2 === 0 ? pair & 15 : pair >> 4
  }
  const first = index * (blockSize / 2)
  for (let at = 0; at < blockSize; at += 2) {
    const pair = values[first + at / 2] as number
    into[at] = (pair & 15) - zeroPoint
    into[at + 1] = (pair >> 4) - zeroPoint
  }
}
