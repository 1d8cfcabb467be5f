/** Answers requests to `/v1` with the host that another tab runs. */
import { InoriginError } from '../src/error.ts'
import { remote } from '../src/link/ask.ts'
import { withFailover } from '../src/link/failover.ts'
import { type Link, type PortEvents, unreachable } from '../src/link/link.ts'
import { holdLivenessLock } from '../src/link/locks.ts'
import { startInactivityTimeout } from '../src/link/port.ts'
import { PROTOCOL, type WorkerToPage } from '../src/link/protocol.ts'
import { HOST_METHODS } from '../src/types/host.ts'
import type { Host } from '../src/types/index.ts'
import { handle } from '../src/wire/handler.ts'
import type { RouteServer } from './routes.ts'

declare const self: ServiceWorkerGlobalScope

/** A request, and the id of the page that sent it. */
type ClientRequest = Pick<FetchEvent, 'request' | 'clientId'>

/** Creates the API below the path `base`. */
export function createApi(hostFinder: HostFinder, base: string) {
  // The lock is granted at once.
  const livenessLock = holdLivenessLock(navigator.locks, 'sw')
  let open = 0

  function onOpen(): PortEvents {
    open += 1
    return { onClose: () => (open -= 1), onDeath: hostFinder.forgetHost }
  }

  /** Returns `true` for `/v1` of this origin and scope. A worker also sees requests to other hosts. */
  function answers({ url }: Request): boolean {
    const { origin, pathname } = new URL(url)
    return origin === self.location.origin && `${pathname}/`.startsWith(`${base}v1/`)
  }

  async function respond({ request, clientId }: ClientRequest): Promise<Response> {
    const link: Link = {
      connect: hostFinder.connect,
      livenessLock: await livenessLock,
      client: clientId,
      maxAttempts: 3,
      ackTimeoutMs: 2_000,
      onOpen,
    }
    return handle(request, withFailover(remote<Host>(link, HOST_METHODS)), { base })
  }

  return {
    /** Name of the lock that the browser releases when this worker stops. */
    livenessLock,
    /** Number of open requests. */
    get open() {
      return open
    },
    answers,
    respond,
    /** Returns what a route of the app asks models with. Its other requests go to the network. */
    serverFor: ({ clientId }: ClientRequest): RouteServer => ({
      baseURL: `${self.registration.scope}v1`,
      async fetch(input, init) {
        const request = new Request(input, init)
        return answers(request) ? respond({ request, clientId }) : fetch(request)
      },
    }),
  }
}

// Finds the tab that hosts. The browser may stop the service worker at any time, and its memory is
// lost. The finder then asks all tabs again.

/** Timeout in milliseconds for the answer of a tab that hosts, or that was just elected. */
const HOST_ANSWER_TIMEOUT_MS = 2_000
/** Timeout in milliseconds for the answer of a new host after it was asked to steal the lock. */
const STEAL_TIMEOUT_MS = 5_000
const STEAL_REQUEST_INTERVAL_MS = 60_000

export type HostFinder = ReturnType<typeof createHostFinder>

/** Creates the knowledge about which page in the scope of a service worker hosts. */
export function createHostFinder(worker: ServiceWorkerGlobalScope) {
  const { scope } = worker.registration
  let host: string | undefined
  let lastSteal = -Infinity
  const candidates = new Set<string>()
  const waiting = new Set<(clientId: string) => void>()

  async function findHost(steal: boolean): Promise<Client> {
    host = undefined
    const clients = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
    if (clients.length === 0) throw noHostError()
    const timeoutMs = steal && askToSteal(clients) ? STEAL_TIMEOUT_MS : HOST_ANSWER_TIMEOUT_MS
    candidates.clear()
    const answer = waitForHost(timeoutMs)
    for (const client of clients) send(client, 'inorigin:who-hosts')
    const found = await worker.clients.get(await answer)
    if (!found) throw unreachable()
    return found
  }

  /**
   * Asks a candidate to steal the lock, because a frozen tab keeps its lock and does not answer.
   * Returns `false` if there is no candidate, or if the last steal was too recent.
   */
  function askToSteal(clients: readonly WindowClient[]): boolean {
    if (performance.now() - lastSteal < STEAL_REQUEST_INTERVAL_MS) return false
    const able = clients.filter(({ id }) => candidates.has(id))
    // A hidden tab may be frozen next, so a visible one comes first.
    const candidate = able.find(({ visibilityState }) => visibilityState === 'visible') ?? able[0]
    if (!candidate) return false
    lastSteal = performance.now()
    send(candidate, 'inorigin:steal')
    return true
  }

  /** Resolves with the client id of the next tab that hosts. Rejects after the timeout. */
  function waitForHost(timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const stopTimeout = startInactivityTimeout(timeoutMs, () => {
        waiting.delete(onHost)
        reject(candidates.size > 0 ? unreachable() : noHostError())
      })
      const onHost = (clientId: string) => {
        stopTimeout()
        waiting.delete(onHost)
        resolve(clientId)
      }
      waiting.add(onHost)
    })
  }

  function send(client: Client, type: WorkerToPage['type'], transfer: MessagePort[] = []): void {
    client.postMessage({ type, protocol: PROTOCOL, scope } satisfies WorkerToPage, transfer)
  }

  return {
    /**
     * Sends a port to the hosting tab. Attempt 0 uses the known host, attempt 1 asks all tabs, and
     * attempt 2 may ask a tab to steal the host's lock.
     */
    async connect(port: MessagePort, attempt: number): Promise<void> {
      // Client ids of locks are not `Client` ids in Chromium, so the tabs are asked by a message.
      const known = attempt === 0 && host !== undefined ? await worker.clients.get(host) : undefined
      send(known ?? (await findHost(attempt >= 2)), 'inorigin:request', [port])
    },
    /** Records that this tab hosts. */
    setHost(clientId: string): void {
      host = clientId
      for (const onHost of waiting) onHost(clientId)
    },
    /** Forgets which tab hosts. Browsers still list a tab that closes. */
    forgetHost: () => void (host = undefined),
    /** Records that this tab does not host, but is a candidate. */
    addCandidate: (clientId: string) => void candidates.add(clientId),
  }
}

function noHostError(): InoriginError {
  const what = 'No open tab of this origin hosts the models.'
  const message = `${what} Open a page that calls serve(), or reload the open ones.`
  return new InoriginError('unavailable', message, { code: 'no_host', retryAfter: 1 })
}
