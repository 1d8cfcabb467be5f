/** Finds a thread that acknowledges a request, and receives its messages. */
import { InoriginError } from '../error.ts'
import type { Caller } from '../types/index.ts'
import { openEventReader, type ArrivedEvent } from './event-port.ts'
import { startInactivityTimeout } from './inactivity.ts'
import { createInbox } from './inbox.ts'
import { hostGone, isUnreachable, unreachable, type Link } from './link.ts'
import { watchLivenessLock } from './liveness.ts'
import { currentLocks } from './locks.ts'
import { PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

/** A message of the answering side, or an event from an event port. */
export type Arrived = AnswerMessage | ArrivedEvent

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
