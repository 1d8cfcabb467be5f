/** The host: it serves `/v1` and the page's server handle from the host's dedicated worker. */
import { loadCatalog } from '../catalog/load.ts'
import { probeDevice } from '../device/capabilities.ts'
import { names } from '../link/protocol.ts'
import { openDatabase } from '../store/database.ts'
import { ensureResources } from '../store/ensure.ts'
import { raiseEpoch } from '../store/epoch.ts'
import { withFence } from '../store/fence.ts'
import type { Control, Host, HostService, LoadProgress } from '../types/index.ts'
import { createGpuComparisons } from './choice/gpu-comparisons.ts'
import { createGpuVerdicts } from './choice/gpu-verdict.ts'
import { createLoadCrashes, type HostLives } from './choice/load-crashes.ts'
import { createRecentInputs } from './choice/recent-inputs.ts'
import { createSelector } from './choice/selector.ts'
import { createThreadCount } from './choice/thread-count.ts'
import { createCatalogCopies } from './library/catalog-copies.ts'
import { createCatalogIndex } from './library/catalog-index.ts'
import { createEntries } from './library/entries.ts'
import { createFailureExplainer } from './library/explain-failure.ts'
import { keepFilesWhenIdle } from './library/offline-files.ts'
import { createImporter } from './library/import.ts'
import { createPredictions } from './library/predictions.ts'
import { createResources } from './library/resources.ts'
import { createStorage } from './library/storage.ts'
import type { HostSetup, ResponseHandover } from './messages.ts'
import { createDirectPortOpener } from './models/direct-ports.ts'
import { createIdleMonitor } from './models/idle.ts'
import { createEventHub } from './models/event-hub.ts'
import { createLoadTrace } from './models/load-trace.ts'
import { measureThreads } from './models/measure-threads.ts'
import { createModels } from './models/models.ts'
import { createAuthorization } from './requests/authorization.ts'
import { createBackground } from './requests/background.ts'
import { createImageFetcher } from './requests/image-fetcher.ts'
import { createGenerator, createLanguageModels } from './requests/language-models.ts'
import { createLeases } from './requests/leases.ts'
import { createLoading } from './requests/loading.ts'
import { createHttpPredictors, createPredictorControl } from './requests/predictors.ts'
import { createSharedResponses } from './requests/shared-responses.ts'
import { createTrace, withTrace } from './requests/trace.ts'
import { createUpstreams, type UpstreamsOptions } from './requests/upstreams.ts'
import { digestOptions, findDifferences } from './tab/digest.ts'

/** Callbacks of the host's worker. */
export interface HostEvents {
  /** Called whenever a file must be downloaded. */
  onDownload(): void
  /** Called when a later host was elected. This one must end. */
  onReplaced(): void
  /** Resolves with the headers that the app adds to requests to the upstream URL. */
  getUpstreamHeaders: UpstreamsOptions['getHeaders']
}

/** State that a host takes over from earlier ones. */
export interface Predecessors {
  lives: HostLives
  responses: ResponseHandover
}

/**
 * Opens the host with the given options. The catalog, the device and the database are read on first
 * use.
 */
export function openHost(
  setup: HostSetup,
  isElected: boolean,
  { lives, responses }: Predecessors,
  { onDownload, onReplaced, getUpstreamHeaders }: HostEvents,
): HostService {
  const { scope, assets, device: preference, offline } = setup
  const opened = openDatabase(names(scope).database)
  // Several pages without a service worker may host at once, each for itself. None replaces another.
  const database = isElected ? withFence(opened, names(scope).host, onReplaced) : opened
  const epoch = cacheSuccess(() => raiseEpoch(database))
  const embedded = new URL('models/catalog.json', assets).href
  const copies = offline ? createCatalogCopies(database.name) : undefined
  const catalog = cacheSuccess(() =>
    loadCatalog(setup.catalog, embedded, scope, copies, setup.upstreams),
  )
  const gpuVerdicts = createGpuVerdicts(database, cacheSuccess(probeDevice))
  const { capabilities: device, verdict } = gpuVerdicts
  const crashes = createLoadCrashes(database, lives)
  const progress = createEventHub<LoadProgress>()
  const trace = createTrace()
  const idle = createIdleMonitor()
  if (offline) keepFilesWhenIdle(database.name, assets, idle)
  const entries = createEntries(database, catalog, { onDownload, onProgress: progress.report })
  const threads = createThreadCount({
    database,
    device,
    measure: (count, signal) => measureThreads(assets, count, signal),
  })
  const comparisons = createGpuComparisons(database, device)
  const recentInputs = createRecentInputs()
  const models = createModels({
    assets,
    progress,
    trace: createLoadTrace(trace.report),
    idle,
    crashes,
    threads: threads.get,
    comparisons,
    onVerdict: gpuVerdicts.record,
    explain: createFailureExplainer({ database, entries, device, preference }),
    // The signal aborts when the model is unloaded, so its files are in use until then.
    ensure: (resources, options) =>
      ensureResources(database, resources, {
        ...options,
        inUse: options.signal,
        catalogIndex: () => createCatalogIndex(entries),
        onDownload,
      }),
  })
  const selector = createSelector({
    database,
    models,
    idle,
    device,
    verdict,
    preference,
    threads,
    crashes,
    comparisons,
    recentInputs,
  })
  const predictions = createPredictions({ database, scope, entries, device, selector })
  const leases = createLeases({
    entries,
    selector,
    predictions,
    models,
    progress,
    verdict,
    trace: trace.report,
  })
  const authorize = createAuthorization(setup.apiKeys)
  const upstreams = createUpstreams({ selector, leases, models, getHeaders: getUpstreamHeaders })
  const fetchImages = createImageFetcher(setup.imageUrls)
  const generate = createGenerator({ entries, leases, upstreams, fetchImages })
  const background = createBackground({ authorize, database, epoch, generate })
  const library = { database, entries, models, selector, predictions, onDownload }
  const predictors = createPredictorControl({ entries, leases, recentInputs })
  const resources = createResources({ ...library, ensure: ensureResources })
  const host: Host = {
    authorize: async (caller) => authorize(caller),
    ...createLanguageModels({
      authorize,
      catalog,
      entries,
      leases,
      upstreams,
      generate,
      fetchImages,
      recentInputs,
    }),
    ...createSharedResponses(authorize, responses),
    ...background.methods,
    ...createHttpPredictors({ authorize, predictions }, predictors),
    resourceInfo: (sha256) => resources.info(sha256),
    resource: (sha256, { signal }) => resources.body(sha256, signal),
  }
  const control: Control = {
    ...createLoading({ ...library, leases, crashes, trace }),
    ...createStorage({ ...library, background }),
    ...predictors,
    importTag: createImporter(library),
    async compareOptions(options) {
      // A tab that joins with a broken catalog gets the error here, before its first request.
      await catalog()
      return findDifferences(await digestOptions(setup), options)
    },
    openDirectPort: createDirectPortOpener(models, leases.resolvePredictor),
  }
  // A store that cannot be opened has no responses to continue. Later calls report its error.
  epoch()
    .then(background.resume)
    .catch(() => undefined)
  const service: HostService = { ...host, ...control }
  return { ...service, ...withTrace(service, trace) }
}

/** Returns a function that runs the work once. It runs the work again after a failure. */
function cacheSuccess<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= work().catch((error: unknown) => {
      result = undefined
      throw error
    })
    return result
  }
}
