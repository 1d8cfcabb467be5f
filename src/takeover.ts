/** Lets a newer service worker script take over from the one that is active. */
import { PROBE_PATH, PROTOCOL, type PageToWorker, type WorkerStatus } from './link/protocol.ts'

/** Timeout in milliseconds for a service worker to tell its status. */
const STATUS_TIMEOUT_MS = 2_000
/** Milliseconds between checks whether a waiting script may take over. */
const UPDATE_CHECK_INTERVAL_MS = 5_000
/** Interval in milliseconds between requests that wake a worker which keeps another one waiting. */
const WAKE_INTERVAL_MS = 300

/** Resolves with the status of a service worker, or `undefined` if it does not answer. */
export async function getWorkerStatus(worker: ServiceWorker): Promise<WorkerStatus | undefined> {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    const timer = setTimeout(finish, STATUS_TIMEOUT_MS)
    function finish(answer?: WorkerStatus): void {
      clearTimeout(timer)
      port1.close()
      resolve(answer)
    }
    port1.onmessage = (event: MessageEvent<WorkerStatus>) => finish(event.data)
    worker.postMessage({ type: 'inorigin:status' } satisfies PageToWorker, [port2])
  })
}

/**
 * Lets a waiting script take over as soon as {@link activateIfIdle} allows it.
 *
 * Chromium 156 ends the active worker for that. A request or message that reaches it while it ends
 * starts it again, and Chromium forgets that it was to end: the script would wait for 5 minutes,
 * because these checks keep the active worker from being idle, and to call `skipWaiting()` again does
 * nothing. A navigation makes Chromium end the worker again. So a script that was asked before and
 * waits on gets one, of a hidden frame. See `StartWorkerInternal` and `SkipWaiting` in
 * https://chromium.googlesource.com/chromium/src/+/main/content/browser/service_worker/service_worker_version.cc
 */
export function keepCurrent(current: () => ServiceWorkerRegistration, signal: AbortSignal): void {
  const frame = createProbeFrame()
  frame.addEventListener('load', () => frame.remove())
  let asked: ServiceWorker | undefined
  async function check(): Promise<void> {
    const registration = current()
    const { waiting } = registration
    if (!waiting || !(await activateIfIdle(registration, waiting)) || signal.aborted) return
    if (asked === waiting && registration.waiting === waiting) {
      navigateToProbe(frame, registration.scope)
    }
    asked = waiting
  }
  const timer = setInterval(() => void check(), UPDATE_CHECK_INTERVAL_MS)
  signal.addEventListener('abort', () => {
    clearInterval(timer)
    frame.remove()
  })
}

/**
 * Lets a waiting script take over if the active one has no open requests. A script with another
 * protocol version has to wait for a page of that version, because it cannot reach this page.
 * Resolves with `true` if the script was asked to take over.
 */
export async function activateIfIdle(
  registration: ServiceWorkerRegistration,
  waiting: ServiceWorker,
): Promise<boolean> {
  const next = await getWorkerStatus(waiting)
  if (next && next.protocol !== PROTOCOL) return false
  const active = registration.active && (await getWorkerStatus(registration.active))
  if (active && active.open > 0) return false
  waiting.postMessage({ type: 'inorigin:update' } satisfies PageToWorker)
  return true
}

/**
 * Navigates a hidden frame again and again, until the signal aborts. Its requests reach the active
 * worker, though those of this page pass it by. In Chromium 156, a worker that was ended while it
 * took over can keep the next script waiting for over 20 seconds. Such a request ends the wait.
 */
export function wakeActiveWorker(scope: string, signal: AbortSignal): void {
  const frame = createProbeFrame()
  const timer = setInterval(() => navigateToProbe(frame, scope), WAKE_INTERVAL_MS)
  signal.addEventListener('abort', () => {
    clearInterval(timer)
    frame.remove()
  })
}

/** Creates a hidden frame for {@link navigateToProbe}. */
function createProbeFrame(): HTMLIFrameElement {
  const frame = document.createElement('iframe')
  frame.style.display = 'none'
  // If the web server answers, scripts of its page must not run.
  frame.sandbox.add('allow-same-origin')
  return frame
}

function navigateToProbe(frame: HTMLIFrameElement, scope: string): void {
  frame.src = scope + PROBE_PATH
  if (!frame.isConnected) document.documentElement.append(frame)
}
