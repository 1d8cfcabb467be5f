/** Sends requests over a link: calls, and streams that are read or piped to another thread. */
import { InoriginError } from '../error.ts'
import type { Caller, RemoteStream } from '../types/index.ts'
import type { Link } from './link.ts'
import { HEARTBEAT_INTERVAL_MS } from './protocol.ts'
import { openRequest, type RequestPort } from './request-port.ts'

/**
 * Timeout in milliseconds between two messages of a call or a monitored stream: three heartbeat
 * intervals. A frozen host keeps its lock, so its silence is the only sign.
 */
const MESSAGE_TIMEOUT_MS = 3 * HEARTBEAT_INTERVAL_MS

const timeoutOf = ({ messageTimeoutMs = MESSAGE_TIMEOUT_MS }: Link): number => messageTimeoutMs

/** Sends a request and resolves with its result. */
export async function call(
  link: Link,
  method: string,
  args: readonly unknown[],
  caller: Caller,
): Promise<unknown> {
  const request = await openRequest(link, method, args, caller)
  try {
    caller.onAck?.()
    for (;;) {
      const message = await request.next(timeoutOf(link))
      if (message.type === 'result') return message.value
      if (message.type === 'event') caller.onEvent?.(message.event as never)
    }
  } finally {
    request.close()
  }
}

/** Sends a request for a stream. Resolves when the other side has accepted it. */
export async function stream(
  link: Link,
  method: string,
  args: readonly unknown[],
  isMonitored: boolean,
  caller: Caller,
): Promise<RemoteStream<unknown>> {
  const request = await openRequest(link, method, args, caller)
  const timeoutMs = isMonitored ? timeoutOf(link) : undefined
  try {
    const accepted = await request.next(timeoutMs)
    if (accepted.type !== 'result')
      throw new InoriginError('internal', 'The host sent events before it accepted the request.')
    return {
      ...(accepted.value as object),
      events: readEvents(request, timeoutMs),
      pipeTo: (port) => waitForEnd(request, port),
    }
  } catch (error) {
    request.close()
    throw error
  }
}

/**
 * Yields the events, and a heartbeat after each silence of the writers of between half and a whole
 * heartbeat interval. The heartbeats of the other side come twice as often.
 */
async function* readEvents(
  request: RequestPort,
  messageTimeoutMs: number | undefined,
): AsyncGenerator<unknown> {
  let isSilent = false
  try {
    request.receiveEvents()
    for (;;) {
      const message = await request.next(messageTimeoutMs)
      if (message.type === 'end') return
      if (message.type === 'heartbeat') {
        if (isSilent) yield message
        isSilent = !isSilent
      } else if ('grantCredit' in message) {
        isSilent = false
        yield message.event
        message.grantCredit()
      }
    }
  } finally {
    request.close()
  }
}

/** Pipes the events of a stream to a port. Resolves when they have been received. */
async function waitForEnd(request: RequestPort, eventPort: MessagePort): Promise<void> {
  try {
    request.pipe(eventPort)
    while ((await request.next()).type !== 'end');
  } finally {
    request.close()
  }
}
