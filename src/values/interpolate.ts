/** Scales planes of numbers to the same values as `interpolate` of PyTorch without `align_corners`. */

/** Filters, which do not widen when a plane shrinks. */
const FILTERS = {
  bilinear: { count: 2, before: 0, weigh: (x: number) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: { count: 4, before: 1, weigh: (x: number) => weighCubic(Math.abs(x)) },
} as const

export type Interpolation = keyof typeof FILTERS

/** Parameter of the cubic convolution, which PyTorch sets to -0.75. */
const CUBIC = -0.75

function weighCubic(x: number): number {
  if (x <= 1) return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * CUBIC : 0
}

/** Width and height. */
type Extent = readonly [width: number, height: number]

/** Places in the source that each place of the target is made of, `count` for each, and their weights. */
interface Taps {
  places: Int32Array
  weights: Float64Array
  count: number
}

/** Scaler of planes of one size to another, row by row. */
export class PlaneScaler {
  readonly #columns: Taps
  readonly #rows: Taps
  /** Row of the source's width that is made of rows of the source. */
  readonly #blended: Float64Array

  constructor(by: Interpolation, from: Extent, to: Extent) {
    this.#columns = createTaps(by, from[0], to[0])
    this.#rows = createTaps(by, from[1], to[1])
    this.#blended = new Float64Array(from[0])
  }

  /** Writes a row of the scaled plane to `target`, which has its width. */
  writeRow(plane: Float32Array, row: number, target: Float32Array): void {
    const blended = this.#blended.fill(0)
    const { length: width } = blended
    const { count } = this.#rows
    for (let tap = row * count; tap < (row + 1) * count; tap++) {
      const weight = this.#rows.weights[tap] ?? 0
      const start = (this.#rows.places[tap] ?? 0) * width
      for (let x = 0; x < width; x++)
        blended[x] = (blended[x] ?? 0) + (plane[start + x] ?? 0) * weight
    }
    const { places, weights, count: across } = this.#columns
    for (let x = 0, tap = 0; x < target.length; x++) {
      let sum = 0
      for (const end = tap + across; tap < end; tap++)
        sum += (blended[places[tap] ?? 0] ?? 0) * (weights[tap] ?? 0)
      target[x] = sum
    }
  }
}

function createTaps(by: Interpolation, from: number, to: number): Taps {
  const { count, before, weigh } = FILTERS[by]
  const places = new Int32Array(to * count)
  const weights = new Float64Array(to * count)
  for (let target = 0; target < to; target++) {
    const exact = ((target + 0.5) * from) / to - 0.5
    const center = by === 'bilinear' ? Math.max(0, exact) : exact
    for (let tap = 0; tap < count; tap++) {
      const place = Math.floor(center) - before + tap
      places[target * count + tap] = Math.min(from - 1, Math.max(0, place))
      weights[target * count + tap] = weigh(center - place)
    }
  }
  return { places, weights, count }
}
