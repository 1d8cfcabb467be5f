/** The host: it serves `/v1` and the page's server handle from the host's dedicated worker. */
import { ensureResources } from '../store/ensure.ts'
import type { Control, Host, HostService, LoadProgress } from '../types/index.ts'
import type { HostLives } from './choice/load-crashes.ts'
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
import { openLibrary } from './open-library.ts'
import { openModels } from './open-models.ts'
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
  const { scope, assets, offline } = setup
  const progress = createEventHub<LoadProgress>()
  const trace = createTrace()
  const idle = createIdleMonitor()
  const events = { onDownload, onReplaced, onProgress: progress.report }
  const { database, epoch, catalog, entries } = openLibrary(setup, isElected, events)
  if (offline) keepFilesWhenIdle(database.name, assets, idle)
  const loadTrace = createLoadTrace(trace.report)
  const stored = { setup, database, catalog, entries, lives }
  const watched = { progress, trace: loadTrace, idle, onDownload }
  const known = openModels({ ...stored, ...watched })
  const { models, selector, crashes, recentInputs, device, verdict } = known

  const predictions = createPredictions({ scope, database, entries, device, selector })
  const choice = { entries, selector, predictions, models }
  const leases = createLeases({ ...choice, progress, verdict, trace: trace.report })
  const authorize = createAuthorization(setup.apiKeys)
  const upstreams = createUpstreams({ selector, leases, models, getHeaders: getUpstreamHeaders })
  const fetchImages = createImageFetcher(setup.imageUrls)
  const generate = createGenerator({ entries, leases, upstreams, fetchImages })
  const requests = { authorize, catalog, entries, leases, upstreams, generate, fetchImages }
  const background = createBackground({ authorize, database, epoch, generate })
  const library = { ...choice, database, onDownload }
  const predictors = createPredictorControl({ entries, leases, recentInputs })
  const resources = createResources({ ...library, ensure: ensureResources })
  const host: Host = {
    authorize: async (caller) => authorize(caller),
    ...createLanguageModels({ ...requests, recentInputs }),
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
