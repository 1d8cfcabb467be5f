/** Reads from a hub which files a repository has, with their lengths and digests. */
import * as v from 'valibot'
import { InoriginError } from '../../error.ts'
import { isObjectOrArray } from '../../values/objects.ts'
import type { HubSource } from '../schema.ts'
import { optionalString, sha256Schema, timestampSchema } from '../value-schemas.ts'
import type { HubFile } from './variants.ts'

/** Files of a repository at one commit. */
export interface Listing {
  revision: string
  /** Time when the repository was created, in RFC 3339. */
  created: string | undefined
  files: HubFile[]
}

export interface HubAccess {
  signal: AbortSignal
  /** Access token for private repositories. It is sent to this host only. */
  token?: string | undefined
}

const listingSchema = v.object({
  sha: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  // The field is optional information, so a mirror with another format is tolerated.
  createdAt: v.fallback(v.optional(timestampSchema), undefined),
  siblings: v.array(
    v.object({
      rfilename: v.string(),
      size: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
      blobId: optionalString,
      lfs: v.nullish(v.object({ sha256: sha256Schema })),
    }),
  ),
})

/**
 * Resolves with the files of a repository. Rejects with `unavailable` if the hub cannot be reached
 * or denies access, and with `not_found` if there is no such repository.
 */
export async function fetchListing(source: HubSource, access: HubAccess): Promise<Listing> {
  const { repository, revision, host } = source
  const path = `api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`
  const body = await fetchHub(source, new URL(path, host).href, access)
  const { success, output } = v.safeParse(listingSchema, parseJsonObject(body))
  if (!success)
    throw invalidHubResponseError(source, 'returned a list of files in an unknown format')
  const files = output.siblings.map(({ rfilename, size, blobId, lfs }) => {
    if (size === undefined || blobId === undefined)
      throw invalidHubResponseError(source, `does not report the size of ${rfilename}`)
    return { path: rfilename, bytes: size, sha256: lfs?.sha256 ?? null, blobId }
  })
  return { revision: output.sha, created: output.createdAt, files }
}

export function toFileUrl({ repository, host }: HubSource, revision: string, path: string): string {
  const parts = path.split('/').map(encodeURIComponent).join('/')
  return new URL(`${repository}/resolve/${revision}/${parts}`, host).href
}

/** Returns `true` if the error means that the server is no hub or has no such repository. */
export const isNotHubError = ({ code, details }: InoriginError): boolean =>
  code === 'hub_not_found' || code === 'hub_refused' || details?.['isStrange'] === true

/** Resolves with the content of a URL, at most `maxBytes` bytes. Every error says what to do. */
export async function fetchHub(
  source: HubSource,
  url: string,
  { signal, token }: HubAccess,
  maxBytes?: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const headers: Record<string, string> =
    token === undefined ? {} : { authorization: `Bearer ${token}` }
  const read = async (response: Response, pieces: Pieces) => {
    if (response.ok) return readAll(pieces)
    throw hubStatusError(source, response)
  }
  try {
    return await fetchBounded(url, { signal, headers, maxBytes }, read)
  } catch (cause) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    if (cause instanceof InoriginError) throw cause
    const what = `${source.repository} could not be looked up: ${source.host} cannot be reached`
    const todo =
      'Try again later, set "host" of the catalog entry to a mirror, or serve the files ' +
      'yourself and list them in the catalog.'
    throw unreachableError(`${what} (${String(cause)}). ${todo}`, cause)
  }
}

export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const json: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return isObjectOrArray(json) ? json : null
  } catch {
    return null
  }
}

function hubStatusError(source: HubSource, { status, headers }: Response): InoriginError {
  const { repository, revision, host } = source
  if (status === 404) {
    const what = `${host} has no repository ${repository} with the revision ${revision}`
    const message = `${what}. Correct the catalog entry.`
    return new InoriginError('not_found', message, { code: 'hub_not_found' })
  }
  if (status === 401 || status === 403) {
    const what = `${host} does not allow access to ${repository}, or has no such repository`
    const todo = 'Correct the catalog entry, or download the files and list them by URL.'
    return new InoriginError('unavailable', `${what}. ${todo}`, { code: 'hub_refused' })
  }
  const wait = Number(headers.get('retry-after'))
  const message = `${host} returned ${status} for ${repository}. Try again.`
  return unreachableError(message, undefined, wait > 0 ? wait : 5)
}

function invalidHubResponseError({ host, repository }: HubSource, what: string): InoriginError {
  const todo = 'Set "host" of the catalog entry to the hub itself or another mirror.'
  return new InoriginError('unavailable', `${host} ${what} (${repository}). ${todo}`, {
    code: 'hub_unreachable',
    details: { isStrange: true },
  })
}

export const unreachableError = (message: string, cause?: unknown, retryAfter = 5): InoriginError =>
  new InoriginError('unavailable', message, { code: 'hub_unreachable', retryAfter, cause })

export const unfitError = (what: string, where: 'files' | 'server'): InoriginError => {
  const message = `${what}. Correct the catalog entry, or the ${where}.`
  return new InoriginError('unavailable', message, { code: 'hub_unfit' })
}

// Fetches data for look-ups with limits on time and length, since the servers are not trusted.

/** Time in milliseconds that a server may take to respond, or to send the next piece. */
const STALL_TIMEOUT_MS = 30_000

/** Maximum length in bytes of a file to read into memory. No list, text or library is longer. */
export const MAX_SMALL_FILE_BYTES = 64 * 2 ** 20

export type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>

/**
 * Fetches a URL and resolves with the result of `read`, after which the request ends. Rejects with
 * `unavailable` if the body is too long, with an `Error` if no data arrives in time, and as `fetch`
 * does.
 */
export async function fetchBounded<T>(
  url: string,
  {
    signal,
    headers,
    maxBytes = MAX_SMALL_FILE_BYTES,
  }: {
    signal: AbortSignal
    headers?: Record<string, string>
    maxBytes?: number | undefined
  },
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
      if (bytes > maxBytes)
        throw unfitError(`${url} sent more than the limit of ${maxBytes} bytes`, 'server')
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

export async function readAll(pieces: Pieces): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const piece of pieces) parts.push(piece)
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}
