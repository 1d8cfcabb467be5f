/** Parses the options of `inorigin add` that describe inputs and outputs. */
import type { AudioLayout, ImageLayout } from '../../catalog/schema.ts'
import type { BindingWishes } from '../../draft/wishes.ts'
import { createUsageError } from '../usage.ts'

/** Options as they were written. */
export interface BindingFlags {
  image?: string[]
  mean?: string
  std?: string
  size?: string
  'multiple-of'?: string
  channels?: string
  fit?: string
  output?: string[]
  state?: string[]
  audio?: string[]
  window?: string
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
