/** The object on which `create()` reports the download. */

const createKey = Symbol('create')

/** Target of the event `downloadprogress`. */
export class CreateMonitor extends EventTarget {
  /** Handler of the event `downloadprogress`; `null` if there is none. */
  declare ondownloadprogress: ((this: CreateMonitor, event: ProgressEvent) => unknown) | null

  /** @internal */
  constructor(...key: unknown[]) {
    if (key[0] !== createKey) throw new TypeError('Illegal constructor')
    super()
  }
}

defineEventHandler(CreateMonitor.prototype, 'downloadprogress')
Object.defineProperty(CreateMonitor.prototype, Symbol.toStringTag, {
  value: 'CreateMonitor',
  configurable: true,
})

export const newCreateMonitor = (): CreateMonitor => new CreateMonitor(createKey)

/** Number of steps between 0 and 1, so that the events do not tell the size of the model. */
const STEPS = 0x10000
const PERIOD_MS = 50

/** Reports a download to a monitor as fractions that only grow, until the signal aborts. */
export class ProgressReport {
  readonly #monitor: CreateMonitor
  readonly #signal: AbortSignal
  #last = -1
  #lastTime = -Infinity
  #before: number | undefined

  constructor(monitor: CreateMonitor, signal: AbortSignal) {
    this.#monitor = monitor
    this.#signal = signal
  }

  /** Reports bytes on this device. Those of the first call count as there before. */
  bytes(loaded: number, total: number): void {
    this.#fire(0)
    const before = (this.#before ??= loaded)
    const fraction = total > before ? (loaded - before) / (total - before) : 0
    // The end is reported once, when everything is there.
    const step = Math.min(Math.floor(fraction * STEPS), STEPS - 1) / STEPS
    if (performance.now() - this.#lastTime > PERIOD_MS) this.#fire(step)
  }

  /** Reports 0 if nothing was reported before, and 1. */
  end(): void {
    this.#fire(0)
    this.#fire(1)
  }

  #fire(loaded: number): void {
    if (this.#signal.aborted || loaded <= this.#last) return
    this.#last = loaded
    this.#lastTime = performance.now()
    const init = { loaded, total: 1, lengthComputable: true }
    this.#monitor.dispatchEvent(new ProgressEvent('downloadprogress', init))
  }
}

type Handler = (this: EventTarget, event: Event) => unknown

/** Defines the attribute `on<type>` on a prototype of event targets. */
export function defineEventHandler(prototype: EventTarget, type: string): void {
  const handlers = new WeakMap<EventTarget, Handler>()
  /** Listeners of the targets that had a handler. A handler keeps its place among the listeners. */
  const listeners = new WeakMap<EventTarget, (event: Event) => void>()
  Object.defineProperty(prototype, `on${type}`, {
    configurable: true,
    enumerable: true,
    get(this: EventTarget): Handler | null {
      return handlers.get(this) ?? null
    },
    set(this: EventTarget, value: unknown) {
      const listener =
        listeners.get(this) ??
        ((event: Event) => {
          if (handlers.get(this)?.call(this, event) === false) event.preventDefault()
        })
      listeners.set(this, listener)
      if (typeof value === 'function') {
        // This does nothing if the listener is there already.
        this.addEventListener(type, listener)
        handlers.set(this, value as Handler)
      } else {
        this.removeEventListener(type, listener)
        handlers.delete(this)
      }
    },
  })
}
