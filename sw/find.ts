/**
 * Finds the tab that hosts. What is remembered here can be lost at any moment: asking the tabs again
 * rebuilds it.
 */
import { InoriginError } from '../src/error.ts'
import { unreachable } from '../src/link/ask.ts'
import { PROTOCOL, type WorkerToPage } from '../src/link/protocol.ts'

/** Milliseconds in which a tab that hosts, or has just been elected, says so. */
const ANSWER_DEADLINE = 2_000
/** Milliseconds for a new host after the lock was stolen from one that stays silent. */
const STEAL_DEADLINE = 5_000
const STEAL_INTERVAL = 60_000

export interface Finder {
  /** Hands a port to the host's tab; the attempt tells how hard to try. */
  connect(port: MessagePort, attempt: number): Promise<void>
  /** That tab says that it hosts. */
  hosting(clientId: string): void
  /** That tab says that it does not, but would. */
  standing(clientId: string): void
}

/** A finder for the pages of one service worker's scope. */
export function createFinder(worker: ServiceWorkerGlobalScope): Finder {
  const { scope } = worker.registration
  let host: string | undefined
  let lastSteal = -Infinity
  const candidates = new Set<string>()
  const waiting = new Set<(clientId: string) => void>()

  async function connect(port: MessagePort, attempt: number): Promise<void> {
    // Lock client ids would tell, but are no Client ids in Chromium: only a message round trip is sure.
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

  /** A frozen tab keeps its lock and answers nothing; a visible one that stands may take it. */
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
