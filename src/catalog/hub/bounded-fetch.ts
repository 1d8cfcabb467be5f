/** Fetches data for look-ups with limits on time and length, since the servers are not trusted. */
import { InoriginError } from '../../error.ts'

/** Time in milliseconds that a server may take to respond, or to send the next piece. */
const STALL_TIMEOUT_MS = 30_000

/** Maximum length in bytes of a file to read into memory. No list, text or library is longer. */
export const MAX_SMALL_FILE_BYTES = 64 * 2 ** 20

/** Body of a response, piece by piece. */
export type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>

export interface BoundedFetchOptions {
  signal: AbortSignal
  headers?: Record<string, string>
  /** Maximum length of the body in bytes; default {@link MAX_SMALL_FILE_BYTES}. */
  maxBytes?: number | undefined
}

/**
 * Fetches a URL and resolves with the result of `read`, after which the request ends. Rejects with
 * `unavailable` if the body is too long, with an `Error` if no data arrives in time, and as `fetch`
 * does.
 */
export async function fetchBounded<T>(
  url: string,
  { signal, headers, maxBytes = MAX_SMALL_FILE_BYTES }: BoundedFetchOptions,
  read: (response: Response, pieces: Pieces) => Promise<T>,
): Promise<T> {
  const ending = new AbortController()
  const giveUp = () => ending.abort(new Error(`no data arrived for ${STALL_TIMEOUT_MS / 1000} s`))
  let timer = setTimeout(giveUp, STALL_TIMEOUT_MS)
  async function* piecesOf({ body }: Response): Pieces {
    const reader = body?.getReader()
    let bytes = 0
    for (;;) {
      const piece = (await reader?.read())?.value
      if (!piece) return
      clearTimeout(timer)
      timer = setTimeout(giveUp, STALL_TIMEOUT_MS)
      bytes += piece.length
      if (bytes > maxBytes) throw tooLongError(url, maxBytes)
      yield piece
    }
  }
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any([signal, ending.signal]) })
    return await read(response, piecesOf(response))
  } finally {
    clearTimeout(timer)
    ending.abort()
  }
}

/** Resolves with all pieces, joined in memory. */
export async function readAll(pieces: Pieces): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const piece of pieces) parts.push(piece)
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

function tooLongError(url: string, maxBytes: number): InoriginError {
  const what = `${url} sent more than the limit of ${maxBytes} bytes`
  return new InoriginError('unavailable', `${what}. Correct the catalog entry, or the server.`, {
    code: 'hub_unfit',
  })
}
