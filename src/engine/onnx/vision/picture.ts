/** Decodes image files. The browser decodes; scaling is Pillow's, which models were trained with. */
import { InoriginError } from '../../../error.ts'
import { type Pixels, resample } from '../../../values/resample.ts'
import type { ImageInput } from '../../images.ts'
import type { Picture } from './family.ts'

/**
 * Number of pixels that are read from the decoded image at once, 16 MiB of memory. An image of 64
 * megapixels would take 256 MiB as a whole.
 */
const MAX_STRIP_PIXELS = 2 ** 22

/**
 * Decodes an image: the first frame, turned upright, on white. Color profiles are ignored, as in
 * Python. Rejects with `invalid_request` if it cannot be decoded.
 */
export async function openPicture({ bytes, mediaType, place }: ImageInput): Promise<Picture> {
  let bitmap: ImageBitmap
  try {
    const file = new Blob([bytes], { type: mediaType })
    bitmap = await createImageBitmap(file, { colorSpaceConversion: 'none' })
  } catch (cause) {
    throw unreadableImage(place, cause)
  }
  return {
    resize: ([width, height], filter) => {
      // Pillow scales the rows first, each on its own, so they may come in strips.
      const wide = scaleStrips(bitmap, width, filter)
      return resample(wide, width, height, filter)
    },
    close: () => bitmap.close(),
  }
}

/** Returns the image scaled to that width, and as high as before. */
function scaleStrips(
  bitmap: ImageBitmap,
  width: number,
  filter: Parameters<typeof resample>[3],
): Pixels {
  const { width: ownWidth, height } = bitmap
  const rgba = new Uint8ClampedArray(width * height * 4)
  const stripHeight = Math.min(height, Math.max(1, Math.floor(MAX_STRIP_PIXELS / ownWidth)))
  const canvas = new OffscreenCanvas(ownWidth, stripHeight)
  const context = canvas.getContext('2d', { willReadFrequently: true })
  if (!context)
    throw new InoriginError('unavailable', 'This browser provides no 2D canvas to read images.')
  context.fillStyle = 'white'
  for (let top = 0; top < height; top += stripHeight) {
    const rows = Math.min(stripHeight, height - top)
    context.fillRect(0, 0, ownWidth, stripHeight)
    context.drawImage(bitmap, 0, top, ownWidth, rows, 0, 0, ownWidth, rows)
    const { data } = context.getImageData(0, 0, ownWidth, rows)
    const strip = resample({ rgba: data, width: ownWidth, height: rows }, width, rows, filter)
    rgba.set(strip.rgba, top * width * 4)
  }
  return { rgba, width, height }
}

/** Returns the error for bytes that are not an image, or not all of one. */
export function unreadableImage(place: string, cause?: unknown): InoriginError {
  const what = `\`${place}\` is not an image that can be read. Send a whole file of PNG, JPEG, GIF or WebP.`
  return new InoriginError('invalid_request', what, { code: 'invalid_image', param: place, cause })
}
