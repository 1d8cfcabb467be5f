/**
 * Predictions of a page that go straight to the predictor's worker. The host lends a way there to whoever
 * has predicted once; what comes of a lost one is asked of the host as if there had been none.
 */
import { InoriginError } from '../error.ts'
import type { Control, LoadProgress, Tag } from '../types/index.ts'
import { call, type Link } from './ask.ts'
import type { HostCalls, ModelCalls } from './protocol.ts'

type Predict = Control['predict']

interface Loan {
  link: Link
  /** What the host told last when it brought the predictor into memory. */
  progress: LoadProgress | undefined
}

/** Milliseconds for a worker to take a request: its thread is blocked while another one runs. */
const PATIENCE = 120_000

/** `link` is to the host, and `predict` asks it. */
export function borrowing(link: Link, predict: Predict): Predict {
  /** By tag and configuration; `null` while the host is asked for one. */
  const loans = new Map<string, Loan | null>()

  /** Holds a loan until its predictor leaves the memory. */
  async function borrow(
    tag: Tag,
    configuration: string | undefined,
    progress: LoadProgress | undefined,
  ): Promise<void> {
    const key = keyOf(tag, configuration)
    if (loans.has(key)) return
    loans.set(key, null)
    const ended = new AbortController()
    const onEvent = (port: MessagePort) => {
      const connect = (request: MessagePort) => port.postMessage(null, [request])
      const direct = { ...link, connect, attempts: 1, patience: PATIENCE, gone: ended.signal }
      loans.set(key, { link: direct, progress })
    }
    try {
      await call<HostCalls, 'lend'>(link, 'lend', [tag, configuration], { onEvent })
    } catch (error) {
      ended.abort(error)
    } finally {
      loans.delete(key)
    }
  }

  return async (tag, inputs, options) => {
    const { configuration, signal, onProgress } = options
    const loan = loans.get(keyOf(tag, configuration))
    if (loan) {
      let isTaken = false
      const onTaken = () => {
        isTaken = true
        if (loan.progress) onProgress(loan.progress)
      }
      try {
        return await call<ModelCalls, 'predict'>(loan.link, 'predict', [inputs], { signal, onTaken })
      } catch (error) {
        if (isTaken && isFinal(error)) throw error
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

/** Whether the host would say the same. It knows more of a worker that failed, and can start another. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof InoriginError)) return true
  return error.kind === 'invalid_request' || error.kind === 'aborted' || error.code === 'unloaded'
}
