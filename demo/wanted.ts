import { byId } from './dom.ts'

/**
 * Calls the function once, when the visitor first touches the composer or a suggested question. A
 * visitor who only reads downloads no model and no runtime.
 */
export function whenWanted(run: () => void): void {
  const once = new AbortController()
  const wanted = (event: Event): void => {
    if (!event.isTrusted || once.signal.aborted) return
    once.abort()
    run()
  }
  for (const id of ['composer', 'first-questions']) {
    for (const type of ['pointerdown', 'keydown', 'input']) {
      byId(id, HTMLElement).addEventListener(type, wanted, { signal: once.signal })
    }
  }
}
