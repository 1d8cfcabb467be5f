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
  const ending = new AbortController()
  const stallTimer = createStallTimer(stallTimeoutMs, () => ending.abort())
  const toRetry = (why: string, cause: unknown): RangeOutcome => {
    signal.throwIfAborted()
    const silent = `no data arrived for ${stallTimeoutMs / 1000} s`
    return { type: 'retry', why: ending.signal.aborted ? silent : why, after: null, cause }
  }
  try {
    const part = getPartAt(wanted, assembly.position)
    const from = assembly.position - part.start
    const partEnd = part.start + part.bytes
    const end = Math.min(partEnd, assembly.end)
    const last = end < partEnd ? end - part.start - 1 : null
    let response: Response
    try {
      stallTimer.renew()
      response = await fetch(part.url, {
        // This simple form of a range needs no CORS preflight, but `If-Range` would.
        headers: from > 0 || last !== null ? { range: `bytes=${from}-${last ?? ''}` } : {},
        // Firefox truncates huge responses while it writes them to its cache.
        cache: 'no-store',
        signal: AbortSignal.any([signal, ending.signal]),
      })
    } catch (thrown) {
      return toRetry('it cannot be reached, or its server rejects this origin (CORS)', thrown)
    } finally {
      stallTimer.rest()
    }
    const file = { ...wanted, url: part.url, bytes: part.bytes }
    // The recorded ETag is that of the first part.
    const action = interpretResponse(response, file, from, part.start === 0 ? assembly.etag : null)
    if (action.type !== 'take') return action
    if (part.start === 0 && mustRestart(response, assembly))
      await assembly.restart(getEtag(response))
    else if (from > 0) assembly.join()
    /** Number of stored bytes that a server without range support sends again. */
    let resentBytes = assembly.position - part.start - action.from
    if (!response.body) return { type: 'ended' }
    const reader = response.body.getReader()
    for (;;) {
      let piece: Uint8Array<ArrayBuffer> | undefined
      try {
        stallTimer.renew()
        piece = (await reader.read()).value
      } catch (thrown) {
        return toRetry('the connection failed', thrown)
      } finally {
        stallTimer.rest()
      }
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
    // This cancels the request on every path.
    ending.abort()
    stallTimer.rest()
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

/** Creates a timer that calls `onEnd` unless `rest` or `renew` is called in time. */
function createStallTimer(
  milliseconds: number,
  onEnd: () => void,
): { renew(): void; rest(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined
  const rest = () => clearTimeout(timer)
  return {
    rest,
    renew() {
      rest()
      timer = setTimeout(onEnd, milliseconds)
    },
  }
}
