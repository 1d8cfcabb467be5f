/** Page side of isolation: the service worker can only isolate pages that it saw load. */
import type { PageControl } from './control.ts'
import { HEARTBEAT_INTERVAL_MS } from './link/protocol.ts'
import { postToWorker } from './register.ts'
import { getWorkerStatus } from './takeover.ts'

/** Time in milliseconds after which a page that is still here counts as not reloaded. */
const RELOAD_TIMEOUT_MS = 10_000

/**
 * Reloads a page that did not come through the service worker, if the worker isolates pages.
 * Resolves when there is nothing to do, or when the user canceled the reload.
 */
export async function reloadToIsolate({ active, scope }: ServiceWorkerRegistration): Promise<void> {
  // A frame is isolated only together with its parent, or when it is next loaded.
  if (crossOriginIsolated || window.top !== window || !active) return
  const status = await getWorkerStatus(active)
  if (!status?.isolates || wasReloaded(scope)) return
  sessionStorage.setItem(markOf(scope), 'true')
  location.reload()
  // A `beforeunload` listener of the app may let the user cancel it.
  await new Promise((resolve) => setTimeout(resolve, RELOAD_TIMEOUT_MS))
}

/**
 * Keeps the service worker running while this page is open, in Firefox. It stops an idle one after
 * 30 s, and with it the downloads that this page started, which are navigations.
 */
export function keepAwake(control: PageControl, signal: AbortSignal): void {
  if (!navigator.userAgent.includes('Firefox/')) return
  const pulse = () => postToWorker(control.registration, { type: 'inorigin:pulse' })
  const timer = setInterval(pulse, HEARTBEAT_INTERVAL_MS)
  signal.addEventListener('abort', () => clearInterval(timer))
}

/**
 * Returns `true` if this page was reloaded. It is not reloaded again, so there is no loop even in a
 * browser that bypasses the service worker or does not honor the headers.
 */
function wasReloaded(scope: string): boolean {
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
  // WebKitGTK 2.50 reports `navigate` after `location.reload()`, so there is a mark, too.
  return navigation?.type === 'reload' || sessionStorage.getItem(markOf(scope)) !== null
}

/** Key in the tab's `sessionStorage`. */
const markOf = (scope: string): string => `inorigin:reloaded:${scope}`
