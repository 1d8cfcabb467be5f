/** The models of a host: those in memory, and the choice of an implementation for this device. */
import type { Catalog } from '../catalog/schema.ts'
import { type Capabilities, probeDevice } from '../device/capabilities.ts'
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import { ensureResources } from '../store/ensure.ts'
import type { LoadProgress } from '../types/index.ts'
import { cacheSuccess } from '../values/cache-success.ts'
import { createGpuComparisons } from './choice/gpu-comparisons.ts'
import { createGpuVerdicts } from './choice/gpu-verdict.ts'
import { createLoadCrashes, type HostLives, type LoadCrashes } from './choice/load-crashes.ts'
import { createRecentInputs, type RecentInputs } from './choice/recent-inputs.ts'
import { createSelector, type ImplementationSelector } from './choice/selector.ts'
import { createThreadCount } from './choice/thread-count.ts'
import { createCatalogIndex } from './library/catalog-index.ts'
import { createFailureExplainer } from './library/explain-failure.ts'
import type { HostSetup } from './messages.ts'
import type { EventHub } from './models/event-hub.ts'
import type { IdleMonitor } from './models/idle.ts'
import type { LoadTrace } from './models/load-trace.ts'
import { measureThreads } from './models/measure-threads.ts'
import { createModels, type Models } from './models/models.ts'
import type { Library } from './open-library.ts'

interface HostModelsOptions extends Pick<Library, 'database' | 'entries' | 'catalog'> {
  setup: HostSetup
  lives: HostLives
  progress: EventHub<LoadProgress>
  trace: LoadTrace
  idle: IdleMonitor
  onDownload(): void
}

/** Models, and what was learned about this device. */
export interface HostModels {
  models: Models
  selector: ImplementationSelector
  crashes: LoadCrashes
  recentInputs: RecentInputs
  device: () => Promise<Capabilities>
  verdict: () => Promise<GpuVerdict | undefined>
}

/** Opens the models of a host. The device is probed on first use. */
export function openModels(options: HostModelsOptions): HostModels {
  const { setup, database, entries, catalog, idle, onDownload, progress, trace } = options
  const { assets, device: preference } = setup
  const probe = cacheSuccess(async () => withInstalled(await probeDevice(), await catalog()))
  const gpuVerdicts = createGpuVerdicts(database, probe)
  const { capabilities: device, verdict } = gpuVerdicts
  const crashes = createLoadCrashes(database, options.lives)
  const comparisons = createGpuComparisons(database, device)
  const recentInputs = createRecentInputs()
  const threads = createThreadCount({
    database,
    device,
    measure: (count, signal) => measureThreads(assets, count, signal),
  })
  const models = createModels({
    assets,
    progress,
    trace,
    idle,
    crashes,
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
  const known = { device, verdict, preference, threads, crashes, comparisons, recentInputs }
  const selector = createSelector({ database, models, idle, ...known })
  return { models, selector, crashes, recentInputs, device, verdict }
}

/** Returns the capabilities without the GPU if the app has no runtime for it. */
function withInstalled(capabilities: Capabilities, { devices }: Catalog): Capabilities {
  if (!devices || devices.includes('webgpu')) return capabilities
  return { ...capabilities, webgpu: null, doubt: 'no-runtime' }
}
