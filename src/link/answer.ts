/** The answering side of a port that carries one request. */
import { InoriginError } from '../error.ts'
import type { AcceptedStream, ArgumentsOf, EventOf, ResultOf } from './ask.ts'
import { watchLivenessLock } from './liveness.ts'
import { PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

/** The context of a request, as handlers see it. */
export interface RequestContext {
  /** API key as it was sent; `null` if none was sent. */
  key: string | null
  /** Id of the tab that sent the request; empty if there is only one sender. */
  client: string
  /** Signal that aborts when the sender cancels the request or dies. */
  signal: AbortSignal
}

/** Handlers of methods with one result. `sendEvent` sends an event before the result. */
export type CallHandlers<Calls> = {
  [Name in keyof Calls & string]: (
    args: ArgumentsOf<Calls, Name>,
    request: RequestContext,
    sendEvent: (event: EventOf<Calls, Name>) => void,
  ) => ResultOf<Calls, Name> | Promise<ResultOf<Calls, Name>>
}

/** Handlers of methods that return a stream. */
export type StreamHandlers<Streams> = {
  [Name in keyof Streams & string]: (
    args: ArgumentsOf<Streams, Name>,
    request: RequestContext,
  ) => Promise<AcceptedStream<ResultOf<Streams, Name>, EventOf<Streams, Name>>>
}

/** All handlers of a thread. */
export interface Handlers<Calls, Streams> {
  calls: CallHandlers<Calls>
  streams: StreamHandlers<Streams>
  /** Name of the lock that this thread holds while it lives. */
  livenessLock: string | null
}

type AnyCallHandler = (
  args: readonly unknown[],
  request: RequestContext,
  sendEvent: (event: unknown) => void,
) => unknown
type AnyStreamHandler = (
  args: readonly unknown[],
  request: RequestContext,
) => Promise<AcceptedStream<unknown, unknown>>

/**
 * Answers the request that arrives on a port. Resolves when the request ended, even if it failed.
 */
export function answer<Calls, Streams>(
  port: MessagePort,
  handlers: Handlers<Calls, Streams>,
): Promise<void> {
  const cancelled = new AbortController()
  const credit = createCredit()
  const send = (message: AnswerMessage) => {
    const isPort = message.type === 'event' && message.event instanceof MessagePort
    port.postMessage(message, isPort ? [message.event as MessagePort] : [])
  }

  return new Promise((resolve) => {
    cancelled.signal.addEventListener('abort', () => {
      credit.add(Infinity)
      port.close()
      resolve()
    })
    port.onmessage = (event: MessageEvent<AskMessage>) => {
      const message = event.data
      if (message.type === 'credit') return credit.add(message.events)
      if (message.type === 'cancel') return cancelled.abort()
      send({ type: 'ack', life: handlers.livenessLock })
      if (message.life !== null) {
        watchLivenessLock(navigator.locks, message.life, cancelled.signal, () => cancelled.abort())
      }
      dispatch(message).then(
        () => sendLast({ type: 'end' }),
        (error: unknown) =>
          sendLast({ type: 'error', error: InoriginError.from(error).toRecord() }),
      )
    }
    // The sender closes the port after it has read the last message.
    function sendLast(last: AnswerMessage): void {
      if (!cancelled.signal.aborted) send(last)
      resolve()
    }
  })

  async function dispatch(message: AskMessage & { type: 'call' }): Promise<void> {
    if (message.protocol !== PROTOCOL) throw otherProtocol(message.protocol)
    const { key, client } = message
    const request: RequestContext = { key, client, signal: cancelled.signal }
    const callHandler = findHandler(handlers.calls, message.method) as AnyCallHandler | undefined
    if (callHandler) {
      const sendEvent = (event: unknown) => {
        if (!cancelled.signal.aborted) send({ type: 'event', event })
      }
      const value = await callHandler(message.args, request, sendEvent)
      if (!cancelled.signal.aborted) send({ type: 'result', value })
      return
    }
    const streamHandler = findHandler(handlers.streams, message.method) as
      | AnyStreamHandler
      | undefined
    if (!streamHandler)
      throw new InoriginError('internal', `The host has no method '${message.method}'.`)
    const accepted = await streamHandler(message.args, request)
    if (cancelled.signal.aborted) return closeStream(accepted.events)
    send({ type: 'result', value: accepted.result })
    await sendEvents(accepted.events)
  }

  /**
   * Sends the events of a stream. It requests an event only when there is credit for it, so nothing
   * is computed for a page that has already canceled.
   */
  async function sendEvents(events: AsyncIterable<unknown>): Promise<void> {
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

function findHandler(handlers: object, method: string): unknown {
  return Object.hasOwn(handlers, method) ? (handlers as Record<string, unknown>)[method] : undefined
}

/** Closes a stream that nobody reads, so that it frees its resources. */
async function closeStream(events: AsyncIterable<unknown>): Promise<void> {
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
