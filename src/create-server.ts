/** The server handle: the methods of the host, as a page calls them. */
import { followEvents } from './link/ask.ts'
import * as names from './server.ts'
import type {
  ImportOptions,
  Models,
  ModelStorage,
  PredictOptions,
  Server,
  TaskOptions,
} from './server.ts'
import { askPersistence } from './store/persistence.ts'
import type { Caller, HostService, Imported, PredictionStep, Tag } from './types/index.ts'
import {
  assertKnownOptions,
  isFile,
  neverAborted,
  parseFiles,
  parseOptions,
  parseTag,
  toOwnTag,
} from './validate-arguments.ts'
import { disposeKey } from './values/objects.ts'

interface ServerParts {
  /** URL of the scope, with a trailing slash. */
  scope: string
  host: HostService
  /** Names of the options in which this tab differs from the hosting one. */
  differences: string[]
  isControlled: () => boolean
  /** Signal that is aborted when the server is closed. */
  closing: AbortSignal
  close: () => void
}

/** Creates the handle of a host, which validates the arguments of its methods. */
export function createServer(parts: ServerParts): Server {
  const { host, differences, isControlled, closing, close } = parts
  const scope = new URL(parts.scope)
  /** The imported function. `import()` takes longer than a message even for a loaded module. */
  let carry: typeof import('./predictor/transferable-inputs.ts').withTransferableInputs | undefined
  const loadCarry = async () =>
    (carry ??= (await import('./predictor/transferable-inputs.ts')).withTransferableInputs)
  // The network may be gone when the first prediction needs it.
  void loadCarry().catch(() => undefined)
  // The inputs and outputs of a tag are known only to the type system, so the type is cast.
  const predict = (async (tag: Tag, inputs: Record<string, unknown>, options?: PredictOptions) => {
    const { configuration, ...task } = parseOptions(options, names.PREDICT_OPTIONS)
    return (carry ?? (await loadCarry()))(inputs, (plain) =>
      host.predict(parseTag(tag), plain, configuration, toPredictCaller(task)),
    )
  }) as Server['predict']
  const origin = scope.href.replace(/\/$/, '')
  const answer = createFetch(scope, host)
  return {
    fetch: answer,
    models: createModels(host),
    storage: createStorage(host),
    async import(given, options) {
      const files = parseFiles(isFile(given) ? [given] : given)
      return importFiles(host, toOwnTag(files), files, options)
    },
    predict,
    session: createSessionOpener(host),
    async predictor(tag) {
      const described = await host.describePredictor(parseTag(tag), toCaller())
      return { ...described, predict: (inputs, options) => predict(tag, inputs, options) }
    },
    async explain(tag, options) {
      const { signal } = parseOptions(options, names.SIGNAL_ONLY)
      return host.explain(parseTag(tag), toCaller({ signal }))
    },
    trace: (options) => followEvents(host.trace, parseOptions(options, names.SIGNAL_ONLY).signal),
    async bridge(url, options) {
      const { lend } = await import('./bridge/lend.ts')
      return lend(url, parseOptions(options, names.BRIDGE_OPTIONS), {
        origin,
        fetch: answer,
        closing,
      })
    },
    baseURL: `${scope.href}v1`,
    origin,
    get controlled() {
      return isControlled()
    },
    differences,
    close,
    [disposeKey]: close,
  }
}

const createFetch =
  (scope: URL, host: HostService): typeof fetch =>
  async (input, init) => {
    const request = new Request(input, init)
    const url = new URL(request.url)
    const ours = url.origin === scope.origin && url.pathname.startsWith(`${scope.pathname}v1/`)
    if (!ours) return fetch(request)
    const [{ handle }, { withFailover }] = await Promise.all([
      import('./wire/handler.ts'),
      import('./link/failover.ts'),
    ])
    return handle(request, withFailover(host), { base: scope.pathname })
  }

function createSessionOpener(host: HostService): Server['session'] {
  const open = async (tag: Tag, options: Pick<PredictOptions, 'configuration'> = {}) => {
    assertKnownOptions(options, names.CONFIGURATION_ONLY)
    const { configuration } = options
    const [{ StateChain }, { withTransferableInputs }] = await Promise.all([
      import('./predictor/session.ts'),
      import('./predictor/transferable-inputs.ts'),
      host.describePredictor(parseTag(tag), toCaller()),
    ])
    const chain = new StateChain()
    const predict = async (inputs: Record<string, unknown>, task?: TaskOptions) => {
      const caller = toPredictCaller(parseOptions(task, names.TASK_OPTIONS))
      // The inputs are captured now, although the prediction may have to wait.
      return withTransferableInputs(inputs, (plain) =>
        chain.next(
          (state) => host.predictNext(tag, plain, configuration, state, caller),
          task?.signal,
        ),
      )
    }
    const close = () => chain.close()
    return { predict, reset: () => chain.reset(), close, [disposeKey]: close }
  }
  // The inputs and outputs of a tag are known only to the type system, so the type is cast.
  return open as Server['session']
}

const createModels = (host: HostService): Models => ({
  list: () => host.modelStates(toCaller()),
  async load(tag, options) {
    const { retryCrashed, ...task } = parseOptions(options, names.LOAD_OPTIONS)
    if (retryCrashed) await host.forgetCrashes(parseTag(tag), toCaller())
    return host.load(parseTag(tag), toCaller(task))
  },
  progress: (options) =>
    followEvents(host.progress, parseOptions(options, names.SIGNAL_ONLY).signal),
  pause: async (tag) => host.pause(parseTag(tag), toCaller()),
  cancel: async (tag) => host.cancel(parseTag(tag), toCaller()),
  unload: async (tag) => host.unload(parseTag(tag), toCaller()),
  remove: async (tag) => host.remove(parseTag(tag), toCaller()),
})

const createStorage = (host: HostService): ModelStorage => ({
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
  repair: async (tag, options) =>
    host.repair(parseTag(tag), toCaller(parseOptions(options, names.REPAIR_OPTIONS))),
  import: async (tag, files, options) =>
    importFiles(host, parseTag(tag), parseFiles(files), options),
})

function importFiles(
  host: HostService,
  tag: Tag,
  files: ReturnType<typeof parseFiles>,
  options: ImportOptions | undefined,
): Promise<Imported> {
  const { name, tensors, ...task } = parseOptions(options, names.IMPORT_OPTIONS)
  return host.importTag(tag, files, { name, tensors }, toCaller(task))
}

const toPredictCaller = ({ signal, onProgress, onText }: PredictOptions) =>
  toCaller<PredictionStep>({
    signal,
    onProgress: (step) => ('text' in step ? onText?.(step.text) : onProgress?.(step)),
  })

const toCaller = <Event>({
  signal = neverAborted,
  onProgress,
}: { signal?: AbortSignal; onProgress?: (progress: Event) => void } = {}): Caller<Event> => ({
  key: null,
  signal,
  onEvent: onProgress,
})
