/**
 * Implementations of earlier predictions. They are stored with the prediction, so that they can be
 * used again when the catalog no longer lists them.
 */
import * as v from 'valibot'
import { entrySchema, type Entry, type Implementation, type Resource } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { PredictionRecord } from '../store/db.ts'
import { isImported } from '../store/imported-entries.ts'
import type { Database } from '../store/database.ts'
import { getPartAt } from '../store/file-parts.ts'
import { hasResource } from '../store/resources.ts'

/** An implementation and its catalog entry. */
export interface Given {
  entry: Entry
  implementation: Implementation
}

/** Timeout in milliseconds for asking a server whether it still has a file. */
const PATIENCE = 10_000

/** Returns the data needed to run the implementation, as plain data without texts for people. */
export function keep({ entry, implementation }: Given): unknown {
  const { card: _, description: __, ...rest } = entry
  if (rest.type === 'predictor') return { ...rest, implementations: [implementation] }
  const { hub: ___, mlc: ____, ...model } = rest
  return { ...model, implementations: [implementation] }
}

/** Returns the stored implementation; `undefined` if another version stored it differently. */
export function kept({ entry }: PredictionRecord): Given | undefined {
  if (!v.is(entrySchema, entry)) return undefined
  const [implementation] = entry.implementations
  return implementation && { entry, implementation }
}

/** Returns the implementation of the record if the entry still has it with the same files. */
export function stillIn(entry: Entry, record: PredictionRecord): Implementation | undefined {
  const hashes = hashesOf(record)
  return entry.implementations.find(
    (one) => one.id === record.implementation && hashesOf(one) === hashes,
  )
}

const hashesOf = ({ resources }: { resources: readonly { sha256: string }[] }): string =>
  resources.map(({ sha256 }) => sha256).join()

/**
 * Resolves with the first resource that is neither stored nor available from its server;
 * `undefined` if there is none. Rejects with `unavailable` if a server cannot be asked.
 */
export async function firstGone(
  database: Database,
  resources: readonly Resource[],
  signal: AbortSignal,
): Promise<Resource | undefined> {
  for (const resource of resources) {
    if (await hasResource(database, resource.sha256)) continue
    if (isImported(resource) || !(await isServed(resource, signal))) return resource
  }
  return undefined
}

/**
 * Resolves with `true` if the server has the file. Rejects with `unavailable` if the server cannot
 * be reached, is busy or denies access.
 */
async function isServed(resource: Resource, signal: AbortSignal): Promise<boolean> {
  const { url, bytes } = getPartAt(resource, 0)
  const head = await ask(resource, url, { method: 'HEAD' }, signal)
  const { status } = head
  if (head.ok || status === 404 || status === 410) return head.ok && !isOther(head, bytes)
  if (isBusy(status)) throw unknown(resource, `${url} returned status ${status}`)
  // A server that rejects HEAD may accept the GET of a download. Signed URLs, for example, are only
  // valid for one method.
  const first = await ask(resource, url, { headers: { range: 'bytes=0-0' } }, signal)
  if (first.status === 401 || first.status === 403 || isBusy(first.status)) {
    throw unknown(resource, `${url} returned status ${first.status}`)
  }
  return first.status === 416 ? bytes === 0 : first.ok && !isOther(first, bytes)
}

const isBusy = (status: number): boolean =>
  (status >= 500 && status !== 501) || status === 429 || status === 408

/** Resolves with the status and headers of the response. Its body is canceled. */
async function ask(
  resource: Resource,
  url: string,
  init: RequestInit,
  signal: AbortSignal,
): Promise<Response> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)])
  try {
    const response = await fetch(url, { ...init, cache: 'no-store', signal: patience })
    void response.body?.cancel().catch(() => undefined)
    return response
  } catch (cause) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const why = `Cannot check whether ${url} is still available: its server cannot be reached`
    throw unknown(resource, why, cause)
  }
}

function unknown({ name }: Resource, why: string, cause?: unknown): InoriginError {
  return new InoriginError('unavailable', `${why}. ${name} is not stored here. Try again.`, {
    code: 'resource_unreachable',
    retryAfter: 5,
    cause,
  })
}

/**
 * Returns `true` if the response is a different file, such as the index page that servers of
 * single-page apps return for any path.
 */
function isOther({ headers, status, type }: Response, bytes: number): boolean {
  if (/^text\/html\b/i.test(headers.get('content-type') ?? '')) return true
  if (status === 206) {
    const total = /\/(\d+)\s*$/.exec(headers.get('content-range') ?? '')?.[1]
    return total !== undefined && Number(total) !== bytes
  }
  const length = headers.get('content-length')
  // `content-length` counts encoded bytes, and other origins hide `content-encoding` from the page.
  const isPlain = type === 'basic' && !headers.has('content-encoding')
  return isPlain && length !== null && Number(length) !== bytes
}
