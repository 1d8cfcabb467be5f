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
import {
  PROBE_HEADER,
  PROBE_PATH,
  PROTOCOL,
  type AnswerMessage,
  type PageToWorker,
  type WorkerStatus,
} from '../src/link/protocol.ts'
import { assertKnownOptions, type OptionNames } from '../src/validate-arguments.ts'
import { createApi, createHostFinder, type HostFinder } from './api.ts'
import { openFiles } from './files.ts'
import { type AppRoutes, parseRoutes, runRoute } from './routes.ts'

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
  const api = createApi(hostFinder, base)

  self.addEventListener('fetch', (event) => {
    if (event.request.url === self.registration.scope + PROBE_PATH) {
      return event.respondWith(new Response(null, { headers: PROBE_HEADERS }))
    }
    if (api.answers(event.request)) return event.respondWith(api.respond(event))
    const { origin, pathname } = new URL(event.request.url)
    const route = origin === self.location.origin && routes.get(pathname)
    if (route) return event.respondWith(runRoute(route, event.request, api.serverFor(event)))
    const file = files.respond(event)
    if (file) event.respondWith(file)
  })

  listen(hostFinder, async () => ({
    protocol: PROTOCOL,
    open: api.open,
    life: await api.livenessLock,
    isolates: files.isolates,
  }))
}

/** Adds the listener for messages of pages. */
function listen(hostFinder: HostFinder, getStatus: () => Promise<WorkerStatus>): void {
  self.addEventListener('message', (event) => {
    const message = event.data as PageToWorker | undefined
    const source = event.source as Client | null
    const port = event.ports[0]
    switch (message?.type) {
      case 'inorigin:claim':
        return event.waitUntil(self.clients.claim())
      case 'inorigin:status':
        return event.waitUntil(getStatus().then((status) => port?.postMessage(status)))
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
      case 'inorigin:forward':
        if (port) event.waitUntil(forward(hostFinder, port, message.attempt))
        return
    }
  })
}

/** Passes a port of a page on to the host. */
async function forward(hostFinder: HostFinder, port: MessagePort, attempt: number): Promise<void> {
  try {
    await hostFinder.connect(port, attempt)
  } catch (error) {
    const record = InoriginError.from(error).toRecord()
    port.postMessage({ type: 'error', error: record } satisfies AnswerMessage)
  }
}
