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
 * other versions. If a file is missing, none is kept: the console says which, and the next visit tries
 * again. Call it after `attach()`, at the top level of the script.
 */
export function keepApp({ version, files }: AppFiles): void {
  const prefix = `inorigin-app:${self.registration.scope}:`
  const cacheName = prefix + version
  const urls = files.map((file) => new URL(file, self.location.href).href)
  let keeping: Promise<boolean> | undefined
  let replacing: Promise<void> | undefined

  self.addEventListener('install', (event) => event.waitUntil(keepOnce()))
  self.addEventListener('activate', (event) => {
    event.waitUntil(Promise.all([self.clients.claim(), replaceOthers()]))
  })
  // Pages that are isolated do not come here: `attach()` answers them, from the same cache.
  self.addEventListener('fetch', (event) => {
    const { method, mode, url } = event.request
    const isKnown = urls.includes(url.split('?', 1)[0] ?? '')
    if (method !== 'GET' || !(isKnown || mode === 'navigate')) return
    event.waitUntil(replaceOthers())
    event.respondWith(fetchOrFind(event))
  })

  async function keep(): Promise<void> {
    const cache = await caches.open(cacheName)
    if ((await cache.keys()).length >= urls.length) return
    const copies = (await Promise.all(urls.map(fetchCopies))).flat()
    await Promise.all(copies.map(([url, copy]) => cache.put(url, copy)))
  }

  /** Keeps all files, once each time that the script starts. Resolves with `false` if one is missing. */
  function keepOnce(): Promise<boolean> {
    keeping ??= keep().then(
      () => true,
      async (error: unknown) => {
        console.warn('inorigin: this app does not open without a network.', error)
        await caches.delete(cacheName).catch(() => false)
        return false
      },
    )
    return keeping
  }

  /** Deletes other versions once this one is kept. Until then, their pages can still open. */
  function replaceOthers(): Promise<void> {
    replacing ??= keepOnce().then((isKept) => (isKept ? removeOthers() : undefined))
    return replacing
  }

  async function removeOthers(): Promise<void> {
    const names = await caches.keys()
    const others = names.filter((name) => name.startsWith(prefix) && name !== cacheName)
    await Promise.all(others.map((name) => caches.delete(name)))
  }
}

/**
 * Fetches a file to keep, and returns its copies by address. They are found whatever headers the file
 * varied by. A page that the server redirects is kept at its last address, to which the first one leads.
 */
async function fetchCopies(url: string): Promise<[string, Response][]> {
  const response = await fetch(url, { cache: 'no-cache' })
  if (!response.ok)
    throw new Error(`${url} cannot be kept: the server returned ${response.status}.`)
  const copy = toStoredResponse(await response.arrayBuffer(), response.headers)
  if (!response.redirected || !isPage(response)) return [[url, copy]]
  return [
    [url, Response.redirect(response.url)],
    [response.url, copy],
  ]
}

/** The part of a `FetchEvent` that is used. Apps check this package with the types of pages, which have no `FetchEvent`. */
interface PageRequest {
  request: Request
  preloadResponse: Promise<unknown>
}

/**
 * Answers from the network, or with the navigation preload that the app's own script enabled. If that
 * fails, is slow or sends something else, answers with what a cache has.
 */
export async function fetchOrFind({ request, preloadResponse }: PageRequest): Promise<Response> {
  const fetching = (async () =>
    ((await preloadResponse) as Response | undefined) ?? (await fetch(request)))()
  const kept = await findKept(request)
  if (!kept) return fetching
  const checking = fetching.then(async (response) => {
    if (response.type === 'opaqueredirect') return response
    const isNavigation = request.mode === 'navigate'
    const isAnswer = isNavigation ? response.status < 500 : response.ok
    // A proxy or a captive portal sends a page of its own in place of a script.
    const isRight = isNavigation || isPage(kept) || !isPage(response)
    return isAnswer && isRight && (await hasContent(response)) ? response : undefined
  })
  const fetched = await unlessSlow(
    checking.catch(() => undefined),
    undefined,
  )
  return fetched ?? kept
}

/** Resolves with the kept answer to a request, whatever headers it varies by. */
const findKept = (request: Request): Promise<Response | undefined> =>
  caches.match(request, { ignoreSearch: true, ignoreVary: true }).catch(() => undefined)

/** Returns `true` for HTML. */
export const isPage = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/html') ?? false

/** Resolves with `false` for a body without a byte. The response can still be read. */
export async function hasContent(response: Response): Promise<boolean> {
  const reader = response.clone().body?.getReader()
  const first = await reader?.read()
  void reader?.cancel().catch(() => undefined)
  return first?.done === false
}

/** Resolves like the work of a web server, or otherwise after 3 s. Something kept can answer then. */
export const unlessSlow = <T, const Otherwise>(work: Promise<T>, otherwise: Otherwise) =>
  withTimeout(3_000, work, otherwise)
