/** Prepares the runs of one call: the windows of its sound, and the states between runs. */
import type { InputParameter, Signature, TensorValue } from '../types/index.ts'
import { countElements, toReadableData } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isObject } from '../values/objects.ts'
import { parseSound } from './audio.ts'
import type { BoundSignature, BoundState } from './bound.ts'
import { type ParsedInput, parseInputs } from './parse-inputs.ts'
import { cutWindows, type SoundState } from './sound-windows.ts'
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
  /** Returns the checked inputs of a run. */
  check(index: number, tensors: Carried['tensors']): Map<string, ParsedInput>
  /** State of the sound after the runs. */
  sound: SoundState | null
}

/**
 * Plans the runs of a call. `carried` is the state of a session; `null` for a call on its own, whose
 * sound ends with it. Rejects with `invalid_request` that names the first invalid input.
 */
export async function planRuns(
  { sound, states }: BoundSignature,
  signature: Signature,
  inputs: unknown,
  carried: Carried | null,
): Promise<PlannedRuns> {
  if (!sound || !isObject(inputs) || (inputs[sound.parameter.name] ?? null) === null) {
    const check = (tensors: Carried['tensors']) =>
      parseInputs(
        signature,
        isObject(inputs) ? { ...inputs, ...findStates(states, inputs, tensors) } : inputs,
      )
    if (states.length > 0) {
      check({})
      return { count: 1, isWindowed: false, check: (_, tensors) => check(tensors), sound: null }
    }
    const checked = check({})
    return { count: 1, isWindowed: false, check: () => checked, sound: null }
  }
  const { parameter, layout, window } = sound
  const path = `inputs.${parameter.name}`
  const heard = await parseSound(inputs[parameter.name], layout.rate, path)
  const { windows, state } = cutWindows(
    heard,
    layout,
    window,
    carried?.sound ?? null,
    !carried,
    path,
  )
  const check: PlannedRuns['check'] = (index, tensors) => {
    const samples = toSamples(parameter, windows[index] ?? new Float32Array(0), layout.scale)
    // A state that the caller gives is the one before the first window.
    const given = index === 0 ? inputs : {}
    return parseInputs(signature, {
      ...inputs,
      ...findStates(states, given, tensors),
      [parameter.name]: samples,
    })
  }
  if (windows.length === 0 && !carried) throwInvalidInput(path, 'has no samples.')
  if (windows.length > 0) check(0, {})
  return { count: windows.length, isWindowed: window !== null, check, sound: state }
}

/** Returns the samples as the typed array of their parameter. */
function toSamples(
  { type }: InputParameter,
  samples: Float32Array,
  scale = 1,
): Float32Array | Float64Array | Int16Array {
  if (type === 'int16')
    return Int16Array.from(samples, (one) =>
      Math.max(-32768, Math.min(32767, Math.round(one * scale))),
    )
  if (type === 'float64') return Float64Array.from(samples, (one) => one * scale)
  return scale === 1 ? samples : samples.map((one) => one * scale)
}

/** Returns the states before a run: the given ones, else those that the last run left, else zeros. */
function findStates(
  states: readonly BoundState[],
  given: Record<string, unknown>,
  left: Carried['tensors'],
): Record<string, unknown> {
  return Object.fromEntries(
    states.flatMap(({ input, type, shape }) => {
      const valueIn = (values: Record<string, unknown>) =>
        Object.hasOwn(values, input) ? values[input] : null
      const value = valueIn(given) ?? valueIn(left) ?? null
      if (value !== null) return [[input, value]]
      if (!shape) return []
      const count = countElements(shape)
      const zeros: unknown[] = Array.from({ length: count }, () => (type === 'bool' ? false : 0))
      return [[input, { data: zeros, shape }]]
    }),
  )
}

/** Returns the values of the states after a run. */
export function toNextTensors(
  states: readonly BoundState[],
  outputs: ReadonlyMap<string, RawTensor>,
): Carried['tensors'] {
  return Object.fromEntries(
    states.flatMap(({ input, output }) => {
      const tensor = outputs.get(output)
      return tensor ? [[input, { data: toReadableData(tensor), shape: tensor.shape }]] : []
    }),
  )
}
