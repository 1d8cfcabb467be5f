/**
 * Finds the tab that hosts. The browser may stop the service worker at any time, and its memory is
 * lost. The finder then asks all tabs again.
 */
import { InoriginError } from '../src/error.ts'
import { unreachable } from '../src/link/ask.ts'
import { PROTOCOL, type WorkerToPage } from '../src/link/protocol.ts'

/** Timeout in milliseconds for the answer of a tab that hosts, or that was just elected. */
const ANSWER_DEADLINE = 2_000
/** Timeout in milliseconds for the answer of a new host after it was asked to steal the lock. */
const STEAL_DEADLINE = 5_000
const STEAL_INTERVAL = 60_000

/** Knowledge about which tab hosts. */
export interface Finder {
  /**
   * Sends a port to the hosting tab. Attempt 0 uses the known host, attempt 1 asks all tabs, and
   * attempt 2 may ask a tab to steal the host's lock.
   */
  connect(port: MessagePort, attempt: number): Promise<void>
  /** Records that this tab hosts. */
  hosting(clientId: string): void
  /** Records that this tab does not host, but is a candidate. */
  standing(clientId: string): void
}

/** Creates a finder for the pages in the scope of a service worker. */
export function createFinder(worker: ServiceWorkerGlobalScope): Finder {
  const { scope } = worker.registration
  let host: string | undefined
  let lastSteal = -Infinity
  const candidates = new Set<string>()
  const waiting = new Set<(clientId: string) => void>()

  async function connect(port: MessagePort, attempt: number): Promise<void> {
    // Client ids of locks are not `Client` ids in Chromium, so the tabs are asked by a message.
    const known = attempt === 0 && host !== undefined ? await worker.clients.get(host) : undefined
    const client = known ?? (await ask(attempt >= 2))
    client.postMessage(message('inorigin:request'), [port])
  }

  async function ask(steal: boolean): Promise<Client> {
    host = undefined
    const clients = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
    if (clients.length === 0) throw noHost()
    const stealing = steal && askToSteal(clients)
    candidates.clear()
    const answer = firstAnswer(stealing ? STEAL_DEADLINE : ANSWER_DEADLINE)
    for (const client of clients) client.postMessage(message('inorigin:who-hosts'))
    const found = await worker.clients.get(await answer)
    if (!found) throw unreachable()
    return found
  }

  /**
   * Asks a visible candidate to steal the lock, because a frozen tab keeps its lock and does not
   * answer. Returns `false` if there is no such tab, or if the last steal was too recent.
   */
  function askToSteal(clients: readonly WindowClient[]): boolean {
    if (Date.now() - lastSteal < STEAL_INTERVAL) return false
    const thief = clients.find(
      ({ id, visibilityState }) => candidates.has(id) && visibilityState === 'visible',
    )
    if (!thief) return false
    lastSteal = Date.now()
    thief.postMessage(message('inorigin:steal'))
    return true
  }

  function firstAnswer(deadline: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(answered)
        reject(candidates.size > 0 ? unreachable() : noHost())
      }, deadline)
      const answered = (clientId: string) => {
        clearTimeout(timer)
        waiting.delete(answered)
        resolve(clientId)
      }
      waiting.add(answered)
    })
  }

  function message(type: WorkerToPage['type']): WorkerToPage {
    return { type, protocol: PROTOCOL, scope }
  }

  return {
    connect,
    hosting(clientId) {
      host = clientId
      for (const answered of waiting) answered(clientId)
    },
    standing(clientId) {
      candidates.add(clientId)
    },
  }
}

function noHost(): InoriginError {
  const what = 'No open tab of this origin hosts the models.'
  return new InoriginError('unavailable', `${what} Open a page that calls serve().`, {
    code: 'no_host',
    retryAfter: 1,
  })
}
