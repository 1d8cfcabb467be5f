/** Types of services: interfaces whose methods other threads can call. */

/** Sender of a request, and the signal that cancels it. It is the last argument of every method. */
export interface Caller<Event = never> {
  /** API key as it was sent, without `Bearer`; `null` if none was sent. */
  key: string | null
  /** `true` if `key` is only a hash of the API key, for a request that is resumed later. */
  isKeyHashed?: boolean
  /** Id of the tab that sent the request, if known. Requests of different tabs take turns. */
  client?: string
  /** Signal that cancels the request. Generation then stops within one token. */
  signal: AbortSignal
  /** Called when another thread has received the request. From then on it may be running. */
  onAck?: () => void
  /** Receives the events before the result. */
  onEvent?: (event: Event) => void
  /**
   * Has the thread that produces a stream write its events directly to the caller, after those that
   * this thread has written. Resolves when all are written. Rejects if the stream fails. It may
   * only be called while the caller reads a stream from this thread, and is absent if the caller is
   * in this thread.
   */
  handOver?: (stream: RemoteStream<unknown>) => Promise<void>
}

/** Result of a method that returns a stream. Its other fields are available before the events. */
export interface EventStream<Event> {
  /**
   * Events of the stream. The iterator throws an `InoriginError` if the work fails later. Leaving
   * the loop cancels the request.
   */
  events: AsyncIterable<Event>
}

/** A stream that another thread writes. Either its events are read, or they are piped. */
export interface RemoteStream<Event> extends EventStream<Event> {
  /**
   * Has the other thread write the events to this port. Resolves when the reader at the far end has
   * received all of them. Rejects if the stream fails or its thread ends.
   */
  pipeTo(port: MessagePort): Promise<void>
}

/**
 * Kind of a method. A `call` has one result, a `stream` has events after its result. A `monitored`
 * stream fails when the answering thread is silent, and contains heartbeats.
 */
export type MethodKind = 'call' | 'stream' | 'monitored'

type KindOf<Result> =
  Result extends EventStream<infer Event>
    ? { type: 'heartbeat' } extends Event
      ? 'stream' | 'monitored'
      : 'stream'
    : 'call'

/** Table of the methods of a service. Methods that are not listed cannot be called remotely. */
export type MethodTable<Service> = {
  readonly [Name in keyof Service]: Service[Name] extends (...args: never) => Promise<infer Result>
    ? KindOf<Result>
    : never
}

/** A service in another thread. */
export type Remote<Service> = {
  [Name in keyof Service]: Service[Name] extends (...args: infer Args) => Promise<infer Result>
    ? (
        ...args: Args
      ) => Promise<Result extends EventStream<infer Event> ? Result & RemoteStream<Event> : Result>
    : never
}
