/** What servers send to look-ups, within bounds of time and length: they may be wrong, or mean harm. */
import { InoriginError } from '../../error.ts'

/** Milliseconds for a server to begin its answer, or to go on with it. */
const PATIENCE = 30_000

/** Bytes of what is read whole; no list, text or library is longer. */
export const SMALL = 64 * 2 ** 20

/** The body of an answer. */
export type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>

export interface FetchingOptions {
  signal: AbortSignal
  headers?: Record<string, string>
  /** Bytes that a body may have; default {@link SMALL}. */
  most?: number | undefined
}

/**
 * What `read` makes of the answer, which ends with it. Rejects with `unavailable` where more than that
 * many bytes are sent, with an `Error` that says so where nothing comes for long, and as `fetch` does.
 */
export async function fetching<T>(
  url: string,
  { signal, headers, most = SMALL }: FetchingOptions,
  read: (response: Response, pieces: Pieces) => Promise<T>,
): Promise<T> {
  const ending = new AbortController()
  const give = () => ending.abort(new Error(`nothing came for ${PATIENCE / 1000} s`))
  let timer = setTimeout(give, PATIENCE)
  async function* piecesOf({ body }: Response): Pieces {
    const reader = body?.getReader()
    let bytes = 0
    for (;;) {
      const piece = (await reader?.read())?.value
      if (!piece) return
      clearTimeout(timer)
      timer = setTimeout(give, PATIENCE)
      bytes += piece.length
      if (bytes > most) throw tooLong(url, most)
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

/** All of it, in memory. */
export async function wholeOf(pieces: Pieces): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const piece of pieces) parts.push(piece)
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

function tooLong(url: string, most: number): InoriginError {
  const what = `${url} sends more than the ${most} bytes that there can be of it`
  return new InoriginError('unavailable', `${what}. Correct the catalog entry, or the server.`, {
    code: 'hub_unfit',
  })
}
