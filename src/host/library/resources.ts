/** Serves the files of predictions by their digest. */
import { InoriginError } from '../../error.ts'
import type { WantedResource } from '../../store/db.ts'
import type { ensureResources } from '../../store/ensure.ts'
import { isImported } from '../../store/imported-entries.ts'
import type { Database } from '../../store/database.ts'
import { hasResource, readResource, findResourceRecord } from '../../store/resources.ts'
import type { ResourceBody, ResourceInfo, Tag } from '../../types/index.ts'
import { createCatalogIndex, type Entries, resourcesOf } from './entries.ts'
import type { Predictions } from './predictions.ts'

/** A resource and the tag that it is stored for. */
interface LocatedResource {
  resource: WantedResource
  tag: Tag
  /** `true` if the catalog lists the resource. Its server should have the file then. */
  isListed: boolean
}

export function createResources(options: {
  database: Database
  entries: Entries
  predictions: Predictions
  ensure: typeof ensureResources
  onDownload: () => void
}) {
  const { database, ensure, entries, predictions, onDownload } = options
  /** Resolves with the resource from the catalog, or else from a stored prediction. */
  async function findKnown(sha256: string): Promise<LocatedResource | undefined> {
    for (const entry of await entries.all()) {
      const resource = resourcesOf([entry]).find((one) => one.sha256 === sha256)
      if (resource) return { resource, tag: entry.tag, isListed: true }
    }
    const recorded = await predictions.findResource(sha256)
    return recorded && { ...recorded, isListed: false }
  }

  async function find(sha256: string): Promise<LocatedResource | undefined> {
    const located = await findKnown(sha256)
    const isMissing =
      located && isImported(located.resource) && !(await hasResource(database, sha256))
    if (isMissing) throw importLost(located)
    return located
  }

  async function download(located: LocatedResource, signal: AbortSignal): Promise<ResourceBody> {
    const { resource, tag, isListed } = located
    const { sha256, name } = resource
    const catalogIndex = () => createCatalogIndex(entries)
    const downloading = ensure(database, [resource], { signal, tag, catalogIndex, onDownload })
    const files = await downloading.catch((error: unknown) => {
      const { code, details } = InoriginError.from(error)
      // The browser lost a part of the file, which must be imported again.
      if (code === 'import_lost') throw importLost(located, error)
      const isGone = details?.['status'] === 404 || details?.['status'] === 410
      throw isListed || !isGone ? error : resourceGone(located, error)
    })
    return { sha256, name, blob: files.get(name) as Blob }
  }

  /** Resolves with a complete stored resource, whatever tag it was stored for. */
  async function readStored(sha256: string): Promise<ResourceBody> {
    const blob = await readResource(database, sha256)
    if (!blob) throw notFound(sha256)
    const record = await findResourceRecord(database, sha256)
    return { sha256, name: record?.name ?? sha256, blob }
  }

  return {
    /**
     * Resolves with the name and size of the resource. Rejects with `not_found` if it is unknown and
     * not stored, or if it was imported and is no longer stored.
     */
    async info(sha256: string): Promise<ResourceInfo> {
      const located = await find(sha256)
      if (located) return { sha256, name: located.resource.name, bytes: located.resource.bytes }
      const { name, blob } = await readStored(sha256)
      return { sha256, name, bytes: blob.size }
    },
    /**
     * Resolves with the resource, which is downloaded first if it is missing. Rejects as `info` does,
     * and with the errors of a download.
     */
    async body(sha256: string, signal: AbortSignal): Promise<ResourceBody> {
      const located = await find(sha256)
      return located ? download(located, signal) : readStored(sha256)
    },
  }
}

function notFound(sha256: string): InoriginError {
  return new InoriginError('not_found', `Unknown resource: no file has the sha256 ${sha256}.`)
}

function resourceGone(
  { resource: { name, url }, tag }: LocatedResource,
  cause: unknown,
): InoriginError {
  const what =
    `${name} of ${tag} is no longer available: it is not in the catalog, ` +
    `not stored here and not found at ${url}`
  return new InoriginError('not_found', `${what}. Request another prediction of ${tag}.`, {
    code: 'resource_gone',
    cause,
  })
}

/** Returns a permanent error: only the user can provide the file again. */
function importLost({ resource: { name }, tag }: LocatedResource, cause?: unknown): InoriginError {
  const what = `${name} of ${tag} was imported from a local file and is no longer stored`
  const todo = 'Import it again with server.storage.import(). Its URL stays the same.'
  return new InoriginError('not_found', `${what}. ${todo}`, { code: 'import_lost', cause })
}
