/**
 * Sends a page's predictions directly to the predictor's worker. After the first prediction, the
 * host sends the page a port to that worker. If the port is lost, the page sends its predictions to
 * the host again.
 */
import { InoriginError } from '../error.ts'
import type { Control, LoadProgress, Tag } from '../types/index.ts'
import { call, isHostLost, type Link } from './ask.ts'
import type { HostCalls, ModelCalls } from './protocol.ts'

type Predict = Control['predict']

interface DirectLink {
  link: Link
  /** Last progress that the host reported while it loaded the predictor. */
  progress: LoadProgress | undefined
}

/**
 * Timeout in milliseconds for a worker to acknowledge a request. Its thread is blocked while
 * another request runs. After the timeout the page asks the host, which knows whether the worker is
 * alive.
 */
const DIRECT_ACK_TIMEOUT_MS = 20_000

/** Returns a `predict` that uses direct ports. `link` leads to the host, as does `predict`. */
export function predictDirectly(link: Link, predict: Predict): Predict {
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
    const onEvent = (port: MessagePort) => {
      const connect = (request: MessagePort) => port.postMessage(null, [request])
      const workerLink = {
        ...link,
        connect,
        maxAttempts: 1,
        ackTimeoutMs: DIRECT_ACK_TIMEOUT_MS,
        endSignal: ended.signal,
      }
      directLink = { link: workerLink, progress }
      directLinks.set(key, directLink)
    }
    try {
      await call<HostCalls, 'lend'>(link, 'lend', [tag, configuration], { onEvent })
    } catch (error) {
      ended.abort(error)
    } finally {
      if (directLinks.get(key) === directLink) directLinks.delete(key)
    }
  }

  return async (tag, inputs, options) => {
    const { configuration, signal, onProgress } = options
    const key = keyOf(tag, configuration)
    const directLink = directLinks.get(key)
    if (directLink) {
      let isAcknowledged = false
      const onAck = () => {
        isAcknowledged = true
        if (directLink.progress) onProgress(directLink.progress)
      }
      try {
        return await call<ModelCalls, 'predict'>(directLink.link, 'predict', [inputs], {
          signal,
          onAck,
        })
      } catch (error) {
        if (isAcknowledged && isFinal(error)) throw error
        // The next prediction then does not wait for the same timeout.
        if (!isAcknowledged && isHostLost(error) && directLinks.get(key) === directLink)
          directLinks.delete(key)
      }
    }
    let latest: LoadProgress | undefined
    const result = await predict(tag, inputs, {
      ...options,
      onProgress(progress) {
        latest = progress
        onProgress(progress)
      },
    })
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
