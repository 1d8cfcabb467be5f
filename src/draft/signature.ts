/** Drafts a signature from a graph. Notes name the parts that the author must check. */
import type { Binding, ImageLayout, PredictorEntry, TextLayout } from '../catalog/schema.ts'
import { formatShape } from '../values/elements.ts'
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
  /** Tokenizer of the model, with its name, and how many tokens a text may have. */
  tokenizer?: { name: string } & Pick<TextLayout, 'most' | 'truncate' | 'pad'>
}

export function draftSignature(model: OnnxModel, options: DraftOptions): Draft {
  const { tensors, tokenizer, makeImage } = options
  const draft: Draft = { signature: { inputs: [], outputs: [] }, bindings: {}, notes: [] }
  const { signature, bindings, notes } = draft
  const texts = tokenizer ? findTexts(model.inputs, tensors) : null
  const tokens = Object.values(texts ?? {}).filter((name) => name !== undefined)
  for (const value of model.inputs) {
    if (tokens.includes(value.name)) continue
    const isTensor = tensors.has(value.name)
    const found = isTensor ? null : findImage(value)
    signature.inputs.push(found ? imageParameter(value) : parameterOf(value))
    bindings[value.name] = { ...bindingOf(value), ...(found && { image: found.layout }) }
    if (found) notes.push(imageNote(value, found, options))
    else if (makeImage && !isTensor && layoutOf(value))
      notes.push(tensorNote(value.name, makeImage(value.name)))
  }
  if (texts && tokenizer) {
    const { name, most, truncate, pad } = tokenizer
    const { ids, ...others } = texts
    const cut = truncate ? ` Further tokens are left out at the ${truncate}.` : ''
    signature.inputs.unshift({
      name: 'text',
      type: 'string',
      description: `A text or a list of texts, each of at most ${most} tokens.${cut}`,
    })
    const length = { most, ...(truncate && { truncate }), ...(pad !== undefined && { pad }) }
    bindings['text'] = { tensor: ids, text: { tokenizer: name, ...others, ...length } }
    notes.push(`${name} converts the input "text" to ${tokens.join(', ')}.`)
  }
  for (const value of model.outputs) {
    const { name, type } = value
    if (isUsable(value)) {
      signature.outputs.push(parameterOf(value))
      // An input and an output of the same name are one tensor, so they share a binding.
      if (!Object.hasOwn(bindings, name)) bindings[name] = bindingOf(value)
    } else notes.push(`The output ${name} is ${type}, which a page cannot read. It was left out.`)
  }
  return draft
}

/** Returns the parameter of a tensor that stays one. */
export function parameterOf({ name, type, shape, description }: Value): Parameter {
  const size = shape?.length === 0 ? 'One value.' : `Shape ${formatShape(shape ?? [])}.`
  const text = description.trim().replace(/[^.]$/, '$&.')
  return {
    name,
    type: type as Parameter['type'],
    description: `${text} ${shape ? size : 'Any shape.'}`.trim(),
  }
}

/** Returns the binding of a tensor that stays one. */
export const bindingOf = ({ name, shape }: Value): Binding => ({
  tensor: name,
  ...(shape && { shape: shape.map((length) => (typeof length === 'number' ? length : null)) }),
})

const CHANNELS = { 1: 'gray', 3: 'rgb', 4: 'rgba' } as const

const isChannels = (length: number | string | null | undefined): boolean =>
  typeof length === 'string' && /channel/i.test(length)

/** Least length of an image's edge. Shorter edges belong to kernels and feature maps. */
const MIN_IMAGE_EDGE = 16

/** Returns the layout of an image with the shape of the value; `null` if no image has it. */
export function layoutOf({ type, shape, isTensor }: Value): ImageLayout | null {
  if (!isTensor || !['float32', 'float16', 'uint8'].includes(type) || shape?.length !== 4)
    return null
  for (const order of ['nchw', 'nhwc'] as const) {
    const [, ...rest] = shape
    const [depth, height, width] = order === 'nchw' ? rest : [rest[2], rest[0], rest[1]]
    // Exporters leave the number of channels free, and images have three of them.
    const channels = isChannels(depth) ? 'rgb' : CHANNELS[depth as keyof typeof CHANNELS]
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

/** Names of the keys and values of a KV cache, which can have the shape of an image. */
const CACHE_NAME = /^(past|present)([._]|$)|[._](key|value)$/i

/** Returns the layout of an image and the evidence for it. One channel alone is no evidence. */
export function findImage(value: Value): { layout: ImageLayout; evidence: string } | null {
  const layout = CACHE_NAME.test(value.name) ? null : layoutOf(value)
  const [batch, ...rest] = value.shape ?? []
  if (!layout || (typeof batch === 'number' && batch !== 1)) return null
  const [height, width] = layout.order === 'nchw' ? rest.slice(1) : rest
  if ([height, width].some((side) => typeof side === 'number' && side < MIN_IMAGE_EDGE)) return null
  const sides = [isEdge(height, HEIGHT_NAME), isEdge(width, WIDTH_NAME)]
  const isNamed = IMAGE_NAME.test(value.name) || IMAGE_NAME.test(value.description)
  const hasSideNames = typeof height === 'string' && typeof width === 'string'
  const depth = layout.channels === 'rgba' ? 4 : 3
  const reasons = [
    isNamed && 'its name',
    hasSideNames && sides.every(Boolean) && 'the names of its sides',
    layout.channels !== 'gray' && sides.some(Boolean) && `${depth} channels and its sides`,
  ].filter(Boolean)
  return reasons.length > 0 ? { layout, evidence: reasons.join(', ') } : null
}

/** Names such as `height`, `in_h` or `H`. */
const HEIGHT_NAME = /(^|[^a-z])(h|height)([^a-z]|$)/i
const WIDTH_NAME = /(^|[^a-z])(w|width)([^a-z]|$)/i

const isEdge = (length: number | string | null | undefined, name: RegExp): boolean =>
  typeof length === 'number' ? length >= MIN_IMAGE_EDGE : name.test(length ?? '')

function imageParameter({ name, shape, description }: Value): Parameter {
  const note = `To be confirmed: recognized as an image by its shape ${formatShape(shape ?? [])}.`
  return { name, type: 'image', description: `${description.trim()} ${note}`.trim() }
}

function imageNote(
  { name, type, shape }: Value,
  { layout: { channels, order }, evidence }: NonNullable<ReturnType<typeof findImage>>,
  { keep }: KeepTensor,
): string {
  const scale =
    type === 'uint8'
      ? 'Its bytes are passed unchanged'
      : 'Its values are scaled to 0 to 1; set "mean" and "std" if the model expects another range'
  return (
    `${imageClaim(name)} (${channels}, ${order}) by ${evidence}: ` +
    `${formatShape(shape ?? [])}. ${scale}. To keep it a tensor, use ${keep(name)}.`
  )
}

/** Returns the beginning of the note on an input that is drafted as an image. */
export const imageClaim = (name: string): string => `The input ${name} is treated as an image`

/** Returns the beginning of the note on an input that has the shape of an image, but stays a tensor. */
export const tensorClaim = (name: string): string => `The input ${name} stays a tensor`

/** Returns the note on an input that has the shape of an image, but no other evidence. */
export const tensorNote = (name: string, option: string): string =>
  `${tensorClaim(name)}, although its shape could be that of an image. To make it one, use ${option}.`

/** Returns the token inputs that exported text encoders have; `null` if there are none. */
function findTexts(inputs: readonly Value[], tensors: ReadonlySet<string>) {
  const find = (name: string): string | undefined =>
    inputs.find((input) => input.name === name && /^int(32|64)$/.test(input.type))?.name
  if (['input_ids', 'attention_mask', 'token_type_ids'].some((name) => tensors.has(name)))
    return null
  const ids = find('input_ids')
  if (ids === undefined) return null
  return { ids, mask: find('attention_mask'), types: find('token_type_ids') }
}
