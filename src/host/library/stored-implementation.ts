/**
 * Implementations of earlier predictions. They are stored with the prediction, so that they can be
 * used again when the catalog no longer lists them.
 */
import * as v from 'valibot'
import { hasResources } from '../../catalog/memory-bytes.ts'
import {
  type Entry,
  entrySchema,
  type Implementation,
  type Resource,
} from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
import type { Database } from '../../store/database.ts'
import type { PredictionRecord } from '../../store/db.ts'
import { getPartAt } from '../../store/download.ts'
import { isImported } from '../../store/imported-entries.ts'
import { hasResource } from '../../store/resources.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { ResolvedImplementation } from '../models/models.ts'
import type { Entries } from './entries.ts'

/** Timeout in milliseconds for asking a server whether it still has a file. */
const PROBE_TIMEOUT_MS = 10_000

/** Returns the data needed to run the implementation, as plain data without texts for people. */
export function toStoredEntry({ entry, implementation }: ResolvedImplementation): unknown {
  const { card: _, description: __, upstreams: _____, ...rest } = entry
  if (rest.type === 'predictor') return { ...rest, implementations: [implementation] }
  const { hub: ___, gguf: ______, mlc: ____, ...model } = rest
  return { ...model, implementations: [implementation] }
}

/** Returns the stored implementation; `undefined` if another version stored it differently. */
export function parseStoredImplementation({
  entry,
}: PredictionRecord): ResolvedImplementation | undefined {
  if (!v.is(entrySchema, entry)) return undefined
  const [implementation] = entry.implementations
  return implementation && { entry, implementation }
}

/** Returns the implementation of the record if the entry still has it with the same files. */
export function findInEntry(entry: Entry, record: PredictionRecord): Implementation | undefined {
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
export async function findUnavailable(
  database: Database,
  resources: readonly Resource[],
  signal: AbortSignal,
): Promise<Resource | undefined> {
  for (const resource of resources) {
    if (await hasResource(database, resource.sha256)) continue
    if (isImported(resource) || !(await isOnServer(resource, signal))) return resource
  }
  return undefined
}

/**
 * Resolves with `true` if the server has the file. Rejects with `unavailable` if the server cannot
 * be reached, is busy or denies access.
 */
async function isOnServer(resource: Resource, signal: AbortSignal): Promise<boolean> {
  const { url, bytes } = getPartAt(resource, 0)
  const headResponse = await probe(resource, url, { method: 'HEAD' }, signal)
  const { status } = headResponse
  if (headResponse.ok || status === 404 || status === 410)
    return headResponse.ok && !isDifferentFile(headResponse, bytes)
  if (isBusy(status)) throw resourceUnreachable(resource, `${url} returned status ${status}`)
  // A server that rejects HEAD may accept the GET of a download. Signed URLs, for example, are only
  // valid for one method.
  const rangeResponse = await probe(resource, url, { headers: { range: 'bytes=0-0' } }, signal)
  if (
    rangeResponse.status === 401 ||
    rangeResponse.status === 403 ||
    isBusy(rangeResponse.status)
  ) {
    throw resourceUnreachable(resource, `${url} returned status ${rangeResponse.status}`)
  }
  return rangeResponse.status === 416
    ? bytes === 0
    : rangeResponse.ok && !isDifferentFile(rangeResponse, bytes)
}

const isBusy = (status: number): boolean =>
  (status >= 500 && status !== 501) || status === 429 || status === 408

/** Resolves with the status and headers of the response. Its body is canceled. */
async function probe(
  resource: Resource,
  url: string,
  init: RequestInit,
  signal: AbortSignal,
): Promise<Response> {
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)])
  try {
    const response = await fetch(url, { ...init, cache: 'no-store', signal: timeout })
    void response.body?.cancel().catch(() => undefined)
    return response
  } catch (cause) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const why = `Cannot check whether ${url} is still available: its server cannot be reached`
    throw resourceUnreachable(resource, why, cause)
  }
}

function resourceUnreachable({ name }: Resource, why: string, cause?: unknown): InoriginError {
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
function isDifferentFile({ headers, status, type }: Response, bytes: number): boolean {
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

/**
 * Resolves with the chosen implementation and its files, which are looked up if they are not
 * listed. If the files reveal further requirements, it chooses again. `device` is as in
 * {@link ImplementationSelector.select}.
 */
export async function resolveImplementation(
  { entries, selector }: { entries: Entries; selector: ImplementationSelector },
  entry: Entry,
  signal: AbortSignal,
  device?: string,
): Promise<ResolvedImplementation> {
  let complete = await entries.complete(entry, signal)
  for (;;) {
    const { implementation } = await selector.select(complete, device)
    if (hasResources(implementation)) return { entry: complete, implementation }
    complete = await entries.listFiles(complete, implementation, signal)
  }
}
