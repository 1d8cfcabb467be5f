/**
 * The page's half of the host. While this tab is the leader, it owns the host's dedicated worker
 * and forwards to it the ports that the service worker sends. It never reads a request itself.
 */
import { InoriginError } from '../../error.ts'
import { unreachable } from '../../link/link.ts'
import { currentLocks } from '../../link/locks.ts'
import {
  type AnswerMessage,
  names,
  type PageToWorker,
  PROTOCOL,
  type WorkerToPage,
} from '../../link/protocol.ts'
import type { CopyMessage, ResponseCopy, ResponseHandover } from '../messages.ts'
import { HostThread, notStarted, type PageSetup } from './host-thread.ts'

export type HostPage = ReturnType<typeof hostPage>

/** Open host pages by scope. Two servers of one page are one candidate in the election. */
const openPages = new Map<string, Page>()

/**
 * Enters the election for the host. `container` receives the service worker's messages. Without it,
 * the page hosts at once, and for itself only. The options of the first opener in this page apply.
 */
export function hostPage(
  setup: PageSetup,
  container: ServiceWorkerContainer | undefined,
  postToServiceWorker: PostToServiceWorker,
) {
  const key = `${container ? 'shared' : 'alone'} ${setup.scope}`
  const page = openPages.get(key) ?? new Page(setup, container, postToServiceWorker)
  openPages.set(key, page)
  page.users += 1
  let closed = false
  return {
    /** `true` if this tab currently hosts. */
    get hosting() {
      return page.hosting
    },
    /** Passes a port to the dedicated worker. Throws `host_unreachable` if this tab does not host. */
    connect: (port: MessagePort) => page.connect(port),
    /** Enters the election again, with a new worker, if the lock manager of this page has changed. */
    followLocks: () => page.followLocks(),
    /** Releases the lock and terminates the worker when the last opener has closed the host page. */
    close() {
      if (closed) return
      closed = true
      page.users -= 1
      if (page.users > 0) return
      openPages.delete(key)
      page.close()
    },
  }
}

/** Sends a message to the service worker, if there is one. */
type PostToServiceWorker = (message: PageToWorker) => void

/** Time in milliseconds until a tab whose worker failed to start enters the election again. */
const ELECTION_RETRY_DELAY_MS = 10_000
/**
 * Least time in milliseconds between two restarts of the worker. Without it, a worker that dies at
 * once would be restarted in a loop.
 */
const RESTART_INTERVAL_MS = 10_000

/**
 * A candidate in the election, which answers the messages of the service worker. While it is the
 * leader, the host's worker runs, which is started again when it ends by itself. A page that is
 * alone, without a container, needs no election.
 */
class Page {
  /** Number of openers. */
  users = 0
  #setup: PageSetup
  #container: ServiceWorkerContainer | undefined
  #postToServiceWorker: PostToServiceWorker
  /** The host's worker; `undefined` if this tab does not host. */
  #thread: HostThread | undefined
  #copies: ResponseCopies
  #election: Election | undefined
  #retryTimer: ReturnType<typeof setTimeout> | undefined
  /** Lock manager of the latest candidacy; `undefined` before the first. */
  #locks: LockManager | undefined
  #lastRestart = -Infinity

  constructor(
    setup: PageSetup,
    container: ServiceWorkerContainer | undefined,
    postToServiceWorker: PostToServiceWorker,
  ) {
    this.#setup = setup
    this.#container = container
    this.#postToServiceWorker = postToServiceWorker
    // A page that is alone shares its responses with its own worker only.
    const channelName = container ? names(setup.scope).responses : crypto.randomUUID()
    this.#copies = new ResponseCopies(channelName)
    container?.addEventListener('message', this.#onMessage)
    container?.startMessages()
    addEventListener('pagehide', this.#leave)
    addEventListener('pageshow', this.#onShow)
    this.#enter()
  }

  get hosting(): boolean {
    return this.#thread !== undefined
  }

  connect(port: MessagePort): void {
    if (!this.#thread) throw unreachable()
    this.#thread.forward(port)
  }

  followLocks(): void {
    if (!this.#container || this.#locks === currentLocks()) return
    this.#leave()
    this.#enter()
  }

  close(): void {
    this.#container?.removeEventListener('message', this.#onMessage)
    removeEventListener('pagehide', this.#leave)
    removeEventListener('pageshow', this.#onShow)
    this.#leave()
  }

  #onMessage = ({ data, ports: [port] }: MessageEvent<WorkerToPage>): void => {
    if (data?.protocol !== PROTOCOL || data.scope !== this.#setup.scope) return
    if (data.type === 'inorigin:steal') return this.#election?.steal()
    if (data.type === 'inorigin:who-hosts') {
      const type = this.#thread ? 'inorigin:hosting' : 'inorigin:standing'
      return this.#postToServiceWorker({ type, protocol: PROTOCOL })
    }
    if (data.type !== 'inorigin:request' || !port) return
    if (this.#thread) this.#thread.forward(port)
    else port.postMessage({ type: 'moved' } satisfies AnswerMessage)
  }

  #onShow = (event: PageTransitionEvent): void => {
    if (event.persisted) this.#enter()
  }

  /** Enters the election, or hosts at once if the page is alone. */
  #enter(): void {
    clearTimeout(this.#retryTimer)
    this.#copies.open()
    if (!this.#container) return this.#start()
    const candidate = { onElected: () => this.#start(), onDeposed: () => this.#stop() }
    this.#locks = currentLocks()
    this.#election = new Election(names(this.#setup.scope).host, candidate, this.#locks)
  }

  /**
   * Leaves the election and terminates the worker. A page in the back/forward cache is frozen, so it
   * must release the lock.
   */
  #leave = (): void => {
    clearTimeout(this.#retryTimer)
    if (this.#thread) this.#postToServiceWorker({ type: 'inorigin:left' })
    this.#election?.leave()
    this.#election = undefined
    this.#stop()
    this.#copies.close()
  }

  #start(): void {
    try {
      this.#thread = new HostThread(this.#setup, {
        isElected: this.#container !== undefined,
        responses: this.#copies.handOver(),
        postToServiceWorker: this.#postToServiceWorker,
        onFailure: (error) => this.#fail(error),
        onDeath: () => this.#restart(),
      })
      this.#postToServiceWorker({ type: 'inorigin:hosting', protocol: PROTOCOL })
    } catch (error) {
      this.#fail(notStarted(this.#setup, InoriginError.from(error).message))
    }
  }

  #restart(): void {
    const now = performance.now()
    if (now - this.#lastRestart < RESTART_INTERVAL_MS) return this.#fail(endedTwice())
    this.#lastRestart = now
    this.#stop()
    this.#start()
  }

  /** Lets the next tab in the queue try, and queues again later. */
  #fail(error: InoriginError): void {
    this.#stop(error)
    this.#election?.leave()
    this.#retryTimer = setTimeout(() => this.#enter(), ELECTION_RETRY_DELAY_MS)
  }

  /** Terminates the worker. Ports that wait for it are rejected with the error, if there is one. */
  #stop(error?: InoriginError): void {
    this.#thread?.stop(error)
    this.#thread = undefined
  }
}

function endedTwice(): InoriginError {
  const what = 'The host worker ended twice in a row, most likely because memory ran out.'
  return new InoriginError('unavailable', `${what} Close other tabs, or choose a smaller model.`, {
    code: 'worker_ended',
    retryAfter: ELECTION_RETRY_DELAY_MS / 1000,
  })
}

interface Candidate {
  /** Called when this tab gets the lock. It must start hosting. */
  onElected(): void
  /** Called when the lock was stolen or released. This tab must stop hosting at once. */
  onDeposed(): void
}

/**
 * Least time in milliseconds between two steals. Without it, an unreachable tab would depose a
 * working host again and again.
 */
const STEAL_INTERVAL_MS = 60_000

/**
 * A candidate in the election of the tab that hosts. The leader holds a lock, and the followers queue
 * for it. The browser releases the lock of a closed or crashed tab. A frozen tab keeps its lock, so
 * followers can steal it; the deposed leader must then stop
 * (https://developer.mozilla.org/docs/Web/API/LockManager/request#steal).
 */
export class Election {
  /** `true` if this tab holds the lock. */
  isLeader = false
  #name: string
  #candidate: Candidate
  #locks: LockManager
  #hasLeft = false
  #release = (): void => {}
  #lastSteal = -Infinity
  #queued: AbortController

  /** Enters the election for the lock of the given name. The candidacy ends with `leave`. */
  constructor(name: string, candidate: Candidate, locks: LockManager) {
    this.#name = name
    this.#candidate = candidate
    this.#locks = locks
    this.#queued = this.#queue()
  }

  /** Takes the lock from the current leader, at most once a minute. Does nothing on the leader. */
  steal(): void {
    // The clock of the computer may be set back, so this one is not used.
    const now = performance.now()
    if (this.isLeader || this.#hasLeft || now - this.#lastSteal < STEAL_INTERVAL_MS) return
    this.#lastSteal = now
    this.#queued.abort()
    this.#request({ steal: true })
  }

  /** Releases the lock or leaves the queue. */
  leave(): void {
    this.#hasLeft = true
    this.#queued.abort()
    if (this.isLeader) this.#stepDown()
    this.#release()
  }

  /** Queues for the lock, without a timeout: a follower waits while the leader lives. */
  #queue(): AbortController {
    const waiting = new AbortController()
    this.#request({ signal: waiting.signal })
    return waiting
  }

  #request(options: LockOptions): void {
    let held = false
    const hold = (): Promise<void> | undefined => {
      if (this.#hasLeft) return undefined
      held = true
      this.isLeader = true
      this.#candidate.onElected()
      // A candidate that failed to start has already left inside `onElected`.
      return this.#hasLeft ? undefined : new Promise((resolve) => (this.#release = resolve))
    }
    this.#locks.request(this.#name, options, hold).catch(() => {
      // The request rejects when it is aborted in the queue or when its held lock is stolen.
      if (!held || this.#hasLeft) return
      this.#stepDown()
      this.#queued = this.#queue()
    })
  }

  #stepDown(): void {
    this.isLeader = false
    this.#candidate.onDeposed()
  }
}

/**
 * Copies of the stored responses, which every page keeps in memory. A page that becomes the host
 * passes them to its worker. So responses outlive the host that stored them, and none is written to
 * the disk.
 */
class ResponseCopies {
  #channelName: string
  #copies = new Map<string, ResponseCopy>()
  #channel: BroadcastChannel | undefined

  constructor(channelName: string) {
    this.#channelName = channelName
  }

  /** Joins the channel of the hosts and requests the responses that are already stored. */
  open(): void {
    if (this.#channel) return
    this.#channel = new BroadcastChannel(this.#channelName)
    this.#channel.onmessage = ({ data }: MessageEvent<CopyMessage>) => {
      if (data.type === 'stored') {
        for (const copy of data.copies) this.#copies.set(copy.response.id, copy)
      } else if (data.type === 'removed') {
        for (const id of data.ids) this.#copies.delete(id)
      }
    }
    this.#channel.postMessage({ type: 'join' } satisfies CopyMessage)
  }

  /** Returns what the worker of this page needs when it starts. */
  handOver(): ResponseHandover {
    return { channelName: this.#channelName, copies: [...this.#copies.values()] }
  }

  /** Leaves the channel and forgets the copies. */
  close(): void {
    this.#channel?.close()
    this.#channel = undefined
    this.#copies.clear()
  }
}
