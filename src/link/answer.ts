/** The answering side of a port that carries one request. */
import { InoriginError } from '../error.ts'
import type { Arguments, Reply, Result, Told } from './ask.ts'
import { watchLife } from './life.ts'
import { PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

/** The sender of a request, as handlers see it. */
export interface Request {
  /** API key as it was sent; `null` if none was sent. */
  key: string | null
  /** Id of the tab that sent the request; empty if there is only one sender. */
  client: string
  /** Signal that aborts when the sender cancels the request or dies. */
  signal: AbortSignal
}

/** Handlers of methods with one result. `tell` sends an event before the result. */
export type CallHandlers<Calls> = {
  [Name in keyof Calls & string]: (
    args: Arguments<Calls, Name>,
    request: Request,
    tell: (event: Told<Calls, Name>) => void,
  ) => Result<Calls, Name> | Promise<Result<Calls, Name>>
}

/** Handlers of methods that return a stream. */
export type StreamHandlers<Streams> = {
  [Name in keyof Streams & string]: (
    args: Arguments<Streams, Name>,
    request: Request,
  ) => Promise<Reply<Result<Streams, Name>, Told<Streams, Name>>>
}

/** All handlers of a thread. */
export interface Answers<Calls, Streams> {
  calls: CallHandlers<Calls>
  streams: StreamHandlers<Streams>
  /** Name of the lock that this thread holds while it lives. */
  life: string | null
}

type AnyCall = (
  args: readonly unknown[],
  request: Request,
  tell: (event: unknown) => void,
) => unknown
type AnyStream = (args: readonly unknown[], request: Request) => Promise<Reply<unknown, unknown>>

/**
 * Answers the request that arrives on a port. Resolves when the request ended, even if it failed.
 */
export function answer<Calls, Streams>(
  port: MessagePort,
  answers: Answers<Calls, Streams>,
): Promise<void> {
  const cancelled = new AbortController()
  const credit = createCredit()
  const send = (message: AnswerMessage) => {
    const isPort = message.type === 'event' && message.event instanceof MessagePort
    port.postMessage(message, isPort ? [message.event as MessagePort] : [])
  }

  return new Promise((over) => {
    cancelled.signal.addEventListener('abort', () => {
      credit.add(Infinity)
      port.close()
      over()
    })
    port.onmessage = (event: MessageEvent<AskMessage>) => {
      const message = event.data
      if (message.type === 'credit') return credit.add(message.events)
      if (message.type === 'cancel') return cancelled.abort()
      send({ type: 'ack', life: answers.life })
      if (message.life !== null) {
        watchLife(navigator.locks, message.life, cancelled.signal, () => cancelled.abort())
      }
      run(message).then(
        () => finish({ type: 'end' }),
        (error: unknown) => finish({ type: 'error', error: InoriginError.from(error).toRecord() }),
      )
    }
    // The sender closes the port after it has read the last message.
    function finish(last: AnswerMessage): void {
      if (!cancelled.signal.aborted) send(last)
      over()
    }
  })

  async function run(message: AskMessage & { type: 'call' }): Promise<void> {
    if (message.protocol !== PROTOCOL) throw otherProtocol(message.protocol)
    const { key, client } = message
    const request: Request = { key, client, signal: cancelled.signal }
    const called = own(answers.calls, message.method) as AnyCall | undefined
    if (called) {
      const tell = (event: unknown) => {
        if (!cancelled.signal.aborted) send({ type: 'event', event })
      }
      const value = await called(message.args, request, tell)
      if (!cancelled.signal.aborted) send({ type: 'result', value })
      return
    }
    const streamed = own(answers.streams, message.method) as AnyStream | undefined
    if (!streamed)
      throw new InoriginError('internal', `The host has no method '${message.method}'.`)
    const reply = await streamed(message.args, request)
    if (cancelled.signal.aborted) return abandon(reply.events)
    send({ type: 'result', value: reply.result })
    await pass(reply.events)
  }

  /**
   * Sends the events of a stream. It requests an event only when there is credit for it, so nothing
   * is computed for a page that has already canceled.
   */
  async function pass(events: AsyncIterable<unknown>): Promise<void> {
    const iterator = events[Symbol.asyncIterator]()
    try {
      for (;;) {
        await credit.take()
        if (cancelled.signal.aborted) return
        const { done, value } = await iterator.next()
        if (done) return
        send({ type: 'event', event: value })
      }
    } finally {
      await iterator.return?.()
    }
  }
}

function own(handlers: object, method: string): unknown {
  return Object.hasOwn(handlers, method) ? (handlers as Record<string, unknown>)[method] : undefined
}

/** Closes a stream that nobody reads, so that it frees its resources. */
async function abandon(events: AsyncIterable<unknown>): Promise<void> {
  await events[Symbol.asyncIterator]().return?.()
}

function otherProtocol(theirs: number): InoriginError {
  const what = `This page uses inorigin protocol ${theirs}, but the host uses ${PROTOCOL}.`
  return new InoriginError('unavailable', `${what} Reload all tabs of this origin.`, {
    code: 'protocol_mismatch',
  })
}

/** Creates a counter of the events that the reader can still accept. `take` waits for one. */
function createCredit(): { add(events: number): void; take(): Promise<void> } {
  const state = { available: 0, wake: () => {} }
  return {
    add(events) {
      state.available += events
      state.wake()
    },
    async take() {
      while (state.available <= 0) await new Promise<void>((resolve) => (state.wake = resolve))
      state.available -= 1
    },
  }
}
