/**
 * Lets the thread handle the messages in its queue, such as a cancellation, between two pieces of
 * work. It posts a message to itself, because browsers throttle timers but not messages. Unlike a
 * promise, a message queues behind other messages.
 */
export class Yielder {
  readonly #channel = new MessageChannel()
  #resume: () => void = () => undefined

  constructor() {
    this.#channel.port1.onmessage = () => this.#resume()
  }

  /** Resolves after the thread has handled the messages in its queue. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve
      this.#channel.port2.postMessage(null)
    })
  }

  close(): void {
    this.#channel.port1.close()
  }
}
