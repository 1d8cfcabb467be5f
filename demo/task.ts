/** Helpers for work that takes more than one task. */

const { port1, port2 } = new MessageChannel()
const waiting: (() => void)[] = []
port1.onmessage = () => waiting.shift()?.()

/** Resolves in a later task, so that the page can paint and react before. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    port2.postMessage(null)
  })
}

/** Resolves as the promise does. Rejects as soon as the signal is aborted. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return Promise.race([promise, aborted])
}
