/** Page side of the service worker: registers it, and lets it control the page. */
import { InoriginError, messageOf } from './error.ts'
import {
  ASSETS_PARAM,
  ISOLATE_PARAM,
  OFFLINE_PARAM,
  type PageToWorker,
  PROBE_PATH,
  PROTOCOL,
  RETAKE_PARAM,
  type WorkerStatus,
} from './link/protocol.ts'

/** Timeout in milliseconds for a registered worker to control the page. */
const CONTROL_TIMEOUT_MS = 20_000
/** Timeout in milliseconds for a newer script to replace one with another protocol version. */
const UPDATE_TIMEOUT_MS = 6_000

export interface WorkerScript {
  url: URL
  scope: string
  type: WorkerType
}

/** Returns `true` if the worker runs this script. Another page may have added other parameters. */
export const runsScript = (worker: ServiceWorker | null, { url }: WorkerScript): boolean =>
  worker !== null && withoutParams(worker.scriptURL) === withoutParams(url.href)

function withoutParams(href: string): string {
  const url = new URL(href)
  for (const param of [ISOLATE_PARAM, OFFLINE_PARAM, ASSETS_PARAM, RETAKE_PARAM])
    url.searchParams.delete(param)
  return url.href
}

/** Sends a message to the active worker, even if it does not control this page. */
export function postToWorker(registration: ServiceWorkerRegistration, message: PageToWorker): void {
  registration.active?.postMessage(message)
}

/**
 * Registers the script and resolves when it controls this page, even after a hard reload.
 *
 * @throws InoriginError `unavailable` with one of these codes: `no_service_worker` if the browser
 * allows none; `script_missing` if the script does not exist; `scope_refused` if the script is
 * below its scope and has no `Service-Worker-Allowed` header; `not_controlled` if it does not take
 * control.
 */
export async function register(
  container: ServiceWorkerContainer,
  script: WorkerScript,
  signal: AbortSignal,
): Promise<ServiceWorkerRegistration> {
  const { scope, type } = script
  // Updates of the script must be found even if its cache headers allow an old copy.
  const options: RegistrationOptions = { scope, type, updateViaCache: 'none' }
  const registration =
    (await findControlling(container, script)) ??
    (await container
      .register(script.url, options)
      // Playwright resolves with nothing if a context blocks service workers:
      // https://playwright.dev/docs/api/class-browser#browser-new-context-option-service-workers
      .then((registered) => registered ?? Promise.reject(new Error('The browser blocks it.')))
      .catch(async (error: unknown) => {
        throw await toRegistrationError(script, error)
      }))
  signal.throwIfAborted()
  const worker = registration.installing ?? registration.waiting
  await waitUntil(() => registration.active !== null, worker, 'statechange', signal)
  const isControlled = () =>
    container.controller !== null &&
    container.controller.scriptURL === registration.active?.scriptURL
  await waitUntil(isControlled, container, 'controllerchange', signal, () =>
    // A hard reload leaves the page uncontrolled. A claim avoids a second reload.
    postToWorker(registration, { type: 'inorigin:claim' }),
  )
  return registration
}

/**
 * Resolves with the registration of this script if it controls this page already. To register it
 * again would change nothing, and would wait for an update check that a hanging server never ends:
 * https://w3c.github.io/ServiceWorker/#register-algorithm
 */
async function findControlling(container: ServiceWorkerContainer, { url, scope }: WorkerScript) {
  if (container.controller?.scriptURL !== url.href) return undefined
  const found = await container.getRegistration(scope)
  return found?.active?.scriptURL === url.href ? found : undefined
}

/**
 * Registers the script under another URL, which makes it a new script for the browser, and resolves
 * with that script when it has taken over from the one that controls this page. Tabs that do so at
 * the same time use the same URL.
 *
 * @throws InoriginError like {@link register}.
 */
export async function retakeControl(
  container: ServiceWorkerContainer,
  script: WorkerScript,
  signal: AbortSignal,
): Promise<WorkerScript> {
  const url = new URL(script.url)
  const controlling = new URL(container.controller?.scriptURL ?? script.url)
  if (controlling.searchParams.has(RETAKE_PARAM)) url.searchParams.delete(RETAKE_PARAM)
  else url.searchParams.set(RETAKE_PARAM, 'true')
  const retaken = { ...script, url }
  const registration = await register(container, retaken, signal)
  const isRetaken = () => container.controller?.scriptURL === url.href
  await waitUntil(isRetaken, container, 'controllerchange', signal, (over) => {
    const activate = () =>
      registration.waiting && void activateIfIdle(registration, registration.waiting)
    registration.installing?.addEventListener('statechange', activate, { signal: over })
    activate()
    wakeActiveWorker(script.scope, over)
  })
  return retaken
}

/**
 * Waits until the condition holds, which it checks at each event of the target. `begin` gets a signal
 * that aborts at the end. Rejects when `signal` aborts, and if the wait takes too long.
 */
async function waitUntil(
  isDone: () => boolean,
  target: EventTarget | null,
  type: 'statechange' | 'controllerchange',
  signal: AbortSignal,
  begin: (over: AbortSignal) => void = () => {},
): Promise<void> {
  if (isDone()) return
  const controller = new AbortController()
  const { signal: over } = controller
  const what = 'The service worker did not take control of this page within 20 s.'
  const message = `${what} Close other tabs of this origin and reload.`
  const late = new InoriginError('unavailable', message, { code: 'not_controlled' })
  try {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(late), CONTROL_TIMEOUT_MS)
      over.addEventListener('abort', () => clearTimeout(timer))
      signal.addEventListener('abort', () => reject(signal.reason), { signal: over })
      target?.addEventListener(type, () => isDone() && resolve(), { signal: over })
      begin(over)
    })
  } finally {
    controller.abort()
  }
}

/** Resolves with `true` if the worker uses the protocol version of this page. */
export async function speaksProtocol(worker: ServiceWorker | null): Promise<boolean> {
  const status = worker && (await getWorkerStatus(worker))
  return status?.protocol === PROTOCOL
}

/**
 * Resolves with `true` if the worker that controls this page uses the same protocol version. An
 * older script is updated first if possible.
 *
 * @throws InoriginError `unavailable` with code `foreign_service_worker` if the worker does not run
 * inorigin.
 */
export async function usesSameProtocol(
  container: ServiceWorkerContainer,
  registration: ServiceWorkerRegistration,
  signal: AbortSignal,
): Promise<boolean> {
  const deadline = performance.now() + UPDATE_TIMEOUT_MS
  for (let first = true; ; first = false) {
    const workerStatus = container.controller && (await getWorkerStatus(container.controller))
    signal.throwIfAborted()
    if (workerStatus?.protocol === PROTOCOL) return true
    if (first) await registration.update().catch(() => undefined)
    if (registration.waiting) await activateIfIdle(registration, registration.waiting)
    if (performance.now() > deadline) {
      if (workerStatus) return false
      const what = `The service worker at ${registration.active?.scriptURL} does not run inorigin.`
      const message = `${what} Call attach() from 'inorigin/sw' in it.`
      throw new InoriginError('unavailable', message, { code: 'foreign_service_worker' })
    }
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

async function toRegistrationError({ url, scope }: WorkerScript, cause: unknown) {
  const reason = messageOf(cause)
  const found = await fetch(url, { cache: 'no-store' }).catch(() => undefined)
  const isScript = found?.ok && /javascript/.test(found.headers.get('content-type') ?? '')
  if (!isScript) {
    const what = `There is no service worker script at ${url.pathname}: ${reason}`
    const todo =
      'Run `npx inorigin init <public folder>`, or pass `worker` with the URL of the script'
    const message = `${what} ${todo}${exampleBeside(url)}.`
    return new InoriginError('unavailable', message, { code: 'script_missing', cause })
  }
  const above = !new URL(scope).pathname.startsWith(new URL('.', url).pathname)
  const what = `Cannot register a service worker for ${scope}: ${reason}`
  return new InoriginError('unavailable', what, {
    code: above ? 'scope_refused' : 'no_service_worker',
    cause,
  })
}

function exampleBeside({ pathname }: URL): string {
  const beside = new URL('sw.js', document.baseURI).pathname
  return beside === pathname ? '' : `, such as ${beside}`
}

// Lets a newer service worker script take over from the one that is active.

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
  const frame = createProbeFrame(signal)
  frame.addEventListener('load', () => frame.remove())
  let asked: ServiceWorker | undefined
  async function check(): Promise<void> {
    const registration = current()
    const { waiting } = registration
    if (!waiting || !(await activateIfIdle(registration, waiting)) || signal.aborted) return
    if (asked === waiting && registration.waiting === waiting)
      navigateToProbe(frame, registration.scope)
    asked = waiting
  }
  repeat(() => void check(), UPDATE_CHECK_INTERVAL_MS, signal)
}

/** Calls the function at this interval until the signal aborts. */
export function repeat(work: () => void, intervalMs: number, signal: AbortSignal): void {
  const timer = setInterval(work, intervalMs)
  signal.addEventListener('abort', () => clearInterval(timer))
}

/**
 * Lets a waiting script take over if the active one has no open requests. A script with another
 * protocol version has to wait for a page of that version, because it cannot reach this page.
 * Resolves with `true` if the script was asked to take over.
 */
async function activateIfIdle(registration: ServiceWorkerRegistration, waiting: ServiceWorker) {
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
function wakeActiveWorker(scope: string, signal: AbortSignal): void {
  const frame = createProbeFrame(signal)
  repeat(() => navigateToProbe(frame, scope), WAKE_INTERVAL_MS, signal)
}

/** Creates a hidden frame, which is removed when the signal aborts. */
function createProbeFrame(signal: AbortSignal): HTMLIFrameElement {
  const frame = document.createElement('iframe')
  signal.addEventListener('abort', () => frame.remove())
  frame.style.display = 'none'
  // If the web server answers, scripts of its page must not run.
  frame.sandbox.add('allow-same-origin')
  return frame
}

function navigateToProbe(frame: HTMLIFrameElement, scope: string): void {
  frame.src = scope + PROBE_PATH
  if (!frame.isConnected) document.documentElement.append(frame)
}
