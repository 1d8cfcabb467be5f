import { InoriginError } from '../error.ts'
import type { ResourceBody, ResourceInfo } from '../types/index.ts'
import { errorResponse } from './errors.ts'
import { id } from './id.ts'
import { spansIn, type Span } from './ranges.ts'
import { reply } from './reply.ts'
import type { Work } from './work.ts'

/**
 * Milliseconds in which what goes wrong can still be a status. From then on the headers are out, and
 * the body waits for the download: a service worker that keeps a request waiting does not live long.
 */
const GRACE = 1_000

/**
 * Refuses whoever would show or run a resource instead of reading it: a page opened on it, a
 * script, a worker, a style. What `fetch()` asks for has no destination.
 */
export function refuseLoads({ mode, destination }: Request): void {
  if (mode !== 'navigate' && destination === '') return
  const message =
    'A resource is data: read it with fetch(), it is not served to pages, scripts or styles.'
  throw new InoriginError('permission', message)
}

/** The digest in `<sha256>` or `<sha256>/<name>`; fails with `not_found` when it is none. */
export function digestIn(path: string): string {
  const sha256 = path.split('/', 1)[0]?.toLowerCase() ?? ''
  if (/^[0-9a-f]{64}$/.test(sha256)) return sha256
  throw new InoriginError(
    'not_found',
    'A resource is named by the 64 hexadecimal digits of its SHA-256.',
  )
}

/** What of a resource is sent: texts, and spans of its bytes. */
type Piece = string | Span

/**
 * The ranges that were asked for, 304 to whoever has it already, 416 when they are not there, and the
 * whole for anything else. `read` is called only when bytes are to be sent.
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
    const what = `The range is outside of the ${bytes} bytes there are.`
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
  // Whoever reads the body hears of it.
  reading.catch(() => undefined)
  const body = await Promise.race([reading, elapsed(GRACE)])
  return reply(body ?? late(reading, work), { status, headers })
}

/** Whether the client says that it has it. Weak or not, a tag stands for the very bytes. */
function isKnown(headers: Headers, etag: string): boolean {
  const tags = headers
    .get('if-none-match')
    ?.split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
  return tags?.some((tag) => tag === '*' || tag === etag) ?? false
}

/** Ranges are for GET alone, and only of what the client has the rest of. */
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

/** Bytes that are still on their way here; whoever does not want them any more stops that. */
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
      // As in `answer.ts`, not at once.
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
