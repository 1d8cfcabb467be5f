/** Reads the images of messages as data URLs of PNG. */
import { toBase64 } from '../../values/base64.ts'
import { domException } from './errors.ts'
import type { LanguageModelMessageContent, Message } from './types.ts'

/** Kinds of objects that `createImageBitmap()` accepts, and bytes. */
const IMAGE_KINDS = new Set([
  'Blob',
  'File',
  'ImageData',
  'ImageBitmap',
  'VideoFrame',
  'OffscreenCanvas',
  'HTMLCanvasElement',
  'HTMLImageElement',
  'HTMLVideoElement',
  'SVGImageElement',
])

/** An image of a message after it was read. */
export interface ReadImage {
  type: 'image'
  url: string
}

/** A part of a message after its image was read. */
export type ReadContent = Exclude<LanguageModelMessageContent, { type: 'image' }> | ReadImage

/** A message after its images were read. */
export interface ReadMessage extends Omit<Message, 'content'> {
  content: ReadContent[]
}

/** Returns `true` for an image, and for bytes that may be one. */
export function isImageSource(value: unknown): value is ImageBitmapSource | BufferSource {
  return isBytes(value) || IMAGE_KINDS.has(kindOf(value))
}

/** Returns the messages with the pixels that their images have now. */
export function readImages(messages: readonly Message[]): Promise<ReadMessage[]> {
  return Promise.all(
    messages.map(async (message) => ({
      ...message,
      content: await Promise.all(message.content.map(readPart)),
    })),
  )
}

async function readPart(part: LanguageModelMessageContent): Promise<ReadContent> {
  if (part.type !== 'image') return part
  const { value } = part
  if (!isImageSource(value)) throw new TypeError('The value of an image must be an image.')
  // The page may change the bytes while they are decoded.
  const source = isBytes(value) ? new Blob([copyBytes(value)]) : value
  return { type: 'image', url: await toDataUrl(source) }
}

async function toDataUrl(source: ImageBitmapSource): Promise<string> {
  const bitmap = await decode(source)
  try {
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height)
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
    const png = await canvas.convertToBlob({ type: 'image/png' })
    return `data:image/png;base64,${toBase64(new Uint8Array(await png.arrayBuffer()))}`
  } finally {
    bitmap.close()
  }
}

async function decode(source: ImageBitmapSource): Promise<ImageBitmap> {
  try {
    return await createImageBitmap(source)
  } catch (thrown) {
    if (!(source instanceof Blob)) throw thrown
    throw domException('EncodingError', 'The bytes of an image cannot be decoded.', thrown)
  }
}

function copyBytes(value: BufferSource): Uint8Array<ArrayBuffer> {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
    : new Uint8Array(new Uint8Array(value))
}

const isBytes = (value: unknown): value is BufferSource =>
  ArrayBuffer.isView(value) || ['ArrayBuffer', 'SharedArrayBuffer'].includes(kindOf(value))

/** Returns the name of the interface of an object, whichever frame it comes from. */
const kindOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1)
