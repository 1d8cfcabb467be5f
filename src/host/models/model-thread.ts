/** Starts the worker of one model or predictor, links to it, and notices when it dies or hangs. */
import type { Entry } from '../../catalog/schema.ts'
import type { GpuComparison } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'
import { startInactivityTimeout } from '../../link/inactivity.ts'
import type { Link } from '../../link/link.ts'
import { START_TIMEOUT_MS, watchLivenessLock } from '../../link/liveness.ts'
import type { HostToModel, ModelToHost } from '../messages.ts'
import { createWatchdog, type Stage, type Watchdog } from './watchdog.ts'

export interface ModelThread {
  link: Link
  /** Number of requests that arrived over direct ports and are not answered yet. */
  readonly directRequests: number
  /** Opens a port that leads directly to the worker. It accepts the ports of `predict` calls. */
  openDirectPort(): MessagePort
}

/** Flow-control window in events, larger than the longest possible response. */
const RESPONSE_WINDOW_EVENTS = 2 ** 20

/**
 * Starts the worker, which is terminated when `closing` aborts. This function aborts `closing` when
 * the worker fails, ends by itself or does not respond. The reason is the error for its requests.
 * `onComparison` receives the result of comparing the GPU with the CPU.
 */
export function startModelThread(
  { tag, type }: Pick<Entry, 'tag' | 'type'>,
  assets: string,
  closing: AbortController,
  onDirectUse: () => void,
  onComparison: (comparison: GpuComparison) => void = () => undefined,
): ModelThread {
  const script = new URL('model-worker.js', assets)
  const worker = new Worker(script, { type: 'module', name: `inorigin ${tag}` })
  const send = (message: HostToModel, ports: MessagePort[] = []) =>
    worker.postMessage(message, ports)
  const watchdog = createWatchdog({
    type,
    ping: () => send({ type: 'ping' }),
    onTimeout: (stage, milliseconds) => closing.abort(modelUnresponsive(tag, stage, milliseconds)),
  })
  const stopStartTimeout = startInactivityTimeout(
    navigator.locks ? START_TIMEOUT_MS : Infinity,
    () => closing.abort(workerEnded(tag)),
  )
  let directRequests = 0

  function handleMessage(message: ModelToHost): void {
    if (message.type === 'pong') return watchdog.pong()
    if (message.type === 'compared') return onComparison(message.comparison)
    if (message.type === 'life') {
      stopStartTimeout()
      const onDeath = () => closing.abort(workerEnded(tag))
      return watchLivenessLock(navigator.locks, message.life, closing.signal, onDeath)
    }
    directRequests = message.requests
    watchdog.setDirectRequests(directRequests)
    onDirectUse()
  }

  worker.onmessage = ({ data }: MessageEvent<ModelToHost>) => handleMessage(data)
  worker.onerror = (event) => {
    const what = `The worker of ${tag} at ${script.pathname} failed: ${event.message ?? 'not found'}.`
    closing.abort(new InoriginError('internal', `${what} Try again, or unload the model.`))
  }
  closing.signal.addEventListener('abort', () => {
    stopStartTimeout()
    watchdog.stop()
    worker.terminate()
  })

  return {
    link: toLink((port) => send({ type: 'port' }, [port]), closing.signal, watchdog),
    get directRequests() {
      return directRequests
    },
    openDirectPort() {
      const { port1, port2 } = new MessageChannel()
      send({ type: 'direct' }, [port2])
      return port1
    },
  }
}

function toLink(
  connect: (port: MessagePort) => void,
  endSignal: AbortSignal,
  { watch }: Watchdog,
): Link {
  return {
    connect,
    livenessLock: null,
    maxAttempts: 1,
    // Compiling a graph blocks the thread for an unknown time. The watchdog limits the rest.
    ackTimeoutMs: Infinity,
    messageTimeoutMs: Infinity,
    endSignal,
    // A slow reader must not block the model for the others, so the window fits a whole response.
    window: RESPONSE_WINDOW_EVENTS,
    onOpen: watch,
  }
}

function workerEnded(tag: string): InoriginError {
  const what = `The worker of ${tag} ended unexpectedly, most likely because memory ran out.`
  return new InoriginError('unavailable', `${what} Try again, or choose a smaller model.`, {
    code: 'worker_ended',
    retryAfter: 1,
  })
}

const STAGE_PHRASES: Readonly<Record<Stage, string>> = {
  load: 'while it was loading',
  prepare: 'while it prepared a prompt',
  run: 'while it was computing',
  queued: 'after the requests that it was computing had been canceled',
  idle: 'after its last request',
}

function modelUnresponsive(tag: string, stage: Stage, milliseconds: number): InoriginError {
  const what = `${tag} did not respond for ${milliseconds / 1000} s ${STAGE_PHRASES[stage]}.`
  const todo =
    'Its worker was ended, and the next request loads the model again. Try again; if this'
  return new InoriginError('unavailable', `${what} ${todo} repeats, choose another model.`, {
    code: 'model_unresponsive',
    retryAfter: 1,
  })
}
