/** Parses the options of `inorigin add` that describe inputs and outputs. */
import type { AudioLayout, ImageLayout } from '../../catalog/schema.ts'
import type { BindingWishes } from '../../draft/wishes.ts'
import { SAMPLE_RATES } from '../../values/sample-rates.ts'
import { createUsageError } from '../usage.ts'
import { parseCount, parseName, parseNumbers, parsePair } from './flag-values.ts'
import { parseLabelFlags, parseStepFlags } from './step-flags.ts'

/** Options that describe inputs and outputs. */
export const BINDING_OPTIONS = {
  image: {
    type: 'string',
    multiple: true,
    value: '<input>',
    about: 'Make an input an image; may be repeated',
  },
  size: {
    type: 'string',
    value: '<w>x<h>',
    about: 'Size of images, such as 224x224, or x48 for a free width',
  },
  'multiple-of': {
    type: 'string',
    value: '<n>',
    about: 'Make free sides of images multiples of n',
  },
  channels: {
    type: 'string',
    value: '<name>',
    about: 'Channels of images: gray, rgb, bgr or rgba',
  },
  fit: {
    type: 'string',
    value: '<mode>',
    about: 'Resize images by stretch, contain, cover or pad',
  },
  padding: {
    type: 'string',
    value: '<numbers>',
    about: 'Pixels beside a padded image, from 0 to 255 (default: 0)',
  },
  scale: {
    type: 'string',
    value: '<number>',
    about: 'Factor of pixels, from 0 to 255 (default: 1/255), or of samples, from -1 to 1',
  },
  mean: {
    type: 'string',
    value: '<numbers>',
    about: 'Mean to subtract from images, such as 0.485,0.456,0.406',
  },
  std: {
    type: 'string',
    value: '<numbers>',
    about: 'Standard deviation to divide images by',
  },
  resample: {
    type: 'string',
    value: '<filter>',
    about: 'Resize as Pillow does: box, bilinear, bicubic, lanczos (default: as the browser)',
  },
  output: {
    type: 'string',
    multiple: true,
    value: '[<name>=]<out>',
    about: 'Declare only this output, and rename it; may be repeated',
  },
  step: {
    type: 'string',
    multiple: true,
    value: '<out>=<step>',
    about: 'Apply softmax, sigmoid, top-k,count=5, ctc or mask,threshold=0.5; may be repeated',
  },
  labels: {
    type: 'string',
    multiple: true,
    value: '<out>=<file>',
    about: 'Name classes by a file beside the model, or by metadata:<key> of the model',
  },
  state: {
    type: 'string',
    multiple: true,
    value: '<in>=<out>',
    about: 'Carry an output to the next prediction of a session',
  },
  audio: {
    type: 'string',
    multiple: true,
    value: '<input>=<rate>',
    about: 'Let an input take sound with that many samples per second',
  },
  window: {
    type: 'string',
    value: '<n>',
    about: 'Number of samples that the model takes at once',
  },
  context: {
    type: 'string',
    value: '<n>',
    about: 'Number of earlier samples that the model takes before each window',
  },
} as const

type BindingOptions = typeof BINDING_OPTIONS

/** Options as they were written. */
export type BindingFlags = {
  [Name in keyof BindingOptions]?: BindingOptions[Name] extends { multiple: true }
    ? string[]
    : string
}

/** Returns the wishes. Throws a usage error that names an invalid option. */
export function parseBindingFlags(flags: BindingFlags): BindingWishes {
  return {
    images: flags.image ?? [],
    layout: parseLayout(flags),
    outputs: parseOutputs(flags.output ?? []),
    states: new Map((flags.state ?? []).map((text) => parsePair('--state', text, 'input=output'))),
    sounds: parseSounds(flags),
    steps: parseStepFlags(flags.step),
    labels: parseLabelFlags(flags.labels),
  }
}

/** Parses each `tensor` or `name=tensor`. */
function parseOutputs(texts: readonly string[]): Map<string, string> {
  const outputs = new Map<string, string>()
  for (const text of texts) {
    const [name, tensor] = text.includes('=')
      ? parsePair('--output', text, 'name=output')
      : [text, text]
    if (outputs.has(name)) throw createUsageError(`--output names ${name} twice`)
    outputs.set(name, tensor)
  }
  return outputs
}

function parseLayout(flags: BindingFlags): Partial<ImageLayout> {
  const { mean, std, scale, size, channels, fit, padding, resample } = flags
  const multipleOf = flags['multiple-of']
  const [width, height] = size === undefined ? [] : parseSize(size)
  return {
    ...(width !== undefined && { width }),
    ...(height !== undefined && { height }),
    ...(multipleOf !== undefined && { multipleOf: parseCount('--multiple-of', multipleOf) }),
    ...(channels !== undefined && { channels: parseName('--channels', channels, CHANNELS) }),
    ...(fit !== undefined && { fit: parseName('--fit', fit, FITS) }),
    ...(resample !== undefined && { resample: parseName('--resample', resample, FILTERS) }),
    ...(padding !== undefined && { padding: { value: parseNumbers('--padding', padding) } }),
    ...(mean !== undefined && { mean: parseNumbers('--mean', mean) }),
    ...(std !== undefined && { std: parsePositive('--std', std) }),
    // A factor beside --audio is that of the samples.
    ...(scale !== undefined && !flags.audio && { scale: parseScale(scale) }),
  }
}

function parsePositive(option: string, text: string): number[] {
  const numbers = parseNumbers(option, text)
  if (numbers.every((number) => number > 0)) return numbers
  throw createUsageError(`${option} takes numbers greater than 0, not ${text}`)
}

function parseScale(text: string): number {
  const [scale, ...others] = parsePositive('--scale', text)
  if (scale !== undefined && others.length === 0) return scale
  throw createUsageError(`--scale takes one number, not ${text}`)
}

const CHANNELS = ['gray', 'rgb', 'bgr', 'rgba'] as const
const FITS = ['stretch', 'contain', 'cover', 'pad'] as const
const FILTERS = ['box', 'bilinear', 'bicubic', 'lanczos'] as const

/** Parses `320x48`, or `x48` and `320x` for one side. */
function parseSize(text: string): [width: number | undefined, height: number | undefined] {
  const [, width, height] = /^([1-9]\d{0,4})?x([1-9]\d{0,4})?$/.exec(text) ?? []
  if (width === undefined && height === undefined)
    throw createUsageError(`--size takes a width and a height such as 320x48 or x48, not ${text}`)
  return [
    width === undefined ? width : Number(width),
    height === undefined ? height : Number(height),
  ]
}

function parseSounds({
  audio = [],
  window,
  context,
  scale,
}: BindingFlags): Map<string, AudioLayout> {
  for (const [option, value] of Object.entries({ '--window': window, '--context': context }))
    if (value !== undefined && audio.length === 0)
      throw createUsageError(`${option} needs --audio, which names the input that takes sound`)
  return new Map(
    audio.map((text) => {
      const [name, rate] = parsePair('--audio', text, 'input=rate, such as input=16000')
      const layout: AudioLayout = { rate: parseRate(rate) }
      if (window !== undefined) layout.window = parseCount('--window', window)
      if (context !== undefined) layout.context = parseCount('--context', context)
      if (scale !== undefined) layout.scale = parseScale(scale)
      return [name, layout]
    }),
  )
}

function parseRate(text: string): number {
  const rate = parseCount('--audio', text)
  const [min, max] = SAMPLE_RATES
  if (rate >= min && rate <= max) return rate
  throw createUsageError(`--audio takes ${min} to ${max} samples per second, not ${text}`)
}
