/**
 * The service worker's part as a function, for apps that own a service worker:
 *
 * ```ts
 * import { attach } from 'inorigin/sw'
 * attach()
 * ```
 *
 * Listeners, nothing else: requests are decoded by `src/wire` and answered by the tab that hosts.
 */
import { InoriginError } from '../src/error.ts'
import { holdLife } from '../src/link/life.ts'
import type { Link, PortEvents } from '../src/link/ask.ts'
import {
  PROTOCOL,
  type AnswerMessage,
  type PageToWorker,
  type WorkerStatus,
} from '../src/link/protocol.ts'
import { remoteHost } from '../src/link/remote.ts'
import { handle } from '../src/wire/handler.ts'
import { createFinder } from './find.ts'

declare const self: ServiceWorkerGlobalScope

/**
 * Answers `/v1/*` under the scope of this service worker and touches nothing else. Call it while the
 * script is first evaluated, as every listener of a service worker must be added then.
 */
export function attach(): void {
  const base = new URL(self.registration.scope).pathname
  const finder = createFinder(self)
  let open = 0
  // Granted at once, and freed by the browser when this worker is stopped.
  const life = holdLife(navigator.locks, 'sw')

  self.addEventListener('fetch', (event) => {
    if (!isOurs(event.request, base)) return
    event.respondWith(life.then((name) => respond(event, name)))
  })

  self.addEventListener('message', (event) => {
    const message = event.data as PageToWorker | undefined
    const source = event.source as Client | null
    switch (message?.type) {
      case 'inorigin:claim':
        return event.waitUntil(self.clients.claim())
      case 'inorigin:status':
        return event.waitUntil(tellStatus(event.ports[0]))
      case 'inorigin:update':
        return event.waitUntil(self.skipWaiting())
      case 'inorigin:hosting':
        if (source && message.protocol === PROTOCOL) finder.hosting(source.id)
        return
      case 'inorigin:standing':
        if (source && message.protocol === PROTOCOL) finder.standing(source.id)
        return
      case 'inorigin:forward': {
        const port = event.ports[0]
        if (port) event.waitUntil(forward(port, message.attempt))
        return
      }
    }
  })

  async function respond({ request, clientId }: FetchEvent, name: string): Promise<Response> {
    const link: Link = {
      connect: finder.connect,
      life: name,
      client: clientId,
      attempts: 3,
      patience: 2_000,
      onOpen,
    }
    return handle(request, remoteHost(link), { base })
  }

  async function tellStatus(port: MessagePort | undefined): Promise<void> {
    const name = await life
    port?.postMessage({ protocol: PROTOCOL, open, life: name } satisfies WorkerStatus)
  }

  function onOpen(): PortEvents {
    open += 1
    return { onClose: () => (open -= 1) }
  }

  async function forward(port: MessagePort, attempt: number): Promise<void> {
    try {
      await finder.connect(port, attempt)
    } catch (error) {
      const record = InoriginError.from(error).toRecord()
      port.postMessage({ type: 'error', error: record } satisfies AnswerMessage)
    }
  }
}

/** Only our own origin and scope: a worker also sees the page's requests to other hosts. */
function isOurs(request: Request, base: string): boolean {
  const url = new URL(request.url)
  if (url.origin !== self.location.origin) return false
  return url.pathname === `${base}v1` || url.pathname.startsWith(`${base}v1/`)
}
