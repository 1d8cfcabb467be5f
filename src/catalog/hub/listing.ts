/** What a hub says of a repository: its files, how long they are and what they hash to. */
import * as v from 'valibot'
import { InoriginError } from '../../error.ts'
import type { HubSource } from '../schema.ts'
import { timestamp } from '../values.ts'
import { fetching, type Pieces, wholeOf } from './fetching.ts'

/** One file of a repository at one commit. */
export interface HubFile {
  path: string
  bytes: number
  /** Of its content, where the hub keeps it as a large file; `null` for small ones. */
  sha256: string | null
  /** The id git knows it by: the SHA-1 of `blob`, its length and its content. */
  blobId: string
}

/** A repository at one commit. */
export interface Listing {
  /** The commit's hash: the same for ever. */
  revision: string
  /** When the repository was made, RFC 3339. */
  created: string | undefined
  files: HubFile[]
}

export interface HubAccess {
  signal: AbortSignal
  /** For repositories that are not public. Goes to that host and nowhere else. */
  token?: string | undefined
}

const listingSchema = v.object({
  sha: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  // Of no weight: a mirror that says it in another way says nothing.
  createdAt: v.fallback(v.optional(timestamp), undefined),
  siblings: v.array(
    v.object({
      rfilename: v.string(),
      size: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
      blobId: v.optional(v.string()),
      lfs: v.nullish(v.object({ sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)) })),
    }),
  ),
})

/**
 * The files of a repository. Rejects with `unavailable` when the hub cannot be reached or keeps the
 * repository to itself, `not_found` when there is none.
 */
export async function fetchListing(source: HubSource, access: HubAccess): Promise<Listing> {
  const { repository, revision, host } = source
  const path = `api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`
  const body = await fetchHub(source, new URL(path, host).href, access)
  const { success, output } = v.safeParse(listingSchema, jsonOf(body))
  if (!success) throw strange(source, 'lists the files of a repository in a form that is not known')
  const files = output.siblings.map(({ rfilename, size, blobId, lfs }) => {
    if (size === undefined || blobId === undefined) {
      throw strange(source, `does not say how long ${rfilename} is`)
    }
    return { path: rfilename, bytes: size, sha256: lfs?.sha256 ?? null, blobId }
  })
  return { revision: output.sha, created: output.createdAt, files }
}

/** Where a file can be downloaded at that commit. */
export function fileUrl({ repository, host }: HubSource, revision: string, path: string): string {
  const parts = path.split('/').map(encodeURIComponent).join('/')
  return new URL(`${repository}/resolve/${revision}/${parts}`, host).href
}

/** Whether what failed is that a server is no hub, or keeps no such repository in the way hubs do. */
export function isNoHub({ code, details }: InoriginError): boolean {
  return code === 'hub_not_found' || code === 'hub_refused' || details?.['isStrange'] === true
}

/**
 * The content of a good answer, of `most` bytes; every other one is an error that says what to do.
 */
export async function fetchHub(
  source: HubSource,
  url: string,
  { signal, token }: HubAccess,
  most?: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const headers: Record<string, string> =
    token === undefined ? {} : { authorization: `Bearer ${token}` }
  const read = async (response: Response, pieces: Pieces) => {
    if (response.ok) return wholeOf(pieces)
    throw refusal(source, response)
  }
  try {
    return await fetching(url, { signal, headers, most }, read)
  } catch (cause) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    if (cause instanceof InoriginError) throw cause
    const what = `${source.repository} could not be looked up: ${source.host} cannot be reached`
    const todo =
      'Try again when it can, set "host" of the catalog entry to a mirror, or serve the files ' +
      'yourself and list them in the catalog.'
    throw new InoriginError('unavailable', `${what} (${String(cause)}). ${todo}`, {
      code: 'hub_unreachable',
      retryAfter: 5,
      cause,
    })
  }
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return null
  }
}

function refusal(source: HubSource, { status, headers }: Response): InoriginError {
  const { repository, revision, host } = source
  if (status === 404) {
    const what = `${host} has no repository ${repository} with the revision ${revision}`
    return new InoriginError('not_found', `${what}. Correct the catalog entry.`, {
      code: 'hub_not_found',
    })
  }
  if (status === 401 || status === 403) {
    const what = `${host} does not give ${repository} to everyone, or has no such repository`
    const todo = 'Correct the catalog entry, or download the files and list them by URL.'
    return new InoriginError('unavailable', `${what}. ${todo}`, { code: 'hub_refused' })
  }
  const wait = Number(headers.get('retry-after'))
  return new InoriginError(
    'unavailable',
    `${host} answers ${status} for ${repository}. Try again.`,
    {
      code: 'hub_unreachable',
      retryAfter: wait > 0 ? wait : 5,
    },
  )
}

function strange({ host, repository }: HubSource, what: string): InoriginError {
  const todo = 'Set "host" of the catalog entry to the hub itself or another mirror.'
  return new InoriginError('unavailable', `${host} ${what} (${repository}). ${todo}`, {
    code: 'hub_unreachable',
    details: { isStrange: true },
  })
}
