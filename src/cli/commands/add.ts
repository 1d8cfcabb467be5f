/** The command `inorigin add`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type AudioLayout, DTYPES, type ImageLayout, type Labels } from '../../catalog/schema.ts'
import type { BindingWishes, StepWish } from '../../draft/wishes.ts'
import { SAMPLE_RATES } from '../../values/elements.ts'
import { add, type AddOptions } from '../add.ts'
import { addFromHub } from '../add/from-hub.ts'
import {
  createUsageError,
  deferInterrupts,
  defineCommand,
  flag,
  type Parser,
  parserOf,
  repeated,
  valued,
  wrongValueError,
} from '../command.ts'
import { createProgress, printLines } from '../output.ts'
import { DIST, findRuntime } from '../library-files.ts'
import { getPublicFolder } from '../project-options.ts'
import { formatAddReport } from '../report.ts'

/** Options that describe inputs and outputs. */
const BINDING_OPTIONS = {
  image: repeated('<input>', 'Make an input an image; may be repeated'),
  size: valued('<w>x<h>', 'Size of images, such as 224x224, or x48 for a free width'),
  'multiple-of': valued('<n>', 'Make free sides of images multiples of n'),
  channels: valued('<name>', 'Channels of images: gray, rgb, bgr or rgba'),
  fit: valued('<mode>', 'Resize images by stretch, contain, cover or pad'),
  padding: valued('<numbers>', 'Pixels beside a padded image, from 0 to 255 (default: 0)'),
  scale: valued(
    '<number>',
    'Factor of pixels, from 0 to 255 (default: 1/255), or of samples, from -1 to 1',
  ),
  mean: valued('<numbers>', 'Mean to subtract from images, such as 0.485,0.456,0.406'),
  std: valued('<numbers>', 'Standard deviation to divide images by'),
  resample: valued(
    '<filter>',
    'Resize as Pillow does: nearest, box, bilinear, hamming, bicubic or lanczos',
  ),
  output: repeated('[<name>=]<out>', 'Declare only this output, and rename it; may be repeated'),
  step: repeated(
    '<out>=<step>',
    'Apply softmax, top-k, pool, entities or another step; may be repeated',
  ),
  labels: repeated(
    '<out>=<file>',
    'Name classes by a file beside the model, or by metadata:<key> of the model',
  ),
  state: repeated('<in>=<out>', 'Carry an output to the next prediction of a session'),
  audio: repeated('<input>=<rate>', 'Let an input take sound with that many samples per second'),
  window: valued('<n>', 'Number of samples that the model takes at once'),
  context: valued('<n>', 'Number of earlier samples that the model takes before each window'),
} as const

type BindingOptions = typeof BINDING_OPTIONS

export type BindingFlags = {
  [Name in keyof BindingOptions]?: BindingOptions[Name] extends { multiple: true }
    ? string[]
    : string
}

/** Returns the wishes. Throws a usage error that names an invalid option. */
export const parseBindingFlags = (flags: BindingFlags): BindingWishes => ({
  images: flags.image ?? [],
  layout: parseLayout(flags),
  outputs: parseOutputs(flags.output ?? []),
  states: new Map((flags.state ?? []).map((text) => parsePair('--state', text, 'input=output'))),
  sounds: parseSounds(flags),
  steps: parseStepFlags(flags.step),
  labels: parseLabelFlags(flags.labels),
})

function parseLayout(flags: BindingFlags): Partial<ImageLayout> {
  const [width, height] = parseIf('--size', flags.size, parseSize) ?? []
  const layout = {
    width,
    height,
    multipleOf: parseIf('--multiple-of', flags['multiple-of'], parseCount),
    channels: parseIf('--channels', flags.channels, oneOf(['gray', 'rgb', 'bgr', 'rgba'])),
    fit: parseIf('--fit', flags.fit, oneOf(['stretch', 'contain', 'cover', 'pad'])),
    resample: parseIf('--resample', flags.resample, oneOf(FILTERS)),
    padding: parseIf('--padding', flags.padding, (...given) => ({ value: parseNumbers(...given) })),
    mean: parseIf('--mean', flags.mean, parseNumbers),
    std: parseIf('--std', flags.std, parsePositive),
    // A factor beside --audio is that of the samples.
    scale: flags.audio ? undefined : parseIf('--scale', flags.scale, parseScale),
  }
  return withoutUndefined(layout)
}

const FILTERS = ['nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos'] as const

function parseOutputs(texts: readonly string[]): Map<string, string> {
  const outputs = new Map<string, string>()
  for (const text of texts) {
    const isRenamed = text.includes('=')
    const [name, tensor] = isRenamed ? parsePair('--output', text, 'name=output') : [text, text]
    if (outputs.has(name)) throw createUsageError(`--output names ${name} twice`)
    outputs.set(name, tensor)
  }
  return outputs
}

function parseSounds({ audio = [], window, context, scale }: BindingFlags) {
  for (const [option, value] of Object.entries({ '--window': window, '--context': context }))
    if (value !== undefined && audio.length === 0)
      throw createUsageError(`${option} needs --audio, which names the input that takes sound`)
  return new Map(
    audio.map((text): [string, AudioLayout] => {
      const [name, rate] = parsePair('--audio', text, 'input=rate, such as input=16000')
      const layout = {
        rate: parseRate(rate),
        window: parseIf('--window', window, parseCount),
        context: parseIf('--context', context, parseCount),
        scale: parseIf('--scale', scale, parseScale),
      }
      return [name, { rate: layout.rate, ...withoutUndefined(layout) }]
    }),
  )
}

function parseRate(text: string): number {
  const rate = parseCount('--audio', text)
  const [min, max] = SAMPLE_RATES
  if (rate >= min && rate <= max) return rate
  throw wrongValueError('--audio', `${min} to ${max} samples per second`, text)
}

const withoutUndefined = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>
  }

/** Default limit of file sizes in bytes. Hosts of static sites allow 25 MB or more. */
const MAX_FILE_BYTES = 25_000_000

const SOURCE_HELP = 'The model, the folder that holds it, or with --file its repository'
const DEVICES = ['webgpu', 'wasm'] as const

export const ADD = defineCommand({
  name: 'add',
  operands: [
    { name: 'model.onnx|model.gguf|folder|owner/name', about: SOURCE_HELP, isRequired: true },
  ],
  usage: '--tag @me/name [options]',
  about: [
    'Adds an ONNX model to your app as a predictor: drafts its signature from the inputs and',
    'outputs of the graph, tests it in the runtime, copies its files to',
    '<public>/inorigin/@me/name and lists it in <public>/inorigin/catalog.json. A folder with',
    'config.json becomes a chat model, or a predictor of its task, such as embeddings. A folder of',
    'ONNX Runtime GenAI, with genai_config.json, becomes a chat model. A folder of a model',
    'compiled by MLC, with its library, becomes a chat model that WebLLM runs. A GGUF file',
    'becomes a chat model; all parts of a split file must be beside it. With --file, pages',
    'download a GGUF file from a repository of a hub, and only its entry is written. The',
    'environment variable HF_TOKEN may hold an access token for the look-up.',
  ],
  options: {
    tag: valued('<tag>', 'Name that requests use for the model, such as @me/name'),
    name: valued('<name>', 'Display name (default: the file name)'),
    file: valued('<name>', 'GGUF file, or first part of one, in the repository or folder'),
    host: valued('<url>', 'Hub or mirror of the repository (default: https://huggingface.co)'),
    public: valued('<folder>', "Your app's public folder (default: the one passed to init)"),
    'max-file-bytes': valued(
      '<n>',
      `Split larger files, for hosts with a limit (default: ${MAX_FILE_BYTES})`,
    ),
    device: valued('<device>', 'Use only webgpu, or only wasm (default: both)'),
    dtypes: valued('<list>', 'Add only these precisions of a folder, such as q4,q4f16'),
    tensor: repeated(
      '<input>',
      'Keep an input that looks like an image as a tensor; may be repeated',
    ),
    ...BINDING_OPTIONS,
    force: flag('Replace an entry of that tag and its files'),
  },
  async run(flags, [source = '']) {
    const { tag, name, force = false, tensor: tensors = [] } = flags
    if (tag === undefined)
      throw createUsageError(`Name a tag for the model: inorigin add ${source} --tag @me/name`)
    const progress = createProgress(process.stderr)
    const { file, host } = flags
    const isLocal = existsSync(source)
    const options: AddOptions = {
      source: file !== undefined && isLocal ? join(source, file) : source,
      tag,
      name,
      force,
      tensors,
      wishes: parseBindingFlags(flags),
      publicDir: getPublicFolder(flags.public),
      maxFileBytes:
        parseIf('--max-file-bytes', flags['max-file-bytes'], parseByteCount) ?? MAX_FILE_BYTES,
      devices: flags.device === undefined ? DEVICES : [oneOf(DEVICES)('--device', flags.device)],
      dtypes: flags.dtypes?.split(',').map((one) => oneOf(DTYPES)('--dtypes', one)) ?? null,
      dist: DIST,
      runtime: findRuntime,
      signal: deferInterrupts(),
      onStep: progress.step,
    }
    if (host !== undefined && (file === undefined || isLocal))
      throw createUsageError('--host needs --file, and a repository such as owner/name')
    const adding =
      file === undefined || isLocal ? add(options) : addFromHub({ ...options, file, host })
    const result = await adding.finally(progress.end)
    return printLines(...formatAddReport(result, options))
  },
})

/** Settings of each step: whole numbers, numbers and flags. */
const SETTINGS: Readonly<Record<StepWish['step'], Readonly<Record<string, RegExp>>>> = {
  softmax: {},
  sigmoid: {},
  'top-k': { count: /^[1-9]\d{0,8}$/, threshold: /^-?\d+(\.\d+)?$/ },
  ctc: { blank: /^\d{1,9}$/, space: /^$/, delimiter: /^.+$/ },
  mask: { threshold: /^-?\d+(\.\d+)?$/ },
  pool: { by: /^(mean|first|last|max|mean-sqrt)$/ },
  normalize: {},
  entities: { by: /^(none|simple|first|average|max)$/ },
  span: { end: /^.+$/, longest: /^[1-9]\d{0,8}$/ },
  'zero-shot': { entailment: /^\d{1,9}$/ },
  'fill-mask': { mask: /^.+$/, count: /^[1-9]\d{0,8}$/ },
  objects: {
    boxes: /^.+$/,
    background: /^$/,
    count: /^[1-9]\d{0,8}$/,
    threshold: /^-?\d+(\.\d+)?$/,
  },
  segments: {},
  panoptic: { masks: /^.+$/, threshold: /^-?\d+(\.\d+)?$/ },
  resize: { by: /^(bilinear|bicubic)$/ },
  depth: {},
  cutout: {},
}

/** Settings that a step needs, with an example. */
const NEEDED: Partial<Record<StepWish['step'], readonly [key: string, example: string]>> = {
  pool: ['by', 'pool,by=mean'],
  span: ['end', 'span,end=end_logits'],
  'fill-mask': ['mask', 'fill-mask,mask=[MASK]'],
  objects: ['boxes', 'objects,boxes=pred_boxes'],
  panoptic: ['masks', 'panoptic,masks=masks_queries_logits'],
  resize: ['by', 'resize,by=bilinear'],
}

const STEPS = Object.keys(SETTINGS) as StepWish['step'][]

/** Parses `output=step,setting=value` into the steps of each output. Throws a usage error. */
function parseStepFlags(texts: readonly string[] = []): Map<string, StepWish[]> {
  const steps = new Map<string, StepWish[]>()
  for (const text of texts) {
    const [output, written] = parsePair('--step', text, 'output=step, such as y=softmax')
    steps.set(output, [...(steps.get(output) ?? []), parseStep(written)])
  }
  return steps
}

function parseStep(text: string): StepWish {
  const [name = '', ...settings] = text.split(',')
  const step = oneOf(STEPS)('--step', name)
  const known = SETTINGS[step]
  const parsed = settings.map((setting): [string, number | string | true] => {
    const [key = '', value = ''] = setting.split('=')
    const form = Object.hasOwn(known, key) ? known[key] : undefined
    const isNumber = value !== '' && Number.isFinite(Number(value))
    if (form?.test(value)) return [key, value === '' || (isNumber ? Number(value) : value)]
    const names = Object.keys(known).join(', ') || 'no settings'
    const wanted = form ? 'has an invalid value' : `is unknown: ${step} takes ${names}`
    throw createUsageError(`--step ${text}: ${setting} ${wanted}`)
  })
  const [needed, example] = NEEDED[step] ?? []
  if (needed !== undefined && !parsed.some(([key]) => key === needed))
    throw createUsageError(`--step takes \`${needed}\` for ${step}, such as y=${example}`)
  return { step, ...Object.fromEntries(parsed) } as StepWish
}

/** Parses `output=file` and `output=metadata:key`. Throws a usage error. */
const parseLabelFlags = (texts: readonly string[] = []): Map<string, Labels> =>
  new Map(
    texts.map((text) => {
      const [output, source] = parsePair('--labels', text, 'output=file, such as y=labels.txt')
      const key = /^metadata:(.+)$/.exec(source)?.[1]
      return [output, key === undefined ? { file: source } : { metadata: key }]
    }),
  )

// Parsers of single values.

const parseIf = <T>(option: string, text: string | undefined, parse: Parser<T>): T | undefined =>
  text === undefined ? undefined : parse(option, text)

/** Parses `320x48`, or `x48` and `320x` for one side. */
const parseSize = parserOf('a width and a height such as 320x48 or x48', (text) => {
  const [, ...sides] = /^([1-9]\d{0,4})?x([1-9]\d{0,4})?$/.exec(text) ?? []
  return sides.some(Boolean) ? sides.map((side) => (side ? Number(side) : undefined)) : undefined
})

/** Parses numbers with commas between them. */
const parseNumbers = parserOf('numbers such as 0.5 or 0.485,0.456,0.406', (text) => {
  const numbers = text.split(',').map((part) => (part.trim() === '' ? NaN : Number(part)))
  return numbers.every(Number.isFinite) ? numbers : undefined
})

function parsePositive(option: string, text: string): number[] {
  const numbers = parseNumbers(option, text)
  if (numbers.every((number) => number > 0)) return numbers
  throw wrongValueError(option, 'numbers greater than 0', text)
}

function parseScale(option: string, text: string): number {
  const [scale, ...others] = parsePositive(option, text)
  if (scale !== undefined && others.length === 0) return scale
  throw wrongValueError(option, 'one number', text)
}

const parseCount = parserOf('a number of at least 1', (text) =>
  /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined,
)

const parseByteCount = parserOf('a number of bytes', (text) =>
  /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined,
)

const oneOf = <const T extends string>(names: readonly T[]): Parser<T> =>
  parserOf(names.join(', '), (text) => names.find((name) => name === text))

/** Parses two texts with the first `=` between them. `form` describes them in the error. */
function parsePair(option: string, text: string, form: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
  throw wrongValueError(option, form, text)
}
