/** A model's files as the cache that WebLLM reads them from: nothing is fetched, nothing kept twice. */
import { LISTS } from '../../catalog/mlc/layout.ts'
import type { Files } from '../engine.ts'
import { modelUnusable } from '../failure.ts'

/** An address that is never asked: what is behind it is in {@link openArtifacts}. */
export const MODEL_URL = 'https://model.invalid/resolve/main/'

/**
 * As `caches` of the worker. A file that is not there rejects with `unavailable`, which names it,
 * where a cache would go and look for it.
 */
export function openArtifacts(files: Files): Pick<CacheStorage, 'open'> {
  const fileOf = (url: string): Blob => {
    const name = decodeURIComponent(url.slice(MODEL_URL.length))
    const names = LISTS.includes(name) ? LISTS : [name]
    const file = names.map((each) => files.get(each)).find((each) => each !== undefined)
    if (!url.startsWith(MODEL_URL) || !file) {
      throw modelUnusable(`its catalog entry has no resource named ${name}.`)
    }
    return file
  }
  const cache = {
    async match(request: RequestInfo | URL): Promise<Response> {
      return new Response(fileOf(request instanceof Request ? request.url : String(request)))
    },
    async keys(): Promise<Request[]> {
      return Array.from(files.keys(), (name) => new Request(new URL(name, MODEL_URL)))
    },
  }
  return { open: async () => cache as unknown as Cache }
}
