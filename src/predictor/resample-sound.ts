/** Converts sound to another number of samples per second, also in pieces of a stream. */

/** Part of the earlier pieces that the next one of a stream needs. It can be posted and stored. */
export interface SoundTail {
  /** Last samples of the pieces before, at the rate of the source. */
  samples: Float32Array
  /** Position of the next sample of the result, in samples of the source from the tail's start. */
  position: number
  /** Samples per second of the source. */
  sampleRate: number
}

/** Zero crossings of the filter on each side. More make it steeper. */
const CROSSINGS = 16

/** Share of the lower of both half rates that the filter lets pass. */
const ROLL_OFF = 0.94

/** Steps of the table of filter values between two zero crossings. */
const TABLE_STEPS = 512

/** Values of a sinc with a Hann window, from its center to its end. */
const FILTER = Float64Array.from({ length: CROSSINGS * TABLE_STEPS + 1 }, (_, index) => {
  const x = index / TABLE_STEPS
  const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)
  return sinc * Math.cos((Math.PI * x) / (2 * CROSSINGS)) ** 2
})

/** Reach of the filter to each side, in samples of the source. */
function getReach(sampleRate: number, rate: number): number {
  return Math.ceil((CROSSINGS * Math.max(1, sampleRate / rate)) / ROLL_OFF)
}

/**
 * Returns the samples at `rate`, and the tail for the next piece. The result is late by the reach of
 * the filter, about 1 ms at 16 kHz, until `isLast` ends the stream with silence.
 */
export function resampleSound(
  data: Float32Array,
  sampleRate: number,
  rate: number,
  previous: SoundTail | null,
  isLast: boolean,
): { data: Float32Array; tail: SoundTail } {
  const reach = getReach(sampleRate, rate)
  const tail = previous ?? { samples: new Float32Array(reach), position: reach, sampleRate }
  const silence = new Float32Array(isLast ? reach : 0)
  const source = concatenate([tail.samples, data, silence])
  const step = sampleRate / rate
  const count = Math.max(0, Math.ceil((source.length - reach - tail.position) / step))
  const resampled = new Float32Array(count)
  for (let index = 0; index < count; index++)
    resampled[index] = filterAt(source, tail.position + index * step, step, reach)
  const end = tail.position + count * step
  const kept = Math.max(0, Math.floor(end) - reach)
  const next = { samples: source.slice(kept), position: end - kept, sampleRate }
  return { data: resampled, tail: next }
}

function filterAt(source: Float32Array, position: number, step: number, reach: number): number {
  const density = ROLL_OFF / Math.max(1, step)
  const from = Math.max(0, Math.ceil(position - reach))
  const to = Math.min(source.length - 1, Math.floor(position + reach))
  let sum = 0
  for (let at = from; at <= to; at++) {
    const x = Math.abs(at - position) * density * TABLE_STEPS
    const index = Math.floor(x)
    if (index >= CROSSINGS * TABLE_STEPS) continue
    const [low, high] = [FILTER[index] as number, FILTER[index + 1] as number]
    sum += (source[at] as number) * (low + (high - low) * (x - index))
  }
  return sum * density
}

/** Returns the pieces as one. */
export function concatenate(pieces: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
