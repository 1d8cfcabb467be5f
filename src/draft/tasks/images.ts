/** Drafts the preparation of images as `preprocessor_config.json` says. */
import type { ImageLayout } from '../../catalog/schema.ts'
import { isObject } from '../../values/objects.ts'
import type { OnnxModel, Value } from '../model.ts'
import { type Draft, imageClaim, type KeepTensor, layoutOf, tensorClaim } from '../signature.ts'
import { type Config, positive, type TaskFiles } from './files.ts'

/** Returns the draft with the image that the processor of the folder prepares. */
export function draftImages(
  draft: Draft,
  { inputs }: OnnxModel,
  { preprocessor, config }: TaskFiles,
  { tensors }: KeepTensor,
): Draft {
  const value = inputs.find(({ name }) => name === 'pixel_values')
  const kind = processorOf(preprocessor)
  if (!value || kind === '' || tensors.has(value.name)) return draft
  const base = layoutOf(value) ?? layoutOf(withChannels(value, config))
  if (!base) return draft
  const { width: fixedWidth, height: fixedHeight, ...free } = base
  const prepared = toLayout(preprocessor, kind)
  const image: ImageLayout = { ...free, ...prepared }
  // A graph of a fixed size knows better than a processor that leaves the size free.
  if (prepared.width === undefined && prepared.height === undefined) {
    if (fixedWidth !== undefined) image.width = fixedWidth
    if (fixedHeight !== undefined) image.height = fixedHeight
  }
  if (image.channels === 'gray') for (const key of ['mean', 'std'] as const) shorten(image, key)
  const signature = structuredClone(draft.signature)
  const parameter = signature.inputs.find(({ name }) => name === value.name)
  if (!parameter) return draft
  parameter.type = 'image'
  parameter.description = 'An image.'
  const shape = value.shape?.map((length) => (typeof length === 'number' ? length : null))
  const binding = { tensor: value.name, ...(shape && { shape }), image }
  return {
    ...draft,
    signature,
    bindings: { ...draft.bindings, [value.name]: binding },
    notes: [
      ...draft.notes.filter((note) => !isAbout(value.name, note)),
      ...noteUnread(preprocessor),
    ],
  }
}

/** Returns `true` for a note on whether the input is an image, which the processor has decided. */
const isAbout = (name: string, note: string): boolean =>
  note.startsWith(imageClaim(name)) || note.startsWith(tensorClaim(name))

/** Settings of processors that change pixels, and that no layout has. */
const UNREAD = ['do_pad', 'keep_aspect_ratio', 'size_divisor', 'do_thumbnail', 'do_align_long_axis']

const noteUnread = (preprocessor: Config): string[] =>
  UNREAD.filter((key) => Boolean(preprocessor[key])).map(
    (key) =>
      `preprocessor_config.json asks for ${key}, which is not done. Compare the outputs with those ` +
      'of the original model.',
  )

/** Returns the value with the number of channels that the configuration states, or 3. */
function withChannels(value: Value, config: Config): Value {
  const [batch = null, , height = null, width = null] = value.shape ?? []
  return { ...value, shape: [batch, positive(config['num_channels']) ?? 3, height, width] }
}

function shorten(image: ImageLayout, key: 'mean' | 'std'): void {
  const [first] = image[key] ?? []
  if (first !== undefined) image[key] = [first]
}

/** Returns the name of the processor's class without its ending; empty if it prepares no images. */
function processorOf(preprocessor: Config): string {
  const named = preprocessor['image_processor_type'] ?? preprocessor['feature_extractor_type']
  const name = typeof named === 'string' ? named : ''
  const kind = name.replace(/(ImageProcessor(Fast)?|FeatureExtractor)$/, '')
  const isImage =
    'size' in preprocessor || 'image_mean' in preprocessor || 'do_resize' in preprocessor
  return isImage ? kind || 'Unnamed' : ''
}

/** Filters of Pillow by their numbers. */
const FILTERS: Readonly<Record<number, NonNullable<ImageLayout['resample']>>> = {
  0: 'nearest',
  1: 'lanczos',
  2: 'bilinear',
  3: 'bicubic',
  4: 'box',
  5: 'hamming',
}

/** Processors whose filter is bicubic if their file names none. The others are bilinear. */
const BICUBIC = /^(CLIP|ChineseCLIP|DeiT|Levit|Beit|PoolFormer|DPT|Bit|Siglip|Siglip2|Blip)$/
/** Processors for which a number as the size is the length of the shorter side, not of both. */
const SHORTEST = /^(CLIP|ConvNext|Levit|MobileNetV1|MobileNetV2|MobileViT|PoolFormer|Bit|Deit)$/

const RESCALE_FACTOR = 1 / 255

function toLayout(preprocessor: Config, kind: string): Partial<ImageLayout> {
  const { rescale_factor: factor, do_rescale: isRescaled = true } = preprocessor
  const {
    image_mean: mean,
    image_std: std,
    do_normalize: isNormalized = mean !== undefined,
  } = preprocessor
  const scale = isRescaled ? (positive(factor) ?? RESCALE_FACTOR) : 1
  const isUsual = Math.abs(scale - RESCALE_FACTOR) < 1e-9
  // Such processors subtract 1 after they have scaled pixels to 0 to 2.
  const offset = preprocessor['rescale_offset'] === true ? 1 : 0
  const means = isNormalized ? toNumbers(mean) : undefined
  const stds = isNormalized ? toNumbers(std) : undefined
  const isFlipped = preprocessor['do_flip_channel_order'] === true
  const shifted = offset > 0 ? (means ?? [0]).map((one) => one + offset) : means
  return {
    ...toSizes(preprocessor, kind),
    ...(preprocessor['do_resize'] !== false && { resample: toFilter(preprocessor, kind) }),
    ...(isFlipped && { channels: 'bgr' }),
    ...(!isUsual && { scale }),
    ...(shifted && { mean: shifted }),
    ...(stds && { std: stds }),
  }
}

const toNumbers = (value: unknown): number[] | undefined =>
  Array.isArray(value) && value.every((one) => typeof one === 'number') ? value : undefined

const toFilter = ({ resample }: Config, kind: string): NonNullable<ImageLayout['resample']> =>
  FILTERS[resample as number] ?? (BICUBIC.test(kind) ? 'bicubic' : 'bilinear')

type Sizes = Pick<ImageLayout, 'width' | 'height' | 'resize'>

/** Returns the size to which the image is scaled, and that of the part which is cut out. */
function toSizes(preprocessor: Config, kind: string): Sizes {
  const crop = preprocessor['do_center_crop'] === false ? {} : toCrop(preprocessor)
  if (preprocessor['do_resize'] === false) return crop
  const { width, height, shortest, longest } = readSize(preprocessor['size'], kind)
  if (kind === 'ConvNext' && shortest !== undefined) return toConvNext(shortest, preprocessor)
  if (shortest !== undefined) {
    const length = kind === 'Levit' ? Math.floor((256 / 224) * shortest) : shortest
    return { ...crop, resize: { shortest: length, ...(longest !== undefined && { longest }) } }
  }
  if (width === undefined || height === undefined) return crop
  return crop.width === undefined ? { width, height } : { ...crop, resize: { width, height } }
}

/** Length of the shorter side from which this processor scales without a crop. */
const CONVNEXT_WHOLE = 384
const CONVNEXT_CROP = 224 / 256

function toConvNext(length: number, { crop_pct: share }: Config): Sizes {
  const size = { width: length, height: length }
  if (length >= CONVNEXT_WHOLE) return size
  const shortest = Math.floor(length / (positive(share) ?? CONVNEXT_CROP))
  return { ...size, resize: { shortest } }
}

function toCrop({ crop_size: size }: Config): Sizes {
  const { width, height } = readSize(size, '')
  return width === undefined || height === undefined ? {} : { width, height }
}

interface ReadSize {
  width?: number | undefined
  height?: number | undefined
  shortest?: number | undefined
  longest?: number | undefined
}

function readSize(size: unknown, kind: string): ReadSize {
  const length = positive(size)
  if (length !== undefined)
    return SHORTEST.test(kind) ? { shortest: length } : { width: length, height: length }
  if (Array.isArray(size)) return { height: positive(size[0]), width: positive(size[1]) }
  if (!isObject(size)) return {}
  return {
    width: positive(size['width']),
    height: positive(size['height']),
    shortest: positive(size['shortest_edge']),
    longest: positive(size['longest_edge']),
  }
}
