/**
 * Notices a model worker that hangs. A busy thread answers nothing, so the host pings it and allows a
 * silence that depends on what the thread may be doing: only a prompt is prepared in a known time.
 */
import type { PortEvents } from '../link/ask.ts'

/** The work that keeps the thread of a model busy, as far as the host can know. */
export type Stage =
  /** Weights are compiled or warmed. */
  | 'load'
  /** A request that somebody waits for is computed. */
  | 'run'
  /** Prompts are templated and tokenized, and nothing is computed. */
  | 'prepare'
  /** Requests wait for the thread, which is only busy with what nobody waits for any more. */
  | 'queued'
  /** Nobody waits for anything. */
  | 'idle'

export interface Watchdog {
  /** Counts a request of that method from now until `onClose`. */
  watch(method: string): PortEvents
  /** Sets the number of requests that pages sent straight to the worker. */
  setDirect(requests: number): void
  /** The worker has answered a ping. */
  pong(): void
  stop(): void
}

export interface WatchdogOptions {
  type: 'model' | 'predictor'
  ping(): void
  /** The worker was silent for that many milliseconds, which is the limit of the stage. */
  onTimeout(stage: Stage, milliseconds: number): void
}

/** Milliseconds between two looks at the worker, and from an answer to the next ping. */
export const PING_INTERVAL_MS = 5_000

/**
 * Milliseconds to prepare a prompt. A chat template is rendered up to three times and stopped after 5 s
 * each; tokens are counted up to four contexts, which is seconds on a slow device.
 */
const PREPARE_TIMEOUT_MS = 30_000

/**
 * Milliseconds for one step of a model that somebody waits for. Chunks of a prompt are sized to half a
 * second, but the first one has 64 tokens whatever the device, and a slow one needs seconds for each.
 */
const STEP_TIMEOUT_MS = 300_000
/** Milliseconds for one run of a predictor, which cannot be divided: a large graph may take minutes. */
const RUN_TIMEOUT_MS = 600_000

/** Milliseconds for a model to notice that all it computes was canceled, while others wait. */
const CANCELED_STEP_TIMEOUT_MS = 30_000
/** The same for a predictor: runs of half a minute end by themselves, which costs less than a reload. */
const CANCELED_RUN_TIMEOUT_MS = 60_000

/** Milliseconds of silence that are allowed in each stage. Loading is ended by those who leave it. */
const LIMITS: Readonly<Record<WatchdogOptions['type'], Readonly<Record<Stage, number>>>> = {
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

/** Methods that block the thread for as long as compiling takes, from when they are sent. */
const LOADING: ReadonlySet<string> = new Set(['openModel', 'loadModel', 'openPredictor'])
/** Methods whose prompt is prepared between the acknowledgement and the result. */
const PREPARING: ReadonlySet<string> = new Set(['generate', 'embed', 'countTokens'])

export function createWatchdog({ type, ping, onTimeout }: WatchdogOptions): Watchdog {
  const limits = LIMITS[type]
  /** The stage of each open request. */
  const open = new Map<object, Stage>()
  let direct = 0
  let stage: Stage = 'idle'
  let since = 0
  /** When the ping was sent that is not answered yet. */
  let pinged: number | null = null
  let lastPing = -Infinity
  let lastLook = 0
  let timer: ReturnType<typeof setInterval> | undefined
  let isStopped = false

  function update(): void {
    const now = performance.now()
    const next = stageOf([...open.values(), ...(direct > 0 ? (['run'] as const) : [])])
    if (next !== stage) since = now
    stage = next
    if (stage === 'idle' || isStopped || timer !== undefined) return
    lastLook = now
    timer = setInterval(look, PING_INTERVAL_MS)
  }

  function look(): void {
    const now = performance.now()
    const isLate = now - lastLook > 2 * PING_INTERVAL_MS
    lastLook = now
    if (pinged === null) {
      // One that answered after its last request has nothing left to do.
      if (stage === 'idle' && lastPing >= since) return rest()
      pinged = lastPing = now
      return ping()
    }
    // A tab that was frozen stops this thread and the worker's alike: the count begins anew.
    if (isLate) pinged = since = now
    if (now - Math.max(pinged, since) < limits[stage]) return
    stop()
    onTimeout(stage, limits[stage])
  }

  function rest(): void {
    clearInterval(timer)
    timer = undefined
  }

  function stop(): void {
    isStopped = true
    rest()
  }

  return {
    watch(method) {
      const request = {}
      const set = (to: Stage) => {
        open.set(request, to)
        update()
      }
      const isLoading = LOADING.has(method)
      set(isLoading ? 'load' : 'queued')
      return {
        onAck: () => !isLoading && set(PREPARING.has(method) ? 'prepare' : 'run'),
        onResult: () => !isLoading && set('run'),
        onClose: () => {
          open.delete(request)
          update()
        },
      }
    },
    setDirect(requests) {
      direct = requests
      update()
    },
    pong() {
      pinged = null
    },
    stop,
  }
}

/** The stage whose limit applies where several are open: the one that may take the longest. */
function stageOf(open: readonly Stage[]): Stage {
  const order: readonly Stage[] = ['load', 'run', 'prepare', 'queued']
  return order.find((stage) => open.includes(stage)) ?? 'idle'
}
