/** An implementation as it was once given, kept so that it can be given again without the catalog. */
import * as v from 'valibot'
import { entrySchema, type Entry, type Implementation, type Resource } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { PredictionRecord } from '../store/db.ts'
import { isImported } from '../store/entries.ts'
import type { Database } from '../store/open.ts'
import { partAt } from '../store/parts.ts'
import { hasResource } from '../store/resources.ts'

/** An implementation and the entry it is of. */
export interface Given {
  entry: Entry
  implementation: Implementation
}

/** Milliseconds for a server to say whether it still has a file. */
const PATIENCE = 10_000

/** What running it takes, as plain data; texts for people are left out. */
export function keep({ entry, implementation }: Given): unknown {
  const { card: _, description: __, ...rest } = entry
  if (rest.type === 'predictor') return { ...rest, implementations: [implementation] }
  const { hub: ___, mlc: ____, ...model } = rest
  return { ...model, implementations: [implementation] }
}

/** What was kept; `undefined` for records of a version that kept nothing, or kept it otherwise. */
export function kept({ entry }: PredictionRecord): Given | undefined {
  if (!v.is(entrySchema, entry)) return undefined
  const [implementation] = entry.implementations
  return implementation && { entry, implementation }
}

/** The implementation of that record, if the entry still has it with the same files. */
export function stillIn(entry: Entry, record: PredictionRecord): Implementation | undefined {
  const hashes = hashesOf(record)
  return entry.implementations.find(
    (one) => one.id === record.implementation && hashesOf(one) === hashes,
  )
}

const hashesOf = ({ resources }: { resources: readonly { sha256: string }[] }): string =>
  resources.map(({ sha256 }) => sha256).join()

/** The first of the resources that is neither stored nor to be had any more. */
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

/** Rejects with `unavailable` when the server cannot be asked, or keeps the answer to itself. */
async function isServed(resource: Resource, signal: AbortSignal): Promise<boolean> {
  const { url, bytes } = partAt(resource, 0)
  const head = await ask(resource, url, { method: 'HEAD' }, signal)
  const { status } = head
  if (head.ok || status === 404 || status === 410) return head.ok && !isOther(head, bytes)
  if (isBusy(status)) throw unknown(resource, `${url} answers ${status}`)
  // A server that does not take this question may still take the one of a download: addresses that are
  // signed are so for that one alone.
  const first = await ask(resource, url, { headers: { range: 'bytes=0-0' } }, signal)
  if (first.status === 401 || first.status === 403 || isBusy(first.status)) {
    throw unknown(resource, `${url} answers ${first.status}`)
  }
  return first.status === 416 ? bytes === 0 : first.ok && !isOther(first, bytes)
}

const isBusy = (status: number): boolean =>
  (status >= 500 && status !== 501) || status === 429 || status === 408

/** The head of the answer; whatever would follow is given up. */
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
    const why = `Whether ${url} can still be downloaded is not known: its server cannot be reached`
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

/** Whether it is another file, such as the index page that servers of single-page apps have for any. */
function isOther({ headers, status, type }: Response, bytes: number): boolean {
  if (/^text\/html\b/i.test(headers.get('content-type') ?? '')) return true
  if (status === 206) {
    const total = /\/(\d+)\s*$/.exec(headers.get('content-range') ?? '')?.[1]
    return total !== undefined && Number(total) !== bytes
  }
  const length = headers.get('content-length')
  // The length is that of what is sent; other origins do not let a page read whether it is encoded.
  const isPlain = type === 'basic' && !headers.has('content-encoding')
  return isPlain && length !== null && Number(length) !== bytes
}
