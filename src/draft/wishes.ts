/** Applies what an author knows about a model, and its file does not say, to its draft. */
import type { AudioLayout, Binding, ImageLayout, PredictorEntry } from '../catalog/schema.ts'
import type { OnnxModel, Value } from './model.ts'
import { refuse } from './refuse.ts'
import { isSampleRate } from './sample-rate.ts'
import { type Draft, imageClaim, layoutOf, tensorNote } from './signature.ts'
import type { Wishes } from './plan.ts'
import { addSteps, labelItems, type OutputWishes } from './step-wishes.ts'

/** Facts that the author states. Errors name the options of the command line. */
export interface BindingWishes extends OutputWishes {
  /** Names of inputs that are images. */
  images: readonly string[]
  /** Fields of the layout of all images. */
  layout: Partial<ImageLayout>
  /** Tensors of the outputs to declare, by the names that they get; empty for all outputs. */
  outputs: ReadonlyMap<string, string>
  /** Names of the outputs that are the next state, by the names of their inputs. */
  states: ReadonlyMap<string, string>
  /** Layouts of inputs that take sound, by name. */
  sounds: ReadonlyMap<string, AudioLayout>
}

/** Returns the option that makes an input an image. */
export const toImageOption = (name: string): string => `--image ${name}`

/** Returns the wishes in the form in which a plan applies them. */
export const createWishes = (wishes: BindingWishes): Wishes => ({
  apply: (draft, model) => applyWishes(draft, model, wishes),
  listItems: (folder, graph) => labelItems(folder, graph, wishes),
})

type States = NonNullable<PredictorEntry['states']>

/** Returns the draft with the wishes, and the states. Throws `invalid_request` for unknown names. */
export function applyWishes(
  draft: Draft,
  { inputs, outputs }: OnnxModel,
  wishes: BindingWishes,
): Draft & { states?: States } {
  const { images, layout, states, sounds } = wishes
  const bindings: Record<string, Binding> = { ...draft.bindings }
  const signature = structuredClone(draft.signature)
  for (const name of images) {
    const value = findValue(inputs, '--image', name)
    const image = layoutOf(value) ?? refuseImage(name)
    bindings[name] = { ...bindings[name], tensor: name, image }
    const parameter = signature.inputs.find((input) => input.name === name)
    if (parameter) parameter.type = 'image'
  }
  const drafted = signature.inputs.filter(({ type }) => type === 'image').map(({ name }) => name)
  if (Object.keys(layout).length > 0 && drafted.length === 0)
    throw refuse('No input is an image, but options describe one.', 'Name it with --image.')
  for (const name of drafted) {
    const binding = bindings[name]
    if (binding?.image) bindings[name] = { ...binding, image: { ...binding.image, ...layout } }
  }
  for (const [name, audio] of sounds) {
    findValue(inputs, '--audio', name)
    bindings[name] = { ...bindings[name], tensor: name, audio }
    setSampleRate(signature, audio)
  }
  for (const [input, output] of states) {
    findValue(inputs, '--state', input)
    findValue(outputs, '--state', output)
  }
  keepOutputs(signature, bindings, wishes, outputs)
  addSteps(signature, bindings, new Set(states.values()), wishes)
  const described = [...images, ...sounds.keys(), ...states.keys()]
  const isAnswered = (note: string): boolean =>
    described.some(
      (name) => note === tensorNote(name, toImageOption(name)) || note.startsWith(imageClaim(name)),
    )
  return {
    ...draft,
    signature,
    bindings,
    notes: draft.notes.filter((note) => !isAnswered(note)),
    ...(states.size > 0 && {
      states: Array.from(states, ([input, output]) => ({ input, output })),
    }),
  }
}

/** Makes the rate of the sound the default of an input whose name says that it takes the rate. */
function setSampleRate({ inputs }: Draft['signature'], { rate }: AudioLayout): void {
  for (const input of inputs)
    if (isSampleRate(input.name, input.type))
      Object.assign(input, { optional: true, defaultValue: rate })
}

/** Removes the outputs that were not named. States stay, since the next run needs them. */
function keepOutputs(
  signature: Draft['signature'],
  bindings: Record<string, Binding>,
  { outputs: named, states }: BindingWishes,
  outputs: readonly Value[],
): void {
  for (const tensor of named.values()) findValue(outputs, '--output', tensor)
  if (named.size === 0) return
  const isInput = (name: string) => signature.inputs.some((input) => input.name === name)
  const all = new Map([...named, ...Array.from(states.values(), (name) => [name, name] as const)])
  const drafted = new Map(
    signature.outputs.map((output) => [output.name, { output, binding: bindings[output.name] }]),
  )
  for (const name of drafted.keys()) if (!isInput(name)) delete bindings[name]
  signature.outputs = Array.from(all).flatMap(([name, tensor]) => {
    const { output, binding } = drafted.get(tensor) ?? {}
    if (!output) return []
    if (name !== tensor && isInput(name))
      throw refuse(`--output ${name}=${tensor}: an input has that name.`, 'Choose another one.')
    bindings[name] ??= { ...binding, tensor }
    return { ...output, name }
  })
}

function findValue(values: readonly Value[], option: string, name: string): Value {
  const found = values.find((value) => value.name === name)
  if (found) return found
  const names = values.map((value) => value.name).join(', ')
  throw refuse(`${option} ${name}: the model has no tensor of that name.`, `Expected: ${names}.`)
}

function refuseImage(name: string): never {
  throw refuse(
    `--image ${name}: the input is no image.`,
    'Its tensor must have 4 dimensions, of which one has 1, 3 or 4 channels.',
  )
}
