/** Checks the images of a request, and describes them for the prompt. */
import type { Engine } from '../engine/engine.ts'
import type { ImageDetail, PromptImage } from '../engine/images.ts'
import { InoriginError } from '../error.ts'
import { MAX_HEADER_BYTES, readImageSize } from '../predictor/image-size.ts'
import { computeDigest } from '../values/text.ts'
import type { GenerationRequest, Image } from '../types/index.ts'

/** Maximum number of images in a request. */
const MAX_IMAGES = 100

/** Maximum number of pixels of an image, enough for 8,000 x 8,000. They are decoded in 256 MiB. */
const MAX_IMAGE_PIXELS = 2 ** 26

/** Maximum length of a side in pixels. No browser promises to decode longer ones. */
const MAX_IMAGE_SIDE_PIXELS = 16_384

export interface ImageOptions {
  /** Name of the part of the prefix cache. */
  partition?: string
  /** Detail of images that request none. */
  detail?: ImageDetail | undefined
  /** `false` to read only the headers of the files, which is enough to count. Default: `true`. */
  decodes?: boolean
}

/**
 * Resolves with the images of a request by their places. Rejects with `invalid_request` if the
 * engine accepts no images, or if one is too large or cannot be decoded; the error names it.
 */
export async function describeImages(
  engine: Pick<Engine, 'images'>,
  request: GenerationRequest,
  { partition = '', detail, decodes = true }: ImageOptions,
): Promise<ReadonlyMap<string, PromptImage>> {
  const { images: reader } = engine
  const described = new Map<string, PromptImage>()
  if (!reader) {
    if (hasImages(request)) throw imagesRefused(request)
    return described
  }
  const images = listImages(request)
  assertImageCount(images)
  for (const image of images) {
    const { bytes, mediaType, place } = image
    const digest = await computeDigest('SHA-256', bytes)
    const size = readSize(image)
    const wanted = image.detail ?? detail
    const input = { bytes, mediaType, place, size, digest, partition }
    const promptImage = reader.describe({ ...input, ...(wanted && { detail: wanted }) })
    if (decodes) await reader.assertReadable(promptImage)
    described.set(place, promptImage)
  }
  return described
}

/** Returns `true` if a message has an image. */
export const hasImages = (request: GenerationRequest): boolean => listImages(request).length > 0

/**
 * Returns the error for images that a model does not accept. It names the first image by its path,
 * and `instead`, the tag of a model that accepts images.
 */
export function imagesRefused(request: GenerationRequest, instead?: string): InoriginError {
  const place = listImages(request)[0]?.place ?? 'messages'
  const other = instead
    ? `use ${instead}`
    : 'use a model that has the capability image_input in /v1/models'
  return new InoriginError(
    'invalid_request',
    `\`${place}\` is an image, but ${request.model} does not accept images. Leave it out, or ${other}.`,
    { code: 'unsupported_parameter', param: place, details: { unsupported: [place] } },
  )
}

/** Returns the images of a request, in order. */
export const listImages = ({ messages }: GenerationRequest): Image[] =>
  messages.flatMap((message) => (message.role === 'user' ? (message.images ?? []) : []))

/** Throws `invalid_request` if a request has too many images. */
export function assertImageCount(images: readonly Image[]): void {
  const first = images[MAX_IMAGES]
  if (!first) return
  const what = `The request has ${images.length} images; at most ${MAX_IMAGES} are accepted.`
  throw new InoriginError('invalid_request', `${what} Leave out older ones.`, {
    code: 'too_many_images',
    param: first.place,
  })
}

/** Returns width and height from the file's header. */
function readSize({ bytes, place }: Image): readonly [width: number, height: number] {
  const size = readImageSize(bytes.subarray(0, MAX_HEADER_BYTES))
  if (!size) {
    const what = `\`${place}\` is not an image that can be read.`
    throw new InoriginError('invalid_request', `${what} Send a file of PNG, JPEG, GIF or WebP.`, {
      code: 'invalid_image',
      param: place,
    })
  }
  const [width, height] = size
  if (width * height <= MAX_IMAGE_PIXELS && Math.max(width, height) <= MAX_IMAGE_SIDE_PIXELS)
    return size
  throw new InoriginError(
    'invalid_request',
    `\`${place}\` has ${width} x ${height} pixels. Scale it down to at most ${MAX_IMAGE_PIXELS} ` +
      `pixels, and to ${MAX_IMAGE_SIDE_PIXELS} on each side.`,
    { code: 'image_too_large', param: place },
  )
}
