/**
 * Keeps this page controlled by the service worker. A response that clears the site's data, for
 * example on logout, ends that control, and so does the end of a worker that is taking over.
 * `fetch('/v1/...')` then reaches the web server until this module takes control again.
 */
import { InoriginError } from './error.ts'
import { currentLocks, replaceLocks } from './link/locks.ts'
import { PROBE_HEADER, PROBE_PATH } from './link/protocol.ts'
import {
  getWorkerStatus,
  keepCurrent,
  register,
  retakeControl,
  runsScript,
  speaksProtocol,
  usesSameProtocol,
  type WorkerScript,
} from './register.ts'

/** Delay in milliseconds before the first retry of taking control. It doubles with each retry. */
const FIRST_RETRY_DELAY_MS = 1_000
const MAX_RETRY_DELAY_MS = 60_000
/** Maximum number of checks for the service worker's lock, and milliseconds between them. */
const MAX_LOCK_CHECKS = 40
const LOCK_CHECK_INTERVAL_MS = 100

/** Live state of this page's service worker. */
export interface PageControl {
  /** Current registration. It is replaced after control was lost. */
  readonly registration: ServiceWorkerRegistration
  /** `true` while this page's requests reach the worker of that registration. */
  readonly controlled: boolean
  /** `false` until the worker uses the protocol version of this page. The page is then on its own. */
  readonly isShared: boolean
}

interface ControlOptions {
  container: ServiceWorkerContainer
  script: WorkerScript
  signal: AbortSignal
  /** Called when this page's requests start to reach the web server. */
  onLost(): void
  /**
   * Called when they reach the service worker again, or when it uses this page's protocol version
   * at last. `currentLocks()` may have changed by then.
   */
  onRegained(): Promise<void>
}

/**
 * Warns if the page sent a request to `/v1` before the service worker controlled it. Such a request
 * reaches the web server only on a first visit, so whoever develops the app may never see it fail.
 */
export function warnOfEarlyRequests(scope: string): void {
  const early = performance
    .getEntriesByType('resource')
    .filter((entry) => entry instanceof PerformanceResourceTiming)
    .filter(({ name }) => name.startsWith(`${scope}v1/`) && name !== scope + PROBE_PATH)
    .find(({ workerStart }) => workerStart === 0)
  if (early === undefined) return
  const what = `inorigin: ${new URL(early.name).pathname} was requested before serve() resolved.`
  console.warn(
    `${what} The request went to your web server. Await serve() before the first request.`,
  )
}

/** Takes control of this page. Resolves with `undefined` if the browser has no service workers. */
export async function takeControlIfPossible(
  script: WorkerScript,
  signal: AbortSignal,
  listeners: Pick<ControlOptions, 'onLost' | 'onRegained'>,
): Promise<PageControl | undefined> {
  const { serviceWorker: container } = navigator
  if (!container || !navigator.locks) return undefined
  try {
    return await takeControl({ container, script, signal, ...listeners })
  } catch (error) {
    if (error instanceof InoriginError && error.code === 'no_service_worker') return undefined
    throw error
  }
}

/**
 * Registers the script and resolves when it controls this page. Takes control again whenever it is
 * lost, until the signal aborts. A worker with another protocol version serves its own tabs until it
 * has no open streams. The control is shared when the script of this version has replaced it.
 *
 * @throws InoriginError like {@link register} and {@link usesSameProtocol}.
 */
async function takeControl(options: ControlOptions): Promise<PageControl> {
  const { container, signal } = options
  const worker = new RegisteredWorker(options, await register(container, options.script, signal))
  let isShared = await usesSameProtocol(container, worker.registration, signal)
  keepCurrent(() => worker.registration, signal)
  let lost = false

  async function regain(): Promise<void> {
    await retryUntilTrue(() => worker.regain(), signal)
    if (signal.aborted) return
    lost = false
    isShared = await speaksProtocol(container.controller)
    if (isShared) await options.onRegained()
  }

  function lose(): void {
    if (lost || signal.aborted) return
    lost = true
    options.onLost()
    void regain()
  }

  async function share(): Promise<void> {
    if (!(await speaksProtocol(container.controller)) || isShared || signal.aborted) return
    await shareLocks(worker.registration, signal)
    isShared = true
    await options.onRegained()
  }

  async function onControllerChange(): Promise<void> {
    if (lost) return
    if (!worker.hasController()) return lose()
    if (!isShared) await share()
    if (isShared && !(await worker.isReached())) lose()
  }
  container.addEventListener('controllerchange', () => void onControllerChange(), { signal })
  if (isShared) {
    const { registration } = worker
    const [reached] = await Promise.all([worker.isReached(), shareLocks(registration, signal)])
    if (!reached && !(await worker.regain().catch(() => false))) lose()
  }

  return {
    get registration() {
      return worker.registration
    },
    get controlled() {
      return !lost && isShared && worker.hasController()
    },
    get isShared() {
      return isShared
    },
  }
}

/** The worker that a page has registered. */
class RegisteredWorker {
  readonly #options: ControlOptions
  #script: WorkerScript
  registration: ServiceWorkerRegistration

  constructor(options: ControlOptions, registration: ServiceWorkerRegistration) {
    this.#options = options
    this.#script = options.script
    this.registration = registration
  }

  /** Returns `true` if the worker is the controller of this page. */
  hasController(): boolean {
    return runsScript(this.#options.container.controller, this.#script)
  }

  /** Resolves with `true` if requests of this page reach the worker. */
  isReached(): Promise<boolean> {
    return requestsReachWorker(this.#script.scope, this.#options.signal)
  }

  /** Registers the worker again. Resolves with `true` if it controls this page. */
  async regain(): Promise<boolean> {
    const { container, signal } = this.#options
    this.registration = await register(container, this.#script, signal)
    if (!(await this.isReached())) {
      this.#script = await retakeControl(container, this.#script, signal)
      if (!(await this.isReached())) return false
    }
    await shareLocks(this.registration, signal)
    return this.hasController()
  }
}

/** Runs the attempt until it resolves with `true`, with growing delays, or the signal aborts. */
async function retryUntilTrue(attempt: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  let delayMs = FIRST_RETRY_DELAY_MS
  while (!(await attempt().catch(() => false)) && !signal.aborted) {
    await delay(delayMs)
    delayMs = Math.min(2 * delayMs, MAX_RETRY_DELAY_MS)
  }
}

/**
 * Resolves when this page shares its lock manager with the worker: it then sees the worker's lock.
 */
async function shareLocks({ active }: ServiceWorkerRegistration, signal: AbortSignal) {
  const life = active && (await getWorkerStatus(active))?.life
  if (!life) return
  for (let check = 0; check < MAX_LOCK_CHECKS; check += 1) {
    const { held = [] } = await currentLocks().query()
    if (held.some(({ name }) => name === life)) return
    signal.throwIfAborted()
    replaceLocks(locksOfNewFrame())
    // A frame that is created while the data are being cleared still has the old locks.
    if (check > 0) await delay(LOCK_CHECK_INTERVAL_MS)
  }
}

let frame: HTMLIFrameElement | undefined

/**
 * Returns the lock manager that newly started threads use. It belongs to a new hidden frame, which
 * must stay in the page.
 */
function locksOfNewFrame(): LockManager {
  frame?.remove()
  frame = document.createElement('iframe')
  // An app's style for frames would show one that is only `hidden`.
  frame.style.display = 'none'
  document.documentElement.append(frame)
  return (frame.contentWindow ?? window).navigator.locks
}

const delay = (durationMs: number) => new Promise((resolve) => setTimeout(resolve, durationMs))

// Finds out whether the requests of this page reach its service worker. In Chromium 156, the
// requests of an open page go to the web server if its service worker was ended while it took over
// from an older version. `navigator.serviceWorker.controller` is set all the same, and the worker
// answers messages. So only a request can tell.

/** Timeout in milliseconds for the answer to one probe. The worker may have to start first. */
const PROBE_TIMEOUT_MS = 10_000
/** Maximum number of probes without an answer. A worker that is ended answers the next one. */
const MAX_PROBES = 3

/**
 * Resolves with `false` if the web server answers a request for the probe's path in this scope, or
 * if nobody answers {@link MAX_PROBES} of them. The request has neither a body nor an API key.
 */
async function requestsReachWorker(scope: string, signal: AbortSignal): Promise<boolean> {
  for (let probe = 1; probe <= MAX_PROBES && !signal.aborted; probe += 1) {
    try {
      const response = await fetch(scope + PROBE_PATH, {
        cache: 'no-store',
        signal: AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]),
      })
      const isWorker = response.headers.has(PROBE_HEADER)
      // Chromium shows a response without a body as canceled if the page does not read it.
      if (isWorker) await response.arrayBuffer()
      return isWorker
    } catch {
      // The browser reports a worker that ended during the request as a failure of the network.
    }
  }
  return false
}
