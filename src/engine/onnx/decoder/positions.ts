/**
 * Positions of the tokens of a sequence on three axes, for decoders that know the place of each row
 * of an image: a frame, a row and a column. Text has the same position on all of them. After an
 * image, it goes on behind the largest position, so that an image takes fewer positions than rows.
 */
import { isImageRow, type ImageGrid } from '../../images.ts'

/** Number of axes. */
export const AXES = 3

/** An image among all those of a model: its places, and the number of its first row. */
interface LocatedImage {
  grid: ImageGrid
  firstRow: number
}

/** Function that returns the image of a row, or `undefined` if its rows are placed like tokens. */
export type LocateImage = (row: number) => LocatedImage | undefined

/** An image in a sequence. */
interface Span {
  /** Index of its first row. */
  start: number
  /** Number of its rows less the number of positions that it takes. */
  saved: number
  /** Number of its rows. */
  count: number
}

/** Positions of one sequence. */
export interface Positions {
  /**
   * Writes the positions of tokens after `pastLength` earlier ones: all of the first axis into
   * `axes[0]`, and so on. Forgets images that were cut off the sequence.
   */
  write(tokens: readonly number[], pastLength: number, axes: readonly BigInt64Array[]): void
  /** Returns the positions of a sequence with the same first `length` tokens. */
  fork(length: number): Positions
}

/** Creates the positions of an empty sequence. `first` is the position of its first token. */
export function createPositions(
  locate: LocateImage,
  first: number,
  spans: readonly Span[] = [],
): Positions {
  let images = [...spans]

  const find = (row: number, index: number): { span: Span; image: LocatedImage } | undefined => {
    const image = locate(row)
    if (!image) return undefined
    const start = index - (row - image.firstRow)
    const { columns, rows } = image.grid
    const count = columns * rows
    return { image, span: { start, count, saved: count - Math.max(columns, rows) } }
  }

  return {
    write(tokens, pastLength, axes) {
      images = images.filter(({ start }) => start < pastLength)
      let at = pastLength + first - sumOf(images, pastLength)
      for (const [offset, token] of tokens.entries()) {
        const index = pastLength + offset
        const found = isImageRow(token) ? find(token, index) : undefined
        if (!found) {
          for (const axis of axes) axis[offset] = BigInt(at)
          at += 1
          continue
        }
        const { image, span } = found
        const { columns } = image.grid
        const row = token - image.firstRow
        const begin = span.start + first - sumOf(images, span.start)
        const places = [0, Math.floor(row / columns), row % columns]
        axes.forEach((axis, number) => (axis[offset] = BigInt(begin + (places[number] ?? 0))))
        if (images.at(-1)?.start !== span.start) images.push(span)
        at = begin + span.count - span.saved
      }
    },
    fork: (length) =>
      createPositions(
        locate,
        first,
        images.filter(({ start }) => start < length),
      ),
  }
}

/** Returns how many positions the images save that end at that index or before it. */
const sumOf = (images: readonly Span[], index: number): number =>
  images.reduce((sum, { start, count, saved }) => (start + count <= index ? sum + saved : sum), 0)
