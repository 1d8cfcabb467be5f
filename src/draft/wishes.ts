/** Applies what an author knows about a model, and its file does not say, to its draft. */
import type {
  AudioLayout,
  Binding,
  ImageLayout,
  Labels,
  PredictorEntry,
  Step,
} from '../catalog/schema.ts'
import { listSettings, RETURNED_TYPES } from '../predictor/steps.ts'
import type { Folder } from './folder.ts'
import { isUsable, type OnnxModel, type Value } from './model.ts'
import type { Item, Wishes } from './plan.ts'
import { refuse } from './refuse.ts'
import {
  bindingOf,
  type Draft,
  imageClaim,
  layoutOf,
  parameterOf,
  tensorNote,
} from './signature.ts'
import { isSamples } from './tasks/sounds.ts'

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

/** Options of the command line by the fields of an image's layout. */
const LAYOUT_OPTIONS: Readonly<Partial<Record<keyof ImageLayout, string>>> = {
  width: '--size',
  height: '--size',
  multipleOf: '--multiple-of',
}

/** Returns the options that a user has given. */
const listOptions = ({ layout, ...wishes }: BindingWishes): string[] => [
  ...Object.entries({
    '--image': wishes.images.length,
    '--output': wishes.outputs.size,
    '--state': wishes.states.size,
    '--audio': wishes.sounds.size,
    '--step': wishes.steps.size,
    '--labels': wishes.labels.size,
  }).flatMap(([option, count]) => (count > 0 ? option : [])),
  ...Object.keys(layout).map((key) => LAYOUT_OPTIONS[key as keyof ImageLayout] ?? `--${key}`),
]

/** Returns the wishes in the form in which a plan applies them. */
export const createWishes = (wishes: BindingWishes): Wishes => ({
  options: listOptions(wishes),
  apply: (draft, model) => applyWishes(draft, model, wishes),
  listItems: (folder, graph) => labelItems(folder, graph, wishes),
})

type States = NonNullable<PredictorEntry['states']>

/** Draft that may have the endpoints of its task. */
type AnyDraft = Draft & Pick<PredictorEntry, 'embeddings' | 'rerank' | 'speech'>

/** Returns the draft with the wishes, and the states. Throws `invalid_request` for unknown names. */
export function applyWishes<One extends AnyDraft>(
  draft: One,
  model: OnnxModel,
  wishes: BindingWishes,
): One & { states?: States } {
  const { inputs, outputs } = model
  const { images, layout, states, sounds } = wishes
  const bindings: Record<string, Binding> = { ...draft.bindings }
  const signature = structuredClone(draft.signature)
  for (const name of images) {
    const image = layoutOf(findValue(inputs, '--image', name)) ?? refuseImage(name)
    bindings[name] = { ...bindings[name], tensor: name, image: bindings[name]?.image ?? image }
    const parameter = signature.inputs.find((input) => input.name === name)
    if (parameter) parameter.type = 'image'
    else throw refuse(`--image ${name}: the input takes tokens of a text.`, 'Leave it out.')
  }
  const drafted = signature.inputs.filter(({ type }) => type === 'image')
  if (Object.keys(layout).length > 0 && drafted.length === 0)
    throw refuse('No input is an image, but options describe one.', 'Name it with --image.')
  for (const { name } of drafted) {
    const binding = bindings[name]
    if (binding?.image) bindings[name] = { ...binding, image: mergeLayout(binding.image, layout) }
  }
  for (const [name, audio] of sounds) {
    if (!isSamples(findValue(inputs, '--audio', name))) throw refuseSound(name)
    bindings[name] = {
      ...bindings[name],
      tensor: name,
      audio: { ...bindings[name]?.audio, ...audio },
    }
    setSampleRate(signature, audio)
  }
  for (const [input, output] of states) {
    findValue(inputs, '--state', input)
    findValue(outputs, '--state', output)
  }
  const open: AnyDraft = { ...draft, signature, bindings }
  keepOutputs(open, wishes, outputs)
  addSteps(open, wishes, outputs)
  removeSettings(open)
  const { embeddings, rerank, speech } = open
  const described = [...images, ...sounds.keys(), ...states.keys()]
  const isOpen = (note: string): boolean =>
    described.every(
      (name) =>
        note !== tensorNote(name, toImageOption(name)) && !note.startsWith(imageClaim(name)),
    )
  const pairs = Array.from(states, ([input, output]) => ({ input, output }))
  const notes = draft.notes.filter(isOpen)
  return {
    ...draft,
    embeddings,
    rerank,
    speech,
    signature,
    bindings,
    notes,
    ...(pairs.length > 0 && { states: pairs }),
  }
}

/** Returns the layout with the fields that are given. A size or a fit replaces a resize and a crop. */
function mergeLayout(image: ImageLayout, layout: Partial<ImageLayout>): ImageLayout {
  const { resize, ...others } = image
  const isReplaced = [layout.width, layout.height, layout.fit].some((field) => field !== undefined)
  return { ...others, ...(resize && !isReplaced && { resize }), ...layout }
}

const refuseSound = (name: string): Error =>
  refuse(
    `--audio ${name}: the input takes no samples, by its type or its shape.`,
    'Its tensor must have one free length beside a batch and a channel. A spectrogram has two: pass it as a tensor.',
  )

/** Removes optional inputs that changed steps which are no longer there. */
function removeSettings({ signature, bindings }: AnyDraft): void {
  const all = Object.values(bindings)
  const used = all.flatMap(({ steps = [] }) => steps.flatMap(listSettings)).map(({ name }) => name)
  const isUsed = ({ name, optional }: Draft['signature']['inputs'][number]): boolean =>
    !optional ||
    bindings[name] !== undefined ||
    used.includes(name) ||
    all.some(({ text }) => [text?.pair, text?.labels, text?.template].includes(name))
  signature.inputs = signature.inputs.filter(isUsed)
}

/** Makes the rate of the sound the default of an input whose name says that it takes the rate. */
function setSampleRate({ inputs }: Draft['signature'], { rate }: AudioLayout): void {
  for (const input of inputs)
    if (isSampleRate(input.name, input.type))
      Object.assign(input, { optional: true, defaultValue: rate })
}

/** Removes the outputs that were not named. States stay, since the next run needs them. */
function keepOutputs(
  draft: AnyDraft,
  { outputs: named, states }: BindingWishes,
  outputs: readonly Value[],
): void {
  const { signature, bindings } = draft
  for (const tensor of named.values()) findValue(outputs, '--output', tensor)
  if (named.size === 0) return
  const isInput = (name: string) => signature.inputs.some((input) => input.name === name)
  const all = new Map([...named, ...Array.from(states.values(), (name) => [name, name] as const)])
  const drafted = signature.outputs.map((output) => ({ output, binding: bindings[output.name] }))
  for (const { output } of drafted) if (!isInput(output.name)) delete bindings[output.name]
  const renamed = new Map<string, string>()
  signature.outputs = [...all].flatMap(([name, tensor]) => {
    const value = outputs.find((one) => one.name === tensor)
    const found =
      drafted.find(({ binding }) => binding?.tensor === tensor) ??
      (value && isUsable(value) && { output: parameterOf(value), binding: bindingOf(value) })
    if (!found) return []
    if (name !== tensor && isInput(name))
      throw refuse(`--output ${name}=${tensor}: an input has that name.`, 'Choose another one.')
    bindings[name] ??= { ...found.binding, tensor }
    renamed.set(found.output.name, name)
    return { ...found.output, name }
  })
  renameEndpoints(draft, (name) => renamed.get(name))
}

/** Names the outputs of the endpoints anew, and removes those whose output is no longer there. */
function renameEndpoints(draft: AnyDraft, find: (name: string) => string | undefined): void {
  for (const key of ['embeddings', 'rerank', 'speech'] as const) {
    const endpoint = draft[key]
    if (!endpoint) continue
    const output = find(endpoint.output)
    if (output === undefined) delete draft[key]
    else Object.assign(draft, { [key]: { ...endpoint, output } })
  }
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
  entities: 'Parts of the text with their classes.',
  span: 'Part of the text that answers the question.',
  'fill-mask': 'The best tokens for the masked one.',
  objects: 'Objects with their boxes in pixels.',
  segments: 'Parts of the image with their masks.',
  panoptic: 'Parts of the image with their masks.',
  depth: 'The depth as brightness.',
  cutout: 'The image without its background.',
}

/** Changes the outputs and their bindings. Throws `invalid_request` for what does not fit. */
function addSteps(
  draft: AnyDraft,
  { steps, labels, states }: BindingWishes,
  tensors: readonly Value[],
): void {
  const { signature, bindings } = draft
  const { outputs } = signature
  for (const [name] of labels)
    if (!steps.has(name)) throw refuseLabels(name, 'the output has no step.')
  for (const [name, wishes] of steps) {
    const output = outputs.find((one) => one.name === name) ?? renameOutput(draft, name)
    if (!output) {
      const names = outputs.map((one) => one.name).join(', ')
      throw refuse(`--step ${name}: there is no such output.`, `Expected: ${names}.`)
    }
    const binding = bindings[name] ?? { tensor: name }
    const value = tensors.find((one) => one.name === binding.tensor)
    if (value?.type === 'string' || [...states.values()].includes(name)) {
      const why = value?.type === 'string' ? 'has texts' : 'is a state'
      throw refuse(`--step ${name}: the output ${why}, so it can have no steps.`, 'Leave it out.')
    }
    const before = binding.steps?.find((step) => step.step === 'top-k')
    const last = wishes.at(-1)
    const open = wishes.map((wish) => toStep(name, wish, wish === last, labels.get(name), before))
    if (labels.has(name) && !open.some((step) => 'labels' in step))
      throw refuseLabels(name, 'its steps take no labels.')
    const { step = 'softmax' } = last ?? {}
    output.type = RETURNED_TYPES[step]?.at(-1) ?? 'float32'
    const description = value && parameterOf(value).description
    output.description = DESCRIPTIONS[step] ?? description ?? output.description
    bindings[name] = { ...binding, steps: open }
    if (!open.some((one) => one.step === 'pool') && draft.embeddings?.output === name)
      delete draft.embeddings
    if (draft.rerank?.output === name && RETURNED_TYPES[step]) delete draft.rerank
    setCount(signature, open)
  }
}

/** Gives the output of a tensor the tensor's name. Returns `undefined` if there is no such output. */
function renameOutput(draft: AnyDraft, tensor: string) {
  const { signature, bindings } = draft
  const output = signature.outputs.find(({ name }) => bindings[name]?.tensor === tensor)
  const binding = output && bindings[output.name]
  if (!output || !binding || signature.inputs.some(({ name }) => name === tensor)) return undefined
  const before = output.name
  delete bindings[before]
  bindings[tensor] = binding
  output.name = tensor
  renameEndpoints(draft, (name) => (name === before ? tensor : name))
  return output
}

/** Makes the number of classes the default of the input that changes it. */
function setCount({ inputs }: Draft['signature'], steps: readonly Step[]): void {
  for (const step of steps)
    if (step.step === 'top-k')
      for (const input of inputs)
        if (input.name === step.countInput) input.defaultValue = step.count
}

const refuseLabels = (name: string, why: string): Error =>
  refuse(`--labels ${name}: ${why}`, `Add --step ${name}=top-k, ctc, entities or segments.`)

function toStep(
  name: string,
  wish: StepWish,
  isLast: boolean,
  labels: Labels | undefined,
  before: Extract<Step, { step: 'top-k' }> | undefined,
): Step {
  if (!isLast && RETURNED_TYPES[wish.step])
    throw refuse(`--step ${name}: ${wish.step} must be the last step.`, 'Change the order.')
  if (wish.step === 'top-k')
    return { ...before, ...wish, count: wish.count ?? DEFAULT_COUNT, ...(labels && { labels }) }
  if (wish.step === 'objects' || wish.step === 'segments' || wish.step === 'panoptic')
    return { ...wish, ...(labels && { labels }) }
  if (wish.step === 'fill-mask') return { ...wish, count: wish.count ?? DEFAULT_COUNT }
  if (wish.step !== 'ctc' && wish.step !== 'entities') return wish
  if (labels) return { ...wish, labels }
  throw refuse(
    `--step ${name}: ${wish.step} needs the names of the classes.`,
    `Name their file with --labels ${name}=names.txt.`,
  )
}

/** Returns the files of the labels, which lie beside the graph. Throws `invalid_request`. */
function labelItems(folder: Folder, graph: string, { labels }: BindingWishes): Item[] {
  const base = graph.slice(0, graph.lastIndexOf('/') + 1)
  const files = new Set([...labels.values()].flatMap((one) => ('file' in one ? [one.file] : [])))
  return Array.from(files, (name): Item => {
    // A folder has its graphs in one of their own, and its labels may be beside that.
    const path = [base + name, name].find((one) => folder.sizeOf(one) !== undefined)
    const bytes = path === undefined ? undefined : folder.sizeOf(path)
    if (path !== undefined && bytes !== undefined) return { type: 'config', name, path, bytes }
    throw refuse(
      `--labels: there is no ${folder.nameOf(base + name)}.`,
      'Put the file beside the model, and name it relative to the folder of the model.',
    )
  })
}

/** Returns `true` for an integer input whose name says that it is a sample rate. */
export const isSampleRate = (name: string, type: string): boolean =>
  /^int(32|64)$/.test(type) && /^(sr|fs|sample_?rate|sampling_?rate)$/i.test(name)
