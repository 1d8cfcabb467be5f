/** Computes the log-mel spectrogram of sound, as the feature extractor of Whisper does. */
import type { AudioLayout } from '../../catalog/schema.ts'

type MelLayout = NonNullable<AudioLayout['mel']>

/** Spectrogram with one row of numbers for each band. */
export interface LogMel {
  data: Float32Array
  bands: number
  /** Length of each row. */
  frames: number
}

/** Least power, which keeps silence from having the logarithm of 0. */
const LEAST_POWER = 1e-10
/** Range below the loudest number of a sound, in powers of ten. Anything lower is raised to it. */
const RANGE = 8

/** Returns the spectrogram of samples at `rate`, with one frame for each `hop` of them. */
export function computeLogMel(samples: Float32Array, rate: number, layout: MelLayout): LogMel {
  const { bands, window: size, hop } = layout
  const frames = Math.floor(samples.length / hop)
  const bins = Math.floor(size / 2) + 1
  const filters = createFilters(bands, bins, rate)
  const weights = Float64Array.from(
    { length: size },
    (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / size),
  )
  const transform = new FourierTransform(size)
  const data = new Float32Array(bands * frames)
  const frame = new Float64Array(size)
  let loudest = -Infinity
  for (let index = 0; index < frames; index++) {
    for (let at = 0; at < size; at++) {
      const sample = samples[reflect(index * hop + at - size / 2, samples.length)] ?? 0
      frame[at] = sample * (weights[at] ?? 0)
    }
    const powers = transform.powersOf(frame, bins)
    for (const [band, { from, values }] of filters.entries()) {
      let power = 0
      for (let at = 0; at < values.length; at++)
        power += (values[at] ?? 0) * (powers[from + at] ?? 0)
      const level = Math.log10(Math.max(LEAST_POWER, power))
      data[band * frames + index] = level
      loudest = Math.max(loudest, level)
    }
  }
  for (let at = 0; at < data.length; at++)
    data[at] = (Math.max(data[at] ?? 0, loudest - RANGE) + 4) / 4
  return { data, bands, frames }
}

/** Returns `count` frames from `start` on, with zeros after the last one. */
export function cutFrames({ data, bands, frames }: LogMel, start: number, count: number): LogMel {
  const cut = new Float32Array(bands * count)
  const end = Math.min(frames, start + count)
  for (let band = 0; band < bands; band++)
    cut.set(data.subarray(band * frames + start, band * frames + end), band * count)
  return { data: cut, bands, frames: count }
}

/** Returns the place of a sample beyond an end of the sound, which is mirrored there. */
function reflect(at: number, length: number): number {
  const mirrored = at < 0 ? -at : at
  return mirrored < length ? mirrored : 2 * (length - 1) - mirrored
}

/** Weights of neighboring bins for one band. */
interface Filter {
  from: number
  values: number[]
}

/** Returns triangles with their corners at equal distances in mel, each of the same area. */
function createFilters(bands: number, bins: number, rate: number): Filter[] {
  const highest = toMel(rate / 2)
  const corners = Array.from({ length: bands + 2 }, (_, at) =>
    fromMel((highest * at) / (bands + 1)),
  )
  return Array.from({ length: bands }, (_, band) => {
    const [low = 0, middle = 0, high = 0] = corners.slice(band, band + 3)
    const all = Array.from({ length: bins }, (__, bin) => {
      const frequency = (bin * rate) / 2 / (bins - 1)
      const rising = (frequency - low) / (middle - low)
      const falling = (high - frequency) / (high - middle)
      return (Math.max(0, Math.min(rising, falling)) * 2) / (high - low)
    })
    const from = Math.max(
      0,
      all.findIndex((value) => value > 0),
    )
    return { from, values: all.slice(from, all.findLastIndex((value) => value > 0) + 1) }
  })
}

// The scale of mel by Slaney: linear to 1,000 Hz, and logarithmic above.
const LINEAR_END_HZ = 1_000
const HZ_PER_MEL = 200 / 3
const LINEAR_END_MEL = LINEAR_END_HZ / HZ_PER_MEL
const MEL_PER_STEP = 27 / Math.log(6.4)

const toMel = (frequency: number): number =>
  frequency < LINEAR_END_HZ
    ? frequency / HZ_PER_MEL
    : LINEAR_END_MEL + Math.log(frequency / LINEAR_END_HZ) * MEL_PER_STEP

const fromMel = (mel: number): number =>
  mel < LINEAR_END_MEL
    ? mel * HZ_PER_MEL
    : LINEAR_END_HZ * Math.exp((mel - LINEAR_END_MEL) / MEL_PER_STEP)

/** Fourier transform of real numbers, by the two factors of their count that are nearest to each other. */
class FourierTransform {
  readonly #rows: number
  readonly #columns: number
  readonly #cos: Float64Array
  readonly #sin: Float64Array

  constructor(size: number) {
    let rows = Math.floor(Math.sqrt(size))
    while (size % rows !== 0) rows -= 1
    this.#rows = rows
    this.#columns = size / rows
    this.#cos = Float64Array.from({ length: size }, (_, at) => Math.cos((2 * Math.PI * at) / size))
    this.#sin = Float64Array.from({ length: size }, (_, at) => Math.sin((2 * Math.PI * at) / size))
  }

  /** Returns the squared magnitudes of the first `bins` frequencies. */
  powersOf(values: Float64Array, bins: number): Float64Array {
    const [rows, columns, size] = [this.#rows, this.#columns, values.length]
    const real = new Float64Array(size)
    const imaginary = new Float64Array(size)
    // The transforms of every `rows`-th number, one for each of the first `rows` numbers.
    for (let row = 0; row < rows; row++)
      for (let frequency = 0; frequency < columns; frequency++) {
        let [sum, other] = [0, 0]
        for (let at = 0; at < columns; at++) {
          const value = values[row + at * rows] ?? 0
          const angle = (frequency * at * rows) % size
          sum += value * (this.#cos[angle] ?? 0)
          other -= value * (this.#sin[angle] ?? 0)
        }
        real[row * columns + frequency] = sum
        imaginary[row * columns + frequency] = other
      }
    const powers = new Float64Array(bins)
    for (let bin = 0; bin < bins; bin++) {
      let [sum, other] = [0, 0]
      for (let row = 0; row < rows; row++) {
        const at = row * columns + (bin % columns)
        const [a, b] = [real[at] ?? 0, imaginary[at] ?? 0]
        const angle = (bin * row) % size
        const [cos, sin] = [this.#cos[angle] ?? 0, this.#sin[angle] ?? 0]
        sum += a * cos + b * sin
        other += b * cos - a * sin
      }
      powers[bin] = sum * sum + other * other
    }
    return powers
  }
}
