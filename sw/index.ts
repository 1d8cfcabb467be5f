/**
 * The service worker part as a function, for apps that have their own service worker:
 *
 * ```ts
 * import { attach } from 'inorigin/sw'
 * attach()
 * ```
 *
 * This module only adds listeners. `src/wire` parses the requests, and the hosting tab answers.
 */
import { InoriginError } from '../src/error.ts'
import { holdLivenessLock } from '../src/link/liveness.ts'
import type { Link, PortEvents } from '../src/link/link.ts'
import {
  ASSETS_PARAM,
  ISOLATE_PARAM,
  names,
  OFFLINE_PARAM,
  PROBE_HEADER,
  PROBE_PATH,
  PROTOCOL,
  type AnswerMessage,
  type PageToWorker,
  type WorkerStatus,
} from '../src/link/protocol.ts'
import { withFailover } from '../src/link/failover.ts'
import { remote } from '../src/link/remote.ts'
import { HOST_METHODS } from '../src/types/host.ts'
import type { Host } from '../src/types/index.ts'
import { assertKnownOptions, type OptionNames, parseFlag } from '../src/validate-arguments.ts'
import { removeAssets } from '../src/values/asset-cache.ts'
import { handle } from '../src/wire/handler.ts'
import { createAssets } from './assets.ts'
import { createHostFinder } from './host-finder.ts'
import { chooseIsolationPolicy, headersFor, withHeaders } from './isolation.ts'
import { parseRoutes, runRoute, type AppRoutes, type RouteServer } from './routes.ts'
import { unlessSlow } from './slow-server.ts'

export { keepApp, type AppFiles } from './keep-app.ts'
export type { AppRoute, AppRoutes, RouteServer } from './routes.ts'

declare const self: ServiceWorkerGlobalScope

/** Options of {@link attach}. */
export interface AttachOptions {
  /**
   * `true` to isolate the pages of the scope, so that WASM uses threads: navigations are answered
   * from the network, with headers added, or from Cache Storage if the network fails or takes 3 s.
   * Default: `true` if the page that registered this script called `serve({ isolate: true })`, which
   * adds `?isolate=true` to its URL.
   */
  isolate?: boolean
  /**
   * `true` to keep the library's own files, so that a host starts without a network. Default:
   * `true`, unless the page that registered this script called `serve({ offline: false })`, which
   * adds `?offline=false` to its URL.
   */
  offline?: boolean
  /**
   * Routes of the app that this service worker answers, by their path below the scope. Each gets
   * the request, and a `fetch` that reaches `/v1`. Default: none.
   */
  routes?: AppRoutes
}

/** Headers of the answer to a probe. An isolated page opens only frames with an embedder policy. */
const PROBE_HEADERS = {
  [PROBE_HEADER]: 'true',
  'cache-control': 'no-store',
  'cross-origin-embedder-policy': 'require-corp',
}

const ATTACH_OPTIONS: OptionNames<AttachOptions> = { isolate: true, offline: true, routes: true }

/**
 * Answers requests to `/v1/*` below the scope of this service worker, and those for the scripts,
 * runtimes and catalog of the folder `inorigin/`. Ignores all others, unless it isolates pages.
 * Call it at the top level of the script, because a service worker must add its listeners there.
 *
 * @throws InoriginError `invalid_request` for an invalid option.
 */
export function attach(options: AttachOptions = {}): void {
  assertKnownOptions(options, ATTACH_OPTIONS)
  const base = new URL(self.registration.scope).pathname
  const files = openFiles(options)
  const routes = parseRoutes(options.routes ?? {}, base)
  const hostFinder = createHostFinder(self)
  let open = 0
  // The lock is granted at once, and the browser releases it when this worker stops.
  const life = holdLivenessLock(navigator.locks, 'sw')

  self.addEventListener('fetch', (event) => {
    if (event.request.url === self.registration.scope + PROBE_PATH) {
      return event.respondWith(new Response(null, { headers: PROBE_HEADERS }))
    }
    if (isApiRequest(event.request, base)) {
      return event.respondWith(life.then((name) => respond(event, name)))
    }
    const { origin, pathname } = new URL(event.request.url)
    const route = origin === self.location.origin && routes.get(pathname)
    if (route) return event.respondWith(runRoute(route, event.request, routeServer(event)))
    const file = files.respond(event)
    if (file) event.respondWith(file)
  })

  self.addEventListener('message', (event) => {
    const message = event.data as PageToWorker | undefined
    const source = event.source as Client | null
    switch (message?.type) {
      case 'inorigin:claim':
        return event.waitUntil(self.clients.claim())
      case 'inorigin:status':
        return event.waitUntil(sendStatus(event.ports[0]))
      case 'inorigin:update':
        return event.waitUntil(self.skipWaiting())
      case 'inorigin:hosting':
        if (source && message.protocol === PROTOCOL) hostFinder.setHost(source.id)
        return
      case 'inorigin:left':
        return hostFinder.forgetHost()
      case 'inorigin:standing':
        if (source && message.protocol === PROTOCOL) hostFinder.addCandidate(source.id)
        return
      case 'inorigin:forward': {
        const port = event.ports[0]
        if (port) event.waitUntil(forward(port, message.attempt))
        return
      }
    }
  })

  function routeServer(event: FetchEvent): RouteServer {
    return {
      baseURL: `${self.registration.scope}v1`,
      async fetch(input, init) {
        const request = new Request(input, init)
        if (!isApiRequest(request, base)) return fetch(request)
        return respond({ request, clientId: event.clientId }, await life)
      },
    }
  }

  async function respond(
    { request, clientId }: Pick<FetchEvent, 'request' | 'clientId'>,
    name: string,
  ): Promise<Response> {
    const link: Link = {
      connect: hostFinder.connect,
      livenessLock: name,
      client: clientId,
      maxAttempts: 3,
      ackTimeoutMs: 2_000,
      onOpen,
    }
    return handle(request, withFailover(remote<Host>(link, HOST_METHODS)), { base })
  }

  async function sendStatus(port: MessagePort | undefined): Promise<void> {
    const status = { protocol: PROTOCOL, open, life: await life, isolates: files.isolates }
    port?.postMessage(status satisfies WorkerStatus)
  }

  function onOpen(): PortEvents {
    open += 1
    return { onClose: () => (open -= 1), onDeath: hostFinder.forgetHost }
  }

  async function forward(port: MessagePort, attempt: number): Promise<void> {
    try {
      await hostFinder.connect(port, attempt)
    } catch (error) {
      const record = InoriginError.from(error).toRecord()
      port.postMessage({ type: 'error', error: record } satisfies AnswerMessage)
    }
  }
}

interface Files {
  /** `true` if pages are isolated, and this browser is known to honor that. */
  isolates: boolean
  /** Returns the answer to a request for a page, or for a file of the library; `null` for others. */
  respond(event: FetchEvent): Promise<Response> | null
}

function openFiles({ isolate, offline }: AttachOptions): Files {
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

/**
 * Returns `true` for `/v1` of this origin and scope. A worker also sees requests to other hosts.
 */
function isApiRequest(request: Request, base: string): boolean {
  const url = new URL(request.url)
  if (url.origin !== self.location.origin) return false
  return url.pathname === `${base}v1` || url.pathname.startsWith(`${base}v1/`)
}
