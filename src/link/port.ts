/** Finds a thread that acknowledges a request, and receives its messages. */
import { InoriginError } from '../error.ts'
import type { Caller } from '../types/index.ts'
import { hostGone, isUnreachable, type Link, type PortEvents, unreachable } from './link.ts'
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
    const request = new RequestPort(port1, link, method, signal)
    try {
      port1.postMessage(message)
      await Promise.race([link.connect(port2, attempt), request.acknowledged])
      await request.waitForAck(link.ackTimeoutMs)
      return request
    } catch (error) {
      request.close()
      if (!isUnreachable(error) || attempt + 1 >= link.maxAttempts) throw error
    }
  }
}

/** A port that returns the messages of a request, and the events of its stream, in order. */
export class RequestPort {
  readonly acknowledged: Promise<void>
  #port: MessagePort
  #link: Link
  #listener: PortEvents | undefined
  #inbox = new Inbox<Arrived>()
  #closing = new AbortController()
  #resolveAck = (): void => {}
  #rejectAck = (_error: unknown): void => {}
  #stopAckTimeout: (() => void) | undefined

  constructor(port: MessagePort, link: Link, method: string, signal: AbortSignal) {
    this.#port = port
    this.#link = link
    this.#listener = link.onOpen?.(method)
    this.acknowledged = new Promise((...callbacks) => {
      ;[this.#resolveAck, this.#rejectAck] = callbacks
    })
    // Nobody awaits the acknowledgment of a port that is closed before it.
    this.acknowledged.catch(() => undefined)
    const ended = link.endSignal ? AbortSignal.any([signal, link.endSignal]) : signal
    const fail = () => this.close(InoriginError.from(ended.reason))
    if (ended.aborted) fail()
    ended.addEventListener('abort', fail, { signal: this.#closing.signal })
    port.onmessage = ({ data }: MessageEvent<AnswerMessage>) => this.#handleMessage(data)
  }

  /** Waits for the acknowledgment, with a timeout in milliseconds if none was set before. */
  async waitForAck(timeoutMs: number): Promise<void> {
    if (!this.#stopAckTimeout) this.#startAckTimeout(timeoutMs)
    await this.acknowledged.finally(() => this.#stopAckTimeout?.())
  }

  /** Has the other side write the events of the stream to a port of its own. */
  pipe(eventPort: MessagePort): void {
    this.#send({ type: 'pipe', credit: this.#link.window ?? DEFAULT_WINDOW_EVENTS }, [eventPort])
  }

  /** Opens a port for the events of the stream, which `next` then returns. */
  receiveEvents(): void {
    const { port1, port2 } = new MessageChannel()
    readPort(port1, (event) => this.#inbox.push(event), this.#closing.signal)
    this.pipe(port2)
  }

  /**
   * Resolves with the next message. Rejects if the request fails or the timeout in milliseconds
   * passes, but returns all messages that arrived before.
   */
  next(timeoutMs?: number): Promise<Arrived> {
    if (timeoutMs === undefined || !this.#inbox.isEmpty) return this.#inbox.next()
    const stop = startInactivityTimeout(timeoutMs, () => this.close(hostGone()))
    return this.#inbox.next().finally(stop)
  }

  /** Closes the ports, and cancels the request if it is still running. */
  close(error: unknown = new InoriginError('aborted', 'The request was canceled.')): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#inbox.fail(error)
    this.#rejectAck(error)
    this.#listener?.onClose()
    this.#send({ type: 'cancel' })
    this.#port.close()
  }

  #handleMessage(message: AnswerMessage): void {
    if (message.type === 'ack') return this.#handleAck(message.life)
    if (message.type === 'starting') return this.#startAckTimeout(STARTUP_ACK_TIMEOUT_MS)
    if (message.type === 'moved') return this.close(unreachable())
    if (message.type === 'error') return this.close(InoriginError.fromRecord(message.error))
    if (message.type === 'result') this.#listener?.onResult?.()
    // Heartbeats must not fill the inbox of a reader that is slow or has stopped.
    if (message.type !== 'heartbeat' || this.#inbox.isEmpty) this.#inbox.push(message)
  }

  #handleAck(life: string | null): void {
    this.#resolveAck()
    this.#listener?.onAck?.()
    const onDeath = () => {
      this.#listener?.onDeath?.()
      this.close(hostGone())
    }
    if (life !== null) watchLivenessLock(currentLocks(), life, this.#closing.signal, onDeath)
  }

  #startAckTimeout(timeoutMs: number): void {
    this.#stopAckTimeout?.()
    this.#stopAckTimeout = startInactivityTimeout(timeoutMs, () => this.close(unreachable()))
  }

  #send(message: AskMessage, ports: MessagePort[] = []): void {
    this.#port.postMessage(message, ports)
  }
}

/** Messages that have arrived and wait for their reader, in order, until an error ends them. */
class Inbox<Message> {
  #messages: Message[] = []
  #failure: { error: unknown } | undefined
  #waiting: { resolve(message: Message): void; reject(error: unknown): void } | undefined

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  push(message: Message): void {
    if (this.#waiting) this.#waiting.resolve(message)
    else this.#messages.push(message)
    this.#waiting = undefined
  }

  /** Ends the inbox. `next` rejects with the error after the messages that arrived before. */
  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }

  /** Resolves with the next message. Only one call may wait at a time. */
  async next(): Promise<Message> {
    const message = this.#messages.shift()
    if (message !== undefined) return message
    if (this.#failure) throw this.#failure.error
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }))
  }
}

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

/** An event that has arrived. */
interface ArrivedEvent {
  type: 'event'
  event: unknown
  /** Must be called when the event has been read. It grants credit for further ones. */
  grantCredit(): void
}

/** Number of events after which the reader grants credit for as many more. */
const CREDIT_BATCH_EVENTS = 32

/**
 * The writing end of an event port, which carries the events of one stream. The reader grants credit,
 * so a slow reader slows down the writer.
 */
export class EventWriter {
  #port: MessagePort
  #credit: number
  #signal: AbortSignal
  #isReceived = false
  #wake = (): void => {}

  /** `credit` is the number of events that the reader can take at first. */
  constructor(port: MessagePort, credit: number, signal: AbortSignal) {
    this.#port = port
    this.#credit = credit
    this.#signal = signal
    port.onmessage = ({ data }: MessageEvent<ReaderMessage>) => {
      if (data.type === 'credit') this.#credit += data.events
      else this.#isReceived = true
      this.#wake()
    }
    signal.addEventListener('abort', () => {
      port.close()
      this.#wake()
    })
  }

  /**
   * Writes the events. It requests an event only when there is credit for it, so nothing is
   * computed for a reader that has left. Resolves when the reader has received all events, or when
   * the signal aborts. Rejects with the error of the events after the reader has received the
   * others.
   */
  async write(events: AsyncIterable<unknown>): Promise<void> {
    const iterator = events[Symbol.asyncIterator]()
    try {
      await this.#sendAll(iterator).finally(() => iterator.return?.())
    } finally {
      this.#send({ type: 'end' })
      while (!this.#isReceived && !this.#signal.aborted) await this.#wait()
      this.#port.close()
    }
  }

  /** Sends a port to the reader on which another thread writes the next events. */
  handOver(next: MessagePort): void {
    this.#send({ type: 'handover' }, [next])
  }

  async #sendAll(iterator: AsyncIterator<unknown>): Promise<void> {
    for (;;) {
      while (this.#credit <= 0 && !this.#signal.aborted) await this.#wait()
      if (this.#signal.aborted) return
      const { done, value } = await iterator.next()
      if (done) return
      this.#credit -= 1
      this.#send({ type: 'event', event: value })
    }
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve))
  }

  #send(message: WriterMessage, ports: MessagePort[] = []): void {
    this.#port.postMessage(message, ports)
  }
}

/** Passes the events of a port to `receive` in their order, until `closing` aborts. */
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
