/** The files behind predictions, for whoever asks for one by its hash. */
import type { Entry, Resource } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { WantedResource } from '../store/db.ts'
import { ensure } from '../store/ensure.ts'
import type { Database } from '../store/open.ts'
import { readResource, resourceRecord } from '../store/resources.ts'
import type { ResourceBody, ResourceInfo, Tag } from '../types/index.ts'
import type { Entries } from './entries.ts'
import type { Predictions } from './predictions.ts'

export interface Resources {
  info(sha256: string): Promise<ResourceInfo>
  /** Downloaded first where it is missing. */
  body(sha256: string, signal: AbortSignal): Promise<ResourceBody>
}

export interface ResourcesOptions {
  database: Database
  entries: Entries
  predictions: Predictions
  onDownload: () => void
}

export function createResources(options: ResourcesOptions): Resources {
  const { database, entries, predictions, onDownload } = options

  /** One of the catalog, or of a prediction that the catalog knows no more. */
  async function find(sha256: string): Promise<WantedResource | undefined> {
    const listed = resourcesOf(await entries.all()).find((resource) => resource.sha256 === sha256)
    return listed ?? predictions.resource(sha256)
  }

  async function tagOf(sha256: string): Promise<Tag | undefined> {
    const all = await entries.all()
    return all.find((entry) => resourcesOf([entry]).some((one) => one.sha256 === sha256))?.tag
  }

  /** Whatever is here whole is served, whoever it was stored for. */
  async function stored(sha256: string): Promise<ResourceBody | undefined> {
    const blob = await readResource(database, sha256)
    const record = blob && (await resourceRecord(database, sha256))
    return blob && { sha256, name: record?.name ?? sha256, blob }
  }

  return {
    async info(sha256) {
      const { name, bytes } = (await find(sha256)) ?? {}
      if (name !== undefined && bytes !== undefined) return { sha256, name, bytes }
      const body = await stored(sha256)
      if (!body) throw notFound(sha256)
      return { sha256, name: body.name, bytes: body.blob.size }
    },
    async body(sha256, signal) {
      const wanted = await find(sha256)
      const tag = wanted && (await tagOf(sha256))
      const files = wanted && (await ensure(database, [wanted], { signal, tag, onDownload }))
      const blob = wanted && files?.get(wanted.name)
      const body = blob ? { sha256, name: wanted.name, blob } : await stored(sha256)
      if (!body) throw notFound(sha256)
      return body
    },
  }
}

export function resourcesOf(entries: readonly Entry[]): Resource[] {
  return entries.flatMap((entry) => entry.implementations.flatMap((one) => one.resources))
}

function notFound(sha256: string): InoriginError {
  return new InoriginError('not_found', `No resource that is known here has the sha256 ${sha256}.`)
}
