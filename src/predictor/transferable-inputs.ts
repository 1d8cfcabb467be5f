/** Prepares inputs for a worker: elements and sound that exist only in pages are replaced. */
import { InoriginError } from '../error.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isInstanceOf } from '../values/objects.ts'
import { mixChannels, readWav, type Sound } from './audio.ts'

/** Calls `send` with inputs that can be posted, and frees the bitmaps that were made for it. */
export async function withTransferableInputs<T>(
  inputs: Record<string, unknown>,
  send: (plain: Record<string, unknown>) => Promise<T>,
): Promise<T> {
  if (typeof inputs !== 'object' || inputs === null)
    throwInvalidInput('inputs', 'must be an object with a value for every input, by name.')
  const plain = await toTransferable(inputs)
  try {
    return await send(plain)
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'DataCloneError')
      throwUncloneableInput(plain, thrown)
    throw thrown
  } finally {
    // Bitmaps of the caller stay open.
    const own = new Set(Object.values(inputs).flatMap(toArray))
    for (const value of Object.values(plain).flatMap(toArray))
      if (isOwned(value) && !own.has(value)) value.close()
  }
}

/** Finds the input that cannot be posted; the browser does not say which it was. */
function throwUncloneableInput(plain: Record<string, unknown>, cause: unknown): void {
  for (const [name, value] of Object.entries(plain)) {
    try {
      structuredClone(value)
    } catch {
      throwInvalidInput(`inputs.${name}`, `${describeUncloneable(value)}.`, cause)
    }
  }
}

function describeUncloneable(value: unknown): string {
  const images = toArray(value).filter(isOwnedImage)
  if (images.length === 0) return 'has a type that predictors do not take'
  if (images.some((image) => ('codedWidth' in image ? image.codedWidth : image.width) === 0))
    return 'the image has no pixels: it was closed or transferred'
  return 'it shows pixels of another origin; load the image with crossorigin="anonymous"'
}

const toArray = (value: unknown) =>
  Array.isArray(value) && typeof value[0] === 'object' ? value : [value]

/**
 * Resolves with the inputs, where canvases, images and videos are replaced by bitmaps of their
 * current content, and sound by its samples. Rejects with `invalid_request` that names an input
 * without content, or with content of another origin.
 */
export async function toTransferable(inputs: Record<string, unknown>) {
  const plain = { ...inputs }
  const created: ImageBitmap[] = []
  const replace = async (value: unknown, path: string): Promise<unknown> => {
    if (isPageSound(value)) return toPageSound(value, path)
    if (!isPageImage(value)) return value
    const bitmap = await captureBitmap(value, path)
    created.push(bitmap)
    return bitmap
  }
  try {
    for (const [name, value] of Object.entries(inputs)) {
      const path = `inputs.${name}`
      const several = toArray(value)
      const isList = value === several
      if (!several.some((one) => isPageImage(one) || isPageSound(one))) continue
      const replaced = several.map((one, at) => replace(one, isList ? `${path}[${at}]` : path))
      await Promise.allSettled(replaced)
      plain[name] = isList ? await Promise.all(replaced) : await replaced[0]
    }
    return plain
  } catch (thrown) {
    for (const bitmap of created) bitmap.close()
    throw thrown
  }
}

/** Closes the images and sound of received inputs, before the garbage collector would. */
export function closeImages(inputs: Record<string, unknown>): void {
  for (const value of Object.values(inputs).flatMap(toArray)) if (isOwned(value)) value.close()
}

const isOwnedImage = (value: unknown): value is ImageBitmap | VideoFrame =>
  isInstanceOf(value, ['ImageBitmap', 'VideoFrame'])

/** Returns `true` for a value that holds memory until it is closed. */
const isOwned = (value: unknown): value is ImageBitmap | VideoFrame | AudioData =>
  isOwnedImage(value) || isInstanceOf(value, ['AudioData'])

type PageImage = HTMLCanvasElement | HTMLImageElement | HTMLVideoElement | OffscreenCanvas

const PAGE_IMAGES = ['HTMLCanvasElement', 'HTMLImageElement', 'HTMLVideoElement', 'OffscreenCanvas']

const isPageImage = (value: unknown): value is PageImage => isInstanceOf(value, PAGE_IMAGES)

async function captureBitmap(element: PageImage, path: string): Promise<ImageBitmap> {
  if ('readyState' in element && element.readyState < element.HAVE_CURRENT_DATA)
    throwInvalidInput(path, 'the video shows no frame yet.')
  try {
    if ('decode' in element) await element.decode()
    return await createImageBitmap(element)
  } catch (thrown) {
    if (thrown instanceof InoriginError) throw thrown
    const what = 'it shows no readable image. Check that it is loaded and larger than 0 x 0.'
    return throwInvalidInput(path, what, thrown)
  }
}

/** Maximum size in bytes of a file that is decoded. Its samples take about ten times as much. */
const MAX_FILE_BYTES = 2 ** 24
/** Samples per second to which the browser decodes files that are not WAV. */
const DECODED_RATE = 48_000
/** Minimum and maximum of samples per second to which every browser can decode. */
const DECODABLE_RATES = [8000, 96_000] as const

/** Files that browsers decode. Some builds of Chromium lack m4a. */
const DECODABLE_FORMATS = 'Send wav, mp3, m4a, ogg, flac or webm.'

/** Returns `true` for an `AudioBuffer`, and for a file of sound or video by its type. */
export const isPageSound = (value: unknown): value is AudioBuffer | Blob =>
  isInstanceOf(value, ['AudioBuffer']) ||
  (value instanceof Blob &&
    /^(audio|video)\//.test(value.type) &&
    'OfflineAudioContext' in globalThis)

/** Resolves with the mono samples and their file. Rejects with `invalid_request` without sound. */
export async function toPageSound(
  value: AudioBuffer | Blob,
  path: string,
): Promise<Sound & { file?: Blob }> {
  if (!(value instanceof Blob)) return toSound(value)
  if (value.size > MAX_FILE_BYTES)
    throwInvalidInput(path, `is larger than ${MAX_FILE_BYTES} bytes. Send it in parts.`)
  const bytes = await value.arrayBuffer()
  // Chromium scales 16-bit samples above 0 by 32767 and those below by 32768, others all by 32768.
  const wav = readWav(new Uint8Array(bytes))
  if (wav) return { data: mixChannels(wav.data), sampleRate: wav.sampleRate, file: value }
  const context = new OfflineAudioContext(1, 1, findRate(bytes))
  try {
    return { ...toSound(await context.decodeAudioData(bytes)), file: value }
  } catch (cause) {
    const type = value.type || 'of an unknown type'
    const what = `this browser cannot decode its sound (${type}). ${DECODABLE_FORMATS}`
    return throwInvalidInput(path, what, cause)
  }
}

/** Returns the rate of a WAV file, so that its samples stay as they are, or the one of other files. */
function findRate(file: ArrayBuffer): number {
  const [min, max] = DECODABLE_RATES
  const isWav = /^RIFF.{4}WAVEfmt $/s.test(new TextDecoder('latin1').decode(file.slice(0, 16)))
  const rate = isWav && file.byteLength >= 28 ? new DataView(file).getUint32(24, true) : 0
  return rate >= min && rate <= max ? rate : DECODED_RATE
}

function toSound(buffer: AudioBuffer): Sound {
  const channels = Array.from({ length: buffer.numberOfChannels }, (_, channel) =>
    buffer.getChannelData(channel),
  )
  return { data: mixChannels(channels), sampleRate: buffer.sampleRate }
}
