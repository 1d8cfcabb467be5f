/** Keeps rows that the encoder made, within a bound. */

/** Memory of rows in bytes: 64 images of SmolVLM with 16 tiles, or 400 with one. */
const MAX_ROW_BYTES = 64 * 2 ** 20

/** Rows of runs of the encoder, by the number of the first row of each. */
export interface RowCache {
  get(firstRow: number): Float32Array | undefined
  set(firstRow: number, block: Float32Array): void
  clear(): void
}

/** Creates an empty cache. The least recently used rows go first. */
export function createRowCache(): RowCache {
  const blocks = new Map<number, Float32Array>()
  let bytes = 0
  return {
    get(firstRow: number): Float32Array | undefined {
      const block = blocks.get(firstRow)
      if (!block) return undefined
      blocks.delete(firstRow)
      blocks.set(firstRow, block)
      return block
    },
    set(firstRow: number, block: Float32Array): void {
      blocks.set(firstRow, block)
      bytes += block.byteLength
      for (const [oldest, { byteLength }] of blocks) {
        if (bytes <= MAX_ROW_BYTES || oldest === firstRow) break
        blocks.delete(oldest)
        bytes -= byteLength
      }
    },
    clear(): void {
      blocks.clear()
      bytes = 0
    },
  }
}
