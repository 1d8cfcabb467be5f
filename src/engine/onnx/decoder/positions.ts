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
  /** Number of its rows. */
  count: number
  /** Number of its rows less the number of positions that it takes. */
  saved: number
}

/** Positions of one sequence. */
export class Positions {
  readonly #locate: LocateImage
  readonly #first: number
  #images: readonly Span[]

  /** `first` is the position of the first token. */
  constructor(locate: LocateImage, first: number, images: readonly Span[] = []) {
    this.#locate = locate
    this.#first = first
    this.#images = images
  }

  /**
   * Writes the positions of tokens after `pastLength` earlier ones: all of the first axis into
   * `axes[0]`, and so on. Forgets images that were cut off the sequence.
   */
  write(tokens: readonly number[], pastLength: number, axes: readonly BigInt64Array[]): void {
    const images = this.#imagesBefore(pastLength)
    this.#images = images
    let at = this.#first + pastLength - savedBefore(images, pastLength)
    for (const [offset, token] of tokens.entries()) {
      const image = isImageRow(token) ? this.#locate(token) : undefined
      if (!image) {
        for (const axis of axes) axis[offset] = BigInt(at)
        at += 1
        continue
      }
      const { columns, rows } = image.grid
      const row = token - image.firstRow
      const start = pastLength + offset - row
      const begin = this.#first + start - savedBefore(images, start)
      const places = [0, Math.floor(row / columns), row % columns]
      axes.forEach((axis, number) => (axis[offset] = BigInt(begin + (places[number] ?? 0))))
      const count = columns * rows
      const taken = Math.max(columns, rows)
      if (images.at(-1)?.start !== start) images.push({ start, count, saved: count - taken })
      at = begin + taken
    }
  }

  /** Returns the positions of a sequence with the same first `length` tokens. */
  fork(length: number): Positions {
    return new Positions(this.#locate, this.#first, this.#imagesBefore(length))
  }

  #imagesBefore(length: number): Span[] {
    return this.#images.filter(({ start }) => start < length)
  }
}

/** Returns how many positions the images save that end at that index or before it. */
const savedBefore = (images: readonly Span[], index: number): number =>
  images.reduce((sum, { start, count, saved }) => (start + count <= index ? sum + saved : sum), 0)
