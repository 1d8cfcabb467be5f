/** The answering side of a port that carries one request. */
import { InoriginError } from '../error.ts'
import type { Caller, EventStream, MethodKind, MethodTable, RemoteStream } from '../types/index.ts'
import { EventWriter } from './port.ts'
import { watchLivenessLock } from './locks.ts'
import { HEARTBEAT_INTERVAL_MS, PROTOCOL, type AnswerMessage, type AskMessage } from './protocol.ts'

type CallMessage = AskMessage & { type: 'call' }
type AnyMethod = (...args: unknown[]) => Promise<unknown>

/**
 * Answers the request that arrives on a port with a method of the service, if the table lists it.
 * Resolves when the request ended, even if it failed. `livenessLock` is the name of the lock that
 * this thread holds while it lives; `null` if the asking side need not watch one.
 */
export function answer<Service extends object>(
  port: MessagePort,
  service: Service,
  methods: MethodTable<Service>,
  livenessLock: string | null = null,
): Promise<void> {
  const canceled = new AbortController()
  const { signal } = canceled
  const pipe = createPipe(signal)
  const send = (message: AnswerMessage, ports: MessagePort[] = []) => {
    if (!signal.aborted) port.postMessage(message, ports)
  }

  async function whileBeating<T>(work: () => Promise<T> | undefined): Promise<T | undefined> {
    const timer = setInterval(() => send({ type: 'heartbeat' }), HEARTBEAT_INTERVAL_MS / 2)
    try {
      return await work()
    } finally {
      clearInterval(timer)
    }
  }

  async function run({ protocol, method, args, key, client }: CallMessage): Promise<void> {
    if (protocol !== PROTOCOL) throw otherProtocol(protocol)
    if (!Object.hasOwn(methods, method))
      throw new InoriginError('internal', `The host has no method '${method}'.`)
    const kind = (methods as Record<string, MethodKind>)[method]
    const onEvent = (event: unknown) =>
      send({ type: 'event', event }, event instanceof MessagePort ? [event] : [])
    const caller: Caller<unknown> = { key, client, signal, onEvent, handOver: pipe.handOver }
    const start = () => (service as Record<string, AnyMethod>)[method]?.(...args, caller)
    if (kind === 'call') return send({ type: 'result', value: await whileBeating(start) })
    const { events, ...accepted } = (await start()) as EventStream<unknown>
    send({ type: 'result', value: accepted })
    const write = () => pipe.write(events)
    await (kind === 'monitored' ? whileBeating(write) : write())
  }

  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      port.close()
      resolve()
    })
    port.onmessage = ({ data, ports: [eventPort] }: MessageEvent<AskMessage>) => {
      if (data.type === 'cancel') return canceled.abort()
      if (data.type === 'pipe') return eventPort && pipe.open(eventPort, data.credit)
      send({ type: 'ack', life: livenessLock })
      if (data.life !== null)
        watchLivenessLock(navigator.locks, data.life, signal, () => canceled.abort())
      // The sender closes the port after it has read the last message.
      run(data)
        .then(
          () => send({ type: 'end' }),
          (error: unknown) => send({ type: 'error', error: InoriginError.from(error).toRecord() }),
        )
        .finally(resolve)
    }
  })
}

/** Returns the way of a stream's events to the asking side, which opens it when it reads them. */
function createPipe(signal: AbortSignal) {
  let resolve = (_writer: EventWriter | undefined) => {}
  /** Writer of the events; `undefined` if the request is canceled before the pipe is open. */
  const opened = new Promise<EventWriter | undefined>((settle) => (resolve = settle))
  signal.addEventListener('abort', () => resolve(undefined))
  return {
    open: (eventPort: MessagePort, credit: number) =>
      resolve(new EventWriter(eventPort, credit, signal)),
    /** Writes the events once the pipe is open. If that never happens, it closes them on abort. */
    async write(events: AsyncIterable<unknown>): Promise<void> {
      const writer = await opened
      if (writer) await writer.write(events)
      // Nobody reads the stream, so it must free its resources.
      else await events[Symbol.asyncIterator]().return?.()
    },
    async handOver(stream: RemoteStream<unknown>): Promise<void> {
      const { port1, port2 } = new MessageChannel()
      const writer = await opened
      writer?.handOver(port1)
      await stream.pipeTo(port2)
    },
  }
}

function otherProtocol(theirs: number): InoriginError {
  const what = `This page uses inorigin protocol ${theirs}, but the host uses ${PROTOCOL}.`
  return new InoriginError('unavailable', `${what} Reload all tabs of this origin.`, {
    code: 'protocol_mismatch',
  })
}
