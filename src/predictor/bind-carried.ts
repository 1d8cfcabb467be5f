/** Binds what is more than one tensor of one run: states between runs, and sound in windows. */
import type { AudioLayout, PredictorEntry } from '../catalog/schema.ts'
import { countElements } from '../values/elements.ts'
import type { BoundInput, BoundOutput, BoundSound, BoundState } from './bound.ts'
import type { Shape } from './tensor.ts'

/** Returns the function that throws `unavailable` for a parameter. */
type FailAt = (param: string) => (why: string) => never

/** Returns the states of an entry. */
export function bindStates(
  { states = [] }: PredictorEntry,
  inputs: readonly BoundInput[],
  outputs: readonly BoundOutput[],
  failAt: FailAt,
): BoundState[] {
  return states.map(({ input, output }): BoundState => {
    const fail = failAt(`states.${input}`)
    const before =
      inputs.find(({ parameter }) => parameter.name === input) ?? fail('there is no such input.')
    const after =
      outputs.find(({ parameter }) => parameter.name === output) ??
      fail(`there is no output ${output}.`)
    const { type, shape } = before.spec
    if (before.parameter.type !== type || type === 'string')
      return fail('must be an input of numbers.')
    if (after.parameter.type !== type || after.spec.steps)
      fail(`is ${type}, so the output ${output} must be ${type} without steps.`)
    const hasDefault = (before.parameter.defaultValue ?? null) !== null
    if (!shape && !hasDefault) fail('has no shape. Set `shape` in its binding.')
    return {
      input,
      output,
      type,
      shape: hasDefault || !shape ? null : shape.map((length) => length ?? 1),
    }
  })
}

/** Returns the number of samples that a tensor takes; `null` if it is free. A free batch is of 1. */
function countSamples(shape: Shape | null): number | null {
  const [first, ...rest] = shape ?? []
  const lengths = first === null && rest.length > 0 ? rest : shape
  if (!lengths?.every((length) => length !== null)) return null
  const samples = countElements(lengths)
  // A single number after a free length is a channel.
  return lengths === rest && samples === 1 ? null : samples
}

const SAMPLE_TYPES = ['float32', 'float16', 'float64', 'int16']

/** Returns the input that takes sound, or `null`. `layouts` are those of the inputs, by name. */
export function bindSound(
  inputs: readonly BoundInput[],
  layouts: ReadonlyMap<string, AudioLayout>,
  failAt: FailAt,
): BoundSound | null {
  const [sound, ...others] = inputs.filter(({ parameter }) => layouts.has(parameter.name))
  const layout = layouts.get(sound?.parameter.name ?? '')
  if (!sound || !layout) return null
  const fail = failAt(`inputs.${sound.parameter.name}`)
  if (others.length > 0) fail('only one input can take sound.')
  const { type, shape } = sound.spec
  if (sound.parameter.type !== type || !SAMPLE_TYPES.includes(type))
    fail(`takes sound, so it must be ${SAMPLE_TYPES.join(' or ')}.`)
  const { window = null, context = 0 } = layout
  const samples = countSamples(shape)
  if (samples !== null && window !== null && window + context !== samples)
    fail(`takes ${samples} samples, not ${window + context} of window and context.`)
  return { ...sound, layout, window: window ?? (samples === null ? null : samples - context) }
}
