/** Serves the files of predictions by their digest. */
import { InoriginError } from '../error.ts'
import type { WantedResource } from '../store/db.ts'
import type { ensureResources } from '../store/ensure.ts'
import { isImported } from '../store/imported-entries.ts'
import type { Database } from '../store/database.ts'
import { hasResource, readResource, findResourceRecord } from '../store/resources.ts'
import type { ResourceBody, ResourceInfo, Tag } from '../types/index.ts'
import type { Entries } from './entries.ts'
import { knownOf, resourcesOf } from './known.ts'
import type { Predictions } from './predictions.ts'

export interface Resources {
  /**
   * Resolves with the name and size of the resource. Rejects with `not_found` if it is unknown and
   * not stored, or if it was imported and is no longer stored.
   */
  info(sha256: string): Promise<ResourceInfo>
  /**
   * Resolves with the resource, which is downloaded first if it is missing. Rejects as `info` does,
   * and with the errors of a download.
   */
  body(sha256: string, signal: AbortSignal): Promise<ResourceBody>
}

/** A resource and the tag that it is stored for. */
interface Found {
  resource: WantedResource
  tag: Tag
  /** `true` if the catalog lists the resource. Its server should have the file then. */
  isListed: boolean
}

export interface ResourcesOptions {
  database: Database
  entries: Entries
  predictions: Predictions
  ensure: typeof ensureResources
  onDownload: () => void
}

export function createResources(options: ResourcesOptions): Resources {
  const { database, ensure, entries, predictions, onDownload } = options

  /** Resolves with the resource from the catalog, or else from a stored prediction. */
  async function known(sha256: string): Promise<Found | undefined> {
    for (const entry of await entries.all()) {
      const resource = resourcesOf([entry]).find((one) => one.sha256 === sha256)
      if (resource) return { resource, tag: entry.tag, isListed: true }
    }
    const given = await predictions.resource(sha256)
    return given && { ...given, isListed: false }
  }

  async function find(sha256: string): Promise<Found | undefined> {
    const found = await known(sha256)
    const isMissing = found && isImported(found.resource) && !(await hasResource(database, sha256))
    if (isMissing) throw lost(found)
    return found
  }

  async function bring(found: Found, signal: AbortSignal): Promise<ResourceBody> {
    const { resource, tag, isListed } = found
    const { sha256, name } = resource
    const how = { signal, tag, catalogIndex: () => knownOf(entries), onDownload }
    const files = await ensure(database, [resource], how).catch((error: unknown) => {
      if (isLost(error)) throw lost(found, error)
      throw isListed || !isGone(error) ? error : gone(found, error)
    })
    return { sha256, name, blob: files.get(name) as Blob }
  }

  /** Resolves with any complete stored resource, whatever tag it was stored for. */
  async function stored(sha256: string): Promise<ResourceBody | undefined> {
    const blob = await readResource(database, sha256)
    const record = blob && (await findResourceRecord(database, sha256))
    return blob && { sha256, name: record?.name ?? sha256, blob }
  }

  return {
    async info(sha256) {
      const found = await find(sha256)
      if (found) return { sha256, name: found.resource.name, bytes: found.resource.bytes }
      const body = await stored(sha256)
      if (!body) throw notFound(sha256)
      return { sha256, name: body.name, bytes: body.blob.size }
    },
    async body(sha256, signal) {
      const found = await find(sha256)
      if (found) return bring(found, signal)
      const body = await stored(sha256)
      if (!body) throw notFound(sha256)
      return body
    },
  }
}

function notFound(sha256: string): InoriginError {
  return new InoriginError('not_found', `Unknown resource: no file has the sha256 ${sha256}.`)
}

/** Returns `true` if the file must be imported again, because the browser lost part of it. */
function isLost(error: unknown): boolean {
  return error instanceof InoriginError && error.code === 'import_lost'
}

/** Returns `true` if the server responded that it does not have the file. */
function isGone(error: unknown): boolean {
  const status = error instanceof InoriginError && error.details?.['status']
  return status === 404 || status === 410
}

function gone({ resource: { name, url }, tag }: Found, cause: unknown): InoriginError {
  const what =
    `${name} of ${tag} is no longer available: it is not in the catalog, ` +
    `not stored here and not found at ${url}`
  return new InoriginError('not_found', `${what}. Request another prediction of ${tag}.`, {
    code: 'resource_gone',
    cause,
  })
}

/** Returns a permanent error: only the user can provide the file again. */
function lost({ resource: { name }, tag }: Found, cause?: unknown): InoriginError {
  const what = `${name} of ${tag} was imported from a local file and is no longer stored`
  const todo = 'Import it again with server.storage.import(). Its URL stays the same.'
  return new InoriginError('not_found', `${what}. ${todo}`, { code: 'import_lost', cause })
}
