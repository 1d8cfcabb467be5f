/** Starts the worker of one model or predictor, links to it, and notices when it dies or hangs. */
import type { Entry } from '../../catalog/schema.ts'
import type { GpuComparison } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'
import type { Link, PortEvents } from '../../link/link.ts'
import { START_TIMEOUT_MS, watchLivenessLock } from '../../link/locks.ts'
import { startInactivityTimeout } from '../../link/port.ts'
import type { HostToModel, ModelToHost } from '../messages.ts'

/** Flow-control window in events, larger than the longest possible response. */
const RESPONSE_WINDOW_EVENTS = 2 ** 20

/**
 * The worker, which is terminated when `closing` aborts. It aborts `closing` when the worker fails,
 * ends by itself or does not respond. The reason is the error for its requests.
 */
export class ModelThread {
  /** Number of requests that arrived over direct ports and are not answered yet. */
  directRequests = 0
  #tag: string
  #worker: Worker
  #closing: AbortController
  #watchdog: Watchdog
  #stopStartTimeout: () => void
  #onDirectUse: () => void
  #onComparison: (comparison: GpuComparison) => void

  /** `onComparison` receives the result of comparing the GPU with the CPU. */
  constructor(
    { tag, type }: Pick<Entry, 'tag' | 'type'>,
    assets: string,
    closing: AbortController,
    onDirectUse: () => void,
    onComparison: (comparison: GpuComparison) => void = () => undefined,
  ) {
    this.#tag = tag
    this.#closing = closing
    this.#onDirectUse = onDirectUse
    this.#onComparison = onComparison
    const script = new URL('model-worker.js', assets)
    this.#worker = new Worker(script, { type: 'module', name: `inorigin ${tag}` })
    this.#watchdog = new Watchdog({
      type,
      ping: () => this.#send({ type: 'ping' }),
      onTimeout: (stage, timeoutMs) => closing.abort(modelUnresponsive(tag, stage, timeoutMs)),
    })
    const timeoutMs = navigator.locks ? START_TIMEOUT_MS : Infinity
    this.#stopStartTimeout = startInactivityTimeout(timeoutMs, this.#onDeath)
    this.#worker.onmessage = ({ data }: MessageEvent<ModelToHost>) => this.#receive(data)
    this.#worker.onerror = ({ message = 'not found' }) => {
      const what = `The worker of ${tag} at ${script.pathname} failed: ${message}.`
      const todo = 'Try again, or unload the model.'
      closing.abort(new InoriginError('internal', `${what} ${todo}`, { code: 'model_failed' }))
    }
    closing.signal.addEventListener('abort', () => {
      this.#stopStartTimeout()
      this.#watchdog.stop()
      this.#worker.terminate()
    })
  }

  get link(): Link {
    return {
      connect: (port) => this.#send({ type: 'port' }, [port]),
      livenessLock: null,
      maxAttempts: 1,
      // Compiling a graph blocks the thread for an unknown time. The watchdog limits the rest.
      ackTimeoutMs: Infinity,
      messageTimeoutMs: Infinity,
      endSignal: this.#closing.signal,
      // A slow reader must not block the model for the others, so the window fits a whole response.
      window: RESPONSE_WINDOW_EVENTS,
      onOpen: (method) => this.#watchdog.watch(method),
    }
  }

  /** Opens a port that leads directly to the worker. It accepts the ports of `predict` calls. */
  openDirectPort(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#send({ type: 'direct' }, [port2])
    return port1
  }

  #receive(message: ModelToHost): void {
    if (message.type === 'pong') return this.#watchdog.pong()
    if (message.type === 'compared') return this.#onComparison(message.comparison)
    if (message.type === 'life') {
      this.#stopStartTimeout()
      const { signal } = this.#closing
      return watchLivenessLock(navigator.locks, message.life, signal, this.#onDeath)
    }
    this.directRequests = message.requests
    this.#watchdog.setDirectRequests(message.requests)
    this.#onDirectUse()
  }

  #onDeath = (): void => this.#closing.abort(workerEnded(this.#tag))

  #send(message: HostToModel, ports: MessagePort[] = []): void {
    this.#worker.postMessage(message, ports)
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

// Detects a model worker that hangs. A busy thread cannot answer pings, so the timeout depends on
// the work that the thread may be doing. Only the time to prepare a prompt is known in advance.

/** Work that keeps the thread of a model busy, as far as the host can know. */
type Stage =
  /** The worker compiles weights or warms them up. */
  | 'load'
  /** The worker computes a request whose client still waits. */
  | 'run'
  /** The worker templates and tokenizes prompts, and computes nothing. */
  | 'prepare'
  /** Requests wait for the thread, which only computes canceled requests. */
  | 'queued'
  /** No request is open. */
  | 'idle'

interface WatchdogOptions {
  type: 'model' | 'predictor'
  ping(): void
  /** Called when the worker was silent for the timeout of the stage, in milliseconds. */
  onTimeout(stage: Stage, milliseconds: number): void
}

/** Time in milliseconds between two checks of the worker, and from an answer to the next ping. */
export const PING_INTERVAL_MS = 5_000

/**
 * Timeout in milliseconds for preparing a prompt. A chat template is rendered up to three times,
 * each time for at most 5 s. Up to four contexts of tokens are counted, which takes seconds on a
 * slow device.
 */
const PREPARE_TIMEOUT_MS = 30_000

/**
 * Timeout in milliseconds for one step of a model. Prefill chunks are sized to take half a second.
 * The first chunk always has 64 tokens, however, and a slow device needs seconds for each token.
 */
const STEP_TIMEOUT_MS = 300_000
/** Timeout in milliseconds for one run of a predictor. It is indivisible and may take minutes. */
const RUN_TIMEOUT_MS = 600_000

/** Timeout in milliseconds for a model that only computes canceled requests while others wait. */
const CANCELED_STEP_TIMEOUT_MS = 30_000
/**
 * Timeout in milliseconds for a predictor in the same case. It is longer because waiting for the
 * end of a run of half a minute costs less than a reload.
 */
const CANCELED_RUN_TIMEOUT_MS = 60_000

/** Returns the timeouts by stage. A load has none: it is canceled when its users leave. */
const timeoutsOf = (runMs: number, queuedMs: number): Readonly<Record<Stage, number>> => ({
  load: Infinity,
  run: runMs,
  prepare: PREPARE_TIMEOUT_MS,
  queued: queuedMs,
  idle: runMs,
})

const TIMEOUTS_MS = {
  model: timeoutsOf(STEP_TIMEOUT_MS, CANCELED_STEP_TIMEOUT_MS),
  predictor: timeoutsOf(RUN_TIMEOUT_MS, CANCELED_RUN_TIMEOUT_MS),
}

/** Methods that block the thread for an unknown time, because they compile weights. */
const LOAD_METHODS: ReadonlySet<string> = new Set(['openModel', 'loadModel', 'openPredictor'])
/** Methods that prepare a prompt between the acknowledgment and the result. */
const PREPARE_METHODS: ReadonlySet<string> = new Set([
  'generate',
  'embed',
  'rerank',
  'speak',
  'countTokens',
])

export class Watchdog {
  #options: WatchdogOptions
  #stages = new Map<object, Stage>()
  #directRequests = 0
  #stage: Stage = 'idle'
  #stageStartedAt = 0
  /** Time at which the unanswered ping was sent; `null` if there is none. */
  #pingedAt: number | null = null
  #lastPingAt = -Infinity
  #lastCheck = 0
  #timer: ReturnType<typeof setInterval> | undefined
  #isStopped = false

  constructor(options: WatchdogOptions) {
    this.#options = options
  }

  /** Counts a request of the method as open from now until `onClose`. */
  watch(method: string): PortEvents {
    const request = {}
    const setStage = (stage: Stage) => {
      this.#stages.set(request, stage)
      this.#update()
    }
    const isLoading = LOAD_METHODS.has(method)
    setStage(isLoading ? 'load' : 'queued')
    return {
      onAck: () => !isLoading && setStage(PREPARE_METHODS.has(method) ? 'prepare' : 'run'),
      onResult: () => !isLoading && setStage('run'),
      onClose: () => {
        this.#stages.delete(request)
        this.#update()
      },
    }
  }

  /** Sets the number of open requests that pages sent straight to the worker. */
  setDirectRequests(requests: number): void {
    this.#directRequests = requests
    this.#update()
  }

  /** Records that the worker has answered a ping. */
  pong(): void {
    this.#pingedAt = null
  }

  stop(): void {
    this.#isStopped = true
    this.#stopTimer()
  }

  #update(): void {
    const direct: readonly Stage[] = this.#directRequests > 0 ? ['run'] : []
    const stage = stageOf([...this.#stages.values(), ...direct])
    const now = performance.now()
    if (stage !== this.#stage) this.#stageStartedAt = now
    this.#stage = stage
    if (stage === 'idle' || this.#isStopped || this.#timer !== undefined) return
    this.#lastCheck = now
    this.#timer = setInterval(() => this.#check(), PING_INTERVAL_MS)
  }

  #check(): void {
    const { type, ping, onTimeout } = this.#options
    const timeoutMs = TIMEOUTS_MS[type][this.#stage]
    const now = performance.now()
    const isLate = now - this.#lastCheck > 2 * PING_INTERVAL_MS
    this.#lastCheck = now
    if (this.#pingedAt === null) {
      // An answer after the last request proves that the worker is idle.
      if (this.#stage === 'idle' && this.#lastPingAt >= this.#stageStartedAt)
        return this.#stopTimer()
      this.#pingedAt = this.#lastPingAt = now
      return ping()
    }
    // A frozen tab stops both this thread and the worker, so the timeout starts again.
    if (isLate) this.#pingedAt = this.#stageStartedAt = now
    if (now - Math.max(this.#pingedAt, this.#stageStartedAt) < timeoutMs) return
    this.stop()
    onTimeout(this.#stage, timeoutMs)
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Returns the stage whose timeout applies to several open requests: the longest one. */
function stageOf(openRequests: readonly Stage[]): Stage {
  const order: readonly Stage[] = ['load', 'run', 'prepare', 'queued']
  return order.find((stage) => openRequests.includes(stage)) ?? 'idle'
}
