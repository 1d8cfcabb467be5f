/**
 * The page's half of the host. While this tab is the leader, it owns the host's dedicated worker
 * and forwards to it the ports that the service worker sends. It never reads a request itself.
 */
import { unreachable, type Link } from '../../link/link.ts'
import { PROTOCOL, type AnswerMessage, type WorkerToPage } from '../../link/protocol.ts'
import { createCandidacy, type PostToServiceWorker } from './candidacy.ts'
import type { PageSetup } from './host-thread.ts'

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

/** Open host pages by scope. Two servers of one page are one candidate in the election. */
const openPages = new Map<string, { page: HostPage; users: number }>()

/**
 * Enters the election for the host. `container` receives the service worker's messages. Without it,
 * the page hosts at once, and for itself only. The options of the first opener in this page apply.
 */
export function hostPage(
  setup: PageSetup,
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
  setup: PageSetup,
  container: ServiceWorkerContainer | undefined,
  postToServiceWorker: PostToServiceWorker,
): HostPage {
  const candidacy = createCandidacy(setup, !container, postToServiceWorker)

  function onMessage(event: MessageEvent<WorkerToPage>): void {
    const { thread } = candidacy
    const message = event.data
    if (message?.protocol !== PROTOCOL || message.scope !== setup.scope) return
    if (message.type === 'inorigin:steal') return candidacy.steal()
    if (message.type === 'inorigin:who-hosts') {
      const type = thread ? 'inorigin:hosting' : 'inorigin:standing'
      return postToServiceWorker({ type, protocol: PROTOCOL })
    }
    const port = event.ports[0]
    if (message.type !== 'inorigin:request' || !port) return
    if (thread) thread.forward(port)
    else port.postMessage({ type: 'moved' } satisfies AnswerMessage)
  }

  // A page in the back/forward cache is frozen, so it must release the lock.
  const onHide = () => candidacy.leave()
  const onShow = (event: PageTransitionEvent) => {
    if (event.persisted) candidacy.enter()
  }

  container?.addEventListener('message', onMessage)
  container?.startMessages()
  addEventListener('pagehide', onHide)
  addEventListener('pageshow', onShow)
  candidacy.enter()

  return {
    get hosting() {
      return candidacy.thread !== undefined
    },
    connect(port) {
      if (!candidacy.thread) throw unreachable()
      candidacy.thread.forward(port)
    },
    followLocks: candidacy.followLocks,
    close() {
      container?.removeEventListener('message', onMessage)
      removeEventListener('pagehide', onHide)
      removeEventListener('pageshow', onShow)
      candidacy.leave()
    },
  }
}
