/** Implements the host's interfaces by calls over a port. */
import type { Caller, Control, Host, LoadProgress } from '../types/index.ts'
import { call, isHostLost, stream, type Link } from './ask.ts'
import { predictDirectly } from './direct-predict.ts'
import type { HostCalls, HostStreams } from './protocol.ts'

/**
 * Timeout in milliseconds between two messages of a stream: three heartbeat intervals of the host.
 */
const MESSAGE_TIMEOUT_MS = 30_000
/** Delay in milliseconds before the next host is tried after one was lost. */
const HOST_RETRY_DELAY_MS = 500

/** Creates a `Host` that forwards each call over the link. */
export function remoteHost(link: Link): Host {
  const callHost = <Name extends keyof HostCalls>(
    name: Name,
    args: HostCalls[Name]['args'],
    { key, signal }: Caller,
  ) => call<HostCalls, Name>(link, name, args, { key, signal })
  const streamHost = <Name extends keyof HostStreams>(
    name: Name,
    args: HostStreams[Name]['args'],
    { key, signal }: Caller,
  ) =>
    stream<HostStreams, Name>(link, name, args, {
      key,
      signal,
      messageTimeoutMs: MESSAGE_TIMEOUT_MS,
    })
  return {
    authorize: (caller) => callHost('authorize', [], caller),
    models: (caller) => callHost('models', [], caller),
    countTokens: (request, caller) => callHost('countTokens', [request], caller),
    keepResponse: (response, caller) => callHost('keepResponse', [response], caller),
    keptResponse: (id, caller) => callHost('keptResponse', [id], caller),
    keptItems: (ids, caller) => callHost('keptItems', [ids], caller),
    forgetResponse: (id, caller) => callHost('forgetResponse', [id], caller),
    predictor: (tag, caller) => callHost('predictor', [tag], caller),
    createPrediction: (request, caller) => callHost('createPrediction', [request], caller),
    resourceInfo: (sha256, caller) => callHost('resourceInfo', [sha256], caller),
    resource: (sha256, caller) => callHost('resource', [sha256], caller),
    async predict(tag, inputs, caller) {
      const { events } = await streamHost('runPredictor', [tag, inputs], caller)
      return events
    },
    async generate(request, caller) {
      const { result, events } = await streamHost('generate', [request], caller)
      return { ignored: result.ignored, events }
    },
    async embed(request, caller) {
      const { events } = await streamHost('embed', [request], caller)
      return events
    },
  }
}

/** Creates a `Control` that forwards each call over the link. */
export function remoteControl(link: Link): Control {
  return {
    list: () => call<HostCalls, 'list'>(link, 'list', []),
    load: (tag, signal, onProgress) =>
      call<HostCalls, 'load'>(link, 'load', [tag], { signal, onEvent: onProgress }),
    progress: (signal) => abortOnReturn(signal, (stop) => watchProgress(link, stop)),
    unload: (tag) => call<HostCalls, 'unload'>(link, 'unload', [tag]),
    remove: (tag) => call<HostCalls, 'remove'>(link, 'remove', [tag]),
    usage: () => call<HostCalls, 'usage'>(link, 'usage', []),
    stored: () => call<HostCalls, 'stored'>(link, 'stored', []),
    storedFiles: () => call<HostCalls, 'storedFiles'>(link, 'storedFiles', []),
    pin: (tag, pinned) => call<HostCalls, 'pin'>(link, 'pin', [tag, pinned]),
    repair: (tag, signal, onProgress) =>
      call<HostCalls, 'repair'>(link, 'repair', [tag], { signal, onEvent: onProgress }),
    clear: () => call<HostCalls, 'clear'>(link, 'clear', []),
    take: (tag, files, wishes, signal, onProgress) =>
      call<HostCalls, 'take'>(link, 'take', [tag, files, wishes], { signal, onEvent: onProgress }),
    describe: (tag) => call<HostCalls, 'describe'>(link, 'describe', [tag]),
    predict: predictDirectly(link, (tag, inputs, { configuration, signal, onProgress }) =>
      call<HostCalls, 'predict'>(link, 'predict', [tag, inputs, configuration], {
        signal,
        onEvent: onProgress,
      }),
    ),
    explain: (tag, signal) => call<HostCalls, 'explain'>(link, 'explain', [tag], { signal }),
    compare: (options, signal) =>
      call<HostCalls, 'compare'>(link, 'compare', [options], { signal }),
  }
}

/** Yields the progress of all loads, and continues with the next host when one is lost. */
async function* watchProgress(link: Link, signal: AbortSignal): AsyncGenerator<LoadProgress> {
  while (!signal.aborted) {
    try {
      const reply = await stream<HostStreams, 'progress'>(link, 'progress', [], { signal })
      yield* reply.events
    } catch (error) {
      if (signal.aborted) return
      if (!isHostLost(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, HOST_RETRY_DELAY_MS))
    }
  }
}

/**
 * Returns an iterable whose `return` aborts a signal, because a waiting generator cannot return.
 */
function abortOnReturn<T>(
  signal: AbortSignal,
  start: (stop: AbortSignal) => AsyncGenerator<T>,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const returned = new AbortController()
      const generator = start(AbortSignal.any([signal, returned.signal]))
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
