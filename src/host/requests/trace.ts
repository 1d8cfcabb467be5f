/** The trace of the host: what it does, without the contents of requests and responses. */
import { createEventHub } from '../models/event-hub.ts'
import { toTracedError } from '../models/load-trace.ts'
import type {
  EventStream,
  HostService,
  Route,
  Tag,
  TracedOperation,
  TraceEvent,
  TraceReport,
} from '../../types/index.ts'

export interface Trace {
  /** Yields the event `host`, and then every event until the signal aborts. */
  read(signal: AbortSignal): AsyncGenerator<TraceEvent>
  /** Reports the event with the current time. */
  report(event: TraceReport): void
}

export function createTrace(): Trace {
  const hub = createEventHub<TraceEvent>()
  return {
    read: (signal) => hub.read([withTime({ type: 'host' })], signal),
    report: (event) => hub.report(withTime(event)),
  }
}

const withTime = (event: TraceReport): TraceEvent => ({
  ...event,
  time: new Date().toISOString(),
})

type TracedMethods = Pick<HostService, TracedOperation>

/** Returns the methods of the host whose requests the trace reports. */
export function withTrace(host: TracedMethods, trace: Pick<Trace, 'report'>): TracedMethods {
  const begin = (operation: TracedOperation, tag: Tag) => beginRequest(trace, operation, tag)
  return {
    async generate(request, caller) {
      const span = begin('generate', request.model)
      const stream = await span.failing(host.generate(request, caller))
      return { ...stream, events: span.reading(stream) }
    },
    countTokens: (request, caller) =>
      begin('countTokens', request.model).whole(host.countTokens(request, caller)),
    async embed(request, caller) {
      const span = begin('embed', request.model)
      const stream = await span.failing(host.embed(request, caller))
      return { ...stream, events: span.reading(stream) }
    },
    createPrediction: (request, caller) =>
      begin('createPrediction', request.tag).whole(host.createPrediction(request, caller)),
    async createRemotePrediction(request, caller) {
      const span = begin('createRemotePrediction', request.tag)
      const stream = await span.failing(host.createRemotePrediction(request, caller))
      return { ...stream, events: span.reading(stream) }
    },
    createBackground: (response, caller) =>
      begin('createBackground', response.request.model).whole(
        host.createBackground(response, caller),
      ),
    predict: (tag, inputs, configuration, caller) =>
      begin('predict', tag).whole(host.predict(tag, inputs, configuration, caller)),
    predictNext: (tag, inputs, configuration, state, caller) =>
      begin('predictNext', tag).whole(host.predictNext(tag, inputs, configuration, state, caller)),
  }
}

/** Reports the request, and returns functions that report its one end. */
function beginRequest({ report }: Pick<Trace, 'report'>, operation: TracedOperation, tag: Tag) {
  const request = { id: crypto.randomUUID(), operation, tag }
  const startedAt = performance.now()
  let isOpen = true
  let servedBy: Route | undefined
  report({ ...request, type: 'request' })

  function end(failure?: { thrown: unknown }): void {
    if (!isOpen) return
    isOpen = false
    const milliseconds = Math.round(performance.now() - startedAt)
    if (!failure)
      return report({ ...request, type: 'response', milliseconds, ...(servedBy && { servedBy }) })
    const error = toTracedError(failure.thrown)
    report({ ...request, type: 'failure', milliseconds, error })
  }

  async function failing<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (thrown) {
      end({ thrown })
      throw thrown
    }
  }

  return {
    failing,
    async whole<T>(work: Promise<T>): Promise<T> {
      const result = await failing(work)
      end()
      return result
    },
    /** Passes the events on. Leaving the loop before the end counts as a canceled request. */
    reading<Event extends object>(stream: TracedStream<Event>): AsyncIterable<Event> {
      const { events } = stream
      servedBy = stream.servedBy
      return {
        [Symbol.asyncIterator]() {
          const iterator = events[Symbol.asyncIterator]()
          return {
            async next() {
              const result = await failing(iterator.next())
              if (result.done) end()
              else servedBy = findServedBy(result.value) ?? servedBy
              return result
            },
            async return() {
              end({ thrown: new DOMException('The reader left.', 'AbortError') })
              await iterator.return?.()
              return { done: true, value: undefined }
            },
          }
        },
      }
    },
  }
}

/** Events of a request, and the place that answers it if it is decided. */
interface TracedStream<Event> extends EventStream<Event> {
  servedBy?: Route
}

/** Returns the place that an event names. */
const findServedBy = (event: { servedBy?: Route }): Route | undefined => event.servedBy
