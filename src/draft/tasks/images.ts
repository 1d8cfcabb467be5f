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
  const value = findPixels(inputs)
  const kind = processorOf(preprocessor)
  if (!value || kind === '' || tensors.has(value.name)) return draft
  const base = layoutOf(value) ?? layoutOf(withChannels(value, config))
  if (!base) return draft
  const { width: fixedWidth, height: fixedHeight, ...free } = base
  const prepared = toLayout(preprocessor, kind)
  const mask = inputs.find(({ name }) => name === MASK && !tensors.has(name))
  const image: ImageLayout = { ...free, ...prepared, ...(mask && { mask: mask.name }) }
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
  const { [MASK]: ownMask, ...others } = draft.bindings
  if (mask) signature.inputs = signature.inputs.filter(({ name }) => name !== mask.name)
  const kept = mask || !ownMask ? others : { ...others, [MASK]: ownMask }
  return {
    ...draft,
    signature,
    bindings: { ...kept, [value.name]: binding },
    notes: [
      ...draft.notes.filter((note) => !isAbout(value.name, note)),
      ...noteUnread(preprocessor, kind, image),
    ],
  }
}

/** Input of detectors that tells pixels of an image from padding. */
const MASK = 'pixel_mask'

/** Returns the input for pixels, which has a usual name or is the only one of the shape of an image. */
function findPixels(inputs: readonly Value[]): Value | undefined {
  const named = inputs.find(({ name }) => name === 'pixel_values')
  const [only, ...others] = inputs
  return named ?? (others.length === 0 && only && layoutOf(only) ? only : undefined)
}

/** Returns `true` for a note on whether the input is an image, which the processor has decided. */
const isAbout = (name: string, note: string): boolean =>
  note.startsWith(imageClaim(name)) || note.startsWith(tensorClaim(name))

/** Processors that pad the images of a batch to the same size, and leave one alone as it is. */
const PADS_BATCHES =
  /^((Conditional|Deformable)?Detr|Yolos|RTDetr|RTDetrV2|MaskFormer|Mask2Former|GroundingDino)$/

/** Notes settings of processors that change pixels, and that no layout has. */
function noteUnread(preprocessor: Config, kind: string, { fit, resize }: ImageLayout): string[] {
  const isPadded = fit === 'pad' || (PADS_BATCHES.test(kind) && !preprocessor['pad_size'])
  const isRounded = fit === 'pad' || resize?.multipleOf !== undefined
  const keepsRatio = resize !== undefined && 'keepsRatio' in resize
  const unread = [
    ...(isPadded ? [] : ['do_pad', 'pad_size']),
    ...(isRounded ? [] : ['size_divisor']),
    ...(keepsRatio ? [] : ['keep_aspect_ratio']),
    'do_thumbnail',
    'do_align_long_axis',
  ]
  return unread
    .filter((key) => Boolean(preprocessor[key]))
    .map(
      (key) =>
        `preprocessor_config.json asks for ${key}, which is not done. Compare the outputs with those ` +
        'of the original model.',
    )
}

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
const SHORTEST =
  /^(CLIP|ConvNext|Levit|MobileNetV1|MobileNetV2|MobileViT|PoolFormer|Bit|Deit|(Conditional|Deformable)?Detr|Yolos|MaskFormer|Mask2Former)$/
/** Processors that round a side which a longest edge shortens to the nearest pixel. */
const NEAREST = /^((Conditional|Deformable)?Detr|Yolos|RTDetr|RTDetrV2|GroundingDino)$/

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

type Sizes = Pick<ImageLayout, 'width' | 'height' | 'resize' | 'fit' | 'multipleOf' | 'padding'>

/** Multiples of processors that leave them out of their file. */
const YOLOS_MULTIPLE = 16
const USUAL_DIVISOR = 32

/** Returns the size to which the image is scaled, and that of the part which is cut out. */
function toSizes(preprocessor: Config, kind: string): Sizes {
  const crop = preprocessor['do_center_crop'] === false ? {} : toCrop(preprocessor)
  const divisor = positive(preprocessor['size_divisor'])
  if (preprocessor['do_resize'] === false) {
    const isPadded = kind === 'DPT' && preprocessor['do_pad'] === true && divisor !== undefined
    return isPadded ? toPadded(divisor, preprocessor) : crop
  }
  if (kind === 'GLPN') return { resize: { multipleOf: divisor ?? USUAL_DIVISOR, round: 'down' } }
  const { width, height, shortest, longest } = readSize(preprocessor['size'], kind)
  if (kind === 'ConvNext' && shortest !== undefined) return toConvNext(shortest, preprocessor)
  if (shortest !== undefined) {
    const most = longest ?? positive(preprocessor['max_size'])
    const resize = {
      shortest: kind === 'Levit' ? Math.floor((256 / 224) * shortest) : shortest,
      ...(most !== undefined && { longest: most }),
      ...(NEAREST.test(kind) && { nearest: true }),
      ...(kind === 'Yolos' && { multipleOf: YOLOS_MULTIPLE, round: 'down' as const }),
      ...(/^Mask2?Former$/.test(kind) && {
        multipleOf: divisor ?? USUAL_DIVISOR,
        round: 'up' as const,
      }),
    }
    return { ...crop, resize }
  }
  if (width === undefined || height === undefined) return crop
  const multipleOf = kind === 'DPT' ? (positive(preprocessor['ensure_multiple_of']) ?? 1) : 1
  if (kind === 'DPT' && preprocessor['keep_aspect_ratio'] === true)
    return { resize: { width, height, keepsRatio: true, multipleOf } }
  if (multipleOf > 1) return { resize: { width, height, multipleOf } }
  return crop.width === undefined ? { width, height } : { ...crop, resize: { width, height } }
}

/** Returns the size of an image with zeros around it, which are added once it is normalized. */
function toPadded(multipleOf: number, { image_mean: mean, do_normalize: isNormalized }: Config) {
  const means = isNormalized === false ? undefined : toNumbers(mean)
  const value = means?.map((one) => one / RESCALE_FACTOR)
  return { fit: 'pad', multipleOf, padding: { side: 'both', ...(value && { value }) } } as const
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
