/** Messages that have arrived and wait for their reader, in order, until an error ends them. */
export interface Inbox<Message> {
  readonly isEmpty: boolean
  push(message: Message): void
  /** Ends the inbox. `next` rejects with the error after the messages that arrived before. */
  fail(error: unknown): void
  /** Resolves with the next message. Only one call may wait at a time. */
  next(): Promise<Message>
}

export function createInbox<Message>(): Inbox<Message> {
  const messages: Message[] = []
  let failure: { error: unknown } | undefined
  let waiting: { resolve(message: Message): void; reject(error: unknown): void } | undefined

  return {
    get isEmpty() {
      return messages.length === 0
    },
    push(message) {
      if (waiting) waiting.resolve(message)
      else messages.push(message)
      waiting = undefined
    },
    fail(error) {
      failure ??= { error }
      waiting?.reject(error)
      waiting = undefined
    },
    async next() {
      const message = messages.shift()
      if (message !== undefined) return message
      if (failure) throw failure.error
      return new Promise((resolve, reject) => (waiting = { resolve, reject }))
    },
  }
}
