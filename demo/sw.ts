/**
 * Service worker of the built playground. It keeps the page itself, as any app would; the library
 * keeps what is its own.
 */
import { attach } from '../sw/index.ts'
import { unlessSlow } from '../sw/slow-server.ts'

declare const self: ServiceWorkerGlobalScope

/** The files of the page, relative to this script. The build writes this before the script. */
declare const SHELL: { version: string; files: readonly string[] }

const PREFIX = `playground:${self.registration.scope}:`
const CACHE = PREFIX + SHELL.version
const urls = SHELL.files.map((file) => new URL(file, self.location.href).href)

attach()

self.addEventListener('install', (event) => event.waitUntil(keepShell()))
self.addEventListener('activate', (event) => {
  event.waitUntil(Promise.all([self.clients.claim(), removeOlder()]))
})
// Pages that are isolated do not come here: `attach()` answers them, from the same cache.
self.addEventListener('fetch', (event) => {
  const [url] = event.request.url.split('?')
  if (event.request.method === 'GET' && urls.includes(url ?? '')) {
    event.respondWith(answer(event.request))
  }
})

async function keepShell(): Promise<void> {
  const cache = await caches.open(CACHE)
  await cache.addAll(urls.map((url) => new Request(url, { cache: 'no-cache' })))
}

async function removeOlder(): Promise<void> {
  const older = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE)
  await Promise.all(older.map((name) => caches.delete(name)))
}

/** Answers from the server, or from the cache if the server is down or slow. */
async function answer(request: Request): Promise<Response> {
  const fetching = fetch(request)
  const fetched = await unlessSlow(fetching.catch(() => undefined))
  if (fetched && fetched.status < 500) return fetched
  return (await caches.match(request, { ignoreSearch: true })) ?? fetching
}
