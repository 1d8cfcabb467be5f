/** Keeps an app's own files in Cache Storage, so that its pages open without a network. */
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
    const cache = await caches.open(cacheName)
    await cache.addAll(urls.map((url) => new Request(url, { cache: 'no-cache' })))
  }

  async function removeOthers(): Promise<void> {
    const names = await caches.keys()
    const others = names.filter((name) => name.startsWith(prefix) && name !== cacheName)
    await Promise.all(others.map((name) => caches.delete(name)))
  }
}

async function fetchOrFind(request: Request): Promise<Response> {
  const fetching = fetch(request)
  const fetched = await unlessSlow(
    fetching.catch(() => undefined),
    undefined,
  )
  if (fetched && fetched.status < 500) return fetched
  return (await caches.match(request, { ignoreSearch: true })) ?? fetching
}

/** Resolves like the work of a web server, or otherwise after 3 s. Something kept can answer then. */
export const unlessSlow = <T, const Otherwise>(work: Promise<T>, otherwise: Otherwise) =>
  withTimeout(3_000, work, otherwise)
