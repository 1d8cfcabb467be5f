/**
 * Finds the tab that hosts. The browser may stop the service worker at any time, and its memory is
 * lost. The finder then asks all tabs again.
 */
import { InoriginError } from '../src/error.ts'
import { startInactivityTimeout } from '../src/link/inactivity.ts'
import { unreachable } from '../src/link/link.ts'
import { PROTOCOL, type WorkerToPage } from '../src/link/protocol.ts'

/** Timeout in milliseconds for the answer of a tab that hosts, or that was just elected. */
const HOST_ANSWER_TIMEOUT_MS = 2_000
/** Timeout in milliseconds for the answer of a new host after it was asked to steal the lock. */
const STEAL_TIMEOUT_MS = 5_000
const STEAL_REQUEST_INTERVAL_MS = 60_000

/** Knowledge about which tab hosts. */
export interface HostFinder {
  /**
   * Sends a port to the hosting tab. Attempt 0 uses the known host, attempt 1 asks all tabs, and
   * attempt 2 may ask a tab to steal the host's lock.
   */
  connect(port: MessagePort, attempt: number): Promise<void>
  /** Records that this tab hosts. */
  setHost(clientId: string): void
  /**
   * Forgets which tab hosts. Browsers still list a tab that closes, and a request to it would wait for
   * an answer.
   */
  forgetHost(): void
  /** Records that this tab does not host, but is a candidate. */
  addCandidate(clientId: string): void
}

/** Creates a finder for the pages in the scope of a service worker. */
export function createHostFinder(worker: ServiceWorkerGlobalScope): HostFinder {
  const { scope } = worker.registration
  let host: string | undefined
  let lastSteal = -Infinity
  const candidates = new Set<string>()
  const waiting = new Set<(clientId: string) => void>()

  async function connect(port: MessagePort, attempt: number): Promise<void> {
    // Client ids of locks are not `Client` ids in Chromium, so the tabs are asked by a message.
    const knownClient =
      attempt === 0 && host !== undefined ? await worker.clients.get(host) : undefined
    const client = knownClient ?? (await findHost(attempt >= 2))
    send(client, 'inorigin:request', [port])
  }

  async function findHost(steal: boolean): Promise<Client> {
    host = undefined
    const clients = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
    if (clients.length === 0) throw noHostError()
    const stealing = steal && askToSteal(clients)
    candidates.clear()
    const timeoutMs = stealing ? STEAL_TIMEOUT_MS : HOST_ANSWER_TIMEOUT_MS
    const answer = waitForHost(waiting, timeoutMs, () =>
      candidates.size > 0 ? unreachable() : noHostError(),
    )
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
    const candidate = chooseCandidate(clients, candidates)
    if (!candidate) return false
    lastSteal = performance.now()
    send(candidate, 'inorigin:steal')
    return true
  }

  function send(client: Client, type: WorkerToPage['type'], transfer: MessagePort[] = []): void {
    client.postMessage({ type, protocol: PROTOCOL, scope } satisfies WorkerToPage, transfer)
  }

  return {
    connect,
    setHost(clientId) {
      host = clientId
      for (const onHost of waiting) onHost(clientId)
    },
    forgetHost: () => void (host = undefined),
    addCandidate: (clientId) => void candidates.add(clientId),
  }
}

/** Returns a candidate. A hidden tab may be frozen next, so a visible one comes first. */
function chooseCandidate(
  clients: readonly WindowClient[],
  candidates: ReadonlySet<string>,
): WindowClient | undefined {
  const able = clients.filter(({ id }) => candidates.has(id))
  return able.find(({ visibilityState }) => visibilityState === 'visible') ?? able[0]
}

/** Resolves with the client id that `waiting` gets. Rejects after the timeout. */
function waitForHost(
  waiting: Set<(clientId: string) => void>,
  timeoutMs: number,
  toError: () => InoriginError,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const stopTimeout = startInactivityTimeout(timeoutMs, () => {
      waiting.delete(onHost)
      reject(toError())
    })
    const onHost = (clientId: string) => {
      stopTimeout()
      waiting.delete(onHost)
      resolve(clientId)
    }
    waiting.add(onHost)
  })
}

function noHostError(): InoriginError {
  const what = 'No open tab of this origin hosts the models.'
  return new InoriginError(
    'unavailable',
    `${what} Open a page that calls serve(), or reload the open ones.`,
    {
      code: 'no_host',
      retryAfter: 1,
    },
  )
}
