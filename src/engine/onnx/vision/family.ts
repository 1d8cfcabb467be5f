/** Contract of a family of models that see images. */
import { isObject } from '../../../values/objects.ts'
import type { Pixels, ResampleFilter } from '../../../values/resample.ts'
import type { Files } from '../../engine.ts'
import { modelUnusable } from '../../failure.ts'
import type { ImageDetail, ImageGrid, PromptPiece } from '../../images.ts'
import { readJson } from '../../text/config.ts'

/** Width and height in pixels. */
export type Extent = readonly [width: number, height: number]

/** The pieces of a prompt for one image. They follow from the size of the image alone. */
export interface ImageArrangement {
  /** Pieces of the prompt, in order. Their numbers are counts of rows. */
  pieces: readonly PromptPiece[]
  /** Rows that each run of the encoder makes, in order. */
  runs: readonly number[]
  /**
   * Places of the rows, row by row, if the decoder knows them by their positions on three axes.
   * Default: a row is placed like a token.
   */
  grid?: ImageGrid
}

/** A decoded image, upright and opaque. */
export interface Picture {
  /** Returns the image scaled as Pillow does. */
  resize(size: Extent, filter: ResampleFilter): Pixels
  close(): void
}

/** Input of the encoder. It becomes a tensor of the type that the graph wants. */
export interface EncoderInput {
  type: 'float' | 'bool' | 'int64'
  data: Float32Array | Uint8Array | BigInt64Array
  dims: readonly number[]
}

/** Inputs of one run of the encoder, by name. */
export type EncoderInputs = Readonly<Record<string, EncoderInput>>

/** One family: how an image becomes a part of a prompt, and inputs of the encoder. */
export interface VisionFamily {
  /** Text of the token that the chat template writes in place of an image. */
  readonly placeholder: string
  /** Detail of an image that requests none. */
  readonly defaultDetail: ImageDetail
  /** Largest ratio of the longer to the shorter side. Default: all images are accepted. */
  readonly maxAspectRatio?: number
  /** `true` if arrangements have grids. Default: `false`. */
  readonly placesRows?: boolean
  /** Arranges an upright image of that size. */
  arrange(size: Extent, detail: ImageDetail): ImageArrangement
  /**
   * Prepares an image of that size. The result returns the inputs of one run of the encoder; it may
   * be called after the picture is closed.
   */
  prepare(picture: Picture, size: Extent, detail: ImageDetail): (run: number) => EncoderInputs
}

// Reads the settings of image processors. Absent ones have the defaults of the Python classes.

type Json = Record<string, unknown>

/** Settings from the files of a model. */
export interface ProcessorSettings {
  /** Type of the model in its configuration. */
  modelType: string
  config: Json
  /** Settings of images, wherever the export stores them. */
  image: Json
  /** Settings of the text around images. */
  processor: Json
}

/** Names of the filters by Pillow's numbers. */
const FILTERS: Readonly<Record<number, ResampleFilter>> = {
  1: 'lanczos',
  2: 'bilinear',
  3: 'bicubic',
  4: 'box',
}

/** Reads the settings. Files that are absent count as empty. */
export async function readProcessorSettings(files: Files): Promise<ProcessorSettings> {
  const read = async (name: string): Promise<Json> => (files.has(name) ? readJson(files, name) : {})
  const config = await read('config.json')
  const processor = await read('processor_config.json')
  // Newer exports have the settings of images only within those of the processor.
  const nested = processor['image_processor']
  const image = { ...(isObject(nested) ? nested : {}), ...(await read('preprocessor_config.json')) }
  return { modelType: String(config['model_type']), config, image, processor }
}

/** Returns a positive whole number at that path. Throws `unavailable` for another value. */
export function readCount(settings: Json, path: readonly string[], fallback: number): number {
  let value: unknown = settings
  for (const name of path) value = isObject(value) ? (value as Json)[name] : undefined
  if (value === undefined || value === null) return fallback
  if (Number.isSafeInteger(value) && (value as number) > 0) return value as number
  throw modelUnusable(`${path.join('.')} of its image processor is not a positive whole number.`)
}

/** Returns the filter with which images are scaled. Throws `unavailable` for an unknown one. */
export function readFilter({ image }: ProcessorSettings, fallback: ResampleFilter): ResampleFilter {
  const value = image['resample']
  if (value === undefined || value === null) return fallback
  const filter = FILTERS[Number(value)]
  if (filter) return filter
  throw modelUnusable(`resample ${String(value)} of its image processor is not supported.`)
}

/** Numbers by which a byte becomes `byte * factor - offset`, for red, green and blue. */
export type Normalization = readonly { factor: number; offset: number }[]

/** Returns the conversion of bytes to numbers. */
export function readNormalization(
  { image }: ProcessorSettings,
  mean: readonly number[] = [0.5, 0.5, 0.5],
  std: readonly number[] = [0.5, 0.5, 0.5],
): Normalization {
  const scale = image['do_rescale'] === false ? 1 : readNumber(image['rescale_factor'], 1 / 255)
  const normalizes = image['do_normalize'] !== false
  return [0, 1, 2].map((channel) => {
    const deviation = normalizes ? readChannel(image['image_std'] ?? std, channel) : 1
    const center = normalizes ? readChannel(image['image_mean'] ?? mean, channel) : 0
    return { factor: scale / deviation, offset: center / deviation }
  })
}

const readChannel = (value: unknown, channel: number): number =>
  readNumber(Array.isArray(value) ? value[channel] : value, 0.5)

/** Returns a finite number; `fallback` for any other value. */
export const readNumber = (value: unknown, fallback: number): number =>
  typeof value === 'number' && Number.isFinite(value) ? value : fallback
