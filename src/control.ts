/**
 * Keeps this page controlled by the service worker. Control is lost where a response clears the site's
 * data, as a logout may: then `fetch('/v1/...')` reaches the web server, until control is taken back.
 */
import { currentLocks, replaceLocks } from './link/locks.ts'
import { keepCurrent, register, speaksOurs, status, type Script } from './register.ts'

/** Milliseconds until control is tried again after it could not be taken back; doubled each time. */
const FIRST_RETRY_DELAY_MS = 1_000
const MAX_RETRY_DELAY_MS = 60_000

/** Looks for the lock of the service worker, and milliseconds between two. */
const MAX_LOCK_LOOKS = 40
const LOCK_LOOK_INTERVAL_MS = 100

/** This page's service worker, as it stands at any moment. */
export interface PageControl {
  /** Registration whose worker is asked; another one after control was lost. */
  readonly registration: ServiceWorkerRegistration
  /** `true` while requests of this page reach that worker. */
  readonly controlled: boolean
}

export interface ControlOptions {
  container: ServiceWorkerContainer
  script: Script
  signal: AbortSignal
  /** Called when this page's requests reach the web server. */
  onLost(): void
  /** Called when they reach the service worker again; `currentLocks()` may be others than before. */
  onRegained(): Promise<void>
}

/**
 * Registers the script and resolves once it controls this page; takes control back whenever it is lost,
 * until the signal aborts. Resolves with `undefined` while the worker speaks another protocol.
 *
 * @throws InoriginError like {@link register} and {@link speaksOurs}.
 */
export async function takeControl(options: ControlOptions): Promise<PageControl | undefined> {
  const { container, script, signal } = options
  let current = await register(container, script, signal)
  // A script of another protocol serves its own tabs until nothing streams and it can be replaced.
  if (!(await speaksOurs(container, current, signal))) return undefined
  await shareLocks(current, signal)
  keepCurrent(() => current, signal)
  const hasController = () => container.controller?.scriptURL === script.url.href
  let lost = false

  async function regain(): Promise<void> {
    for (let delay = FIRST_RETRY_DELAY_MS; ; delay = Math.min(2 * delay, MAX_RETRY_DELAY_MS)) {
      try {
        current = await register(container, script, signal)
        await shareLocks(current, signal)
        if (hasController()) break
      } catch {
        if (signal.aborted) return
        await pause(delay)
      }
    }
    lost = false
    await options.onRegained()
  }

  const onControllerChange = (): void => {
    if (lost || hasController()) return
    lost = true
    options.onLost()
    void regain()
  }
  container.addEventListener('controllerchange', onControllerChange, { signal })

  return {
    get registration() {
      return current
    },
    get controlled() {
      return !lost && hasController()
    },
  }
}

/** Resolves once this page has the same locks as the worker, where it looks for the worker's own. */
async function shareLocks(
  { active }: ServiceWorkerRegistration,
  signal: AbortSignal,
): Promise<void> {
  const life = active && (await status(active))?.life
  if (!life) return
  for (let look = 0; look < MAX_LOCK_LOOKS; look += 1) {
    const { held = [] } = await currentLocks().query()
    if (held.some(({ name }) => name === life)) return
    signal.throwIfAborted()
    replaceLocks(locksOfNewFrame())
    // The locks of a frame that comes while the data are being cleared are the old ones, too.
    if (look > 0) await pause(LOCK_LOOK_INTERVAL_MS)
  }
}

let frame: HTMLIFrameElement | undefined

/** Returns the locks that threads which begin now have: those of a frame, which stays for them. */
function locksOfNewFrame(): LockManager {
  frame?.remove()
  frame = document.createElement('iframe')
  frame.hidden = true
  document.documentElement.append(frame)
  return (frame.contentWindow ?? window).navigator.locks
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
