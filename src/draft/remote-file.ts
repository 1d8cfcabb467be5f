/** Reads parts of files on servers, such as the head of a model, without the rest. */
import {
  fetchBounded,
  type HubAccess,
  unfitError,
  unreachableError,
} from '../catalog/hub/resolve-hub.ts'
import { InoriginError } from '../error.ts'
import type { OpenFile } from './folder.ts'

/** A file on a server. */
export interface RemoteFile {
  url: string
  bytes: number
}

/** Default number of bytes that are read at once: each request takes time, however little it reads. */
const READ_BYTES = 4 * 2 ** 20

/** A file on a server that is read piece by piece. */
export class RemoteReader implements OpenFile {
  readonly size: number
  readonly #url: string
  readonly #access: HubAccess
  readonly #readBytes: number
  #start = 0
  #bytes = new Uint8Array(0)

  /** @param readBytes Number of bytes that are read at once. */
  constructor({ url, bytes }: RemoteFile, access: HubAccess, readBytes = READ_BYTES) {
    this.size = bytes
    this.#url = url
    this.#access = access
    this.#readBytes = readBytes
  }

  /** Resolves with the bytes of the range, cut at the end of the file. */
  async read(from: number, to: number): Promise<Uint8Array> {
    const last = Math.min(to, this.size)
    if (from < this.#start || last > this.#start + this.#bytes.length) {
      const end = Math.min(this.size, Math.max(last, from + this.#readBytes))
      this.#bytes = await fetchRange(this.#url, from, end, this.#access)
      this.#start = from
    }
    return this.#bytes.subarray(from - this.#start, last - this.#start)
  }

  async close(): Promise<void> {}
}

/** Fetches a part of a file. A server without ranges sends what is before it, too. */
function fetchRange(
  url: string,
  from: number,
  to: number,
  { signal, token }: HubAccess,
): Promise<Uint8Array<ArrayBuffer>> {
  const headers: Record<string, string> = { range: `bytes=${from}-${to - 1}` }
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`
  return fetchPart(url, { signal, headers }, async ({ status }, pieces) => {
    const bytes = new Uint8Array(to - from)
    let at = status === 206 ? from : 0
    for await (const piece of pieces) {
      const part = piece.subarray(Math.max(0, from - at), Math.max(0, to - at))
      bytes.set(part, Math.max(0, at - from))
      at += piece.length
      if (at >= to) return bytes
    }
    throw unfitError(`${url} ended at the byte ${at}, before the byte ${to}`, 'server')
  })
}

/** Resolves with the size of a file. */
export function fetchSize(url: string, access: HubAccess): Promise<number> {
  const { signal } = access
  return fetchPart(url, { signal, headers: { range: 'bytes=0-0' } }, async (response) => {
    const { headers, status } = response
    const [, total] = /\/(\d+)\s*$/.exec(headers.get('content-range') ?? '') ?? []
    // Other origins may hide the header that says the size of the whole file.
    const length = status === 206 ? total : headers.get('content-length')
    const bytes = Number(length ?? (await fetchLength(url, signal)))
    if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes
    throw unfitError(`The server of ${url} does not say its size`, 'server')
  })
}

async function fetchLength(url: string, signal: AbortSignal): Promise<string | null> {
  const { headers } = await fetch(url, { method: 'HEAD', signal })
  return headers.get('content-length')
}

type FetchBounded = typeof fetchBounded

/** Fetches a URL. Every error is `unavailable` or `aborted`, and says what to do. */
async function fetchPart<T>(
  url: string,
  options: Omit<Parameters<FetchBounded>[1], 'maxBytes'>,
  read: Parameters<typeof fetchBounded<T>>[2],
): Promise<T> {
  try {
    return await fetchBounded(url, { ...options, maxBytes: Infinity }, async (response, pieces) => {
      const { ok, status } = response
      if (ok) return read(response, pieces)
      const what = `${url} could not be looked up: the server returned ${status}`
      throw [401, 403, 404, 410].includes(status)
        ? unfitError(what, 'server')
        : unreachableError(`${what}. Try again later.`)
    })
  } catch (cause) {
    if (options.signal.aborted) throw InoriginError.from(options.signal.reason)
    if (cause instanceof InoriginError) throw cause
    const todo = 'Check the address, and that its server allows this origin by CORS.'
    throw unreachableError(`${url} could not be looked up: ${String(cause)}. ${todo}`, cause)
  }
}
