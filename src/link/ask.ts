/**
 * The asking side of a port that carries one request. It finds a thread that acknowledges the
 * request, and then waits for the result or reads a stream. A stream uses credit, so that a slow
 * reader slows down the writer.
 */
import { InoriginError } from '../error.ts'
import { startInactivityTimeout } from './inactivity.ts'
import { watchLivenessLock } from './liveness.ts'
import { currentLocks } from './locks.ts'
import { PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

/** A connection to the thread that answers. */
export interface Link {
  /** Sends the far end of a channel to that thread. Rejects if there is no such thread. */
  connect(port: MessagePort, attempt: number): void | Promise<void>
  /** Name of the lock that this thread holds while it lives. The other side watches it. */
  livenessLock: string | null
  /**
   * Id of the tab that sends the requests. Requests of different tabs take turns. Default: none.
   */
  client?: string
  /** Maximum number of attempts to get an acknowledgment. */
  maxAttempts: number
  /** Timeout in milliseconds for the acknowledgment of a request; `Infinity` means no timeout. */
  ackTimeoutMs: number
  /** Maximum number of events that the other side may send ahead of the reader. Default: 64. */
  window?: number
  /** Signal that aborts when the other side ends, with an `InoriginError` as its reason. */
  endSignal?: AbortSignal
  /** Called when a port is opened for a request of that method. */
  onOpen?(method: string): PortEvents
}

/** Callbacks for the request on one port. */
export interface PortEvents {
  /** Called when the other side has received the request. */
  onAck?(): void
  /** Called when the result has arrived, or when a stream was accepted. */
  onResult?(): void
  /** Called when the port is closed. */
  onClose(): void
}

/** Type of a method: its arguments, its result and its events. */
export interface Method {
  args: readonly unknown[]
  result: unknown
  event: unknown
}

export type ArgumentsOf<Methods, Name extends keyof Methods> = (Methods[Name] & Method)['args']
export type ResultOf<Methods, Name extends keyof Methods> = (Methods[Name] & Method)['result']
export type EventOf<Methods, Name extends keyof Methods> = (Methods[Name] & Method)['event']

export interface CallOptions<Event> {
  key?: string | null
  signal?: AbortSignal | undefined
  /** Timeout in milliseconds between two messages of a stream. Default: no timeout. */
  messageTimeoutMs?: number
  /** Called when the other side has received the request. From then on it may be running. */
  onAck?: () => void
  /** Called for each event before the result. */
  onEvent?: (event: Event) => void
}

/** An accepted stream. */
export interface AcceptedStream<Accepted, Event> {
  result: Accepted
  /** Events of the stream. Leaving the loop early cancels the request. */
  events: AsyncIterable<Event>
}

const DEFAULT_WINDOW_EVENTS = 64
/** Timeout in milliseconds for the acknowledgment of a worker that is still starting. */
const STARTUP_ACK_TIMEOUT_MS = 20_000

/** Sends a request and resolves with its result. */
export async function call<Methods, Name extends keyof Methods & string>(
  link: Link,
  method: Name,
  args: ArgumentsOf<Methods, Name>,
  options: CallOptions<EventOf<Methods, Name>> = {},
): Promise<ResultOf<Methods, Name>> {
  const request = await openRequest(link, method, args, options)
  try {
    options.onAck?.()
    for (;;) {
      const message = await request.next()
      if (message.type === 'result') return message.value as ResultOf<Methods, Name>
      if (message.type === 'event') options.onEvent?.(message.event as EventOf<Methods, Name>)
    }
  } finally {
    request.close()
  }
}

/** Sends a request for a stream. Resolves when the other side has accepted it. */
export async function stream<Methods, Name extends keyof Methods & string>(
  link: Link,
  method: Name,
  args: ArgumentsOf<Methods, Name>,
  options: CallOptions<never> = {},
): Promise<AcceptedStream<ResultOf<Methods, Name>, EventOf<Methods, Name>>> {
  const request = await openRequest(link, method, args, options)
  let accepted: AnswerMessage
  try {
    accepted = await request.next()
    if (accepted.type !== 'result')
      throw new InoriginError('internal', 'The host sent events before it accepted the request.')
  } catch (error) {
    request.close()
    throw error
  }
  return {
    result: accepted.value as ResultOf<Methods, Name>,
    events: readEvents<EventOf<Methods, Name>>(
      request,
      link.window ?? DEFAULT_WINDOW_EVENTS,
      options.messageTimeoutMs,
    ),
  }
}

async function* readEvents<Event>(
  request: RequestPort,
  window: number,
  messageTimeoutMs: number | undefined,
): AsyncGenerator<Event> {
  let consumed = 0
  request.send({ type: 'credit', events: window })
  try {
    for (;;) {
      const message = await request.next(messageTimeoutMs)
      if (message.type === 'end') return
      if (message.type !== 'event') continue
      yield message.event as Event
      consumed += 1
      if (consumed === window / 2) {
        request.send({ type: 'credit', events: consumed })
        consumed = 0
      }
    }
  } finally {
    request.close()
  }
}

/** Creates the error for a host that died or timed out. */
function hostGone(): InoriginError {
  const why = 'Its tab was closed or frozen, or its worker stopped.'
  const what = `The host of the models stopped while it was answering. ${why} Try again.`
  return new InoriginError('unavailable', what, { code: GONE, retryAfter: 1 })
}

/** An acknowledged port that returns its messages in order. */
interface RequestPort {
  send(message: AskMessage): void
  /** Resolves with the next message. Rejects if the request fails or the timeout passes. */
  next(timeoutMs?: number): Promise<AnswerMessage>
  /** Closes the port, and cancels the request if it is still running. */
  close(): void
}

/** Sends a request and resolves when it is acknowledged. Retries if no host can be reached. */
async function openRequest(
  link: Link,
  method: string,
  args: readonly unknown[],
  options: { key?: string | null; signal?: AbortSignal | undefined },
): Promise<RequestPort> {
  const message: AskMessage = {
    type: 'call',
    protocol: PROTOCOL,
    method,
    args,
    key: options.key ?? null,
    client: link.client ?? '',
    life: link.livenessLock,
  }
  for (let attempt = 0; ; attempt += 1) {
    if (options.signal?.aborted) throw InoriginError.from(options.signal.reason)
    const channel = new MessageChannel()
    const request = createRequestPort(channel.port1, link, method, options.signal)
    try {
      request.send(message)
      await Promise.race([link.connect(channel.port2, attempt), request.acknowledged])
      await request.waitForAck(link.ackTimeoutMs)
      return request
    } catch (error) {
      request.close()
      const isUnreachable = error instanceof InoriginError && error.code === UNREACHABLE
      if (!isUnreachable || attempt + 1 >= link.maxAttempts) throw error
    }
  }
}

const UNREACHABLE = 'host_unreachable'
const GONE = 'host_gone'

/** Returns `true` if a retry may reach another host. */
export function isHostLost(error: unknown): boolean {
  return error instanceof InoriginError && (error.code === UNREACHABLE || error.code === GONE)
}

/** Creates the error for a request that was not acknowledged in time. A retry may succeed. */
export function unreachable(): InoriginError {
  const what = 'The tab that hosts the models did not answer. Try again, or reload that tab.'
  return new InoriginError('unavailable', what, { code: UNREACHABLE, retryAfter: 1 })
}

interface UnacknowledgedPort extends RequestPort {
  acknowledged: Promise<void>
  /** Waits for the acknowledgment, with a timeout in milliseconds. */
  waitForAck(timeoutMs: number): Promise<void>
}

function createRequestPort(
  port: MessagePort,
  link: Link,
  method: string,
  signal: AbortSignal | undefined,
): UnacknowledgedPort {
  const received: AnswerMessage[] = []
  const closing = new AbortController()
  const events = link.onOpen?.(method)
  let waiting:
    | { resolve: (message: AnswerMessage) => void; reject: (error: unknown) => void }
    | undefined
  let failure: unknown
  let ackTimer: ReturnType<typeof setTimeout> | undefined
  const ack = { resolve: () => {}, reject: (_reason: unknown) => {} }
  const acknowledged = new Promise<void>((resolve, reject) =>
    Object.assign(ack, { resolve, reject }),
  )
  // Nobody awaits the acknowledgment of a port that is closed before it.
  acknowledged.catch(() => undefined)

  function fail(error: unknown): void {
    if (failure !== undefined || closing.signal.aborted) return
    failure = error
    ack.reject(error)
    waiting?.reject(error)
    waiting = undefined
    close()
  }

  function handleMessage(message: AnswerMessage): void {
    if (message.type === 'ack') return handleAck(message.life)
    if (message.type === 'starting') return startAckTimer(STARTUP_ACK_TIMEOUT_MS)
    if (message.type === 'moved') return fail(unreachable())
    if (message.type === 'error') return fail(InoriginError.fromRecord(message.error))
    if (message.type === 'result') events?.onResult?.()
    if (waiting) {
      waiting.resolve(message)
      waiting = undefined
    } else {
      received.push(message)
    }
  }

  function handleAck(life: string | null): void {
    ack.resolve()
    events?.onAck?.()
    if (life === null) return
    watchLivenessLock(currentLocks(), life, closing.signal, () => fail(hostGone()))
  }

  /** Restarts the timeout of the acknowledgment. */
  function startAckTimer(timeoutMs: number): void {
    clearTimeout(ackTimer)
    if (timeoutMs !== Infinity) ackTimer = setTimeout(() => fail(unreachable()), timeoutMs)
  }

  function close(): void {
    if (closing.signal.aborted) return
    closing.abort()
    events?.onClose()
    ack.reject(new InoriginError('aborted', 'The request was canceled.'))
    port.postMessage({ type: 'cancel' } satisfies AskMessage)
    port.close()
  }

  const untilClosed = { signal: closing.signal }
  signal?.addEventListener('abort', () => fail(InoriginError.from(signal.reason)), untilClosed)
  link.endSignal?.addEventListener('abort', () => fail(link.endSignal?.reason), untilClosed)
  if (link.endSignal?.aborted) fail(link.endSignal.reason)
  port.onmessage = (event: MessageEvent<AnswerMessage>) => handleMessage(event.data)

  return {
    acknowledged,
    waitForAck: async (timeoutMs) => {
      if (ackTimer === undefined) startAckTimer(timeoutMs)
      await acknowledged.finally(() => clearTimeout(ackTimer))
    },
    send: (message) => port.postMessage(message),
    next: async (timeoutMs) => {
      const message = received.shift()
      if (message) return message
      if (failure !== undefined) throw failure
      const arrival = new Promise<AnswerMessage>(
        (resolve, reject) => (waiting = { resolve, reject }),
      )
      if (timeoutMs === undefined) return arrival
      return arrival.finally(startInactivityTimeout(timeoutMs, () => fail(hostGone())))
    },
    close,
  }
}
