import { InoriginError } from '../error.ts'
import type { ResourceBody } from '../types/index.ts'
import { errorResponse } from './errors.ts'
import { reply } from './reply.ts'

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

/** The one range that was asked for, 416 when it is not there, and the whole for anything else. */
export function resourceResponse(
  request: Request,
  { sha256, blob }: ResourceBody,
  requestId: string,
): Response {
  const { size } = blob
  const headers = {
    'content-type': 'application/octet-stream',
    'content-security-policy': 'sandbox',
    'accept-ranges': 'bytes',
    etag: `"${sha256}"`,
  }
  const range = freshRange(request.headers, headers.etag, size)
  if (range === undefined) {
    return reply(blob, { headers: { ...headers, 'content-length': String(size) } })
  }
  const [first, last] = range
  if (first > last) {
    const error = new InoriginError(
      'invalid_request',
      `The range is outside of the ${size} bytes there are.`,
    )
    return errorResponse(error, requestId, {
      status: 416,
      headers: { 'content-range': `bytes */${size}` },
    })
  }
  return reply(blob.slice(first, last + 1), {
    status: 206,
    headers: {
      ...headers,
      'content-length': String(last - first + 1),
      'content-range': `bytes ${first}-${last}/${size}`,
    },
  })
}

/** First and last byte; first after last when they are not there; `undefined` for the whole. */
function freshRange(
  headers: Headers,
  etag: string,
  size: number,
): [first: number, last: number] | undefined {
  const condition = headers.get('if-range')
  if (condition !== null && condition !== etag) return undefined
  const [, from = '', to = ''] =
    /^bytes=(\d*)-(\d*)$/.exec(headers.get('range')?.trim() ?? '') ?? []
  if (from === '' && to === '') return undefined
  if (from === '') return [Math.max(0, size - Number(to)), size - 1]
  if (to !== '' && Number(to) < Number(from)) return undefined
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  return [Number(from), last]
}
