/** Computes spectrograms as Kaldi does: the logarithm of mel energies, which models of sound take. */
import type { AudioLayout } from '../catalog/schema.ts'

type Layout = NonNullable<AudioLayout['fbank']>

/** Length of a frame and distance between frames, in seconds. */
const FRAME_SECONDS = 0.025
const HOP_SECONDS = 0.01
/** Share of the sample before that is subtracted from each sample. */
const PREEMPHASIS = 0.97
/** Lowest frequency of an energy, in Hz. */
const MIN_FREQUENCY = 20
/** Least energy: the distance of 1 to the next 32-bit float. */
const MIN_ENERGY = 2 ** -23

/** Returns the energies of the frames, of which there are always `frames`. */
export function computeFbank(
  samples: Float32Array,
  rate: number,
  { bins, frames, mean = 0, std = 1 }: Layout,
): Float32Array {
  const length = Math.round(rate * FRAME_SECONDS)
  const hop = Math.round(rate * HOP_SECONDS)
  const size = 2 ** Math.ceil(Math.log2(length))
  const window = Float64Array.from(
    { length },
    (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / (length - 1)),
  )
  const filters = createFilters(bins, size, rate)
  const fourier = new Fourier(size)
  const count = Math.min(frames, Math.max(0, 1 + Math.floor((samples.length - length) / hop)))
  const energies = new Float32Array(frames * bins).fill(-mean / std)
  for (let frame = 0; frame < count; frame++) {
    const own = samples.subarray(frame * hop, frame * hop + length)
    const power = fourier.toPower(emphasize(own, window))
    for (const [bin, { first, weights }] of filters.entries()) {
      const energy = weights.reduce((sum, weight, at) => sum + weight * (power[first + at] ?? 0), 0)
      energies[frame * bins + bin] = (Math.log(Math.max(MIN_ENERGY, energy)) - mean) / std
    }
  }
  return energies
}

/** Returns the samples of a frame without their mean, with raised high frequencies, in the window. */
function emphasize(samples: Float32Array, window: Float64Array): Float64Array {
  const mean = samples.reduce((sum, sample) => sum + sample, 0) / samples.length
  return window.map((weight, at) => {
    const sample = (samples[at] ?? 0) - mean
    const before = at === 0 ? sample : (samples[at - 1] ?? 0) - mean
    return (sample - PREEMPHASIS * before) * weight
  })
}

/** Weights of the frequencies of an energy, from the first one that is not 0. */
interface Filter {
  first: number
  weights: Float64Array
}

const toMel = (frequency: number): number => 1127 * Math.log(1 + frequency / 700)

/** Returns triangles on the mel scale, each of which ends at the middle of the next. */
function createFilters(bins: number, size: number, rate: number): Filter[] {
  const low = toMel(MIN_FREQUENCY)
  const step = (toMel(Math.floor(rate / 2)) - low) / (bins + 1)
  const mels = Float64Array.from({ length: size / 2 + 1 }, (_, at) => toMel((at * rate) / size))
  return Array.from({ length: bins }, (_, bin) => {
    const middle = low + (bin + 1) * step
    const all = mels.map((mel) => Math.max(0, 1 - Math.abs(mel - middle) / step))
    const first = Math.max(
      0,
      all.findIndex((weight) => weight > 0),
    )
    return { first, weights: all.slice(first, all.findLastIndex((weight) => weight > 0) + 1) }
  })
}

/** Fast Fourier transform of a power of two of real numbers. */
class Fourier {
  readonly #size: number
  readonly #real: Float64Array
  readonly #imaginary: Float64Array
  readonly #cosines: Float64Array
  readonly #sines: Float64Array

  constructor(size: number) {
    this.#size = size
    this.#real = new Float64Array(size)
    this.#imaginary = new Float64Array(size)
    const angles = Float64Array.from({ length: size / 2 }, (_, at) => (-2 * Math.PI * at) / size)
    this.#cosines = angles.map(Math.cos)
    this.#sines = angles.map(Math.sin)
  }

  /** Returns the power of each frequency, from 0 to half the rate. Missing samples are 0. */
  toPower(samples: Float64Array): Float64Array {
    const [real, imaginary, size] = [this.#real.fill(0), this.#imaginary.fill(0), this.#size]
    const bits = Math.log2(size)
    for (const [at, sample] of samples.entries()) real[reverseBits(at, bits)] = sample
    for (let half = 1; half < size; half *= 2) {
      for (let at = 0; at < size; at++) {
        if ((at & half) !== 0) continue
        const other = at + half
        const turn = (at % half) * (size / half / 2)
        const [cosine, sine] = [this.#cosines[turn] ?? 0, this.#sines[turn] ?? 0]
        const [x, y] = [real[other] ?? 0, imaginary[other] ?? 0]
        const [turnedX, turnedY] = [x * cosine - y * sine, x * sine + y * cosine]
        real[other] = (real[at] ?? 0) - turnedX
        imaginary[other] = (imaginary[at] ?? 0) - turnedY
        real[at] = (real[at] ?? 0) + turnedX
        imaginary[at] = (imaginary[at] ?? 0) + turnedY
      }
    }
    return real.slice(0, size / 2 + 1).map((x, at) => x * x + (imaginary[at] ?? 0) ** 2)
  }
}

function reverseBits(value: number, bits: number): number {
  let reversed = 0
  for (let bit = 0; bit < bits; bit++) reversed |= ((value >> bit) & 1) << (bits - 1 - bit)
  return reversed
}
