/** Lets the thread handle other messages between two pieces of work. */

/** Yields to the thread's message queue. */
export interface Yielder {
  /** Resolves after the thread has handled the messages in its queue, such as a cancellation. */
  next(): Promise<void>
  close(): void
}

/**
 * Creates a yielder that posts a message to itself. Browsers throttle timers but not messages.
 * Unlike a promise, a message queues behind other messages.
 */
export function createYielder(): Yielder {
  const { port1, port2 } = new MessageChannel()
  let resume: () => void = () => undefined
  port1.onmessage = () => resume()
  return {
    next: () =>
      new Promise((resolve) => {
        resume = resolve
        port2.postMessage(null)
      }),
    close: () => port1.close(),
  }
}
