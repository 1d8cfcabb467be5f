/**
 * The page's half of the host. While this tab is the leader, it owns the host's dedicated worker
 * and forwards to it the ports that the service worker sends. It never reads a request itself.
 */
import { InoriginError } from '../error.ts'
import { unreachable, type Link } from '../link/ask.ts'
import { currentLocks } from '../link/locks.ts'
import {
  PROTOCOL,
  names,
  type AnswerMessage,
  type HostSetup,
  type PageToWorker,
  type WorkerToPage,
} from '../link/protocol.ts'
import { stand, type Election } from './elect.ts'
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
export type TellWorker = (message: PageToWorker) => void

/** Time in milliseconds until a tab whose worker failed to start enters the election again. */
const STAND_AGAIN = 10_000
/**
 * Least time in milliseconds between two restarts of the worker. Without it, a worker that dies at
 * once would be restarted in a loop.
 */
const RESTART_INTERVAL_MS = 10_000

/** Open host pages by scope. Two servers of one page are one candidate in the election. */
const open = new Map<string, { page: HostPage; users: number }>()

/**
 * Enters the election for the host. `container` receives the service worker's messages. Without it,
 * the page hosts at once, and for itself only. The options of the first opener in this page apply.
 */
export function hostPage(
  setup: HostSetup,
  container: ServiceWorkerContainer | undefined,
  tellWorker: TellWorker,
): HostPage {
  const key = `${container ? 'shared' : 'alone'} ${setup.scope}`
  const entry = open.get(key) ?? { page: createPage(setup, container, tellWorker), users: 0 }
  open.set(key, entry)
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
      open.delete(key)
      entry.page.close()
    },
  }
}

function createPage(
  setup: HostSetup,
  container: ServiceWorkerContainer | undefined,
  tellWorker: TellWorker,
): HostPage {
  let thread: HostThread | undefined
  let election: Election | undefined
  let again: ReturnType<typeof setTimeout> | undefined
  let lastRestart = -Infinity
  /** Lock manager of the latest candidacy; `undefined` before the first. */
  let locks: LockManager | undefined

  function start(): void {
    try {
      thread = startHostThread(setup, { tellWorker, onFailure: fail, onDeath: restart })
      tellWorker({ type: 'inorigin:hosting', protocol: PROTOCOL })
    } catch (error) {
      fail(notStarted(setup, InoriginError.from(error).message))
    }
  }

  /** Replaces a worker that ended by itself. A worker that ends again soon counts as failed. */
  function restart(): void {
    const now = performance.now()
    if (now - lastRestart < RESTART_INTERVAL_MS) return fail(endedAgain())
    lastRestart = now
    stop()
    start()
  }

  /** Rejects the waiting ports, lets the next tab in the queue try, and queues again later. */
  function fail(error: InoriginError): void {
    thread?.stop(error)
    thread = undefined
    election?.leave()
    again = setTimeout(enter, STAND_AGAIN)
  }

  function stop(): void {
    thread?.stop()
    thread = undefined
  }

  function connect(port: MessagePort): void {
    if (!thread) throw unreachable()
    thread.pass(port)
  }

  function onMessage(event: MessageEvent<WorkerToPage>): void {
    const message = event.data
    if (message?.protocol !== PROTOCOL || message.scope !== setup.scope) return
    if (message.type === 'inorigin:steal') return election?.steal()
    if (message.type === 'inorigin:who-hosts') {
      const type = thread ? 'inorigin:hosting' : 'inorigin:standing'
      return tellWorker({ type, protocol: PROTOCOL })
    }
    const port = event.ports[0]
    if (message.type !== 'inorigin:request' || !port) return
    if (thread) thread.pass(port)
    else port.postMessage({ type: 'moved' } satisfies AnswerMessage)
  }

  function enter(): void {
    clearTimeout(again)
    if (!container) return start()
    const candidate = { onElected: start, onDeposed: stop }
    locks = currentLocks()
    election = stand(names(setup.scope).host, candidate, locks)
  }

  function leave(): void {
    clearTimeout(again)
    election?.leave()
    election = undefined
    stop()
  }

  function followLocks(): void {
    if (!container || locks === currentLocks()) return
    leave()
    enter()
  }

  // A page in the back/forward cache is frozen, so it must release the lock.
  const onHide = () => leave()
  const onShow = (event: PageTransitionEvent) => {
    if (event.persisted) enter()
  }

  container?.addEventListener('message', onMessage)
  container?.startMessages()
  addEventListener('pagehide', onHide)
  addEventListener('pageshow', onShow)
  enter()

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
      leave()
    },
  }
}

function endedAgain(): InoriginError {
  const what = 'The host worker ended twice in a row, most likely because memory ran out.'
  return new InoriginError('unavailable', `${what} Close other tabs, or choose a smaller model.`, {
    code: 'worker_ended',
    retryAfter: STAND_AGAIN / 1000,
  })
}
