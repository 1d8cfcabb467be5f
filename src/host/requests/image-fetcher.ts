/** Fetches the images that a request names by URL, from the servers that the app allows. */
import { isBelow, shorten } from '../../values/text.ts'
import { type ErrorCode, InoriginError } from '../../error.ts'
import { assertImageCount, listImages } from '../../generation/images.ts'
import { readMediaType } from '../../predictor/image-size.ts'
import type { GenerationRequest, Image } from '../../types/index.ts'

/** Maximum number of bytes of all fetched images of a request, as many as of a request body. */
const MAX_FETCHED_BYTES = 32 * 2 ** 20

/** Time in milliseconds in which all images of a request must arrive. */
const FETCH_TIMEOUT_MS = 30_000

/**
 * Resolves with the request with the bytes of its images. Rejects with `invalid_request` that names
 * an image whose URL is not allowed or cannot be fetched.
 */
export type FetchImages = (
  request: GenerationRequest,
  signal: AbortSignal,
) => Promise<GenerationRequest>

/** Bytes that may still be fetched for a request. */
interface ByteBudget {
  left: number
}

/** Creates the function for URLs that are, or are below, one of the allowed ones. */
export function createImageFetcher(
  allowed: readonly string[],
  timeoutMs = FETCH_TIMEOUT_MS,
): FetchImages {
  return async (request, callerSignal) => {
    const images = listImages(request)
    const remote = images.filter(({ url }) => url !== undefined)
    if (remote.length === 0) return request
    assertImageCount(images)
    for (const image of remote) assertAllowed(image, allowed)
    const failed = new AbortController()
    const timeout = AbortSignal.timeout(timeoutMs)
    const signal = AbortSignal.any([callerSignal, timeout, failed.signal])
    const budget = { left: MAX_FETCHED_BYTES }
    const files = new Map<string, Promise<FetchedImage>>()
    for (const image of remote) {
      const { url = '' } = image
      // An agent repeats the same URLs in each request, and often within one.
      if (!files.has(url)) files.set(url, fetchImage(image, budget, signal))
    }
    try {
      await Promise.all(files.values())
    } catch (error) {
      // The other downloads have no use any more.
      failed.abort()
      callerSignal.throwIfAborted()
      throw error
    }
    return withFiles(request, files)
  }
}

type FetchedImage = Pick<Image, 'bytes' | 'mediaType'>

async function withFiles(
  request: GenerationRequest,
  files: ReadonlyMap<string, Promise<FetchedImage>>,
): Promise<GenerationRequest> {
  const fill = async ({ url, ...image }: Image): Promise<Image> => ({
    ...image,
    ...(url !== undefined && (await files.get(url))),
  })
  const messages = request.messages.map(async (message) =>
    message.role === 'user' && message.images
      ? { ...message, images: await Promise.all(message.images.map(fill)) }
      : message,
  )
  return { ...request, messages: await Promise.all(messages) }
}

function assertAllowed({ url = '', place }: Image, allowed: readonly string[]): void {
  if (URL.canParse(url) && allowed.some((one) => isBelow(new URL(url), one))) return
  const what = `\`${place}\` has the URL ${shorten(url)}, which this app does not fetch.`
  throw refused(
    place,
    'image_url_not_allowed',
    `${what} Send a data: URL, or allow the URL in \`serve({ imageUrls })\`.`,
  )
}

/** Resolves with the file. Redirects are refused, because they could lead to any server. */
async function fetchImage(
  { url = '', place }: Image,
  budget: ByteBudget,
  signal: AbortSignal,
): Promise<FetchedImage> {
  const fail = (why: string, cause?: unknown): InoriginError => {
    const what = `\`${place}\` could not be fetched from ${shorten(url)}: ${why}.`
    return refused(place, 'image_download_failed', `${what} Send it as a data: URL.`, cause)
  }
  let bytes: Image['bytes'] | undefined
  try {
    const response = await fetch(url, { credentials: 'omit', redirect: 'error', signal })
    if (!response.ok) throw fail(`the server answered with status ${response.status}`)
    bytes = await readBytes(response, budget)
  } catch (error) {
    if (error instanceof InoriginError) throw error
    if (signal.aborted) throw fail('it did not arrive in time', error)
    throw fail('the server is not reachable, redirects, or does not allow this page by CORS', error)
  }
  if (!bytes) {
    const what = `\`${place}\` exceeds the limit of ${MAX_FETCHED_BYTES} bytes for the images that a request names by URL.`
    throw refused(place, 'image_too_large', `${what} Send smaller images.`)
  }
  const mediaType = readMediaType(bytes)
  if (mediaType) return { bytes, mediaType }
  const what = `\`${place}\` is not an image that can be read.`
  throw refused(place, 'invalid_image', `${what} Send a file of PNG, JPEG, GIF or WebP.`)
}

/** Resolves with the body; `undefined` as soon as it exceeds the budget. */
async function readBytes(
  { body }: Response,
  budget: ByteBudget,
): Promise<Image['bytes'] | undefined> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  const reader = body?.getReader()
  for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
    budget.left -= part.value.length
    if (budget.left < 0) {
      await reader?.cancel()
      return undefined
    }
    parts.push(part.value)
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

const refused = (param: string, code: ErrorCode, message: string, cause?: unknown): InoriginError =>
  new InoriginError('invalid_request', message, { code, param, cause })
