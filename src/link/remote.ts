/** The host as seen through a port: the same interfaces, somewhere else. */
import type { Caller, Control, Host } from '../types/index.ts'
import { call, stream, type Link } from './ask.ts'
import type { HostCalls, HostStreams } from './protocol.ts'

/** What answers `/v1`, at the far end of a link. */
export function remoteHost(link: Link): Host {
  const once = <Name extends keyof HostCalls>(
    name: Name,
    args: HostCalls[Name]['args'],
    { key, signal }: Caller,
  ) => call<HostCalls, Name>(link, name, args, { key, signal })
  return {
    authorize: (caller) => once('authorize', [], caller),
    models: (caller) => once('models', [], caller),
    predictor: (tag, caller) => once('predictor', [tag], caller),
    createPrediction: (request, caller) => once('createPrediction', [request], caller),
    resource: (sha256, caller) => once('resource', [sha256], caller),
    async generate(request, { key, signal }) {
      const reply = await stream<HostStreams, 'generate'>(link, 'generate', [request], { key, signal })
      return { ignored: reply.result.ignored, events: reply.events }
    },
  }
}

/** What the page's handle controls, at the far end of a link. */
export function remoteControl(link: Link): Control {
  return {
    list: () => call<HostCalls, 'list'>(link, 'list', []),
    load: (tag, signal, onProgress) =>
      call<HostCalls, 'load'>(link, 'load', [tag], { signal, onEvent: onProgress }),
    async *progress(signal) {
      const reply = await stream<HostStreams, 'progress'>(link, 'progress', [], { signal })
      yield* reply.events
    },
    unload: (tag) => call<HostCalls, 'unload'>(link, 'unload', [tag]),
    remove: (tag) => call<HostCalls, 'remove'>(link, 'remove', [tag]),
    predict: (tag, inputs, { configuration, signal, onProgress }) =>
      call<HostCalls, 'predict'>(link, 'predict', [tag, inputs, configuration], {
        signal,
        onEvent: onProgress,
      }),
    compare: (options) => call<HostCalls, 'compare'>(link, 'compare', [options]),
  }
}
