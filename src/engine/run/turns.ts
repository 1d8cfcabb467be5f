/** Lets the thread's other messages have their turn between two pieces of work. */

export interface Turns {
  /** Resolves once what was waiting, such as a cancel message, has been handled. */
  next(): Promise<void>
  close(): void
}

/** A message to itself: unlike a timer it is not slowed down, unlike a promise it waits in line. */
export function createTurns(): Turns {
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
