/**
 * Sends a page's predictions directly to the predictor's worker. After the first prediction, the
 * host sends the page a port to that worker. If the port is lost, the page sends its predictions to
 * the host again.
 */
import { InoriginError } from '../error.ts'
import { DIRECT_METHODS } from '../types/control.ts'
import type {
  Caller,
  DirectPredictor,
  HostService,
  LoadProgress,
  PredictionStep,
  Tag,
} from '../types/index.ts'
import { isHostLost, type Link } from './link.ts'
import { remote, rerunOnDeath } from './ask.ts'

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

type DirectHost = Pick<HostService, 'predict' | 'predictNext' | 'openDirectPort'>

/** Returns the calls of predictors, which use direct ports. `link` leads to the host. */
export function predictDirectly(
  link: Link,
  host: DirectHost,
): Pick<HostService, 'predict' | 'predictNext'> {
  const directLinks = new DirectLinks(link, host)
  return {
    predict: (tag, inputs, configuration, caller) =>
      directLinks.call(
        tag,
        configuration,
        caller,
        (worker, own) => worker.predict(inputs, own),
        (own) => host.predict(tag, inputs, configuration, own),
      ),
    predictNext: (tag, inputs, configuration, state, caller) =>
      directLinks.call(
        tag,
        configuration,
        caller,
        (worker, own) => worker.predictNext(inputs, state, own),
        (own) => host.predictNext(tag, inputs, configuration, state, own),
      ),
  }
}

/** The direct links of a page by predictor and configuration. */
class DirectLinks {
  #link: Link
  #host: DirectHost
  /** Direct links by key; `undefined` while the page waits for the port. */
  #links = new Map<string, DirectLink | undefined>()

  constructor(link: Link, host: DirectHost) {
    this.#link = link
    this.#host = host
  }

  /** Calls the worker over its direct port, or the host if there is none or it fails. */
  async call<Result>(
    tag: Tag,
    configuration: string | undefined,
    caller: Caller<PredictionStep>,
    callWorker: (worker: DirectPredictor, caller: Caller<{ text: string }>) => Promise<Result>,
    callHost: (caller: Caller<PredictionStep>) => Promise<Result>,
  ): Promise<Result> {
    const key = JSON.stringify([tag, configuration])
    const directLink = this.#links.get(key)
    if (directLink) {
      let isAcknowledged = false
      const onAck = () => {
        isAcknowledged = true
        if (directLink.progress) caller.onEvent?.(directLink.progress)
      }
      try {
        const { signal, onEvent } = caller
        return await callWorker(directLink.predictor, { key: null, signal, onAck, onEvent })
      } catch (error) {
        if (isAcknowledged && isFinal(error)) throw error
        // The next prediction then does not wait for the same timeout.
        if (!isAcknowledged && isHostLost(error)) this.#drop(key, directLink)
      }
    }
    let latest: LoadProgress | undefined
    const onEvent = (step: PredictionStep) => {
      if ('phase' in step) latest = step
      caller.onEvent?.(step)
    }
    const result = await rerunOnDeath(() => callHost({ ...caller, onEvent }))
    if (!this.#links.has(key)) void this.#open(key, tag, configuration, latest)
    return result
  }

  /** Forgets the direct link, so that the next prediction goes to the host. */
  #drop(key: string, directLink: DirectLink | undefined): void {
    if (this.#links.get(key) === directLink) this.#links.delete(key)
  }

  /** Requests a direct port from the host, and uses it until the predictor is unloaded. */
  async #open(
    key: string,
    tag: Tag,
    configuration: string | undefined,
    progress: LoadProgress | undefined,
  ): Promise<void> {
    let directLink: DirectLink | undefined
    this.#links.set(key, directLink)
    const ended = new AbortController()
    const onEvent = (port: MessagePort) => {
      directLink = { predictor: this.#connect(port, ended.signal), progress }
      this.#links.set(key, directLink)
    }
    try {
      const { signal } = new AbortController()
      await this.#host.openDirectPort(tag, configuration, { key: null, signal, onEvent })
    } catch (error) {
      ended.abort(error)
    } finally {
      this.#drop(key, directLink)
    }
  }

  #connect(port: MessagePort, endSignal: AbortSignal): DirectPredictor {
    const workerLink: Link = {
      ...this.#link,
      connect: (request) => port.postMessage(null, [request]),
      maxAttempts: 1,
      ackTimeoutMs: DIRECT_ACK_TIMEOUT_MS,
      // A run blocks the worker. The open call of `openDirectPort` tells if its host dies.
      messageTimeoutMs: Infinity,
      endSignal,
    }
    return remote<DirectPredictor>(workerLink, DIRECT_METHODS)
  }
}

/**
 * Returns `true` if the host would fail with the same error. After other errors the host may know
 * more about the worker, or start a new one.
 */
function isFinal(error: unknown): boolean {
  if (!(error instanceof InoriginError)) return true
  return error.kind === 'invalid_request' || error.kind === 'aborted' || error.code === 'unloaded'
}
