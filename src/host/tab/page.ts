/**
 * The page's half of the host. While this tab is the leader, it owns the host's dedicated worker
 * and forwards to it the ports that the service worker sends. It never reads a request itself.
 */
import { InoriginError } from '../../error.ts'
import { type Link, unreachable } from '../../link/link.ts'
import { currentLocks } from '../../link/locks.ts'
import {
  type AnswerMessage,
  names,
  type PageToWorker,
  PROTOCOL,
  type WorkerToPage,
} from '../../link/protocol.ts'
import type { CopyMessage, ResponseCopy, ResponseHandover } from '../messages.ts'
import { type HostThread, notStarted, type PageSetup, startHostThread } from './host-thread.ts'

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

// The candidacy of a page in the election, and the host's worker, which runs while the page is the
// leader.

/** Sends a message to the service worker, if there is one. */
type PostToServiceWorker = (message: PageToWorker) => void

/** Time in milliseconds until a tab whose worker failed to start enters the election again. */
const ELECTION_RETRY_DELAY_MS = 10_000
/**
 * Least time in milliseconds between two restarts of the worker. Without it, a worker that dies at
 * once would be restarted in a loop.
 */
const RESTART_INTERVAL_MS = 10_000

interface Candidacy {
  /** The host's worker; `undefined` if this tab does not host. */
  readonly thread: HostThread | undefined
  /** Enters the election, or hosts at once if the page is alone. */
  enter(): void
  /** Leaves the election and terminates the worker. */
  leave(): void
  /** Takes the lock from the current leader. */
  steal(): void
  /** Enters the election again, with a new worker, if the lock manager of this page has changed. */
  followLocks(): void
}

/** Creates the candidacy of a page. One that is alone needs no election. */
function createCandidacy(
  setup: PageSetup,
  isAlone: boolean,
  postToServiceWorker: PostToServiceWorker,
): Candidacy {
  // A page that is alone shares its responses with its own worker only.
  const copies = createResponseCopies(isAlone ? crypto.randomUUID() : names(setup.scope).responses)
  const worker = createSupervisor({
    setup,
    isElected: !isAlone,
    copies,
    postToServiceWorker,
    onFailure: retryLater,
  })
  let election: Election | undefined
  let retryTimer: ReturnType<typeof setTimeout> | undefined
  /** Lock manager of the latest candidacy; `undefined` before the first. */
  let locks: LockManager | undefined

  /** Lets the next tab in the queue try, and queues again later. */
  function retryLater(): void {
    election?.leave()
    retryTimer = setTimeout(enter, ELECTION_RETRY_DELAY_MS)
  }

  function enter(): void {
    clearTimeout(retryTimer)
    copies.open()
    if (isAlone) return worker.start()
    const candidate = { onElected: worker.start, onDeposed: worker.stop }
    locks = currentLocks()
    election = joinElection(names(setup.scope).host, candidate, locks)
  }

  function leave(): void {
    clearTimeout(retryTimer)
    if (worker.thread) postToServiceWorker({ type: 'inorigin:left' })
    election?.leave()
    election = undefined
    worker.stop()
    copies.close()
  }

  return {
    get thread() {
      return worker.thread
    },
    enter,
    leave,
    steal: () => election?.steal(),
    followLocks() {
      if (isAlone || locks === currentLocks()) return
      leave()
      enter()
    },
  }
}

interface SupervisorOptions {
  setup: PageSetup
  isElected: boolean
  copies: ResponseCopies
  postToServiceWorker: PostToServiceWorker
  /** Called when the worker cannot be started, or ends again soon. */
  onFailure(): void
}

interface Supervisor {
  readonly thread: HostThread | undefined
  readonly start: () => void
  readonly stop: () => void
}

/** Creates a supervisor, which starts the host's worker and restarts it when it ends by itself. */
function createSupervisor(supervised: SupervisorOptions): Supervisor {
  const { setup, isElected, copies, postToServiceWorker, onFailure } = supervised
  let thread: HostThread | undefined
  let lastRestart = -Infinity

  function start(): void {
    const responses = copies.handOver()
    const options = { isElected, responses, postToServiceWorker, onFailure: fail, onDeath: restart }
    try {
      thread = startHostThread(setup, options)
      postToServiceWorker({ type: 'inorigin:hosting', protocol: PROTOCOL })
    } catch (error) {
      fail(notStarted(setup, InoriginError.from(error).message))
    }
  }

  function restart(): void {
    const now = performance.now()
    if (now - lastRestart < RESTART_INTERVAL_MS) return fail(endedTwice())
    lastRestart = now
    stop()
    start()
  }

  function fail(error: InoriginError): void {
    stop(error)
    onFailure()
  }

  /** Terminates the worker. Ports that wait for it are rejected with the error, if there is one. */
  function stop(error?: InoriginError): void {
    thread?.stop(error)
    thread = undefined
  }

  return {
    get thread() {
      return thread
    },
    start,
    stop: () => stop(),
  }
}

function endedTwice(): InoriginError {
  const what = 'The host worker ended twice in a row, most likely because memory ran out.'
  return new InoriginError('unavailable', `${what} Close other tabs, or choose a smaller model.`, {
    code: 'worker_ended',
    retryAfter: ELECTION_RETRY_DELAY_MS / 1000,
  })
}

// Election of the tab that hosts. The leader holds a lock, and the followers queue for it. The
// browser releases the lock of a closed or crashed tab. A frozen tab keeps its lock, so followers
// can steal it; the deposed leader must then stop
// (https://developer.mozilla.org/docs/Web/API/LockManager/request#steal).

interface Candidate {
  /** Called when this tab gets the lock. It must start hosting. */
  onElected(): void
  /** Called when the lock was stolen or released. This tab must stop hosting at once. */
  onDeposed(): void
}

export interface Election {
  /** `true` if this tab holds the lock. */
  readonly isLeader: boolean
  /** Takes the lock from the current leader, at most once a minute. Does nothing on the leader. */
  steal(): void
  /** Releases the lock or leaves the queue. */
  leave(): void
}

/**
 * Least time in milliseconds between two steals. Without it, an unreachable tab would depose a
 * working host again and again.
 */
const STEAL_INTERVAL_MS = 60_000

/** Enters the election for the lock of the given name. The candidacy ends with `leave`. */
export function joinElection(name: string, candidate: Candidate, locks: LockManager): Election {
  let isLeader = false
  let hasLeft = false
  let release = () => {}
  let lastSteal = -Infinity
  let queued = queue()

  /** Queues for the lock, without a timeout: a follower waits while the leader lives. */
  function queue(): AbortController {
    const waiting = new AbortController()
    request({ signal: waiting.signal })
    return waiting
  }

  function request(options: LockOptions): void {
    let held = false
    const hold = (): Promise<void> | undefined => {
      if (hasLeft) return undefined
      held = true
      isLeader = true
      candidate.onElected()
      // A candidate that failed to start has already left inside `onElected`.
      return hasLeft ? undefined : new Promise((resolve) => (release = resolve))
    }
    locks.request(name, options, hold).catch(() => {
      // The request rejects when it is aborted in the queue or when its held lock is stolen.
      if (!held || hasLeft) return
      stepDown()
      queued = queue()
    })
  }

  function stepDown(): void {
    isLeader = false
    candidate.onDeposed()
  }

  return {
    get isLeader() {
      return isLeader
    },
    steal() {
      // The clock of the computer may be set back, so this one is not used.
      const now = performance.now()
      if (isLeader || hasLeft || now - lastSteal < STEAL_INTERVAL_MS) return
      lastSteal = now
      queued.abort()
      request({ steal: true })
    },
    leave() {
      hasLeft = true
      queued.abort()
      if (isLeader) stepDown()
      release()
    },
  }
}

// Copies of the stored responses, which every page keeps in memory. A page that becomes the host
// passes them to its worker. So responses outlive the host that stored them, and none is written to
// the disk.

interface ResponseCopies {
  /** Joins the channel of the hosts and requests the responses that are already stored. */
  open(): void
  /** Returns what the worker of this page needs when it starts. */
  handOver(): ResponseHandover
  /** Leaves the channel and forgets the copies. */
  close(): void
}

function createResponseCopies(channelName: string): ResponseCopies {
  const copies = new Map<string, ResponseCopy>()
  let channel: BroadcastChannel | undefined
  return {
    open() {
      if (channel) return
      channel = new BroadcastChannel(channelName)
      channel.onmessage = ({ data }: MessageEvent<CopyMessage>) => {
        if (data.type === 'stored') {
          for (const copy of data.copies) copies.set(copy.response.id, copy)
        } else if (data.type === 'removed') {
          for (const id of data.ids) copies.delete(id)
        }
      }
      channel.postMessage({ type: 'join' } satisfies CopyMessage)
    },
    handOver: () => ({ channelName, copies: [...copies.values()] }),
    close() {
      channel?.close()
      channel = undefined
      copies.clear()
    },
  }
}
