/**
 * Predictions of a page that go straight to the predictor's worker. The host lends a way there to whoever
 * has predicted once; what comes of a lost one is asked of the host as if there had been none.
 */
import { InoriginError } from '../error.ts'
import type { Control, LoadProgress, Tag } from '../types/index.ts'
import { call, isHostLost, type Link } from './ask.ts'
import type { HostCalls, ModelCalls } from './protocol.ts'

type Predict = Control['predict']

interface Loan {
  link: Link
  /** What the host told last when it brought the predictor into memory. */
  progress: LoadProgress | undefined
}

/**
 * Milliseconds for a worker to take a request: its thread is blocked while another one runs. Of one that
 * takes longer the host knows whether it lives, unless its tab is frozen too: then another one takes over.
 */
const PATIENCE = 20_000

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
    let loan: Loan | null = null
    loans.set(key, loan)
    const ended = new AbortController()
    const onEvent = (port: MessagePort) => {
      const connect = (request: MessagePort) => port.postMessage(null, [request])
      const direct = { ...link, connect, attempts: 1, patience: PATIENCE, gone: ended.signal }
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
      let isTaken = false
      const onTaken = () => {
        isTaken = true
        if (loan.progress) onProgress(loan.progress)
      }
      try {
        return await call<ModelCalls, 'predict'>(loan.link, 'predict', [inputs], {
          signal,
          onTaken,
        })
      } catch (error) {
        if (isTaken && isFinal(error)) throw error
        // Who comes next need not wait as long.
        if (!isTaken && isHostLost(error) && loans.get(key) === loan) loans.delete(key)
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
