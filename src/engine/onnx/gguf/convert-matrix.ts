/** Converts matrices of a GGUF file piece by piece, as the file is read. */
import { loadingCancelled } from '../../failure.ts'
import { BLOCK_LAYOUTS, type BlockType, decodeBlocks, dequantize } from '../../gguf/blocks.ts'
import type { ByteSource, TensorInfo } from '../../gguf/header.ts'
import { TENSOR_TYPES } from '../../gguf/types.ts'

/** Rows of a tensor that become a matrix. */
export interface MatrixPart {
  tensor: TensorInfo
  /** First row. */
  from: number
  /** Number of rows. */
  count: number
  /** Length of a row. */
  columns: number
  /**
   * Number of neighboring rows that are one head whose halves alternate in the file, row by row; in
   * the result, the first half comes first. Absent: the rows stay in their order.
   */
  interleaved?: number | undefined
}

/** Reader of a GGUF file whose reads end with the signal. */
export interface Reading {
  source: ByteSource
  signal: AbortSignal
}

/** Bytes of a file that are read and converted at once. */
const PIECE_BYTES = 2 ** 20

/** Yields the rows in pieces, in the order of the result. */
async function* readRows(
  { source, signal }: Reading,
  { tensor, from, count, columns, interleaved }: MatrixPart,
): AsyncGenerator<{ bytes: Uint8Array; rows: number }> {
  const block = TENSOR_TYPES[tensor.type]
  const rowBytes = (columns / block.values) * block.bytes
  const unit = interleaved ?? 1
  const step = Math.max(1, Math.floor(PIECE_BYTES / (rowBytes * unit))) * unit
  for (let row = 0; row < count; row += step) {
    const rows = Math.min(step, count - row)
    const start = tensor.offset + (from + row) * rowBytes
    const bytes = await source.read(start, start + rows * rowBytes)
    if (signal.aborted) throw loadingCancelled()
    yield { bytes: interleaved ? separateHalves(bytes, rowBytes, interleaved) : bytes, rows }
  }
}

/** Returns the rows of heads with the first half of each head first. */
function separateHalves(bytes: Uint8Array, rowBytes: number, headRows: number): Uint8Array {
  const ordered = new Uint8Array(bytes.length)
  const rows = bytes.length / rowBytes
  for (let row = 0; row < rows; row += 1) {
    const inHead = row % headRows
    const target = row - inHead + (inHead >> 1) + (inHead & 1) * (headRows / 2)
    ordered.set(bytes.subarray(row * rowBytes, (row + 1) * rowBytes), target * rowBytes)
  }
  return ordered
}

/** Yields the rows as 32-bit floats. */
export async function* readFloats(
  reading: Reading,
  part: MatrixPart,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const { bytes, rows } of readRows(reading, part))
    yield new Uint8Array(dequantize(part.tensor.type, bytes, rows * part.columns).buffer)
}

/** Order of the offsets of a matrix's blocks: those of a row together, or those of the same place in all rows. */
export type OffsetOrder = 'by row' | 'by block'

/**
 * Yields the bytes of a matrix for `MatMulNBits`: the integers of all rows, then a scale for each
 * block, and an offset for each block in each of the orders, which only a type with offsets has.
 */
export async function* readBlocks(
  reading: Reading,
  part: MatrixPart,
  type: BlockType,
  orders: readonly OffsetOrder[],
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { bits, blockSize, zero } = BLOCK_LAYOUTS[type]
  const hasOffsets = orders.length > 0
  const blocks = part.columns / blockSize
  const scales = new Float32Array(part.count * blocks)
  const offsets = new Float32Array(hasOffsets ? scales.length : 0)
  let row = 0
  for await (const { bytes, rows } of readRows(reading, part)) {
    const decoded = decodeBlocks(type, bytes, rows * part.columns)
    scales.set(decoded.scales, row * blocks)
    if (hasOffsets) offsets.set(decoded.offsets, row * blocks)
    row += rows
    yield decoded.integers
  }
  yield new Uint8Array(scales.buffer)
  if (!hasOffsets) return
  // For `MatMulNBits`, half the range of the integers means 0, so the offsets move as far.
  const moved = 2 ** (bits - 1) - zero
  for (let block = 0; block < offsets.length; block += 1)
    offsets[block] = (offsets[block] as number) + moved * (scales[block] as number)
  for (const order of orders)
    yield new Uint8Array((order === 'by row' ? offsets : transpose(offsets, blocks)).buffer)
}

/** Returns the numbers of a matrix with rows of that length, column by column. */
function transpose(numbers: Float32Array, columns: number): Float32Array<ArrayBuffer> {
  const rows = numbers.length / columns
  const transposed = new Float32Array(numbers.length)
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1)
      transposed[column * rows + row] = numbers[row * columns + column] as number
  }
  return transposed
}
