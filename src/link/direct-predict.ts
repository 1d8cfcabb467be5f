/**
 * Sends a page's predictions directly to the predictor's worker. After the first prediction, the
 * host sends the page a port to that worker. If the port is lost, the page sends its predictions to
 * the host again.
 */
import { InoriginError } from '../error.ts'
import { DIRECT_METHODS } from '../types/control.ts'
import type { DirectPredictor, HostService, LoadProgress, Tag } from '../types/index.ts'
import { isHostLost, type Link } from './link.ts'
import { remote } from './remote.ts'

interface DirectLink {
  predictor: DirectPredictor
  /** Last progress that the host reported while it loaded the predictor. */
  progress: LoadProgress | undefined
}

/**
 * Timeout in milliseconds for a worker to acknowledge a request. Its thread is blocked while
 * another request runs. After the timeout the page asks the host, which knows whether the worker is
 * alive.
 */
const DIRECT_ACK_TIMEOUT_MS = 20_000

/** Returns a `predict` that uses direct ports. `link` leads to the host. */
export function predictDirectly(
  link: Link,
  host: Pick<HostService, 'predict' | 'openDirectPort'>,
): HostService['predict'] {
  /** Direct links by tag and configuration; `null` while the page waits for the port. */
  const directLinks = new Map<string, DirectLink | null>()

  /** Requests a direct port, and uses it until the predictor is unloaded. */
  async function requestPort(
    tag: Tag,
    configuration: string | undefined,
    progress: LoadProgress | undefined,
  ): Promise<void> {
    const key = keyOf(tag, configuration)
    if (directLinks.has(key)) return
    let directLink: DirectLink | null = null
    directLinks.set(key, directLink)
    const ended = new AbortController()
    const usePort = (port: MessagePort) => {
      const connect = (request: MessagePort) => port.postMessage(null, [request])
      const workerLink = {
        ...link,
        connect,
        maxAttempts: 1,
        ackTimeoutMs: DIRECT_ACK_TIMEOUT_MS,
        endSignal: ended.signal,
      }
      directLink = { predictor: remote<DirectPredictor>(workerLink, DIRECT_METHODS), progress }
      directLinks.set(key, directLink)
    }
    try {
      const { signal } = new AbortController()
      await host.openDirectPort(tag, configuration, { key: null, signal, onEvent: usePort })
    } catch (error) {
      ended.abort(error)
    } finally {
      if (directLinks.get(key) === directLink) directLinks.delete(key)
    }
  }

  return async (tag, inputs, configuration, caller) => {
    const key = keyOf(tag, configuration)
    const directLink = directLinks.get(key)
    if (directLink) {
      let isAcknowledged = false
      const onAck = () => {
        isAcknowledged = true
        if (directLink.progress) caller.onEvent?.(directLink.progress)
      }
      try {
        const { signal } = caller
        return await directLink.predictor.predict(inputs, { key: null, signal, onAck })
      } catch (error) {
        if (isAcknowledged && isFinal(error)) throw error
        // The next prediction then does not wait for the same timeout.
        if (!isAcknowledged && isHostLost(error) && directLinks.get(key) === directLink)
          directLinks.delete(key)
      }
    }
    let latest: LoadProgress | undefined
    const onEvent = (progress: LoadProgress) => {
      latest = progress
      caller.onEvent?.(progress)
    }
    const result = await host.predict(tag, inputs, configuration, { ...caller, onEvent })
    void requestPort(tag, configuration, latest)
    return result
  }
}

const keyOf = (tag: Tag, configuration: string | undefined) => JSON.stringify([tag, configuration])

/**
 * Returns `true` if the host would fail with the same error. After other errors the host may know
 * more about the worker, or start a new one.
 */
function isFinal(error: unknown): boolean {
  if (!(error instanceof InoriginError)) return true
  return error.kind === 'invalid_request' || error.kind === 'aborted' || error.code === 'unloaded'
}
