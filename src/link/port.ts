/** Finds a thread that acknowledges a request, and receives its messages. */
import { InoriginError } from '../error.ts'
import type { Caller } from '../types/index.ts'
import { hostGone, isUnreachable, type Link, unreachable } from './link.ts'
import { currentLocks, watchLivenessLock } from './locks.ts'
import {
  type AnswerMessage,
  type AskMessage,
  PROTOCOL,
  type ReaderMessage,
  type WriterMessage,
} from './protocol.ts'

/** A message of the answering side, or an event from an event port. */
type Arrived = AnswerMessage | ArrivedEvent

/** An acknowledged port that returns its messages, and the events of its stream, in order. */
export interface RequestPort {
  /** Has the other side write the events of the stream to a port of its own. */
  pipe(eventPort: MessagePort): void
  /** Opens a port for the events of the stream, which `next` then returns. */
  receiveEvents(): void
  /**
   * Resolves with the next message. Rejects if the request fails or the timeout in milliseconds
   * passes, but returns all messages that arrived before.
   */
  next(timeoutMs?: number): Promise<Arrived>
  /** Closes the ports, and cancels the request if it is still running. */
  close(): void
}

/** Initial credit for events. */
const DEFAULT_WINDOW_EVENTS = 64
/** Timeout in milliseconds for the acknowledgment of a worker that is still starting. */
const STARTUP_ACK_TIMEOUT_MS = 20_000

/** Sends a request and resolves when it is acknowledged. Retries if no host can be reached. */
export async function openRequest(
  link: Link,
  method: string,
  args: readonly unknown[],
  { key, client = '', signal }: Caller,
): Promise<RequestPort> {
  const message: AskMessage = {
    type: 'call',
    protocol: PROTOCOL,
    method,
    args,
    key,
    client: link.client ?? client,
    life: link.livenessLock,
  }
  for (let attempt = 0; ; attempt += 1) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const { port1, port2 } = new MessageChannel()
    const request = createRequestPort(port1, link, method, signal)
    try {
      port1.postMessage(message)
      await Promise.race([link.connect(port2, attempt), request.acknowledgment.received])
      await request.acknowledgment.wait(link.ackTimeoutMs)
      return request
    } catch (error) {
      request.close()
      if (!isUnreachable(error) || attempt + 1 >= link.maxAttempts) throw error
    }
  }
}

interface UnacknowledgedPort extends RequestPort {
  acknowledgment: Acknowledgment
}

function createRequestPort(
  port: MessagePort,
  link: Link,
  method: string,
  signal: AbortSignal,
): UnacknowledgedPort {
  const inbox = createInbox<Arrived>()
  const closing = new AbortController()
  const listener = link.onOpen?.(method)
  const acknowledgment = createAcknowledgment(() => close(unreachable()))
  const send = (message: AskMessage, ports: MessagePort[] = []) => port.postMessage(message, ports)
  const pipe = (eventPort: MessagePort) =>
    send({ type: 'pipe', credit: link.window ?? DEFAULT_WINDOW_EVENTS }, [eventPort])

  function close(error: unknown = new InoriginError('aborted', 'The request was canceled.')): void {
    if (closing.signal.aborted) return
    closing.abort()
    inbox.fail(error)
    acknowledgment.reject(error)
    listener?.onClose()
    send({ type: 'cancel' })
    port.close()
  }

  function handleMessage(message: AnswerMessage): void {
    if (message.type === 'ack') return handleAck(message.life)
    if (message.type === 'starting') return acknowledgment.setTimeout(STARTUP_ACK_TIMEOUT_MS)
    if (message.type === 'moved') return close(unreachable())
    if (message.type === 'error') return close(InoriginError.fromRecord(message.error))
    if (message.type === 'result') listener?.onResult?.()
    // Heartbeats must not fill the inbox of a reader that is slow or has stopped.
    if (message.type !== 'heartbeat' || inbox.isEmpty) inbox.push(message)
  }

  function handleAck(life: string | null): void {
    acknowledgment.resolve()
    listener?.onAck?.()
    const onDeath = () => {
      listener?.onDeath?.()
      close(hostGone())
    }
    if (life !== null) watchLivenessLock(currentLocks(), life, closing.signal, onDeath)
  }
  failOnAbort(signal, closing.signal, (reason) => close(InoriginError.from(reason)))
  if (link.endSignal) failOnAbort(link.endSignal, closing.signal, close)
  port.onmessage = (event: MessageEvent<AnswerMessage>) => handleMessage(event.data)

  return {
    acknowledgment,
    pipe,
    receiveEvents: () => pipe(openEventReader(inbox.push, closing.signal)),
    next(timeoutMs) {
      if (timeoutMs === undefined || !inbox.isEmpty) return inbox.next()
      return inbox.next().finally(startInactivityTimeout(timeoutMs, () => close(hostGone())))
    },
    close: () => close(),
  }
}

/** Passes the reason of the signal to `fail` when the signal aborts, until `closing` aborts. */
function failOnAbort(
  signal: AbortSignal,
  closing: AbortSignal,
  fail: (reason: unknown) => void,
): void {
  if (signal.aborted) fail(signal.reason)
  signal.addEventListener('abort', () => fail(signal.reason), { signal: closing })
}

interface Acknowledgment {
  received: Promise<void>
  resolve(): void
  reject(error: unknown): void
  /** Starts the timeout, which is in milliseconds, anew. */
  setTimeout(timeoutMs: number): void
  /** Waits for the acknowledgment, with a timeout in milliseconds if none was set before. */
  wait(timeoutMs: number): Promise<void>
}

function createAcknowledgment(onTimeout: () => void): Acknowledgment {
  let stopTimeout: (() => void) | undefined
  let resolve = (): void => {}
  let reject = (_error: unknown): void => {}
  const received = new Promise<void>((...callbacks) => {
    ;[resolve, reject] = callbacks
  })
  // Nobody awaits the acknowledgment of a port that is closed before it.
  received.catch(() => undefined)

  function startTimer(timeoutMs: number): void {
    stopTimeout?.()
    stopTimeout = startInactivityTimeout(timeoutMs, onTimeout)
  }

  return {
    received,
    resolve,
    reject,
    setTimeout: startTimer,
    async wait(timeoutMs) {
      if (!stopTimeout) startTimer(timeoutMs)
      await received.finally(() => stopTimeout?.())
    },
  }
}

/** Messages that have arrived and wait for their reader, in order, until an error ends them. */
interface Inbox<Message> {
  readonly isEmpty: boolean
  push(message: Message): void
  /** Ends the inbox. `next` rejects with the error after the messages that arrived before. */
  fail(error: unknown): void
  /** Resolves with the next message. Only one call may wait at a time. */
  next(): Promise<Message>
}

function createInbox<Message>(): Inbox<Message> {
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

// Timeout for messages of the other side. It excludes the time in which this thread was frozen.

/** Number of checks within one timeout. */
const CHECKS_PER_TIMEOUT = 3

/**
 * Calls `onTimeout` after `timeoutMs`; never if that is `Infinity`. Returns a function that stops
 * the timeout. The timeout restarts once if this thread was suspended, for example while the
 * computer slept, because the other side may have been suspended too. In a hidden page, whose timers
 * browsers delay to one a minute, it takes at most two minutes longer.
 */
export function startInactivityTimeout(timeoutMs: number, onTimeout: () => void): () => void {
  if (timeoutMs === Infinity) return () => {}
  const intervalMs = timeoutMs / CHECKS_PER_TIMEOUT
  let lastCheck = performance.now()
  let checks = 0
  let wasLate = false
  const check = () => {
    const now = performance.now()
    const passed = (now - lastCheck) / intervalMs
    const isLate = passed > 2
    lastCheck = now
    // Timers that are late twice in a row belong to a hidden page: browsers throttle them.
    if (isLate && wasLate) checks += Math.floor(passed)
    else checks = isLate ? 0 : checks + 1
    wasLate = isLate
    if (checks < CHECKS_PER_TIMEOUT) return
    stop()
    onTimeout()
  }
  const timer = setInterval(check, intervalMs)
  const stop = () => clearInterval(timer)
  return stop
}

// The two ends of an event port, which carries the events of one stream. The reader grants credit,
// so a slow reader slows down the writer. The writer can hand over to another thread, which then
// writes to a port of its own.

/** The writing end of an event port. */
export interface EventWriter {
  /**
   * Writes the events. It requests an event only when there is credit for it, so nothing is
   * computed for a reader that has left. Resolves when the reader has received all events, or when
   * the signal aborts. Rejects with the error of the events after the reader has received the
   * others.
   */
  write(events: AsyncIterable<unknown>): Promise<void>
  /** Sends a port to the reader on which another thread writes the next events. */
  handOver(port: MessagePort): void
}

/** An event that has arrived. */
interface ArrivedEvent {
  type: 'event'
  event: unknown
  /** Must be called when the event has been read. It grants credit for further ones. */
  grantCredit(): void
}

/** Number of events after which the reader grants credit for as many more. */
const CREDIT_BATCH_EVENTS = 32

/** Opens the writing end. `credit` is the number of events that the reader can take at first. */
export function openEventWriter(
  port: MessagePort,
  credit: number,
  signal: AbortSignal,
): EventWriter {
  const state = { credit, isReceived: false, wake: () => {} }
  const send = (message: WriterMessage, ports: MessagePort[] = []) =>
    port.postMessage(message, ports)
  const wait = () => new Promise<void>((resolve) => (state.wake = resolve))
  port.onmessage = ({ data }: MessageEvent<ReaderMessage>) => {
    if (data.type === 'credit') state.credit += data.events
    else state.isReceived = true
    state.wake()
  }
  signal.addEventListener('abort', () => {
    port.close()
    state.wake()
  })

  async function sendAll(iterator: AsyncIterator<unknown>): Promise<void> {
    for (;;) {
      while (state.credit <= 0 && !signal.aborted) await wait()
      if (signal.aborted) return
      const { done, value } = await iterator.next()
      if (done) return
      state.credit -= 1
      send({ type: 'event', event: value })
    }
  }

  return {
    async write(events) {
      const iterator = events[Symbol.asyncIterator]()
      try {
        await sendAll(iterator).finally(() => iterator.return?.())
      } finally {
        send({ type: 'end' })
        while (!state.isReceived && !signal.aborted) await wait()
        port.close()
      }
    },
    handOver: (next) => send({ type: 'handover' }, [next]),
  }
}

/**
 * Opens the reading end. Events are passed to `receive` in their order, until `closing` aborts.
 * Returns the port for the writer.
 */
function openEventReader(
  receive: (event: ArrivedEvent) => void,
  closing: AbortSignal,
): MessagePort {
  const { port1, port2 } = new MessageChannel()
  readPort(port1, receive, closing)
  return port2
}

function readPort(
  port: MessagePort,
  receive: (event: ArrivedEvent) => void,
  closing: AbortSignal,
): void {
  let taken = 0
  const send = (message: ReaderMessage) => port.postMessage(message)
  const grantCredit = () => {
    taken += 1
    if (taken < CREDIT_BATCH_EVENTS) return
    send({ type: 'credit', events: taken })
    taken = 0
  }
  port.onmessage = ({ data, ports: [next] }: MessageEvent<WriterMessage>) => {
    if (data.type === 'event') return receive({ type: 'event', event: data.event, grantCredit })
    if (data.type === 'end') return send({ type: 'ended' })
    // The events on the next port come after all those before this message.
    if (next) readPort(next, receive, closing)
  }
  closing.addEventListener('abort', () => port.close(), { once: true })
}
