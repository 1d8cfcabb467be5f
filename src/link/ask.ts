/** Sends requests over a link: calls, and streams that are read or piped to another thread. */
import type { Caller, EventStream, MethodKind, MethodTable, Remote } from '../types/index.ts'
import { isHostGone, isHostLost, type Link } from './link.ts'
import { openRequest, type RequestPort } from './port.ts'
import { HEARTBEAT_INTERVAL_MS } from './protocol.ts'

/**
 * Timeout in milliseconds between two messages of a call or a monitored stream: three heartbeat
 * intervals. A frozen host keeps its lock, so its silence is the only sign.
 */
const MESSAGE_TIMEOUT_MS = 3 * HEARTBEAT_INTERVAL_MS

/** Returns the service that answers the link. The table lists its methods. */
export function remote<Service extends object>(
  link: Link,
  methods: MethodTable<Service>,
): Remote<Service> {
  const asking = Object.entries<MethodKind>(methods).map(([method, kind]) => {
    const ask = (...args: unknown[]) => {
      const caller = args.pop() as Caller
      return call(link, method, kind, args, caller)
    }
    return [method, ask]
  })
  return Object.fromEntries(asking) as Remote<Service>
}

/** Sends a request. Resolves with its result, or with its stream when the other side has begun it. */
export async function call(
  link: Link,
  method: string,
  kind: MethodKind,
  args: readonly unknown[],
  caller: Caller,
): Promise<unknown> {
  const request = await openRequest(link, method, args, caller)
  const { messageTimeoutMs = MESSAGE_TIMEOUT_MS } = link
  const timeoutMs = kind === 'stream' ? undefined : messageTimeoutMs
  let isStream = false
  try {
    caller.onAck?.()
    for (;;) {
      const message = await request.next(timeoutMs)
      if (message.type === 'event') caller.onEvent?.(message.event as never)
      if (message.type !== 'result') continue
      if (kind === 'call') return message.value
      isStream = true
      return {
        ...(message.value as object),
        events: readEvents(request, timeoutMs),
        pipeTo: (port: MessagePort) => waitForEnd(request, port),
      }
    }
  } finally {
    if (!isStream) request.close()
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

/** Delay in milliseconds before the next host is tried after one was lost. */
const HOST_RETRY_DELAY_MS = 500

type Open<Event> = (caller: Caller) => Promise<EventStream<Event>>

/** Yields the events of the stream, and continues with the next host when one is lost. */
export function followEvents<Event>(open: Open<Event>, signal: AbortSignal): AsyncIterable<Event> {
  return {
    [Symbol.asyncIterator]() {
      // A generator that waits cannot return, so leaving the loop aborts its signal.
      const returned = new AbortController()
      const generator = readAndReopen(open, AbortSignal.any([signal, returned.signal]))
      return {
        next: () => generator.next(),
        return: () => {
          returned.abort()
          return generator.return(undefined)
        },
      }
    },
  }
}

async function* readAndReopen<Event>(
  open: Open<Event>,
  signal: AbortSignal,
): AsyncGenerator<Event> {
  while (!signal.aborted) {
    try {
      const { events } = await open({ key: null, signal })
      yield* events
    } catch (error) {
      if (signal.aborted) return
      if (!isHostLost(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, HOST_RETRY_DELAY_MS))
    }
  }
}

/** Maximum number of failovers of one request. The request itself may be what ends its hosts. */
export const MAX_FAILOVERS = 3

/** Resolves with the result of a call, which runs again on the next host when its host dies. */
export async function rerunOnDeath<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let failovers = 0; ; failovers += 1) {
    try {
      return await run()
    } catch (error) {
      // After a death, the election of the next host may take longer than one search for it.
      const canRerun = isHostGone(error) || (failovers > 0 && isHostLost(error))
      if (!canRerun || failovers === MAX_FAILOVERS) throw error
    }
  }
}
