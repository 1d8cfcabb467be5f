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

/** Reports a download as fractions that only grow. */
export interface ProgressReport {
  /** Reports bytes on this device. Those of the first call count as there before. */
  bytes(loaded: number, total: number): void
  /** Reports 0 if nothing was reported before, and 1. */
  end(): void
}

/** Creates a report to the monitor, which ends with the signal. */
export function createProgressReport(monitor: CreateMonitor, signal: AbortSignal): ProgressReport {
  let last = -1
  let lastTime = -Infinity
  let before: number | undefined

  function fire(loaded: number): void {
    if (signal.aborted || loaded <= last) return
    last = loaded
    lastTime = performance.now()
    const init = { loaded, total: 1, lengthComputable: true }
    monitor.dispatchEvent(new ProgressEvent('downloadprogress', init))
  }

  return {
    bytes(loaded, total) {
      fire(0)
      before ??= loaded
      const fraction = total > before ? (loaded - before) / (total - before) : 0
      // The end is reported once, when everything is there.
      const step = Math.min(Math.floor(fraction * STEPS), STEPS - 1) / STEPS
      if (performance.now() - lastTime > PERIOD_MS) fire(step)
    },
    end() {
      fire(0)
      fire(1)
    },
  }
}

type Handler = (this: EventTarget, event: Event) => unknown

interface Slot {
  handler: Handler | null
  listener: (event: Event) => void
}

/** Defines the attribute `on<type>` on a prototype of event targets. */
export function defineEventHandler(prototype: EventTarget, type: string): void {
  const slots = new WeakMap<EventTarget, Slot>()
  Object.defineProperty(prototype, `on${type}`, {
    configurable: true,
    enumerable: true,
    get(this: EventTarget): Handler | null {
      return slots.get(this)?.handler ?? null
    },
    set(this: EventTarget, value: unknown) {
      const handler = typeof value === 'function' ? (value as Handler) : null
      const known = slots.get(this)
      if (known) {
        // A handler keeps its place among the listeners until it is removed.
        if (!handler) this.removeEventListener(type, known.listener)
        else if (!known.handler) this.addEventListener(type, known.listener)
        known.handler = handler
        return
      }
      if (!handler) return
      const slot: Slot = {
        handler,
        listener: (event) => {
          if (slot.handler?.call(this, event) === false) event.preventDefault()
        },
      }
      slots.set(this, slot)
      this.addEventListener(type, slot.listener)
    },
  })
}
