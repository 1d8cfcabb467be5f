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

interface Listeners {
  /** Called when this page's requests start to reach the web server. */
  onLost(): void
  /**
   * Called when they reach the service worker again, or when it uses this page's protocol version
   * at last. `currentLocks()` may have changed by then.
   */
  onRegained(): Promise<void>
}

/**
 * The control of this page by its service worker. It is taken again whenever it is lost, until the
 * signal aborts. A worker with another protocol version serves its own tabs until it has no open
 * streams. The control is shared when the script of this version has replaced it.
 */
export class PageControl {
  readonly #container = navigator.serviceWorker
  #script: WorkerScript
  readonly #signal: AbortSignal
  readonly #listeners: Listeners
  #isLost = false
  /** Current registration. It is replaced after control was lost. */
  registration: ServiceWorkerRegistration
  /** `false` until the worker uses the protocol version of this page. The page is then on its own. */
  isShared = false

  private constructor(
    registration: ServiceWorkerRegistration,
    script: WorkerScript,
    signal: AbortSignal,
    listeners: Listeners,
  ) {
    this.registration = registration
    this.#script = script
    this.#signal = signal
    this.#listeners = listeners
  }

  /**
   * Registers the script and resolves when it controls this page, or with `undefined` if the browser
   * has no service workers.
   *
   * @throws InoriginError like {@link register} and {@link usesSameProtocol}.
   */
  static async take(
    script: WorkerScript,
    signal: AbortSignal,
    listeners: Listeners,
  ): Promise<PageControl | undefined> {
    const { serviceWorker: container } = navigator
    if (!container || !navigator.locks) return undefined
    try {
      const registration = await register(container, script, signal)
      const control = new PageControl(registration, script, signal, listeners)
      await control.#start()
      return control
    } catch (error) {
      if (error instanceof InoriginError && error.code === 'no_service_worker') return undefined
      throw error
    }
  }

  /** `true` while this page's requests reach the worker of that registration. */
  get controlled(): boolean {
    return !this.#isLost && this.isShared && this.#hasController()
  }

  async #start(): Promise<void> {
    const signal = this.#signal
    this.isShared = await usesSameProtocol(this.#container, this.registration, signal)
    keepCurrent(() => this.registration, signal)
    const onChange = () => void this.#onControllerChange()
    this.#container.addEventListener('controllerchange', onChange, { signal })
    if (!this.isShared) return
    const [isReached] = await Promise.all([this.#isReached(), this.#shareLocks()])
    if (!isReached && !(await this.#retake().catch(() => false))) this.#lose()
  }

  async #onControllerChange(): Promise<void> {
    if (this.#isLost) return
    if (!this.#hasController()) return this.#lose()
    if (!this.isShared) await this.#share()
    if (this.isShared && !(await this.#isReached())) this.#lose()
  }

  async #share(): Promise<void> {
    const isSame = await speaksProtocol(this.#container.controller)
    if (!isSame || this.isShared || this.#signal.aborted) return
    await this.#shareLocks()
    this.isShared = true
    await this.#listeners.onRegained()
  }

  #lose(): void {
    if (this.#isLost || this.#signal.aborted) return
    this.#isLost = true
    this.#listeners.onLost()
    void this.#regain()
  }

  /** Retries with growing delays until this page is controlled again, or the signal aborts. */
  async #regain(): Promise<void> {
    let delayMs = FIRST_RETRY_DELAY_MS
    while (!(await this.#retake().catch(() => false)) && !this.#signal.aborted) {
      await delay(delayMs)
      delayMs = Math.min(2 * delayMs, MAX_RETRY_DELAY_MS)
    }
    if (this.#signal.aborted) return
    this.#isLost = false
    this.isShared = await speaksProtocol(this.#container.controller)
    if (this.isShared) await this.#listeners.onRegained()
  }

  /** Registers the worker again. Resolves with `true` if it controls this page. */
  async #retake(): Promise<boolean> {
    this.registration = await register(this.#container, this.#script, this.#signal)
    if (!(await this.#isReached())) {
      this.#script = await retakeControl(this.#container, this.#script, this.#signal)
      if (!(await this.#isReached())) return false
    }
    await this.#shareLocks()
    return this.#hasController()
  }

  #hasController(): boolean {
    return runsScript(this.#container.controller, this.#script)
  }

  #isReached(): Promise<boolean> {
    return requestsReachWorker(this.#script.scope, this.#signal)
  }

  /** Resolves when this page shares its lock manager with the worker: it sees the worker's lock. */
  async #shareLocks(): Promise<void> {
    const { active } = this.registration
    const life = active && (await getWorkerStatus(active))?.life
    if (!life) return
    for (let check = 0; check < MAX_LOCK_CHECKS; check += 1) {
      const { held = [] } = await currentLocks().query()
      if (held.some(({ name }) => name === life)) return
      this.#signal.throwIfAborted()
      replaceLocks(locksOfNewFrame())
      // A frame that is created while the data are being cleared still has the old locks.
      if (check > 0) await delay(LOCK_CHECK_INTERVAL_MS)
    }
  }
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

let frame: HTMLIFrameElement | undefined

/** Returns the lock manager of a new hidden frame, which must stay. New threads use it, too. */
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
