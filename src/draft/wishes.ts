/** Applies what an author knows about a model, and its file does not say, to its draft. */
import type {
  AudioLayout,
  Binding,
  ImageLayout,
  Labels,
  PredictorEntry,
  Step,
} from '../catalog/schema.ts'
import { RETURNED_TYPES } from '../predictor/steps.ts'
import type { Folder } from './folder.ts'
import type { OnnxModel, Value } from './model.ts'
import type { Item, Wishes } from './plan.ts'
import { refuse } from './refuse.ts'
import { type Draft, imageClaim, layoutOf, tensorNote } from './signature.ts'

/** Facts that the author states. Errors name the options of the command line. */
export interface BindingWishes {
  images: readonly string[]
  layout: Partial<ImageLayout>
  /** Tensors of the outputs to declare, by the names that they get; empty for all outputs. */
  outputs: ReadonlyMap<string, string>
  states: ReadonlyMap<string, string>
  sounds: ReadonlyMap<string, AudioLayout>
  /** Steps and labels, by the names of the outputs. */
  steps: ReadonlyMap<string, readonly StepWish[]>
  labels: ReadonlyMap<string, Labels>
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
    const image = layoutOf(findValue(inputs, '--image', name)) ?? refuseImage(name)
    bindings[name] = { ...bindings[name], tensor: name, image }
    const parameter = signature.inputs.find((input) => input.name === name)
    if (parameter) parameter.type = 'image'
  }
  const drafted = signature.inputs.filter(({ type }) => type === 'image')
  if (Object.keys(layout).length > 0 && drafted.length === 0)
    throw refuse('No input is an image, but options describe one.', 'Name it with --image.')
  for (const { name } of drafted) {
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
  addSteps(signature, bindings, wishes)
  const described = [...images, ...sounds.keys(), ...states.keys()]
  const isOpen = (note: string): boolean =>
    described.every(
      (name) =>
        note !== tensorNote(name, toImageOption(name)) && !note.startsWith(imageClaim(name)),
    )
  const pairs = Array.from(states, ([input, output]) => ({ input, output }))
  const notes = draft.notes.filter(isOpen)
  return { ...draft, signature, bindings, notes, ...(pairs.length > 0 && { states: pairs }) }
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
  signature.outputs = [...all].flatMap(([name, tensor]) => {
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

/** Step without the names of its classes, which are stated apart. */
export type StepWish = WithoutLabels<Step>
type WithoutLabels<One> = One extends Step ? Omit<One, 'labels'> : never

const DEFAULT_COUNT = 5

const DESCRIPTIONS: Partial<Record<Step['step'], string>> = {
  'top-k': 'The best classes.',
  ctc: 'Texts with scores.',
  mask: 'A mask in gray.',
}

/** Changes the outputs and their bindings. Throws `invalid_request` for what does not fit. */
function addSteps(
  { outputs }: Draft['signature'],
  bindings: Record<string, Binding>,
  { steps, labels, states }: BindingWishes,
): void {
  for (const [name] of labels)
    if (!steps.has(name)) throw refuseLabels(name, 'the output has no step.')
  for (const [name, wishes] of steps) {
    const output = outputs.find((one) => one.name === name)
    if (!output) {
      const names = outputs.map((one) => one.name).join(', ')
      throw refuse(`--step ${name}: there is no such output.`, `Expected: ${names}.`)
    }
    if (output.type === 'string' || [...states.values()].includes(name)) {
      const why = output.type === 'string' ? 'has texts' : 'is a state'
      throw refuse(`--step ${name}: the output ${why}, so it can have no steps.`, 'Leave it out.')
    }
    const last = wishes.at(-1)
    const open = wishes.map((wish) => toStep(name, wish, wish === last, labels.get(name)))
    if (labels.has(name) && !open.some((step) => 'labels' in step))
      throw refuseLabels(name, 'its steps take no labels.')
    const { step = 'softmax' } = last ?? {}
    output.type = RETURNED_TYPES[step]?.at(-1) ?? 'float32'
    output.description = DESCRIPTIONS[step] ?? output.description
    bindings[name] = { tensor: name, ...bindings[name], steps: open }
  }
}

const refuseLabels = (name: string, why: string): Error =>
  refuse(`--labels ${name}: ${why}`, `Add --step ${name}=top-k or --step ${name}=ctc.`)

function toStep(name: string, wish: StepWish, isLast: boolean, labels: Labels | undefined): Step {
  if (!isLast && RETURNED_TYPES[wish.step])
    throw refuse(`--step ${name}: ${wish.step} must be the last step.`, 'Change the order.')
  if (wish.step === 'top-k')
    return { ...wish, count: wish.count ?? DEFAULT_COUNT, ...(labels && { labels }) }
  if (wish.step !== 'ctc') return wish
  if (labels) return { ...wish, labels }
  throw refuse(
    `--step ${name}: ctc needs the characters of the classes.`,
    `Name their file with --labels ${name}=characters.txt.`,
  )
}

/** Returns the files of the labels, which lie beside the graph. Throws `invalid_request`. */
function labelItems(folder: Folder, graph: string, { labels }: BindingWishes): Item[] {
  const base = graph.slice(0, graph.lastIndexOf('/') + 1)
  const files = new Set([...labels.values()].flatMap((one) => ('file' in one ? [one.file] : [])))
  return Array.from(files, (name): Item => {
    const bytes = folder.sizeOf(base + name)
    if (bytes !== undefined) return { type: 'config', name, path: base + name, bytes }
    throw refuse(
      `--labels: there is no ${folder.nameOf(base + name)}.`,
      'Put the file beside the model, and name it relative to the folder of the model.',
    )
  })
}

/** Returns `true` for an integer input whose name says that it is a sample rate. */
export const isSampleRate = (name: string, type: string): boolean =>
  /^int(32|64)$/.test(type) && /^(sr|fs|sample_?rate|sampling_?rate)$/i.test(name)
