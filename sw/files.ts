/** Files that the service worker answers: pages that it isolates, and the library's own. */
import { ASSETS_PARAM, ISOLATE_PARAM, names, OFFLINE_PARAM } from '../src/link/protocol.ts'
import { parseFlag } from '../src/validate-arguments.ts'
import { removeAssets } from '../src/values/asset-cache.ts'
import { createAssets } from './assets.ts'
import { chooseIsolationPolicy, headersFor, withHeaders } from './isolation.ts'
import { unlessSlow } from './slow-server.ts'

declare const self: ServiceWorkerGlobalScope

export interface FileOptions {
  isolate?: boolean
  offline?: boolean
}

export interface Files {
  /** `true` if pages are isolated, and this browser is known to honor that. */
  isolates: boolean
  /** Returns the answer to a request for a page, or for a file of the library; `null` for others. */
  respond(event: FetchEvent): Promise<Response> | null
}

/** Opens the files. An app that turned keeping off loses those that were kept before. */
export function openFiles({ isolate, offline }: FileOptions): Files {
  const { database } = names(self.registration.scope)
  const params = new URL(self.location.href).searchParams
  const isIsolating = parseFlag('isolate', isolate, params.get(ISOLATE_PARAM) === 'true')
  const policy = isIsolating ? chooseIsolationPolicy(navigator) : null
  const folder = new URL(params.get(ASSETS_PARAM) ?? 'inorigin/', self.location.href)
  const isKeeping = parseFlag('offline', offline, params.get(OFFLINE_PARAM) !== 'false')
  const assets = isKeeping ? createAssets(database, folder.href) : null
  self.addEventListener('activate', (event) => {
    if (!assets) event.waitUntil(removeAssets(database))
  })
  return {
    isolates: policy !== null,
    respond(event) {
      const headers = policy && headersFor(event.request, policy)
      const asset = assets?.respond(event) ?? null
      return headers ? addHeaders(asset ?? fetchOrFind(event), headers) : asset
    },
  }
}

async function addHeaders(
  response: Promise<Response>,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  return withHeaders(await response, headers)
}

/**
 * Fetches from the network, or takes the navigation preload that the app's own script enabled. If
 * both fail or are slow, finds the page in a cache of the app's own.
 */
async function fetchOrFind({ request, preloadResponse }: FetchEvent): Promise<Response> {
  const fetching = (async () =>
    ((await preloadResponse) as Response | undefined) ?? (await fetch(request)))()
  const fetched = await unlessSlow(fetching.catch(() => undefined))
  return fetched ?? (await caches.match(request, { ignoreSearch: true })) ?? fetching
}
