/** Parses the options of `inorigin add` that describe inputs and outputs. */
import type { AudioLayout, ImageLayout } from '../../catalog/schema.ts'
import type { BindingWishes } from '../../draft/wishes.ts'
import { createUsageError } from '../usage.ts'

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
  output: {
    type: 'string',
    multiple: true,
    value: '<name>',
    about: 'Declare only this output; may be repeated',
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
    outputs: flags.output ?? [],
    states: new Map((flags.state ?? []).map((text) => parsePair('--state', text, 'input=output'))),
    sounds: parseSounds(flags),
  }
}

function parseLayout(flags: BindingFlags): Partial<ImageLayout> {
  const { mean, std, size, channels, fit } = flags
  const multipleOf = flags['multiple-of']
  const [width, height] = size === undefined ? [] : parseSize(size)
  return {
    ...(width !== undefined && { width }),
    ...(height !== undefined && { height }),
    ...(multipleOf !== undefined && { multipleOf: parseCount('--multiple-of', multipleOf) }),
    ...(channels !== undefined && { channels: parseName('--channels', channels, CHANNELS) }),
    ...(fit !== undefined && { fit: parseName('--fit', fit, FITS) }),
    ...(mean !== undefined && { mean: parseNumbers('--mean', mean) }),
    ...(std !== undefined && { std: parseNumbers('--std', std) }),
  }
}

const CHANNELS = ['gray', 'rgb', 'bgr', 'rgba'] as const
const FITS = ['stretch', 'contain', 'cover', 'pad'] as const

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

function parseNumbers(option: string, text: string): number[] {
  const numbers = text.split(',').map((part) => (part.trim() === '' ? NaN : Number(part)))
  if (numbers.every((number) => Number.isFinite(number))) return numbers
  throw createUsageError(`${option} takes numbers such as 0.5 or 0.485,0.456,0.406, not ${text}`)
}

function parseCount(option: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw createUsageError(`${option} takes a number of at least 1, not ${text}`)
}

function parseName<T extends string>(option: string, text: string, names: readonly T[]): T {
  const found = names.find((name) => name === text)
  if (found !== undefined) return found
  throw createUsageError(`${option} takes ${names.join(', ')}, not ${text}`)
}

function parsePair(option: string, text: string, form: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
  throw createUsageError(`${option} takes ${form}, not ${text}`)
}

function parseSounds({ audio = [], window }: BindingFlags): Map<string, AudioLayout> {
  if (window !== undefined && audio.length === 0)
    throw createUsageError('--window needs --audio, which names the input that takes sound')
  return new Map(
    audio.map((text) => {
      const [name, rate] = parsePair('--audio', text, 'input=rate, such as input=16000')
      const layout: AudioLayout = { rate: parseCount('--audio', rate) }
      if (window !== undefined) layout.window = parseCount('--window', window)
      return [name, layout]
    }),
  )
}
