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
  PROTOCOL,
  type AnswerMessage,
  type PageToWorker,
  type WorkerStatus,
} from '../src/link/protocol.ts'
import { remote } from '../src/link/remote.ts'
import { HOST_METHODS } from '../src/types/host.ts'
import type { Host } from '../src/types/index.ts'
import { handle } from '../src/wire/handler.ts'
import { createHostFinder } from './host-finder.ts'

declare const self: ServiceWorkerGlobalScope

/**
 * Answers requests to `/v1/*` below the scope of this service worker, and ignores all others. Call
 * it at the top level of the script, because a service worker must add its listeners there.
 */
export function attach(): void {
  const base = new URL(self.registration.scope).pathname
  const hostFinder = createHostFinder(self)
  let open = 0
  // The lock is granted at once, and the browser releases it when this worker stops.
  const life = holdLivenessLock(navigator.locks, 'sw')

  self.addEventListener('fetch', (event) => {
    if (!isApiRequest(event.request, base)) return
    event.respondWith(life.then((name) => respond(event, name)))
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

  async function respond({ request, clientId }: FetchEvent, name: string): Promise<Response> {
    const link: Link = {
      connect: hostFinder.connect,
      livenessLock: name,
      client: clientId,
      maxAttempts: 3,
      ackTimeoutMs: 2_000,
      onOpen,
    }
    return handle(request, remote<Host>(link, HOST_METHODS), { base })
  }

  async function sendStatus(port: MessagePort | undefined): Promise<void> {
    const name = await life
    port?.postMessage({ protocol: PROTOCOL, open, life: name } satisfies WorkerStatus)
  }

  function onOpen(): PortEvents {
    open += 1
    return { onClose: () => (open -= 1) }
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

/**
 * Returns `true` for `/v1` of this origin and scope. A worker also sees requests to other hosts.
 */
function isApiRequest(request: Request, base: string): boolean {
  const url = new URL(request.url)
  if (url.origin !== self.location.origin) return false
  return url.pathname === `${base}v1` || url.pathname.startsWith(`${base}v1/`)
}
