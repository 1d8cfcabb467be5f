/** Attributes such as `oncontextoverflow`, which hold one listener of an event. */

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
