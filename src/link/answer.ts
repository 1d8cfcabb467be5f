/** The answering side of one request on one port. */
import { InoriginError } from '../error.ts'
import type { Arguments, Reply, Result, Told } from './ask.ts'
import { watchLife } from './life.ts'
import { PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

/** What an answer knows of its request. */
export interface Request {
  key: string | null
  /** Which tab asks; empty where there is only one asker. */
  client: string
  /** Aborts when the asker cancels or dies. */
  signal: AbortSignal
}

/** Answers of methods that are asked once; `tell` sends an event ahead of the result. */
export type CallHandlers<Calls> = {
  [Name in keyof Calls & string]: (
    args: Arguments<Calls, Name>,
    request: Request,
    tell: (event: Told<Calls, Name>) => void,
  ) => Result<Calls, Name> | Promise<Result<Calls, Name>>
}

/** Answers of methods that stream. */
export type StreamHandlers<Streams> = {
  [Name in keyof Streams & string]: (
    args: Arguments<Streams, Name>,
    request: Request,
  ) => Promise<Reply<Result<Streams, Name>, Told<Streams, Name>>>
}

export interface Answers<Calls, Streams> {
  calls: CallHandlers<Calls>
  streams: StreamHandlers<Streams>
  /** Lock held by this thread while it lives. */
  life: string | null
}

type AnyCall = (
  args: readonly unknown[],
  request: Request,
  tell: (event: unknown) => void,
) => unknown
type AnyStream = (args: readonly unknown[], request: Request) => Promise<Reply<unknown, unknown>>

/**
 * Answers the one request that arrives on a port. Resolves when it is over, however it ended.
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
    // The asker closes the port once it has read the last message.
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
      throw new InoriginError('internal', `The host knows no method '${message.method}'.`)
    const reply = await streamed(message.args, request)
    if (cancelled.signal.aborted) return abandon(reply.events)
    send({ type: 'result', value: reply.result })
    await pass(reply.events)
  }

  /**
   * Computes no event before somebody can take it. A page that has given the request up never asks for
   * the first one.
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

/** Runs the clean-up of a stream that nobody will read. */
async function abandon(events: AsyncIterable<unknown>): Promise<void> {
  await events[Symbol.asyncIterator]().return?.()
}

function otherProtocol(theirs: number): InoriginError {
  const what = `This page speaks protocol ${theirs} of inorigin and the host ${PROTOCOL}.`
  return new InoriginError('unavailable', `${what} Reload every tab of this origin.`, {
    code: 'protocol_mismatch',
  })
}

/** How many events the reader can still take. */
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
