/**
 * Sends a page's predictions directly to the predictor's worker. After the first prediction, the
 * host lends the page a port to that worker. If the port is lost, the page sends its predictions to
 * the host again.
 */
import { InoriginError } from '../error.ts'
import type { Control, LoadProgress, Tag } from '../types/index.ts'
import { call, isHostLost, type Link } from './ask.ts'
import type { HostCalls, ModelCalls } from './protocol.ts'

type Predict = Control['predict']

interface Loan {
  link: Link
  /** Last progress that the host reported while it loaded the predictor. */
  progress: LoadProgress | undefined
}

/**
 * Timeout in milliseconds for a worker to acknowledge a request. Its thread is blocked while
 * another request runs. After the timeout the page asks the host, which knows whether the worker is
 * alive.
 */
const PATIENCE = 20_000

/**
 * Returns a `predict` that borrows ports. `link` leads to the host; `predict` sends requests to it.
 */
export function borrowing(link: Link, predict: Predict): Predict {
  /** Loans by tag and configuration; `null` while the page waits for the port. */
  const loans = new Map<string, Loan | null>()

  /** Borrows a port, and holds it until the predictor is unloaded. */
  async function borrow(
    tag: Tag,
    configuration: string | undefined,
    progress: LoadProgress | undefined,
  ): Promise<void> {
    const key = keyOf(tag, configuration)
    if (loans.has(key)) return
    let loan: Loan | null = null
    loans.set(key, loan)
    const ended = new AbortController()
    const onEvent = (port: MessagePort) => {
      const connect = (request: MessagePort) => port.postMessage(null, [request])
      const direct = {
        ...link,
        connect,
        maxAttempts: 1,
        ackTimeoutMs: PATIENCE,
        endSignal: ended.signal,
      }
      loan = { link: direct, progress }
      loans.set(key, loan)
    }
    try {
      await call<HostCalls, 'lend'>(link, 'lend', [tag, configuration], { onEvent })
    } catch (error) {
      ended.abort(error)
    } finally {
      if (loans.get(key) === loan) loans.delete(key)
    }
  }

  return async (tag, inputs, options) => {
    const { configuration, signal, onProgress } = options
    const key = keyOf(tag, configuration)
    const loan = loans.get(key)
    if (loan) {
      let isAcknowledged = false
      const onAck = () => {
        isAcknowledged = true
        if (loan.progress) onProgress(loan.progress)
      }
      try {
        return await call<ModelCalls, 'predict'>(loan.link, 'predict', [inputs], {
          signal,
          onAck,
        })
      } catch (error) {
        if (isAcknowledged && isFinal(error)) throw error
        // The next prediction then does not wait for the same timeout.
        if (!isAcknowledged && isHostLost(error) && loans.get(key) === loan) loans.delete(key)
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
    void borrow(tag, configuration, latest)
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
