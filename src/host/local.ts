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
import { accept } from './accept.ts'
import { createChoices } from './choices.ts'
import { differences, digestOptions } from './digest.ts'
import { embed } from './embed.ts'
import { createEntries } from './entries.ts'
import { findModel, findPredictor, notPredictor } from './find.ts'
import { createImporter } from './import.ts'
import { knownOf } from './known.ts'
import { createLender, type Lend } from './lend.ts'
import { createModels, type Lease } from './models.ts'
import { createPredictions } from './predictions.ts'
import { createQueue } from './queue.ts'
import { tellPrediction } from './predict.ts'
import { createResources } from './resources.ts'
import { createResponses } from './responses.ts'
import { settle } from './settle.ts'
import { stateOf } from './state.ts'
import { createStorage } from './storage.ts'
import { createTrust, unlessUntrusted } from './trust.ts'

/**
 * Opens the host with the given options. The catalog, the device and the database are read on first
 * use. `onDownload` is called whenever a file must be downloaded.
 */
export function openHost(
  setup: HostSetup,
  onDownload: () => void,
): { host: Host; control: Control; lend: Lend } {
  const database = openDatabase(names(setup.scope).database)
  const trust = createTrust(database, remember(probeDevice))
  const models = createModels({
    assets: setup.assets,
    onVerdict: trust.learn,
    explain: async (error, entry, failed) => {
      const { tag } = entry
      const damage = await storage.damaged(error, failed)
      if (damage) return damage
      const [all, capabilities] = await Promise.all([entries.all(), device()])
      const fits = (one: Implementation) =>
        listObstacles(one, capabilities, setup.device).length === 0
      const told = suggestSmaller(InoriginError.from(error), all, tag, failed, fits)
      if (told.code === 'hash_mismatch') await entries.forget(entry, failed)
      return told
    },
    // The signal aborts when the model is unloaded, so its files are in use until then.
    ensure: (resources, options) =>
      ensureResources(database, resources, {
        ...options,
        inUse: options.signal,
        catalogIndex: () => knownOf(entries),
        onDownload,
      }),
  })
  const catalog = remember(() => loadCatalog(setup.catalog, defaultCatalog(setup), setup.scope))
  const entries = createEntries(database, catalog, { onDownload, onProgress: models.tell })
  const storage = createStorage({ database, entries, models, onDownload })
  const device = trust.capabilities
  const choices = createChoices({
    database,
    models,
    device,
    verdict: trust.verdict,
    preference: setup.device,
  })
  const predictions = createPredictions({ database, scope: setup.scope, entries, device, choices })
  const resources = createResources({
    database,
    ensure: ensureResources,
    entries,
    predictions,
    onDownload,
  })

  /** Queue of predictions over HTTP. Each also waits for its predictor, which runs one by one. */
  const remote = createQueue({ served: 32, perClient: 64, total: 256 })

  function authorize({ key }: Caller): void {
    if (setup.apiKeys === null || (key !== null && setup.apiKeys.includes(key))) return
    const what = key === null ? 'Missing API key.' : 'Invalid API key.'
    const todo =
      'Send one of the keys given to serve({ apiKeys }), as "Authorization: Bearer" or "x-api-key".'
    throw new InoriginError('authentication', `${what} ${todo}`, { code: 'invalid_api_key' })
  }

  async function acquire(
    entry: Entry,
    signal: AbortSignal,
    onProgress: (progress: LoadProgress) => void = () => undefined,
  ): Promise<Lease> {
    const stop = models.watch((step) => step.tag === entry.tag && onProgress(step))
    const settled = settle({ entries, choices }, entry, signal).finally(stop)
    const { entry: complete, implementation } = await settled
    const { hosted, leave } = models.acquire(complete, implementation, await trust.verdict())
    return {
      hosted,
      leave() {
        leave()
        // The request is finished, so measuring the other implementations delays no user.
        if (hosted.ready) void choices.compare(complete)
      },
    }
  }

  /** Acquires the implementation of the configuration; without one, the best for this device. */
  async function acquirePredictor(
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
  ): Promise<Lease> {
    if (configuration === undefined) return acquire(await findPredictor(entries, tag), signal)
    const { entry, implementation } = await predictions.configured(tag, configuration, signal)
    if (entry.type !== 'predictor') throw notPredictor(tag)
    return models.acquire(entry, implementation, await trust.verdict())
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
      const lease = () => findModel(entries, request).then((entry) => acquire(entry, caller.signal))
      return accept(lease, request, caller)
    },
    async countTokens(request, caller) {
      authorize(caller)
      const { signal } = caller
      const { hosted, leave } = await acquire(await findModel(entries, request), signal)
      signal.addEventListener('abort', leave)
      try {
        await hosted.opened
        return await call<ModelCalls, 'countTokens'>(hosted.link, 'countTokens', [request], {
          signal,
        })
      } finally {
        leave()
      }
    },
    async embed(request, caller) {
      authorize(caller)
      const entry = findEmbedder(await catalog(), request.model)
      assertDimensions(entry, request.dimensions)
      return embed(() => acquire(entry, caller.signal), request, caller)
    },
    ...createResponses(authorize),
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
      const ticket = remote.enter(client, signal)
      return tellPrediction((onProgress) =>
        ticket.turn
          .then(() => control.predict(tag, inputs, { signal, onProgress }))
          .finally(ticket.leave),
      )
    },
    resourceInfo: (sha256) => resources.info(sha256),
    resource: (sha256, { signal }) => resources.body(sha256, signal),
  }

  const control: Control = {
    async list() {
      const all = await entries.all()
      return Promise.all(all.map((entry) => stateOf(entry, { database, models, choices })))
    },
    async load(tag, signal, onProgress) {
      await unlessUntrusted(async () => {
        const lease = await acquire(await entries.find(tag, 'tag'), signal, onProgress)
        await ready(lease, signal, onProgress).finally(lease.leave)
      })
    },
    progress: (signal) => models.progress(signal),
    async unload(tag) {
      await entries.find(tag, 'tag')
      models.unload(tag)
    },
    ...storage,
    take: createImporter({ database, entries, choices, models, onDownload }),
    describe: async (tag) => toPredictor(await findPredictor(entries, tag)),
    async predict(tag, inputs, { configuration, signal, onProgress }) {
      const run = async () => {
        const lease = await acquirePredictor(tag, configuration, signal)
        try {
          await ready(lease, signal, onProgress)
          return await call<ModelCalls, 'predict'>(lease.hosted.link, 'predict', [inputs], {
            signal,
          })
        } catch (error) {
          throw await lease.hosted.failed(error)
        } finally {
          lease.leave()
        }
      }
      // The inputs were copied when they crossed the port, so the caller keeps its own.
      return unlessUntrusted(run).finally(() => closeImages(inputs))
    },
    async explain(tag, signal) {
      const entry = await entries.find(tag, 'tag')
      return choices.explain(await entries.complete(entry, signal))
    },
    async compare(options) {
      // A tab that joins with a broken catalog gets the error here, before its first request.
      await catalog()
      return differences(await digestOptions(setup), options)
    },
  }

  const lend = createLender(models, async (tag, configuration, signal) => {
    if (configuration !== undefined) return predictions.configured(tag, configuration, signal)
    const entry = await findPredictor(entries, tag)
    // Requests over a lent port start no comparison, so this one must come first.
    await choices.compare(entry)
    return settle({ entries, choices }, entry, signal)
  })

  return { host, control, lend }
}

/** Resolves when the implementation is loaded, and reports the progress until then. */
async function ready(
  { hosted }: Lease,
  signal: AbortSignal,
  onProgress: (progress: LoadProgress) => void,
): Promise<void> {
  // The feed below reports a failed load, so its rejection is ignored here.
  hosted.load().catch(() => undefined)
  for await (const progress of hosted.progress.read(signal)) onProgress(progress)
  onProgress(hosted.progress.latest)
}

function defaultCatalog(setup: HostSetup): string {
  return new URL('models/catalog.json', setup.assets).href
}

/** Returns a function that runs the work once. It runs the work again after a failure. */
function remember<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= work().catch((error: unknown) => {
      result = undefined
      throw error
    })
    return result
  }
}
