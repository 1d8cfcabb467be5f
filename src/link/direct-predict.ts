/**
 * Sends a page's predictions directly to the predictor's worker. After the first prediction, the
 * host sends the page a port to that worker. If the port is lost, the page sends its predictions to
 * the host again.
 */
import { InoriginError } from '../error.ts'
import { DIRECT_METHODS } from '../types/control.ts'
import type { Caller, DirectPredictor, HostService, LoadProgress, Tag } from '../types/index.ts'
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
  const directLinks = createDirectLinks(link, host)

  /** Calls the worker over its direct port, or the host if there is none or it fails. */
  async function call<Result>(
    tag: Tag,
    configuration: string | undefined,
    caller: Caller<LoadProgress>,
    callWorker: (worker: DirectPredictor, caller: Caller) => Promise<Result>,
    callHost: (caller: Caller<LoadProgress>) => Promise<Result>,
  ): Promise<Result> {
    const directLink = directLinks.get(tag, configuration)
    if (directLink) {
      let isAcknowledged = false
      const onAck = () => {
        isAcknowledged = true
        if (directLink.progress) caller.onEvent?.(directLink.progress)
      }
      try {
        const { signal } = caller
        return await callWorker(directLink.predictor, { key: null, signal, onAck })
      } catch (error) {
        if (isAcknowledged && isFinal(error)) throw error
        // The next prediction then does not wait for the same timeout.
        if (!isAcknowledged && isHostLost(error)) directLinks.drop(tag, configuration, directLink)
      }
    }
    let latest: LoadProgress | undefined
    const onEvent = (progress: LoadProgress) => {
      latest = progress
      caller.onEvent?.(progress)
    }
    const result = await rerunOnDeath(() => callHost({ ...caller, onEvent }))
    void directLinks.open(tag, configuration, latest)
    return result
  }

  return {
    predict: (tag, inputs, configuration, caller) =>
      call(
        tag,
        configuration,
        caller,
        (worker, own) => worker.predict(inputs, own),
        (own) => host.predict(tag, inputs, configuration, own),
      ),
    predictNext: (tag, inputs, configuration, state, caller) =>
      call(
        tag,
        configuration,
        caller,
        (worker, own) => worker.predictNext(inputs, state, own),
        (own) => host.predictNext(tag, inputs, configuration, state, own),
      ),
  }
}

interface DirectLinks {
  /** Returns the direct link to the predictor; `undefined` if there is none yet. */
  get(tag: Tag, configuration: string | undefined): DirectLink | undefined
  /** Forgets the direct link, so that the next prediction goes to the host. */
  drop(tag: Tag, configuration: string | undefined, directLink: DirectLink): void
  /** Requests a direct port from the host, and uses it until the predictor is unloaded. */
  open(
    tag: Tag,
    configuration: string | undefined,
    progress: LoadProgress | undefined,
  ): Promise<void>
}

function createDirectLinks(link: Link, host: DirectHost): DirectLinks {
  /** Direct links by tag and configuration; `undefined` while the page waits for the port. */
  const directLinks = new Map<string, DirectLink | undefined>()

  function connectTo(port: MessagePort, endSignal: AbortSignal): DirectPredictor {
    const workerLink: Link = {
      ...link,
      connect: (request) => port.postMessage(null, [request]),
      maxAttempts: 1,
      ackTimeoutMs: DIRECT_ACK_TIMEOUT_MS,
      // A run blocks the worker. The open call of `openDirectPort` tells if its host dies.
      messageTimeoutMs: Infinity,
      endSignal,
    }
    return remote<DirectPredictor>(workerLink, DIRECT_METHODS)
  }

  return {
    get: (tag, configuration) => directLinks.get(keyOf(tag, configuration)),
    drop(tag, configuration, directLink) {
      const key = keyOf(tag, configuration)
      if (directLinks.get(key) === directLink) directLinks.delete(key)
    },
    async open(tag, configuration, progress) {
      const key = keyOf(tag, configuration)
      if (directLinks.has(key)) return
      let directLink: DirectLink | undefined
      directLinks.set(key, directLink)
      const ended = new AbortController()
      const onEvent = (port: MessagePort) => {
        directLink = { predictor: connectTo(port, ended.signal), progress }
        directLinks.set(key, directLink)
      }
      try {
        const { signal } = new AbortController()
        await host.openDirectPort(tag, configuration, { key: null, signal, onEvent })
      } catch (error) {
        ended.abort(error)
      } finally {
        if (directLinks.get(key) === directLink) directLinks.delete(key)
      }
    },
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
