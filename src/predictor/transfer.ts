/** Inputs on their way between threads: what only a page has becomes what a worker can take. */
import { InoriginError } from '../error.ts'
import { refuse } from './refuse.ts'

/**
 * Lets `send` post the inputs, and frees what had to be made for that. Throws `invalid_request` that
 * names the input which cannot be posted.
 */
export async function carry<T>(
  inputs: Record<string, unknown>,
  send: (plain: Record<string, unknown>) => Promise<T>,
): Promise<T> {
  if (typeof inputs !== 'object' || inputs === null) {
    refuse('inputs', 'must be an object with a value for every input, by name.')
  }
  const plain = await toTransferable(inputs)
  try {
    return await send(plain)
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'DataCloneError') blame(plain, thrown)
    throw thrown
  } finally {
    // What the caller gave stays the caller's.
    const made = Object.entries(plain).filter(([name, value]) => value !== inputs[name])
    release(Object.fromEntries(made))
  }
}

/** Finds the input that cannot be posted; the browser does not say which it was. */
function blame(plain: Record<string, unknown>, cause: unknown): void {
  for (const [name, value] of Object.entries(plain)) {
    try {
      structuredClone(value)
    } catch {
      refuse(`inputs.${name}`, 'is nothing that a predictor can take.', cause)
    }
  }
}

/**
 * Inputs with canvases, images and videos replaced by bitmaps of what they show now; everything
 * else stays as it is. Throws `invalid_request` that names the input when there is nothing to show,
 * or another origin forbids it.
 */
export async function toTransferable(
  inputs: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const plain = { ...inputs }
  const made: ImageBitmap[] = []
  try {
    for (const [name, value] of Object.entries(inputs)) {
      const element = shown(value)
      if (element) made.push((plain[name] = await capture(element, `inputs.${name}`)))
    }
    return plain
  } catch (thrown) {
    for (const bitmap of made) bitmap.close()
    throw thrown
  }
}

/** Frees pixels of inputs that were received and are done with, before the collector would. */
export function release(inputs: Record<string, unknown>): void {
  for (const value of Object.values(inputs)) if (holdsPixels(value)) value.close()
}

function holdsPixels(value: unknown): value is ImageBitmap | VideoFrame {
  if (typeof ImageBitmap !== 'undefined' && value instanceof ImageBitmap) return true
  return typeof VideoFrame !== 'undefined' && value instanceof VideoFrame
}

type Shown = HTMLCanvasElement | HTMLImageElement | HTMLVideoElement | OffscreenCanvas

function shown(value: unknown): Shown | null {
  if (typeof OffscreenCanvas !== 'undefined' && value instanceof OffscreenCanvas) return value
  if (typeof HTMLElement === 'undefined' || !(value instanceof HTMLElement)) return null
  const { HTMLCanvasElement, HTMLImageElement, HTMLVideoElement } = globalThis
  const known = [HTMLCanvasElement, HTMLImageElement, HTMLVideoElement].find(
    (element) => value instanceof element,
  )
  return known ? (value as Shown) : null
}

async function capture(element: Shown, path: string): Promise<ImageBitmap> {
  if (typeof HTMLVideoElement !== 'undefined' && element instanceof HTMLVideoElement) {
    if (element.readyState < element.HAVE_CURRENT_DATA)
      refuse(path, 'the video shows no frame yet.')
  }
  try {
    if ('decode' in element) await element.decode()
    const bitmap = await createImageBitmap(element)
    checkReadable(bitmap, path)
    return bitmap
  } catch (thrown) {
    if (thrown instanceof InoriginError) throw thrown
    return refuse(
      path,
      'it shows no image that can be read: is it loaded, and larger than 0 x 0?',
      thrown,
    )
  }
}

/** A bitmap of another origin's pixels can be made, but neither read nor posted. */
function checkReadable(bitmap: ImageBitmap, path: string): void {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true })
  context?.drawImage(bitmap, 0, 0)
  try {
    context?.getImageData(0, 0, 1, 1)
  } catch (cause) {
    bitmap.close()
    refuse(
      path,
      'it shows pixels of another origin; load the image with crossorigin="anonymous".',
      cause,
    )
  }
}
