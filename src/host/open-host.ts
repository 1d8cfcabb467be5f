/** The host: it serves `/v1` and the page's server handle from the host's dedicated worker. */
import { loadCatalog } from '../catalog/load.ts'
import type { Catalog } from '../catalog/schema.ts'
import { type Capabilities, probeDevice } from '../device/capabilities.ts'
import { names } from '../link/protocol.ts'
import { openDatabase } from '../store/database.ts'
import { ensureResources } from '../store/ensure.ts'
import { raiseEpoch, withFence } from '../store/fence.ts'
import type { Control, Host, HostService, LoadProgress } from '../types/index.ts'
import { cacheSuccess } from '../values/promises.ts'
import { GpuComparisons, GpuVerdicts } from './choice/gpu-verdict.ts'
import { type HostLives, LoadCrashes } from './choice/load-crashes.ts'
import { RecentInputs } from './choice/recent-inputs.ts'
import { ImplementationSelector } from './choice/selector.ts'
import { measureThreads, ThreadCount } from './choice/thread-count.ts'
import { UnsupportedLoads } from './choice/unsupported-loads.ts'
import { createCatalogIndex, Entries, type LookUpOptions } from './library/entries.ts'
import { createFailureExplainer } from './library/explain-failure.ts'
import { createImporter } from './library/import.ts'
import { createCatalogCopies, keepFilesWhenIdle } from './library/offline-files.ts'
import { Predictions } from './library/predictions.ts'
import { createResources } from './library/resources.ts'
import { createStorage } from './library/storage.ts'
import {
  digestOptions,
  findDifferences,
  type HostSetup,
  type ResponseHandover,
} from './messages.ts'
import { EventHub } from './models/event-hub.ts'
import { IdleMonitor, createDirectPortOpener, Models } from './models/models.ts'
import { BackgroundResponses } from './requests/background.ts'
import { createImageFetcher } from './requests/image-fetcher.ts'
import { LanguageModels } from './requests/language-models.ts'
import { Leases } from './requests/leases.ts'
import { createLoading } from './requests/loading.ts'
import {
  compose,
  Trace,
  createAuthorization,
  withAuthorization,
  withTrace,
  withWatchers,
} from './requests/middleware.ts'
import { createHttpPredictors, createPredictorControl } from './requests/predictors.ts'
import { createSharedResponses } from './requests/response-store.ts'
import { createTranscriptions, type SoundDecoder } from './requests/transcriptions.ts'
import { Upstreams, type UpstreamsOptions } from './requests/upstreams.ts'

/** Callbacks of the host's worker. */
interface HostEvents {
  /** Called whenever a file must be downloaded. */
  onDownload(): void
  /** Called when a later host was elected. This one must end. */
  onReplaced(): void
  /** Called for each request that only watches, with its signal. No service worker waits for it. */
  onWatch(signal: AbortSignal): void
  /** Resolves with the headers that the app adds to requests to the upstream URL. */
  getUpstreamHeaders: UpstreamsOptions['getHeaders']
  /** Resolves with the sound of a file, which the page decodes. */
  decodeSound: SoundDecoder['decode']
}

/** State that a host takes over from earlier ones. */
interface Predecessors {
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
  { onDownload, onReplaced, onWatch, getUpstreamHeaders, decodeSound }: HostEvents,
): HostService {
  const { scope, assets, offline } = setup
  const progress = new EventHub<LoadProgress>()
  const trace = new Trace()
  const idle = new IdleMonitor()
  const lookUps = { onDownload, onProgress: progress.report }
  const opened = openLibrary(setup, isElected, onReplaced, lookUps)
  const { database, epoch, catalog, entries } = opened
  if (offline) keepFilesWhenIdle(database.name, assets, idle)
  const watched = { progress, trace: trace.report, idle }
  const known = openModels(setup, opened, lives, watched, onDownload)
  const { models, selector, crashes, recentInputs, device, verdict } = known

  const predictions = new Predictions({ scope, database, entries, device, selector })
  const choice = { entries, selector, predictions, models }
  const leases = new Leases({ ...choice, progress, verdict, trace: trace.report })
  const upstreams = new Upstreams({ selector, leases, models, getHeaders: getUpstreamHeaders })
  const fetchImages = createImageFetcher(setup.imageUrls)
  const requests = { entries, leases, upstreams, fetchImages, recentInputs }
  const languageModels = new LanguageModels(requests).methods
  const background = new BackgroundResponses({ database, epoch }, languageModels.generate)
  const library = { ...choice, database, onDownload }
  const predictors = createPredictorControl(entries, leases, recentInputs)
  const resources = createResources({ ...library, ensure: ensureResources })
  const host: Host = {
    authorize: async () => undefined,
    ...languageModels,
    ...createTranscriptions({ entries, leases, decode: decodeSound }),
    ...createSharedResponses(responses),
    ...background.methods,
    ...createHttpPredictors(predictions, predictors),
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
    openDirectPort: createDirectPortOpener(models, (...args) => leases.resolvePredictor(...args)),
  }
  // A store that cannot be opened has no responses to continue. Later calls report its error.
  epoch()
    .then(() => background.resume())
    .catch(() => undefined)
  // Within these, `LanguageModels` fetches images, asks upstream servers, takes a lease, and retries.
  return compose({ ...host, ...control }, [
    withWatchers(onWatch),
    withTrace(trace),
    withAuthorization(createAuthorization(setup.apiKeys)),
  ])
}

/**
 * Opens the database, the catalogs and the entries of a host, which it needs before any model. The
 * catalog and the database are read on first use.
 */
function openLibrary(
  { scope, assets, offline, catalog: given, precision, upstreams }: HostSetup,
  isElected: boolean,
  onReplaced: () => void,
  events: LookUpOptions,
) {
  const opened = openDatabase(names(scope).database)
  // Several pages without a service worker may host at once, each for itself. None replaces another.
  const database = isElected ? withFence(opened, names(scope).host, onReplaced) : opened
  const embedded = new URL('models/catalog.json', assets).href
  const copies = offline ? createCatalogCopies(database.name) : undefined
  const catalog = cacheSuccess(() => loadCatalog(given, embedded, scope, copies, upstreams))
  return {
    database,
    /** Resolves with the epoch of this host, which is later than those of its predecessors. */
    epoch: cacheSuccess(() => raiseEpoch(database)),
    catalog,
    entries: new Entries(database, catalog, precision, events),
  }
}

/**
 * Opens the models in memory, and the choice of an implementation for this device. The device is
 * probed on first use.
 */
function openModels(
  setup: HostSetup,
  { database, entries, catalog }: ReturnType<typeof openLibrary>,
  lives: HostLives,
  watched: { progress: EventHub<LoadProgress>; trace: Trace['report']; idle: IdleMonitor },
  onDownload: () => void,
) {
  const { assets, device: preference } = setup
  const probe = cacheSuccess(async () => withInstalled(await probeDevice(), await catalog()))
  const gpuVerdicts = new GpuVerdicts(database, probe)
  const { capabilities: device, verdict } = gpuVerdicts
  const crashes = new LoadCrashes(database, lives)
  const comparisons = new GpuComparisons(database, device)
  const unsupported = new UnsupportedLoads(database)
  const recentInputs = new RecentInputs()
  const threads = new ThreadCount({
    database,
    device,
    measure: (count, signal) => measureThreads(assets, count, signal),
  })
  const models = new Models({
    assets,
    ...watched,
    crashes,
    unsupported,
    threads: threads.get,
    comparisons,
    onVerdict: gpuVerdicts.record,
    explain: createFailureExplainer({ database, entries, device, preference }),
    // The signal aborts when the model is unloaded, so its files are in use until then.
    ensure: (resources, { signal, ...rest }) =>
      ensureResources(database, resources, {
        ...rest,
        signal,
        inUse: signal,
        catalogIndex: () => createCatalogIndex(entries),
        onDownload,
      }),
  })
  const known = {
    device,
    verdict,
    preference,
    threads,
    crashes,
    unsupported,
    comparisons,
    recentInputs,
  }
  const { idle } = watched
  const selector = new ImplementationSelector({ database, models, idle, ...known })
  return { models, selector, crashes, recentInputs, device, verdict }
}

/** Returns the capabilities without the GPU if the app has no runtime for it. */
function withInstalled(capabilities: Capabilities, { devices }: Catalog): Capabilities {
  if (!devices || devices.includes('webgpu')) return capabilities
  return { ...capabilities, webgpu: null, doubt: 'no-runtime' }
}
