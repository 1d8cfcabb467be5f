/** Sends one request for the missing bytes of a resource and writes the body as it arrives. */
import { getEtag, isOtherEtag, interpretResponse, wrongLengthError } from './download-response.ts'
import type { Assembly, DigestMismatch } from './assembly.ts'
import type { WantedResource } from './db.ts'
import { getPartAt } from './file-parts.ts'

/**
 * Result of a request. `ended` means that the body ended, complete or not. `next` means that a part
 * of the file, or a gap between stored chunks, is complete.
 */
export type RangeOutcome =
  | { type: 'ended' }
  | { type: 'next' }
  | { type: 'retry'; why: string; after: number | null; cause?: unknown }
  | { type: 'restart'; why: string }
  | { type: 'damaged'; damage: DigestMismatch }

export interface RangeRequestOptions {
  signal: AbortSignal
  /** Time in milliseconds without data after which the connection counts as dead. */
  stallTimeoutMs: number
  /** Called after every piece. */
  onBytes: (received: number) => void
}

/**
 * Requests the bytes from the assembly's position on and writes them. Throws an `InoriginError`
 * if a retry cannot help, and the signal's reason if it was aborted.
 */
export async function requestRange(
  wanted: WantedResource,
  assembly: Assembly,
  { signal, stallTimeoutMs, onBytes }: RangeRequestOptions,
): Promise<RangeOutcome> {
  const connection = openConnection(signal, stallTimeoutMs)
  try {
    const { part, from, end, last } = nextRange(wanted, assembly)
    const { value: response, retry } = await connection.wait(
      () =>
        fetch(part.url, {
          // This simple form of a range needs no CORS preflight, but `If-Range` would.
          headers: from > 0 || last !== null ? { range: `bytes=${from}-${last ?? ''}` } : {},
          // Firefox truncates huge responses while it writes them to its cache.
          cache: 'no-store',
          signal: connection.signal,
        }),
      'it cannot be reached, or its server rejects this origin (CORS)',
    )
    if (retry) return retry
    const file = { ...wanted, url: part.url, bytes: part.bytes }
    // The recorded ETag is that of the first part.
    const etag = part.start === 0 ? assembly.etag : null
    const action = interpretResponse(response, file, from, etag)
    if (action.type !== 'take') return action
    if (part.start === 0 && mustRestart(response, assembly))
      await assembly.restart(getEtag(response))
    else if (from > 0) assembly.join()
    /** Number of stored bytes that a server without range support sends again. */
    let resentBytes = assembly.position - part.start - action.from
    if (!response.body) return { type: 'ended' }
    const reader = response.body.getReader()
    for (;;) {
      const read = await connection.wait(() => reader.read(), 'the connection failed')
      if (read.retry) return read.retry
      const piece = read.value.value
      const isThere = assembly.position >= end && end < wanted.bytes
      if (!piece) return { type: isThere ? 'next' : 'ended' }
      const missing = end - assembly.position
      const newBytes = piece.subarray(resentBytes)
      resentBytes = Math.max(0, resentBytes - piece.length)
      if (newBytes.length > missing && last === null) {
        if (action.from === 0) throw wrongLengthError(file, 'more')
        return { type: 'restart', why: 'the server sent more bytes than are missing' }
      }
      const damage = await assembly.write(newBytes.subarray(0, missing))
      onBytes(piece.length)
      if (damage) return { type: 'damaged', damage }
      // Bytes past the requested range are stored already.
      if (last !== null && assembly.position >= end) return { type: 'next' }
    }
  } finally {
    connection.close()
  }
}

/**
 * Returns the part of the file at the assembly's position, where the request begins and ends in it
 * (`from`, `last`; `null` for its end), and the end in the file.
 */
function nextRange(wanted: WantedResource, assembly: Assembly) {
  const part = getPartAt(wanted, assembly.position)
  const partEnd = part.start + part.bytes
  const end = Math.min(partEnd, assembly.end)
  const last = end < partEnd ? end - part.start - 1 : null
  return { part, from: assembly.position - part.start, end, last }
}

type Received<T> = { value: T; retry?: undefined } | { value?: undefined; retry: RangeOutcome }

/** Connection of one request, which ends when no data arrive for some time. */
interface Connection {
  signal: AbortSignal
  /**
   * Waits for data. Resolves with `retry` if they do not come, for the reason `why`. Rejects if the
   * caller aborted the request.
   */
  wait<T>(work: () => Promise<T>, why: string): Promise<Received<T>>
  /** Cancels the request. */
  close(): void
}

function openConnection(signal: AbortSignal, stallTimeoutMs: number): Connection {
  const ending = new AbortController()
  return {
    signal: AbortSignal.any([signal, ending.signal]),
    async wait(work, why) {
      const timer = setTimeout(() => ending.abort(), stallTimeoutMs)
      try {
        return { value: await work() }
      } catch (cause) {
        signal.throwIfAborted()
        const silent = `no data arrived for ${stallTimeoutMs / 1000} s`
        const reason = ending.signal.aborted ? silent : why
        return { retry: { type: 'retry', why: reason, after: null, cause } }
      } finally {
        clearTimeout(timer)
      }
    },
    close: () => ending.abort(),
  }
}

/**
 * Returns `true` if a response with the whole file makes the stored bytes useless: there are none,
 * or its ETag is of another version. A repair keeps its chunks, whose hashes are known.
 */
function mustRestart(response: Response, { storedBytes, etag, isRepair }: Assembly): boolean {
  if (isRepair || response.status !== 200) return false
  return storedBytes === 0 || isOtherEtag(etag, getEtag(response))
}
