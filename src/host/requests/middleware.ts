/** What happens around each request of the host. `openHost` lists it in its order. */
import { InoriginError } from '../../error.ts'
import { HOST_SERVICE_METHODS } from '../../types/control.ts'
import { HOST_METHODS } from '../../types/host.ts'
import type {
  Caller,
  EventStream,
  HostService,
  Route,
  Tag,
  TracedOperation,
  TraceEvent,
  TraceReport,
} from '../../types/index.ts'
import { EventHub, toTracedError } from '../models/event-hub.ts'

/** Returns the service with something around its methods. It may have only some of them. */
type Middleware = <Service extends Partial<HostService>>(service: Service) => Service

/** Puts the middlewares around the service. A request reaches the first one first. */
export function compose(service: HostService, middlewares: readonly Middleware[]): HostService {
  return middlewares.reduceRight((inner, wrap) => wrap(inner), service)
}

type Method = (...args: unknown[]) => Promise<unknown>

/** Replaces the named methods of a service by what `wrap` returns for them. */
function wrapMethods<Service extends object, Name extends string>(
  service: Service,
  names: readonly Name[],
  wrap: (method: Method, name: Name) => Method,
): Service {
  const methods = service as Record<string, Method | undefined>
  const wrapped = names.map((name) => {
    const method = methods[name]
    return [name, method && wrap(method, name)]
  })
  return { ...service, ...Object.fromEntries(wrapped) }
}

/** Methods of `/v1`, without those of files, which need no API key. */
const METHODS_WITH_KEY = Object.keys(HOST_METHODS).filter(
  (name) => name !== 'resourceInfo' && name !== 'resource',
)

/** Checks the callers of `/v1` with `authorize`, which throws for an invalid API key. */
export function withAuthorization(authorize: (caller: Caller) => void): Middleware {
  return (service) =>
    wrapMethods(service, METHODS_WITH_KEY, (method) => async (...args) => {
      authorize(args.at(-1) as Caller)
      return method(...args)
    })
}

/** Creates the check of API keys. With `null` as keys, everybody may use the host. */
export function createAuthorization(apiKeys: readonly string[] | null): (caller: Caller) => void {
  return ({ key }) => {
    if (apiKeys === null || (key !== null && apiKeys.includes(key))) return
    const what = key === null ? 'Missing API key.' : 'Invalid API key.'
    const todo =
      'Send one of the keys given to serve({ apiKeys }), as "Authorization: Bearer" or "x-api-key".'
    throw new InoriginError('authentication', `${what} ${todo}`, { code: 'invalid_api_key' })
  }
}

/** Passes on the signals of requests that only watch, for which no service worker waits. */
export function withWatchers(onWatch: (signal: AbortSignal) => void): Middleware {
  return (service) =>
    wrapMethods(service, ['progress', 'openDirectPort'], (method) => (...args) => {
      onWatch((args.at(-1) as Caller).signal)
      return method(...args)
    })
}

/** The trace of the host: what it does, without the contents of requests and responses. */
export class Trace {
  #hub = new EventHub<TraceEvent>()

  /** Yields the event `host`, and then every event until the signal aborts. */
  read(signal: AbortSignal): AsyncGenerator<TraceEvent> {
    return this.#hub.read([withTime({ type: 'host' })], signal)
  }

  /** Reports the event with the current time. */
  report = (event: TraceReport): void => this.#hub.report(withTime(event))
}

const withTime = (event: TraceReport): TraceEvent => ({
  ...event,
  time: new Date().toISOString(),
})

/** The operations that the trace reports, and the tag in the first argument of each. */
const TAG_OF: { [Name in TracedOperation]: (first: Parameters<HostService[Name]>[0]) => Tag } = {
  generate: ({ model }) => model,
  countTokens: ({ model }) => model,
  embed: ({ model }) => model,
  rerank: ({ model }) => model,
  speak: ({ model }) => model,
  createPrediction: ({ tag }) => tag,
  createRemotePrediction: ({ tag }) => tag,
  createBackground: ({ request }) => request.model,
  predict: (tag) => tag,
  predictNext: (tag) => tag,
}

/** Reports the requests that need a model, each with its one end. */
export function withTrace({ report }: Pick<Trace, 'report'>): Middleware {
  return (service) =>
    wrapMethods(service, Object.keys(TAG_OF) as TracedOperation[], (method, operation) => {
      const tagOf = TAG_OF[operation] as (first: unknown) => Tag
      return async (...args) => {
        const request = beginRequest(report, operation, tagOf(args[0]))
        const result = await request.failing(method(...args))
        if (HOST_SERVICE_METHODS[operation] !== 'call')
          return { ...(result as object), events: request.reading(result as TracedStream) }
        request.end()
        return result
      }
    })
}

/** Events of a request, and the place that answers it if it is decided. */
interface TracedStream extends EventStream<{ servedBy?: Route }> {
  servedBy?: Route
}

/** Reports the request, and returns functions that report its one end. */
function beginRequest(report: Trace['report'], operation: TracedOperation, tag: Tag) {
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

  /** Passes the events on. Leaving the loop before the end counts as a canceled request. */
  function reading(stream: TracedStream): TracedStream['events'] {
    servedBy = stream.servedBy
    return {
      [Symbol.asyncIterator]() {
        const iterator = stream.events[Symbol.asyncIterator]()
        return {
          async next() {
            const result = await failing(iterator.next())
            if (result.done) end()
            else servedBy = result.value.servedBy ?? servedBy
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
  }

  return { end: () => end(), failing, reading }
}
