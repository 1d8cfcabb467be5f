/**
 * Serves a model's files to WebLLM through a fake Cache API. Nothing is fetched, and no file is
 * stored twice.
 */
import { WEIGHT_LIST_FILES } from '../../catalog/mlc/model-files.ts'
import type { Files } from '../engine.ts'
import { resourceMissing } from '../failure.ts'

/** Base URL of the model's files. It is never fetched; {@link openArtifacts} serves its content. */
export const MODEL_URL = 'https://model.invalid/resolve/main/'

/**
 * Returns a replacement for the worker's `caches`. A match for a missing file rejects with
 * `unavailable` and names the file, so that WebLLM does not try to fetch it.
 */
export function openArtifacts(files: Files): Pick<CacheStorage, 'open'> {
  const fileOf = (url: string): Blob => {
    const name = decodeURIComponent(url.slice(MODEL_URL.length))
    const names = WEIGHT_LIST_FILES.includes(name) ? WEIGHT_LIST_FILES : [name]
    const file = names.map((each) => files.get(each)).find((each) => each !== undefined)
    if (!url.startsWith(MODEL_URL) || !file) {
      throw resourceMissing(name)
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
