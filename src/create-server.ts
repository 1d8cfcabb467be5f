/** The server handle: the methods of the host, as a page calls them. */
import { followEvents } from './link/follow-events.ts'
import type { ModelStorage } from './model-storage.ts'
import type { Models, PredictOptions, Server, TaskOptions } from './server.ts'
import { askPersistence } from './store/quota.ts'
import type { Caller, HostService, Tag } from './types/index.ts'
import { parseFiles, parseOptions, parseTag } from './validate-arguments.ts'

export interface ServerParts {
  /** URL of the scope, with a trailing slash. */
  scope: string
  host: HostService
  /** Names of the options in which this tab differs from the hosting one. */
  differences: string[]
  isControlled: () => boolean
  close: () => void
}

/** Creates the handle of a host, which validates the arguments of its methods. */
export function createServer(parts: ServerParts): Server {
  const { host, differences, isControlled, close } = parts
  const scope = new URL(parts.scope)
  /** The imported function. `import()` takes longer than a message even for a loaded module. */
  let carry: typeof import('./predictor/transferable-inputs.ts').withTransferableInputs | undefined
  const loadCarry = async () =>
    (carry ??= (await import('./predictor/transferable-inputs.ts')).withTransferableInputs)
  // The network may be gone when the first prediction needs it.
  void loadCarry().catch(() => undefined)
  // The inputs and outputs of a tag are known only to the type system, so the type is cast.
  const predict = (async (tag: Tag, inputs: Record<string, unknown>, options?: PredictOptions) => {
    const { configuration, ...task } = parseOptions(options)
    return (carry ?? (await loadCarry()))(inputs, (plain) =>
      host.predict(parseTag(tag), plain, configuration, toCaller(task)),
    )
  }) as Server['predict']
  return {
    fetch: async (input, init) => {
      const request = new Request(input, init)
      const url = new URL(request.url)
      const ours = url.origin === scope.origin && url.pathname.startsWith(`${scope.pathname}v1/`)
      if (!ours) return fetch(request)
      const [{ handle }, { withFailover }] = await Promise.all([
        import('./wire/handler.ts'),
        import('./link/failover.ts'),
      ])
      return handle(request, withFailover(host), { base: scope.pathname })
    },
    models: createModels(host),
    storage: createStorage(host),
    predict,
    session: createSessionOpener(host),
    async predictor(tag) {
      const described = await host.describePredictor(parseTag(tag), toCaller())
      return { ...described, predict: (inputs, options) => predict(tag, inputs, options) }
    },
    explain: async (tag, options) => host.explain(parseTag(tag), toCaller(options)),
    trace: (options) => followEvents(host.trace, parseOptions(options).signal),
    baseURL: `${scope.href}v1`,
    origin: scope.href.replace(/\/$/, ''),
    get controlled() {
      return isControlled()
    },
    differences,
    close,
  }
}

/** Creates the method that opens sessions. */
function createSessionOpener(host: HostService): Server['session'] {
  const open = async (tag: Tag, options?: PredictOptions) => {
    const { configuration } = parseOptions(options)
    const [{ createStateChain }, { withTransferableInputs }] = await Promise.all([
      import('./predictor/session.ts'),
      import('./predictor/transferable-inputs.ts'),
      host.describePredictor(parseTag(tag), toCaller()),
    ])
    const chain = createStateChain()
    const predict = (inputs: Record<string, unknown>, task?: TaskOptions) =>
      // The inputs are captured now, although the prediction may have to wait.
      withTransferableInputs(inputs, (plain) =>
        chain.next(
          (state) => host.predictNext(tag, plain, configuration, state, toCaller(task)),
          task?.signal,
        ),
      )
    return { predict, reset: chain.reset, close: chain.close }
  }
  // The inputs and outputs of a tag are known only to the type system, so the type is cast.
  return open as Server['session']
}

function createModels(host: HostService): Models {
  return {
    list: () => host.modelStates(toCaller()),
    async load(tag, options) {
      const { retryCrashed, ...task } = parseOptions(options)
      if (retryCrashed) await host.forgetCrashes(parseTag(tag), toCaller())
      return host.load(parseTag(tag), toCaller(task))
    },
    progress: (options) => followEvents(host.progress, parseOptions(options).signal),
    pause: async (tag) => host.pause(parseTag(tag), toCaller()),
    cancel: async (tag) => host.cancel(parseTag(tag), toCaller()),
    unload: async (tag) => host.unload(parseTag(tag), toCaller()),
    remove: async (tag) => host.remove(parseTag(tag), toCaller()),
  }
}

function createStorage(host: HostService): ModelStorage {
  return {
    usage: () => host.storageUsage(toCaller()),
    list: () => host.storedTags(toCaller()),
    resources: () => host.storedResources(toCaller()),
    assets: () => host.storedAssets(toCaller()),
    removeAssets: () => host.removeAssets(toCaller()),
    pin: async (tag) => host.pin(parseTag(tag), true, toCaller()),
    unpin: async (tag) => host.pin(parseTag(tag), false, toCaller()),
    remove: async (tag) => host.remove(parseTag(tag), toCaller()),
    clear: () => host.clear(toCaller()),
    clearResponses: () => host.clearResponses(toCaller()),
    persist: askPersistence,
    repair: async (tag, options) => host.repair(parseTag(tag), toCaller(options)),
    async import(tag, files, options) {
      const { name, tensors } = parseOptions(options)
      const wishes = { name, tensors }
      return host.importTag(parseTag(tag), parseFiles(files), wishes, toCaller(options))
    },
  }
}

/**
 * Returns the caller of a request with these options.
 *
 * @throws InoriginError `invalid_request` that names an invalid option.
 */
function toCaller<Event>(options?: {
  signal?: AbortSignal
  onProgress?: (progress: Event) => void
}): Caller<Event> {
  const { signal, onProgress } = parseOptions(options)
  return { key: null, signal, onEvent: onProgress }
}
