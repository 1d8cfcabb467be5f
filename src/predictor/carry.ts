/** Prepares the runs of one call: the windows of its sound, and the states between runs. */
import type { AudioLayout } from '../catalog/schema.ts'
import type { ParameterType, Signature, TensorValue } from '../types/index.ts'
import { ARRAYS, countElements, toReadableData } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isObject } from '../values/objects.ts'
import { parseSound, type Sound } from './audio.ts'
import type { BoundSignature, BoundState } from './bind.ts'
import { type ParsedInput, parseInputs } from './parse-inputs.ts'
import type { RawTensor } from './tensor.ts'

/** State of a session between two calls. It can be posted, and its content is opaque to pages. */
export interface Carried {
  /** Values of the states by the name of their input. */
  tensors: Record<string, TensorValue>
  sound: SoundState | null
}

/** Runs of one call. */
export interface PlannedRuns {
  count: number
  /** `true` if outputs get a first dimension for the runs. */
  isWindowed: boolean
  check(index: number, tensors: Carried['tensors']): Map<string, ParsedInput>
  sound: SoundState | null
}

/** Plans the runs of a call. `carried` is the state of a session; `null` for a call on its own. */
export async function planRuns(
  {
    bound: { sound, states },
    entry: { signature },
  }: { bound: BoundSignature; entry: { signature: Signature } },
  inputs: unknown,
  carried: Carried | null,
): Promise<PlannedRuns> {
  if (!sound || !isObject(inputs) || (inputs[sound.parameter.name] ?? null) === null) {
    const check = (tensors: Carried['tensors']) =>
      parseInputs(
        signature,
        isObject(inputs) ? { ...inputs, ...findStates(states, inputs, tensors) } : inputs,
      )
    const checked = check({})
    return planOneRun(states.length > 0 ? (_, tensors) => check(tensors) : () => checked)
  }
  const { parameter, layout, window } = sound
  const path = `inputs.${parameter.name}`
  const heard = await parseSound(inputs[parameter.name], layout.rate, path)
  const before = carried?.sound ?? null
  const { windows, state } = cutWindows(heard, layout, window, before, !carried, path)
  const fbank = layout.fbank ? (await import('./fbank.ts')).computeFbank : null
  const toTensor = (samples: Float32Array | undefined) =>
    layout.fbank && fbank && samples
      ? {
          data: fbank(samples, layout.rate, layout.fbank),
          shape: [1, layout.fbank.frames, layout.fbank.bins],
        }
      : toSamples(parameter.type, samples, layout)
  const check: PlannedRuns['check'] = (index, tensors) =>
    parseInputs(signature, {
      ...inputs,
      // A state that the caller gives is the one before the first window.
      ...findStates(states, index === 0 ? inputs : {}, tensors),
      [parameter.name]: toTensor(windows[index]),
    })
  if (windows.length === 0 && !carried) throwInvalidInput(path, 'has no samples.')
  if (windows.length > 0) check(0, {})
  return { count: windows.length, isWindowed: window !== null, check, sound: state }
}

/** Returns the plan of a single run, whose outputs have no dimension for windows. */
export const planOneRun = (check: PlannedRuns['check']): PlannedRuns => ({
  count: 1,
  isWindowed: false,
  check,
  sound: null,
})

function toSamples(
  type: ParameterType,
  given: Float32Array = new Float32Array(0),
  { scale = 1, normalize = false }: AudioLayout,
) {
  const samples = normalize ? normalizeSamples(given) : given
  if (type === 'int16')
    return Int16Array.from(samples, (one) =>
      Math.max(-32768, Math.min(32767, Math.round(one * scale))),
    )
  if (type === 'float64') return Float64Array.from(samples, (one) => one * scale)
  return scale === 1 ? samples : samples.map((one) => one * scale)
}

/** Keeps silence from being divided by 0, by the value that transformers uses. */
const LEAST_VARIANCE = 1e-7

/** Returns the samples with the mean 0 and the variance 1. */
function normalizeSamples(samples: Float32Array): Float32Array {
  const mean = samples.reduce((sum, one) => sum + one, 0) / (samples.length || 1)
  const squares = samples.reduce((sum, one) => sum + (one - mean) ** 2, 0)
  const deviation = Math.sqrt(squares / (samples.length || 1) + LEAST_VARIANCE)
  return samples.map((one) => (one - mean) / deviation)
}

/** Returns the states before a run: the given ones, else those that the last run left, else zeros. */
const findStates = (
  states: readonly BoundState[],
  given: Record<string, unknown>,
  left: Carried['tensors'],
): Record<string, unknown> =>
  Object.fromEntries(
    states.flatMap(({ input, type, shape }) => {
      const valueIn = (values: Record<string, unknown>) =>
        Object.hasOwn(values, input) ? (values[input] ?? null) : null
      const value = valueIn(given) ?? valueIn(left)
      if (value !== null || !shape) return value === null ? [] : [[input, value]]
      return [[input, { data: new ARRAYS[type](countElements(shape)), shape }]]
    }),
  )

/** Returns the values of the states after a run. */
export const toNextTensors = (
  states: readonly BoundState[],
  outputs: ReadonlyMap<string, RawTensor>,
): Carried['tensors'] =>
  Object.fromEntries(
    states.flatMap(({ input, output }) => {
      const tensor = outputs.get(output)
      return tensor ? [[input, { data: toReadableData(tensor), shape: tensor.shape }]] : []
    }),
  )

/** Part of the earlier sound that the next call of a session needs. It can be posted. */
interface SoundState {
  /** Samples at the model's rate: the context, and those that fill no window yet. */
  rest: Float32Array
  tail: SoundTail | null
}

/** Part of the earlier pieces of a stream that {@link resampleSound} needs for the next one. */
interface SoundTail {
  /** Last samples of the pieces before, at the rate of the source. */
  samples: Float32Array
  /** Position of the next sample of the result, in samples of the source from the tail's start. */
  position: number
  sampleRate: number
}

/** Maximum number of windows of one call: more than an hour of windows of 32 ms. */
const MAX_WINDOWS = 2 ** 17

/** Cuts the sound into windows of new samples. `isLast` fills the last one with silence. */
export function cutWindows(
  { data, sampleRate }: Sound,
  { rate, context = 0 }: AudioLayout,
  window: number | null,
  previous: SoundState | null,
  isLast: boolean,
  path: string,
): { windows: Float32Array[]; state: SoundState } {
  const before = previous?.tail?.sampleRate === sampleRate ? previous.tail : null
  const { data: samples, tail } =
    sampleRate === rate
      ? { data, tail: null }
      : resampleSound(data, sampleRate, rate, before, isLast)
  const buffer = concatenate([previous?.rest ?? new Float32Array(context), samples])
  const length = window ?? Math.max(1, buffer.length - context)
  const windowCount = (buffer.length - context) / length
  const count = isLast ? Math.ceil(windowCount) : Math.floor(windowCount)
  const limit = `the maximum is ${MAX_WINDOWS}. Send it in parts.`
  if (count > MAX_WINDOWS) throwInvalidInput(path, `has ${count} windows, but ${limit}`)
  const windows = Array.from({ length: count }, (_, index) => {
    const filled = new Float32Array(context + length)
    filled.set(buffer.subarray(index * length, (index + 1) * length + context))
    return filled
  })
  return { windows, state: { rest: buffer.slice(count * length), tail } }
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
  const step = sampleRate / rate
  const reach = Math.ceil((CROSSINGS * Math.max(1, step)) / ROLL_OFF)
  const tail = previous ?? { samples: new Float32Array(reach), position: reach, sampleRate }
  const silence = new Float32Array(isLast ? reach : 0)
  const source = concatenate([tail.samples, data, silence])
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

function concatenate(pieces: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
