/**
 * The page's half of the host. While this tab is the leader, it owns the host's dedicated worker
 * and forwards to it the ports that the service worker sends. It never reads a request itself.
 */
import { InoriginError } from '../../error.ts'
import { unreachable, type Link } from '../../link/link.ts'
import { currentLocks } from '../../link/locks.ts'
import {
  PROTOCOL,
  names,
  type AnswerMessage,
  type PageToWorker,
  type WorkerToPage,
} from '../../link/protocol.ts'
import type { HostSetup } from '../messages.ts'
import { joinElection, type Election } from './election.ts'
import { notStarted, startHostThread, type HostThread } from './host-thread.ts'

export interface HostPage {
  /** `true` if this tab currently hosts. */
  readonly hosting: boolean
  /** Passes a port to the dedicated worker. Throws `host_unreachable` if this tab does not host. */
  connect: Link['connect']
  /** Enters the election again, with a new worker, if the lock manager of this page has changed. */
  followLocks(): void
  /** Releases the lock and terminates the worker when the last opener has closed the host page. */
  close(): void
}

/** Sends a message to the service worker, if there is one. */
export type PostToServiceWorker = (message: PageToWorker) => void

/** Time in milliseconds until a tab whose worker failed to start enters the election again. */
const ELECTION_RETRY_DELAY_MS = 10_000
/**
 * Least time in milliseconds between two restarts of the worker. Without it, a worker that dies at
 * once would be restarted in a loop.
 */
const RESTART_INTERVAL_MS = 10_000

/** Open host pages by scope. Two servers of one page are one candidate in the election. */
const openPages = new Map<string, { page: HostPage; users: number }>()

/**
 * Enters the election for the host. `container` receives the service worker's messages. Without it,
 * the page hosts at once, and for itself only. The options of the first opener in this page apply.
 */
export function hostPage(
  setup: HostSetup,
  container: ServiceWorkerContainer | undefined,
  postToServiceWorker: PostToServiceWorker,
): HostPage {
  const key = `${container ? 'shared' : 'alone'} ${setup.scope}`
  const entry = openPages.get(key) ?? {
    page: createPage(setup, container, postToServiceWorker),
    users: 0,
  }
  openPages.set(key, entry)
  entry.users += 1
  let closed = false
  return {
    get hosting() {
      return entry.page.hosting
    },
    connect: entry.page.connect,
    followLocks: entry.page.followLocks,
    close() {
      if (closed) return
      closed = true
      entry.users -= 1
      if (entry.users > 0) return
      openPages.delete(key)
      entry.page.close()
    },
  }
}

function createPage(
  setup: HostSetup,
  container: ServiceWorkerContainer | undefined,
  postToServiceWorker: PostToServiceWorker,
): HostPage {
  let thread: HostThread | undefined
  let election: Election | undefined
  let retryTimer: ReturnType<typeof setTimeout> | undefined
  let lastRestart = -Infinity
  /** Lock manager of the latest candidacy; `undefined` before the first. */
  let locks: LockManager | undefined

  function startWorker(): void {
    try {
      thread = startHostThread(setup, {
        postToServiceWorker,
        onFailure: fail,
        onDeath: restartWorker,
      })
      postToServiceWorker({ type: 'inorigin:hosting', protocol: PROTOCOL })
    } catch (error) {
      fail(notStarted(setup, InoriginError.from(error).message))
    }
  }

  /** Replaces a worker that ended by itself. A worker that ends again soon counts as failed. */
  function restartWorker(): void {
    const now = performance.now()
    if (now - lastRestart < RESTART_INTERVAL_MS) return fail(endedTwice())
    lastRestart = now
    stopWorker()
    startWorker()
  }

  /** Rejects the waiting ports, lets the next tab in the queue try, and queues again later. */
  function fail(error: InoriginError): void {
    thread?.stop(error)
    thread = undefined
    election?.leave()
    retryTimer = setTimeout(enterElection, ELECTION_RETRY_DELAY_MS)
  }

  function stopWorker(): void {
    thread?.stop()
    thread = undefined
  }

  function connect(port: MessagePort): void {
    if (!thread) throw unreachable()
    thread.forward(port)
  }

  function onMessage(event: MessageEvent<WorkerToPage>): void {
    const message = event.data
    if (message?.protocol !== PROTOCOL || message.scope !== setup.scope) return
    if (message.type === 'inorigin:steal') return election?.steal()
    if (message.type === 'inorigin:who-hosts') {
      const type = thread ? 'inorigin:hosting' : 'inorigin:standing'
      return postToServiceWorker({ type, protocol: PROTOCOL })
    }
    const port = event.ports[0]
    if (message.type !== 'inorigin:request' || !port) return
    if (thread) thread.forward(port)
    else port.postMessage({ type: 'moved' } satisfies AnswerMessage)
  }

  function enterElection(): void {
    clearTimeout(retryTimer)
    if (!container) return startWorker()
    const candidate = { onElected: startWorker, onDeposed: stopWorker }
    locks = currentLocks()
    election = joinElection(names(setup.scope).host, candidate, locks)
  }

  function leaveElection(): void {
    clearTimeout(retryTimer)
    election?.leave()
    election = undefined
    stopWorker()
  }

  function followLocks(): void {
    if (!container || locks === currentLocks()) return
    leaveElection()
    enterElection()
  }

  // A page in the back/forward cache is frozen, so it must release the lock.
  const onHide = () => leaveElection()
  const onShow = (event: PageTransitionEvent) => {
    if (event.persisted) enterElection()
  }

  container?.addEventListener('message', onMessage)
  container?.startMessages()
  addEventListener('pagehide', onHide)
  addEventListener('pageshow', onShow)
  enterElection()

  return {
    get hosting() {
      return thread !== undefined
    },
    connect,
    followLocks,
    close() {
      container?.removeEventListener('message', onMessage)
      removeEventListener('pagehide', onHide)
      removeEventListener('pageshow', onShow)
      leaveElection()
    },
  }
}

function endedTwice(): InoriginError {
  const what = 'The host worker ended twice in a row, most likely because memory ran out.'
  return new InoriginError('unavailable', `${what} Close other tabs, or choose a smaller model.`, {
    code: 'worker_ended',
    retryAfter: ELECTION_RETRY_DELAY_MS / 1000,
  })
}
