import { InoriginError } from '../error.ts'
import type { ResourceBody, ResourceInfo } from '../types/index.ts'
import { errorResponse } from './errors.ts'
import { id } from './id.ts'
import { spansIn, type Span } from './ranges.ts'
import { reply } from './reply.ts'
import type { Work } from './work.ts'

/**
 * Milliseconds during which an error can still become a status. Later, the headers are sent and the
 * body waits for the download, because browsers stop service workers that respond late.
 */
const GRACE = 1_000

/**
 * Throws `permission` if the browser would display or run the resource: as a page, a script, a
 * worker or a style. Requests of `fetch()` have no destination.
 */
export function refuseLoads({ mode, destination }: Request): void {
  if (mode !== 'navigate' && destination === '') return
  const message =
    'Resources are not served as pages, scripts, workers or styles. Read this one with fetch().'
  throw new InoriginError('permission', message)
}

/** Returns the digest in `<sha256>` or `<sha256>/<name>`. Throws `not_found` if it is invalid. */
export function digestIn(path: string): string {
  const sha256 = path.split('/', 1)[0]?.toLowerCase() ?? ''
  if (/^[0-9a-f]{64}$/.test(sha256)) return sha256
  throw new InoriginError(
    'not_found',
    'Unknown resource. Its path must be the 64 hexadecimal digits of its SHA-256.',
  )
}

/** Piece of a body: text, or a range of the resource's bytes. */
type Piece = string | Span

/**
 * Resolves with the response to a request for a resource: the requested ranges with status 206, 304
 * if the client has it, 416 if no range is satisfiable, else the whole. `read` is only called when
 * bytes must be sent.
 */
export async function resourceResponse(
  request: Request,
  { sha256, bytes }: ResourceInfo,
  read: () => Promise<ResourceBody>,
  { work, requestId }: { work: Work; requestId: string },
): Promise<Response> {
  const etag = `"${sha256}"`
  const common = {
    'content-security-policy': 'sandbox',
    'cross-origin-resource-policy': 'same-origin',
    'accept-ranges': 'bytes',
    etag,
  }
  if (isKnown(request.headers, etag)) return noContent({ ...common })
  const spans = isRanged(request, etag) ? spansIn(request.headers.get('range'), bytes) : undefined
  if (spans?.length === 0) {
    const what = `The range is outside of the resource, which has ${bytes} bytes.`
    const error = new InoriginError('invalid_request', what)
    return errorResponse(error, requestId, {
      status: 416,
      headers: { 'content-range': `bytes */${bytes}` },
    })
  }
  const { pieces, ...parts } = partsOf(spans, bytes)
  const headers = { ...common, ...parts.headers, 'content-length': String(lengthOf(pieces)) }
  const status = spans ? 206 : 200
  if (request.method === 'HEAD') return reply(null, { status, headers })

  const reading = read().then(({ blob }) => join(blob, pieces))
  // The body fails with this error too; this only avoids an unhandled rejection.
  reading.catch(() => undefined)
  const body = await Promise.race([reading, elapsed(GRACE)])
  return reply(body ?? late(reading, work), { status, headers })
}

/** Returns `true` if the client has the resource. A weak tag counts, as bytes never change. */
function isKnown(headers: Headers, etag: string): boolean {
  const tags = headers
    .get('if-none-match')
    ?.split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
  return tags?.some((tag) => tag === '*' || tag === etag) ?? false
}

/** Returns `true` if ranges apply: only for GET, and only if `if-range` is absent or matches. */
function isRanged({ method, headers }: Request, etag: string): boolean {
  const condition = headers.get('if-range')
  return method === 'GET' && (condition === null || condition.trim() === etag)
}

function noContent(headers: Record<string, string>): Response {
  const response = reply(null, { status: 304, headers })
  response.headers.delete('content-type')
  return response
}

const BYTES = 'application/octet-stream'

function partsOf(
  spans: readonly Span[] | undefined,
  size: number,
): { headers: Record<string, string>; pieces: Piece[] } {
  if (!spans) return { headers: { 'content-type': BYTES }, pieces: [[0, size - 1]] }
  const rangeOf = ([first, last]: Span): string => `bytes ${first}-${last}/${size}`
  const [span, ...more] = spans
  if (span && more.length === 0) {
    return { headers: { 'content-type': BYTES, 'content-range': rangeOf(span) }, pieces: [span] }
  }
  const boundary = id('part_')
  const head = (one: Span): string =>
    `--${boundary}\r\ncontent-type: ${BYTES}\r\ncontent-range: ${rangeOf(one)}\r\n\r\n`
  return {
    headers: { 'content-type': `multipart/byteranges; boundary=${boundary}` },
    pieces: [...spans.flatMap((one): Piece[] => [head(one), one, '\r\n']), `--${boundary}--\r\n`],
  }
}

function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce(
    (sum, piece) => sum + (typeof piece === 'string' ? piece.length : piece[1] - piece[0] + 1),
    0,
  )
}

function join(blob: Blob, pieces: readonly Piece[]): Blob {
  return new Blob(
    pieces.map((piece) => (typeof piece === 'string' ? piece : blob.slice(piece[0], piece[1] + 1))),
  )
}

/** Returns the bytes of a download that has not finished. Cancelling the stream cancels it. */
function late(arriving: Promise<Blob>, work: Work): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        reader ??= (await arriving).stream().getReader()
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      // The cancellation is deferred for the reason given in `answer.ts`.
      cancel(reason) {
        queueMicrotask(() => {
          work.cancel()
          void reader?.cancel(reason)
        })
      },
    },
    { highWaterMark: 0 },
  )
}

function elapsed(milliseconds: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), milliseconds))
}
