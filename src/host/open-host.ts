/** The host: it serves `/v1` and the page's server handle from the host's dedicated worker. */
import { loadCatalog } from '../catalog/load.ts'
import { listObstacles } from '../catalog/obstacles.ts'
import { findEmbedder, isEmbedder, toModel, toPredictor } from '../catalog/find-entry.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import { suggestSmaller } from '../catalog/suggest-smaller.ts'
import { probeDevice } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import { call } from '../link/ask.ts'
import { names, type HostSetup, type ModelCalls } from '../link/protocol.ts'
import { assertDimensions } from '../predictor/embed.ts'
import { closeImages } from '../predictor/transferable-inputs.ts'
import { ensureResources } from '../store/ensure.ts'
import { openDatabase } from '../store/database.ts'
import type { Caller, Control, Host, LoadProgress, Tag } from '../types/index.ts'
import { createCatalogIndex } from './library/catalog-index.ts'
import { digestOptions, findDifferences } from './tab/digest.ts'
import { createDirectPortSender, type SendDirectPort } from './models/direct-ports.ts'
import { streamEmbeddings } from './requests/embedding-stream.ts'
import { createEntries } from './library/entries.ts'
import { findModel, findPredictor, notPredictor } from './library/find-entry.ts'
import { streamGeneration } from './requests/generation-stream.ts'
import { createGpuVerdicts } from './choice/gpu-verdict.ts'
import { createImporter } from './library/import.ts'
import { modelStateOf } from './library/model-state.ts'
import { createModels, type Lease } from './models/models.ts'
import { streamPrediction } from './requests/prediction-stream.ts'
import { createPredictions } from './library/predictions.ts'
import { createQueue } from './requests/queue.ts'
import { resolveImplementation } from './library/resolve-implementation.ts'
import { createResources } from './library/resources.ts'
import { createResponseStore } from './requests/response-store.ts'
import { withRetry } from './requests/retry.ts'
import { createSelector } from './choice/selector.ts'
import { createStorage } from './library/storage.ts'

/**
 * Opens the host with the given options. The catalog, the device and the database are read on first
 * use. `onDownload` is called whenever a file must be downloaded.
 */
export function openHost(
  setup: HostSetup,
  onDownload: () => void,
): { host: Host; control: Control; sendDirectPort: SendDirectPort } {
  const database = openDatabase(names(setup.scope).database)
  const gpuVerdicts = createGpuVerdicts(database, memoize(probeDevice))
  const models = createModels({
    assets: setup.assets,
    onVerdict: gpuVerdicts.record,
    explain: async (error, entry, failed) => {
      const { tag } = entry
      const damage = await storage.checkDamage(error, failed)
      if (damage) return damage
      const [all, capabilities] = await Promise.all([entries.all(), device()])
      const fits = (one: Implementation) =>
        listObstacles(one, capabilities, setup.device).length === 0
      const explained = suggestSmaller(InoriginError.from(error), all, tag, failed, fits)
      if (explained.code === 'hash_mismatch') await entries.deleteLookUp(entry, failed)
      return explained
    },
    // The signal aborts when the model is unloaded, so its files are in use until then.
    ensure: (resources, options) =>
      ensureResources(database, resources, {
        ...options,
        inUse: options.signal,
        catalogIndex: () => createCatalogIndex(entries),
        onDownload,
      }),
  })
  const catalog = memoize(() => loadCatalog(setup.catalog, defaultCatalog(setup), setup.scope))
  const entries = createEntries(database, catalog, {
    onDownload,
    onProgress: models.reportProgress,
  })
  const storage = createStorage({ database, entries, models, onDownload })
  const device = gpuVerdicts.capabilities
  const selector = createSelector({
    database,
    models,
    device,
    verdict: gpuVerdicts.verdict,
    preference: setup.device,
  })
  const predictions = createPredictions({ database, scope: setup.scope, entries, device, selector })
  const resources = createResources({
    database,
    ensure: ensureResources,
    entries,
    predictions,
    onDownload,
  })

  /** Queue of predictions over HTTP. Each also waits for its predictor, which runs one by one. */
  const predictionQueue = createQueue({ maxRunning: 32, maxPerClient: 64, maxTotal: 256 })

  function authorize({ key }: Caller): void {
    if (setup.apiKeys === null || (key !== null && setup.apiKeys.includes(key))) return
    const what = key === null ? 'Missing API key.' : 'Invalid API key.'
    const todo =
      'Send one of the keys given to serve({ apiKeys }), as "Authorization: Bearer" or "x-api-key".'
    throw new InoriginError('authentication', `${what} ${todo}`, { code: 'invalid_api_key' })
  }

  async function acquireImplementation(
    entry: Entry,
    signal: AbortSignal,
    onProgress: (progress: LoadProgress) => void = () => undefined,
  ): Promise<Lease> {
    const unsubscribe = models.subscribe((step) => step.tag === entry.tag && onProgress(step))
    const resolved = resolveImplementation({ entries, selector }, entry, signal).finally(
      unsubscribe,
    )
    const { entry: complete, implementation } = await resolved
    const lease = models.acquire(complete, implementation, await gpuVerdicts.verdict())
    return {
      instance: lease.instance,
      release() {
        lease.release()
        // The request is finished, so measuring the other implementations delays no user.
        if (lease.instance.ready) void selector.benchmark(complete)
      },
    }
  }

  /** Acquires the implementation of the configuration; without one, the best for this device. */
  async function acquirePredictor(
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
  ): Promise<Lease> {
    if (configuration === undefined)
      return acquireImplementation(await findPredictor(entries, tag), signal)
    const { entry, implementation } = await predictions.resolveConfiguration(
      tag,
      configuration,
      signal,
    )
    if (entry.type !== 'predictor') throw notPredictor(tag)
    return models.acquire(entry, implementation, await gpuVerdicts.verdict())
  }

  const host: Host = {
    async authorize(caller) {
      authorize(caller)
    },
    async models(caller) {
      authorize(caller)
      const all = await entries.all()
      return all.filter((entry) => entry.type === 'model' || isEmbedder(entry)).map(toModel)
    },
    async generate(request, caller) {
      authorize(caller)
      const acquireLease = () =>
        findModel(entries, request).then((entry) => acquireImplementation(entry, caller.signal))
      return streamGeneration(acquireLease, request, caller)
    },
    async countTokens(request, caller) {
      authorize(caller)
      const { signal } = caller
      const lease = await acquireImplementation(await findModel(entries, request), signal)
      signal.addEventListener('abort', lease.release)
      try {
        await lease.instance.opened
        return await call<ModelCalls, 'countTokens'>(
          lease.instance.link,
          'countTokens',
          [request],
          {
            signal,
          },
        )
      } finally {
        lease.release()
      }
    },
    async embed(request, caller) {
      authorize(caller)
      const entry = findEmbedder(await catalog(), request.model)
      assertDimensions(entry, request.dimensions)
      return streamEmbeddings(() => acquireImplementation(entry, caller.signal), request, caller)
    },
    ...createResponseStore(authorize),
    async predictor(tag, caller) {
      authorize(caller)
      return toPredictor(await findPredictor(entries, tag))
    },
    async createPrediction(request, caller) {
      authorize(caller)
      return predictions.create(request, caller.signal)
    },
    async predict(tag, inputs, caller) {
      authorize(caller)
      const { client = '', signal } = caller
      const ticket = predictionQueue.enqueue(client, signal)
      return streamPrediction((onProgress) =>
        ticket.granted
          .then(() => control.predict(tag, inputs, { signal, onProgress }))
          .finally(ticket.release),
      )
    },
    resourceInfo: (sha256) => resources.info(sha256),
    resource: (sha256, { signal }) => resources.body(sha256, signal),
  }

  const control: Control = {
    async list() {
      const all = await entries.all()
      return Promise.all(all.map((entry) => modelStateOf(entry, { database, models, selector })))
    },
    async load(tag, signal, onProgress) {
      await withRetry(async () => {
        const lease = await acquireImplementation(
          await entries.find(tag, 'tag'),
          signal,
          onProgress,
        )
        await waitUntilLoaded(lease, signal, onProgress).finally(lease.release)
      })
    },
    progress: (signal) => models.progress(signal),
    async unload(tag) {
      await entries.find(tag, 'tag')
      models.unload(tag)
    },
    ...storage,
    take: createImporter({ database, entries, selector, models, onDownload }),
    describe: async (tag) => toPredictor(await findPredictor(entries, tag)),
    async predict(tag, inputs, { configuration, signal, onProgress }) {
      const run = async () => {
        const lease = await acquirePredictor(tag, configuration, signal)
        try {
          await waitUntilLoaded(lease, signal, onProgress)
          return await call<ModelCalls, 'predict'>(lease.instance.link, 'predict', [inputs], {
            signal,
          })
        } catch (error) {
          throw await lease.instance.explainFailure(error)
        } finally {
          lease.release()
        }
      }
      // The inputs were copied when they crossed the port, so the caller keeps its own.
      return withRetry(run).finally(() => closeImages(inputs))
    },
    async explain(tag, signal) {
      const entry = await entries.find(tag, 'tag')
      return selector.explain(await entries.complete(entry, signal))
    },
    async compare(options) {
      // A tab that joins with a broken catalog gets the error here, before its first request.
      await catalog()
      return findDifferences(await digestOptions(setup), options)
    },
  }

  const sendDirectPort = createDirectPortSender(models, async (tag, configuration, signal) => {
    if (configuration !== undefined)
      return predictions.resolveConfiguration(tag, configuration, signal)
    const entry = await findPredictor(entries, tag)
    // Requests over a direct port start no benchmark, so this one must come first.
    await selector.benchmark(entry)
    return resolveImplementation({ entries, selector }, entry, signal)
  })

  return { host, control, sendDirectPort }
}

/** Resolves when the implementation is loaded, and reports the progress until then. */
async function waitUntilLoaded(
  { instance }: Lease,
  signal: AbortSignal,
  onProgress: (progress: LoadProgress) => void,
): Promise<void> {
  // The loop below reports a failed load, so its rejection is ignored here.
  instance.load().catch(() => undefined)
  for await (const progress of instance.progress.read(signal)) onProgress(progress)
  onProgress(instance.progress.latest)
}

function defaultCatalog(setup: HostSetup): string {
  return new URL('models/catalog.json', setup.assets).href
}

/** Returns a function that runs the work once. It runs the work again after a failure. */
function memoize<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= work().catch((error: unknown) => {
      result = undefined
      throw error
    })
    return result
  }
}
