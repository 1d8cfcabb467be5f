/** Cuts sound into the windows that a model takes. */
import type { AudioLayout } from '../catalog/schema.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { Sound } from './audio.ts'
import { concatenate, resampleSound, type SoundTail } from './resample-sound.ts'

/** Part of the earlier sound that the next call of a session needs. It can be posted. */
export interface SoundState {
  /** Samples at the model's rate: the context, and those that fill no window yet. */
  rest: Float32Array
  tail: SoundTail | null
}

/** Maximum number of windows of one call: more than an hour of windows of 32 ms. */
const MAX_WINDOWS = 2 ** 17

/** Windows of one call, and what the next call needs. */
export interface SoundWindows {
  windows: Float32Array[]
  state: SoundState
}

/**
 * Cuts the sound, which continues that of the state. `window` is the number of new samples of each
 * window; `null` for all of them. `isLast` fills the last window with silence.
 */
export function cutWindows(
  { data, sampleRate }: Sound,
  { rate, context = 0 }: AudioLayout,
  window: number | null,
  previous: SoundState | null,
  isLast: boolean,
  path: string,
): SoundWindows {
  const isSameRate = previous?.tail?.sampleRate === sampleRate
  const { data: samples, tail } =
    sampleRate === rate
      ? { data, tail: null }
      : resampleSound(data, sampleRate, rate, isSameRate ? previous.tail : null, isLast)
  const rest = previous?.rest ?? new Float32Array(context)
  const buffer = concatenate([rest, samples])
  const length = window ?? Math.max(1, buffer.length - context)
  const windowCount = (buffer.length - context) / length
  const count = isLast ? Math.ceil(windowCount) : Math.floor(windowCount)
  if (count > MAX_WINDOWS)
    throwInvalidInput(
      path,
      `has ${count} windows, but the maximum is ${MAX_WINDOWS}. Send it in parts.`,
    )
  const windows = Array.from({ length: count }, (_, index) => {
    const filled = new Float32Array(context + length)
    filled.set(buffer.subarray(index * length, (index + 1) * length + context))
    return filled
  })
  return { windows, state: { rest: buffer.slice(count * length), tail } }
}
