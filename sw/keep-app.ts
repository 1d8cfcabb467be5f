/** Keeps an app's own files in Cache Storage, so that its pages open without a network. */
import { toStoredResponse } from '../src/values/asset-cache.ts'
import { withTimeout } from '../src/values/promises.ts'

declare const self: ServiceWorkerGlobalScope

/** The files of a build. */
export interface AppFiles {
  /** Text that differs between two builds, such as a digest of the page. */
  version: string
  /** URLs relative to the script. Name pages as they are requested: `./` for `index.html`. */
  files: readonly string[]
}

/**
 * Keeps these files when the script is installed, and answers requests for them: from the server, or
 * from the kept copy if the server is down, fails, or takes longer than 3 s. Deletes the files of
 * other versions. Call it after `attach()`, at the top level of the script.
 */
export function keepApp({ version, files }: AppFiles): void {
  const prefix = `inorigin-app:${self.registration.scope}:`
  const cacheName = prefix + version
  const urls = files.map((file) => new URL(file, self.location.href).href)

  self.addEventListener('install', (event) => event.waitUntil(keep()))
  self.addEventListener('activate', (event) => {
    event.waitUntil(Promise.all([self.clients.claim(), removeOthers()]))
  })
  // Pages that are isolated do not come here: `attach()` answers them, from the same cache.
  self.addEventListener('fetch', (event) => {
    const [url] = event.request.url.split('?')
    if (event.request.method === 'GET' && urls.includes(url ?? '')) {
      event.respondWith(fetchOrFind(event.request))
    }
  })

  async function keep(): Promise<void> {
    // Nothing is kept if a file is missing.
    const copies = await Promise.all(urls.map(async (url) => [url, await fetchFile(url)] as const))
    const cache = await caches.open(cacheName)
    await Promise.all(copies.map(([url, copy]) => cache.put(url, copy)))
  }

  async function removeOthers(): Promise<void> {
    const names = await caches.keys()
    const others = names.filter((name) => name.startsWith(prefix) && name !== cacheName)
    await Promise.all(others.map((name) => caches.delete(name)))
  }
}

/**
 * Fetches a file to keep. The copy is found by its address, whatever headers it varied by, and it answers
 * navigations even if the server redirected it.
 */
async function fetchFile(url: string): Promise<Response> {
  const response = await fetch(url, { cache: 'no-cache' })
  if (!response.ok)
    throw new Error(`${url} cannot be kept: the server returned ${response.status}.`)
  return toStoredResponse(await response.arrayBuffer(), response.headers)
}

async function fetchOrFind(request: Request): Promise<Response> {
  const fetching = fetch(request)
  const fetched = await unlessSlow(
    fetching.catch(() => undefined),
    undefined,
  )
  if (fetched && fetched.status < 500) return fetched
  return (await findKept(request)) ?? fetching
}

/** Resolves with the kept answer to a request, whatever headers it varies by. */
export const findKept = (request: Request): Promise<Response | undefined> =>
  caches.match(request, { ignoreSearch: true, ignoreVary: true })

/** Resolves like the work of a web server, or otherwise after 3 s. Something kept can answer then. */
export const unlessSlow = <T, const Otherwise>(work: Promise<T>, otherwise: Otherwise) =>
  withTimeout(3_000, work, otherwise)
