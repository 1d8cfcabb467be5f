/**
 * Drafts a signature from the inputs and outputs of a graph. Notes name the parts that the author
 * must check or complete.
 */
import type { Binding, ImageLayout, PredictorEntry } from '../catalog/schema.ts'
import { isUsable, type OnnxModel, type Value } from './model.ts'

type Signature = PredictorEntry['signature']
type Parameter = Signature['inputs'][number]

export interface Draft {
  signature: Signature
  bindings: Record<string, Binding>
  /** Notes for the author on what to check, one sentence each. */
  notes: string[]
}

export interface KeepTensor {
  /** Inputs that stay tensors although they look like images. */
  tensors: ReadonlySet<string>
  /** Returns the option that keeps an input a tensor, such as `--tensor x`. */
  keep: (name: string) => string
  /** Returns the option that makes an input an image, such as `--image x`. Default: there is none. */
  makeImage?: (name: string) => string
}

interface DraftOptions extends KeepTensor {
  /** Tokenizer of the model, and the maximum number of tokens of a text. */
  tokenizer?: { name: string; most: number }
}

export function draftSignature(model: OnnxModel, options: DraftOptions): Draft {
  const draft: Draft = { signature: { inputs: [], outputs: [] }, bindings: {}, notes: [] }
  const { signature, bindings, notes } = draft
  const texts = options.tokenizer ? textInputs(model.inputs) : null
  for (const value of model.inputs) {
    if (texts?.all.includes(value.name)) continue
    const found = options.tensors.has(value.name) ? null : findImage(value)
    const image = found?.layout
    signature.inputs.push(image ? imageParameter(value) : parameterOf(value))
    bindings[value.name] = { ...bindingOf(value), ...(image && { image }) }
    if (found) notes.push(imageNote(value, found, options))
    else if (options.makeImage && layoutOf(value) && !options.tensors.has(value.name))
      notes.push(tensorNote(value.name, options.makeImage(value.name)))
  }
  if (texts && options.tokenizer) {
    const {
      tokenizer: { name: tokenizer, most },
    } = options
    const { ids, mask, types } = texts
    signature.inputs.unshift({
      name: 'text',
      type: 'string',
      description: `A text or a list of texts, each of at most ${most} tokens.`,
    })
    bindings['text'] = { tensor: ids, text: { tokenizer, mask, types, most } }
    notes.push(`${tokenizer} converts the input "text" to ${texts.all.join(', ')}.`)
  }
  for (const value of model.outputs) {
    if (!isUsable(value)) {
      notes.push(
        `The output ${value.name} is ${value.type}, which a page cannot read. It was left out.`,
      )
      continue
    }
    signature.outputs.push(parameterOf(value))
    // An input and an output of the same name are one tensor, so they share a binding.
    if (!Object.hasOwn(bindings, value.name)) bindings[value.name] = bindingOf(value)
  }
  return draft
}

const parameterOf = (value: Value): Parameter => ({
  name: value.name,
  type: value.type as Parameter['type'],
  description: describe(value),
})

function describe({ shape, description }: Value): string {
  const text = description.trim()
  return [...(text ? [text.replace(/\.?$/, '.')] : []), shapeText(shape)].join(' ')
}

function shapeText(shape: Value['shape']): string {
  if (!shape) return 'Any shape.'
  if (shape.length === 0) return 'One value.'
  return `Shape ${listed(shape)}.`
}

const listed = (shape: NonNullable<Value['shape']>): string =>
  `[${shape.map((length) => length ?? 'any').join(', ')}]`

function bindingOf({ name, shape }: Value): Binding {
  if (!shape) return { tensor: name }
  return {
    tensor: name,
    shape: shape.map((length) => (typeof length === 'number' ? length : null)),
  }
}

const CHANNELS = { 1: 'gray', 3: 'rgb', 4: 'rgba' } as const

/** Least length of an image's edge. Shorter edges belong to kernels and feature maps. */
const MIN_IMAGE_EDGE = 16

/** Returns the layout of an image with the shape of the value; `null` if no image has it. */
export function layoutOf({ type, shape, isTensor }: Value): ImageLayout | null {
  if (!isTensor || !['float32', 'float16', 'uint8'].includes(type) || shape?.length !== 4)
    return null
  for (const order of ['nchw', 'nhwc'] as const) {
    const [, ...rest] = shape
    const [depth, height, width] = order === 'nchw' ? rest : [rest[2], rest[0], rest[1]]
    const channels = CHANNELS[depth as keyof typeof CHANNELS]
    if (!channels) continue
    return {
      ...(typeof width === 'number' && { width }),
      ...(typeof height === 'number' && { height }),
      channels,
      order,
    }
  }
  return null
}

const IMAGE_NAME = /image|img|pixel|photo|picture|frame|rgb/i

interface ImageEvidence {
  layout: ImageLayout
  evidence: string
}

/**
 * Returns the layout of an image if the shape and the name of the value are good evidence for one;
 * otherwise `null`. One channel alone is none, since embeddings and spectrograms have it too.
 */
export function findImage(value: Value): ImageEvidence | null {
  const layout = layoutOf(value)
  const [batch, ...rest] = value.shape ?? []
  if (!layout || (typeof batch === 'number' && batch !== 1)) return null
  const [height, width] = layout.order === 'nchw' ? rest.slice(1) : rest
  const sides = [isEdge(height, 'h'), isEdge(width, 'w')]
  const tooSmall = [height, width].some((side) => typeof side === 'number' && side < MIN_IMAGE_EDGE)
  if (tooSmall) return null
  const isNamed = IMAGE_NAME.test(value.name) || IMAGE_NAME.test(value.description)
  const sidesAreNamed =
    typeof height === 'string' && typeof width === 'string' && sides.every(Boolean)
  const hasColor = layout.channels !== 'gray'
  const reasons = [
    ...(isNamed ? ['its name'] : []),
    ...(sidesAreNamed ? ['the names of its sides'] : []),
    ...(hasColor && sides.some((side) => side)
      ? [`${toDepth(layout)} channels and its sides`]
      : []),
  ]
  return reasons.length > 0 ? { layout, evidence: reasons.join(', ') } : null
}

/** Returns `true` for the length of an edge, or for a name such as `height`, `in_h` or `H`. */
function isEdge(length: number | string | null | undefined, letter: 'h' | 'w'): boolean {
  if (typeof length === 'number') return length >= MIN_IMAGE_EDGE
  if (typeof length !== 'string') return false
  return new RegExp(
    `(^|[^a-z])(${letter}|${letter === 'h' ? 'height' : 'width'})([^a-z]|$)`,
    'i',
  ).test(length)
}

const toDepth = ({ channels }: ImageLayout): number => (channels === 'rgba' ? 4 : 3)

const CONFIRM_NOTE = 'To be confirmed: recognized as an image by its shape'

function imageParameter({ name, shape, description }: Value): Parameter {
  const drafted = `${CONFIRM_NOTE} ${listed(shape ?? [])}.`
  return {
    name,
    type: 'image',
    description: [description.trim(), drafted].filter(Boolean).join(' '),
  }
}

function imageNote(
  { name, type, shape }: Value,
  { layout: { channels, order }, evidence }: ImageEvidence,
  { keep }: KeepTensor,
): string {
  const scale =
    type === 'uint8'
      ? 'Its bytes are passed unchanged'
      : 'Its values are scaled to 0 to 1; set "mean" and "std" if the model expects another range'
  return (
    `${imageClaim(name)} (${channels}, ${order}) by ${evidence}: ` +
    `${listed(shape ?? [])}. ${scale}. To keep it a tensor, use ${keep(name)}.`
  )
}

/** Returns the beginning of the note on an input that is drafted as an image. */
export const imageClaim = (name: string): string => `The input ${name} is treated as an image`

/** Returns the note on an input that has the shape of an image, but no other evidence. */
export const tensorNote = (name: string, option: string): string =>
  `The input ${name} stays a tensor, although its shape could be that of an image. ` +
  `To make it one, use ${option}.`

interface TextInputs {
  ids: string
  mask?: string
  types?: string
  all: string[]
}

/** Returns the token inputs that exported text encoders have; `null` if there are none. */
function textInputs(inputs: readonly Value[]): TextInputs | null {
  const find = (name: string): string | undefined =>
    inputs.find((input) => input.name === name && /^int(32|64)$/.test(input.type))?.name
  const ids = find('input_ids')
  if (ids === undefined) return null
  const mask = find('attention_mask')
  const types = find('token_type_ids')
  return { ids, mask, types, all: [ids, mask, types].filter((name) => name !== undefined) }
}
