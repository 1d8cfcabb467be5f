import { InoriginError } from '../error.ts'
import type { ResourceBody, ResourceInfo } from '../types/index.ts'
import { withTimeout } from '../values/promises.ts'
import { errorResponse } from './errors.ts'
import { type Cancellation, createId, httpResponse } from './http.ts'

/**
 * Milliseconds during which an error can still become a status. Later, the headers are sent and the
 * body waits for the download, because browsers stop service workers that respond late.
 */
const STATUS_DEADLINE_MS = 1_000

/**
 * Throws `permission` if the browser would display or run the resource: as a page, a script, a
 * worker or a style. Requests of `fetch()` have no destination.
 */
export function assertScriptedFetch({ mode, destination }: Request): void {
  if (mode !== 'navigate' && destination === '') return
  const message =
    'Resources are not served as pages, scripts, workers or styles. Read this one with fetch().'
  throw new InoriginError('permission', message)
}

/** Returns the digest in `<sha256>` or `<sha256>/<name>`. Throws `not_found` if it is invalid. */
export function parseDigest(path: string): string {
  const sha256 = path.split('/', 1)[0]?.toLowerCase() ?? ''
  if (/^[0-9a-f]{64}$/.test(sha256)) return sha256
  throw new InoriginError(
    'not_found',
    'Unknown resource. Its path must be the 64 hexadecimal digits of its SHA-256.',
  )
}

/** Piece of a body: text, or a range of the resource's bytes. */
type BodySegment = string | ByteRange

/**
 * Resolves with the response to a request for a resource: the requested ranges with status 206, 304
 * if the client has it, 416 if no range is satisfiable, else the whole. `read` is only called when
 * bytes must be sent.
 */
export async function resourceResponse(
  request: Request,
  { sha256, bytes }: ResourceInfo,
  read: () => Promise<ResourceBody>,
  { cancellation, requestId }: { cancellation: Cancellation; requestId: string },
): Promise<Response> {
  const etag = `"${sha256}"`
  const common = {
    'content-security-policy': 'sandbox',
    'cross-origin-resource-policy': 'same-origin',
    'accept-ranges': 'bytes',
    etag,
  }
  if (isCached(request.headers, etag)) {
    const response = httpResponse(null, { status: 304, headers: common })
    response.headers.delete('content-type')
    return response
  }
  const ranges = isRanged(request, etag)
    ? parseRangeHeader(request.headers.get('range'), bytes)
    : undefined
  if (ranges?.length === 0) {
    const what = `The range is outside of the resource, which has ${bytes} bytes.`
    const error = new InoriginError('invalid_request', what)
    return errorResponse(error, requestId, {
      status: 416,
      headers: { 'content-range': `bytes */${bytes}` },
    })
  }
  const { segments, ...parts } = planBody(ranges, bytes)
  const lengths = segments.map((one) =>
    typeof one === 'string' ? one.length : one[1] - one[0] + 1,
  )
  const length = lengths.reduce((sum, each) => sum + each, 0)
  const headers = { ...common, ...parts.headers, 'content-length': String(length) }
  const status = ranges ? 206 : 200
  if (request.method === 'HEAD') return httpResponse(null, { status, headers })

  const loading = read().then(({ blob }) => toBlob(blob, segments))
  // The body fails with this error too; this only avoids an unhandled rejection.
  loading.catch(() => undefined)
  const body = await withTimeout(STATUS_DEADLINE_MS, loading, undefined)
  return httpResponse(body ?? pendingBody(loading, cancellation), { status, headers })
}

/** Returns `true` if the client has the resource. A weak tag counts, as bytes never change. */
function isCached(headers: Headers, etag: string): boolean {
  const tags = headers.get('if-none-match')?.split(',') ?? []
  return tags.some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
}

/** Returns `true` if ranges apply: only for GET, and only if `if-range` is absent or matches. */
function isRanged({ method, headers }: Request, etag: string): boolean {
  const condition = headers.get('if-range')
  return method === 'GET' && (condition === null || condition.trim() === etag)
}

const OCTET_STREAM = 'application/octet-stream'

function planBody(
  ranges: readonly ByteRange[] | undefined,
  size: number,
): { headers: Record<string, string>; segments: BodySegment[] } {
  if (!ranges) return { headers: { 'content-type': OCTET_STREAM }, segments: [[0, size - 1]] }
  const rangeOf = ([first, last]: ByteRange): string => `bytes ${first}-${last}/${size}`
  const [range, ...more] = ranges
  if (range && more.length === 0) {
    return {
      headers: { 'content-type': OCTET_STREAM, 'content-range': rangeOf(range) },
      segments: [range],
    }
  }
  const boundary = createId('part_')
  const head = (one: ByteRange): string =>
    `--${boundary}\r\ncontent-type: ${OCTET_STREAM}\r\ncontent-range: ${rangeOf(one)}\r\n\r\n`
  return {
    headers: { 'content-type': `multipart/byteranges; boundary=${boundary}` },
    segments: [
      ...ranges.flatMap((one): BodySegment[] => [head(one), one, '\r\n']),
      `--${boundary}--\r\n`,
    ],
  }
}

function toBlob(blob: Blob, segments: readonly BodySegment[]): Blob {
  return new Blob(
    segments.map((segment) =>
      typeof segment === 'string' ? segment : blob.slice(segment[0], segment[1] + 1),
    ),
  )
}

/** Returns the bytes of a download that has not finished. Cancelling the stream cancels it. */
function pendingBody(
  download: Promise<Blob>,
  cancellation: Cancellation,
): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        reader ??= (await download).stream().getReader()
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      // The cancellation is deferred for the reason given in `response-body.ts`.
      cancel(reason) {
        queueMicrotask(() => {
          cancellation.cancel()
          void reader?.cancel(reason)
        })
      },
    },
    { highWaterMark: 0 },
  )
}

// Parses the `Range` header of a request for a resource (RFC 9110, section 14).

/** Positions of the first and the last byte. */
type ByteRange = readonly [first: number, last: number]

/** Largest number of ranges. A request for more gets the whole resource. */
const MAX_RANGES = 64

/**
 * Returns the satisfiable ranges of a `Range` header, an empty array if none is satisfiable.
 * Returns `undefined` for the whole resource, also when the header is invalid. Ranges that overlap
 * are merged.
 */
function parseRangeHeader(header: string | null, size: number): ByteRange[] | undefined {
  const [, list] = /^\s*bytes\s*=(.*)$/i.exec(header ?? '') ?? []
  const all = list?.split(',').map((one) => one.trim()) ?? []
  const requested = all.filter((one) => one !== '')
  if (requested.length === 0 || requested.length > MAX_RANGES) return undefined
  const ranges: ByteRange[] = []
  for (const one of requested) {
    const [, from = '', to = ''] = /^(\d*)\s*-\s*(\d*)$/.exec(one) ?? []
    if (from === '' && to === '') return undefined
    if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
    const range: ByteRange =
      from === ''
        ? [Math.max(0, size - Number(to)), size - 1]
        : [Number(from), to === '' ? size - 1 : Math.min(Number(to), size - 1)]
    if (range[0] <= range[1]) ranges.push(range)
  }
  // Ranges that do not overlap keep their order.
  const merged = mergeRanges(ranges)
  return merged.length < ranges.length ? merged : ranges
}

function mergeRanges(ranges: readonly ByteRange[]): ByteRange[] {
  const joined: ByteRange[] = []
  for (const range of ranges.toSorted((one, other) => one[0] - other[0])) {
    const before = joined.at(-1)
    if (!before || range[0] > before[1]) joined.push(range)
    else joined[joined.length - 1] = [before[0], Math.max(before[1], range[1])]
  }
  return joined
}
