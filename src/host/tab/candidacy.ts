/**
 * The candidacy of a page in the election, and the host's worker, which runs while the page is the
 * leader.
 */
import { InoriginError } from '../../error.ts'
import { currentLocks } from '../../link/locks.ts'
import { PROTOCOL, names, type PageToWorker } from '../../link/protocol.ts'
import { joinElection, type Election } from './election.ts'
import { createResponseCopies, type ResponseCopies } from './response-copies.ts'
import { notStarted, startHostThread, type HostThread, type PageSetup } from './host-thread.ts'

/** Sends a message to the service worker, if there is one. */
export type PostToServiceWorker = (message: PageToWorker) => void

/** Time in milliseconds until a tab whose worker failed to start enters the election again. */
const ELECTION_RETRY_DELAY_MS = 10_000
/**
 * Least time in milliseconds between two restarts of the worker. Without it, a worker that dies at
 * once would be restarted in a loop.
 */
const RESTART_INTERVAL_MS = 10_000

export interface Candidacy {
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
export function createCandidacy(
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
