/**
 * The two ends of an event port, which carries the events of one stream. The reader grants credit,
 * so a slow reader slows down the writer. The writer can hand over to another thread, which then
 * writes to a port of its own.
 */
import type { ReaderMessage, WriterMessage } from './protocol.ts'

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
export interface ArrivedEvent {
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
export function openEventReader(
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
