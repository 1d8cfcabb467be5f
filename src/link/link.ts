/** A connection to a thread that answers requests, and the errors if there is none. */
import { InoriginError } from '../error.ts'

/** A connection to the thread that answers. */
export interface Link {
  /** Sends the far end of a channel to that thread. Rejects if there is no such thread. */
  connect(port: MessagePort, attempt: number): void | Promise<void>
  /** Name of the lock that this thread holds while it lives. The other side watches it. */
  livenessLock: string | null
  /** Id of the tab that sends the requests. Default: that of the caller of each request. */
  client?: string
  /** Maximum number of attempts to get an acknowledgment. */
  maxAttempts: number
  /** Timeout in milliseconds for the acknowledgment of a request; `Infinity` means no timeout. */
  ackTimeoutMs: number
  /** Maximum number of events that the other side may send ahead of the reader. Default: 64. */
  window?: number
  /**
   * Timeout in milliseconds between two messages of a call or a monitored stream. Default: 30 s.
   * `Infinity` means no timeout.
   */
  messageTimeoutMs?: number
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
  /** Called when the other side has died after the acknowledgment, before `onClose`. */
  onDeath?(): void
  /** Called when the port is closed. */
  onClose(): void
}

const UNREACHABLE = 'host_unreachable'
const GONE = 'host_gone'
/** Code of the error of a host that lost an election while it was frozen. */
const REPLACED = 'host_replaced'

/** Creates the error for a request that was not acknowledged in time. A retry may succeed. */
export function unreachable(): InoriginError {
  const what = 'The tab that hosts the models did not answer. Try again, or reload that tab.'
  return new InoriginError('unavailable', what, { code: UNREACHABLE, retryAfter: 1 })
}

/** Creates the error for a host that died or timed out. */
export function hostGone(): InoriginError {
  const why = 'Its tab was closed or frozen, or its worker stopped.'
  const what = `The host of the models stopped while it was answering. ${why} Try again.`
  return new InoriginError('unavailable', what, { code: GONE, retryAfter: 1 })
}

/** Returns `true` if no thread received the request. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof InoriginError && error.code === UNREACHABLE
}

/** Returns `true` if the host died, or was replaced, after it had received the request. */
export function isHostGone(error: unknown): boolean {
  return error instanceof InoriginError && (error.code === GONE || error.code === REPLACED)
}

/** Returns `true` if a retry may reach another host. */
export function isHostLost(error: unknown): boolean {
  return isUnreachable(error) || isHostGone(error)
}
