/**
 * Detects a model worker that hangs. A busy thread cannot answer pings, so the timeout depends on
 * the work that the thread may be doing. Only the time to prepare a prompt is known in advance.
 */
import type { PortEvents } from '../../link/link.ts'

/** Work that keeps the thread of a model busy, as far as the host can know. */
export type Stage =
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

export interface Watchdog {
  /** Counts a request of the method as open from now until `onClose`. */
  watch(method: string): PortEvents
  /** Sets the number of open requests that pages sent straight to the worker. */
  setDirectRequests(requests: number): void
  /** Records that the worker has answered a ping. */
  pong(): void
  stop(): void
}

export interface WatchdogOptions {
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

/** Timeouts in milliseconds by stage. A load has none: it is canceled when its users leave. */
const TIMEOUTS_MS: Readonly<Record<WatchdogOptions['type'], Readonly<Record<Stage, number>>>> = {
  model: {
    load: Infinity,
    run: STEP_TIMEOUT_MS,
    prepare: PREPARE_TIMEOUT_MS,
    queued: CANCELED_STEP_TIMEOUT_MS,
    idle: STEP_TIMEOUT_MS,
  },
  predictor: {
    load: Infinity,
    run: RUN_TIMEOUT_MS,
    prepare: PREPARE_TIMEOUT_MS,
    queued: CANCELED_RUN_TIMEOUT_MS,
    idle: RUN_TIMEOUT_MS,
  },
}

/** Methods that block the thread for an unknown time, because they compile weights. */
const LOAD_METHODS: ReadonlySet<string> = new Set(['openModel', 'loadModel', 'openPredictor'])
/** Methods that prepare a prompt between the acknowledgment and the result. */
const PREPARE_METHODS: ReadonlySet<string> = new Set(['generate', 'embed', 'countTokens'])

export function createWatchdog({ type, ping, onTimeout }: WatchdogOptions): Watchdog {
  const timeoutsMs = TIMEOUTS_MS[type]
  let stage: Stage = 'idle'
  let stageStartedAt = 0
  /** Time at which the unanswered ping was sent; `null` if there is none. */
  let pingedAt: number | null = null
  let lastPingAt = -Infinity
  let lastCheck = 0
  let timer: ReturnType<typeof setInterval> | undefined
  let isStopped = false

  const openRequests = createOpenRequests((nextStage) => {
    const now = performance.now()
    if (nextStage !== stage) stageStartedAt = now
    stage = nextStage
    if (stage === 'idle' || isStopped || timer !== undefined) return
    lastCheck = now
    timer = setInterval(check, PING_INTERVAL_MS)
  })

  function check(): void {
    const now = performance.now()
    const isLate = now - lastCheck > 2 * PING_INTERVAL_MS
    lastCheck = now
    if (pingedAt === null) {
      // An answer after the last request proves that the worker is idle.
      if (stage === 'idle' && lastPingAt >= stageStartedAt) return stopTimer()
      pingedAt = lastPingAt = now
      return ping()
    }
    // A frozen tab stops both this thread and the worker, so the timeout starts again.
    if (isLate) pingedAt = stageStartedAt = now
    if (now - Math.max(pingedAt, stageStartedAt) < timeoutsMs[stage]) return
    stop()
    onTimeout(stage, timeoutsMs[stage])
  }

  function stopTimer(): void {
    clearInterval(timer)
    timer = undefined
  }

  function stop(): void {
    isStopped = true
    stopTimer()
  }

  return {
    ...openRequests,
    pong() {
      pingedAt = null
    },
    stop,
  }
}

/** Tracks the stages of open requests. `onChange` gets that of the worker after each change. */
function createOpenRequests(
  onChange: (stage: Stage) => void,
): Pick<Watchdog, 'watch' | 'setDirectRequests'> {
  const stages = new Map<object, Stage>()
  let directRequests = 0

  function update(): void {
    const direct: readonly Stage[] = directRequests > 0 ? ['run'] : []
    onChange(stageOf([...stages.values(), ...direct]))
  }

  return {
    watch(method) {
      const request = {}
      const setStage = (stage: Stage) => {
        stages.set(request, stage)
        update()
      }
      const isLoading = LOAD_METHODS.has(method)
      setStage(isLoading ? 'load' : 'queued')
      return {
        onAck: () => !isLoading && setStage(PREPARE_METHODS.has(method) ? 'prepare' : 'run'),
        onResult: () => !isLoading && setStage('run'),
        onClose: () => {
          stages.delete(request)
          update()
        },
      }
    },
    setDirectRequests(requests) {
      directRequests = requests
      update()
    },
  }
}

/** Returns the stage whose timeout applies to several open requests: the longest one. */
function stageOf(openRequests: readonly Stage[]): Stage {
  const order: readonly Stage[] = ['load', 'run', 'prepare', 'queued']
  return order.find((stage) => openRequests.includes(stage)) ?? 'idle'
}
