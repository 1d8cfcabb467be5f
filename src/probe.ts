/**
 * Finds out whether the requests of this page reach its service worker.
 *
 * In Chromium 156, the requests of an open page go to the web server if its service worker was
 * ended while it took over from an older version. `navigator.serviceWorker.controller` is set all
 * the same, and the worker answers messages. So only a request can tell.
 */
import { PROBE_HEADER, PROBE_PATH } from './link/protocol.ts'

/** Timeout in milliseconds for the answer to one probe. The worker may have to start first. */
const PROBE_TIMEOUT_MS = 10_000
/** Maximum number of probes without an answer. A worker that is ended answers the next one. */
const MAX_PROBES = 3

/**
 * Resolves with `false` if the web server answers a request for the probe's path in this scope, or
 * if nobody answers {@link MAX_PROBES} of them. The request has neither a body nor an API key.
 */
export async function requestsReachWorker(scope: string, signal: AbortSignal): Promise<boolean> {
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
