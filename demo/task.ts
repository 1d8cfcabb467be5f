/** Helpers for work that takes more than one task. */

/** Resolves in a later task, so that the page can paint and react before. */
export function nextTask(): Promise<void> {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    port1.onmessage = () => {
      // A port that stays open keeps a Node process, such as `npm run ask`, from ending.
      port1.close()
      resolve()
    }
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
