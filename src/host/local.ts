/** The host itself: what answers `/v1` and the page's handle, inside the host's dedicated worker. */
import { choose, type Choice } from '../catalog/choose.ts'
import { loadCatalog } from '../catalog/load.ts'
import { toModel, toPredictor } from '../catalog/resolve.ts'
import type { Entry, ModelEntry, PredictorEntry, Resource } from '../catalog/schema.ts'
import { nameSmaller } from '../catalog/smaller.ts'
import { probeDevice, type Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import { call } from '../link/ask.ts'
import { names, type HostSetup, type ModelCalls } from '../link/protocol.ts'
import { release } from '../predictor/transfer.ts'
import { ensure } from '../store/ensure.ts'
import { openDatabase } from '../store/open.ts'
import { hasResource, removeResource } from '../store/resources.ts'
import type { Caller, Control, Host, LoadProgress, ModelState, Tag } from '../types/index.ts'
import { accept } from './accept.ts'
import { differences, digestOptions } from './digest.ts'
import { createEntries } from './entries.ts'
import { createModels, type Lease } from './models.ts'
import { createPredictions } from './predictions.ts'
import { tellPrediction } from './predict.ts'
import { createTrust, unlessUntrusted } from './trust.ts'

/**
 * Opens the host with those options; catalog, device and database are looked at when first needed.
 * `onDownload` is called whenever something has to be downloaded.
 */
export function openHost(
  setup: HostSetup,
  onDownload: () => void,
): { host: Host; control: Control } {
  const database = openDatabase(names(setup.scope).database)
  const trust = createTrust(database, remember(probeDevice))
  const models = createModels({
    assets: setup.assets,
    onVerdict: trust.learn,
    explain: async (error, { tag }, failed) =>
      nameSmaller(InoriginError.from(error), await entries.all(), tag, failed),
    ensure: (resources, options) => ensure(database, resources, { ...options, onDownload }),
  })
  const catalog = remember(() => loadCatalog(setup.catalog, defaultCatalog(setup), setup.scope))
  const entries = createEntries(database, catalog)
  const predictions = createPredictions({ database, scope: setup.scope, entries, device: trust.capabilities, pick })

  function authorize({ key }: Caller): void {
    if (setup.apiKeys === null || (key !== null && setup.apiKeys.includes(key))) return
    const what = key === null ? 'This server needs an API key.' : 'This API key is not one of this server.'
    const todo = 'Send one given to serve({ apiKeys }) as "Authorization: Bearer" or "x-api-key".'
    throw new InoriginError('authentication', `${what} ${todo}`, { code: 'invalid_api_key' })
  }

  async function modelOf(tag: Tag): Promise<ModelEntry> {
    const entry = await entries.find(tag, 'model')
    if (entry.type === 'model') return entry
    throw wrongType(tag, 'model', 'is a predictor; run it with server.predict()')
  }

  async function predictorOf(tag: Tag): Promise<PredictorEntry> {
    const entry = await entries.find(tag, 'tag')
    if (entry.type === 'predictor') return entry
    throw wrongType(tag, 'tag', 'is a language model; use /v1/chat/completions or /v1/messages')
  }

  function pick(entry: Entry, capabilities: Capabilities): Choice {
    return choose(entry, capabilities, setup.device)
  }

  async function acquire(entry: Entry, signal: AbortSignal): Promise<Lease> {
    const complete = await entries.complete(entry, signal)
    const { implementation } = pick(complete, await trust.capabilities())
    return models.acquire(complete, implementation, await trust.verdict())
  }

  const host: Host = {
    async authorize(caller) {
      authorize(caller)
    },
    async models(caller) {
      authorize(caller)
      const all = await entries.all()
      return all.filter((entry) => entry.type === 'model').map(toModel)
    },
    async generate(request, caller) {
      authorize(caller)
      const lease = () => modelOf(request.model).then((entry) => acquire(entry, caller.signal))
      return accept(lease, request, caller)
    },
    async countTokens(request, caller) {
      authorize(caller)
      const { signal } = caller
      const { hosted, leave } = await acquire(await modelOf(request.model), signal)
      signal.addEventListener('abort', leave)
      try {
        await hosted.opened
        return await call<ModelCalls, 'countTokens'>(hosted.link, 'countTokens', [request], { signal })
      } finally {
        leave()
      }
    },
    async predictor(tag, caller) {
      authorize(caller)
      return toPredictor(await predictorOf(tag))
    },
    async createPrediction(request, caller) {
      authorize(caller)
      return predictions.create(request, caller.signal)
    },
    async predict(tag, inputs, caller) {
      authorize(caller)
      const { signal } = caller
      return tellPrediction((onProgress) => control.predict(tag, inputs, { signal, onProgress }))
    },
    async resource(sha256, { signal }) {
      const wanted = resourcesOf(await entries.all()).find((resource) => resource.sha256 === sha256)
      if (!wanted) {
        throw new InoriginError('not_found', `No resource of the catalog has the sha256 ${sha256}.`)
      }
      const files = await ensure(database, [wanted], { signal, onDownload })
      return { sha256, name: wanted.name, blob: files.get(wanted.name) as Blob }
    },
  }

  const control: Control = {
    async list() {
      const capabilities = await trust.capabilities()
      const all = await entries.all()
      return Promise.all(all.map((entry) => stateOf(entry, capabilities)))
    },
    async load(tag, signal, onProgress) {
      await unlessUntrusted(async () => {
        const lease = await acquire(await entries.find(tag, 'tag'), signal)
        await ready(lease, signal, onProgress).finally(lease.leave)
      })
    },
    progress: (signal) => models.progress(signal),
    async unload(tag) {
      await entries.find(tag, 'tag')
      models.unload(tag)
    },
    async remove(tag) {
      const entry = await entries.find(tag, 'tag')
      models.unload(tag)
      const others = (await entries.all()).filter((other) => other.tag !== tag)
      const shared = new Set(resourcesOf(others).map((resource) => resource.sha256))
      for (const { sha256 } of resourcesOf([entry])) {
        if (!shared.has(sha256)) await removeResource(database, sha256)
      }
    },
    describe: async (tag) => toPredictor(await predictorOf(tag)),
    async predict(tag, inputs, { configuration, signal, onProgress }) {
      const entry = await predictorOf(tag)
      const implementation = await predictions.implementation(entry, configuration)
      const lease = models.acquire(entry, implementation)
      try {
        await ready(lease, signal, onProgress)
        return await call<ModelCalls, 'predict'>(lease.hosted.link, 'predict', [inputs], { signal })
      } catch (error) {
        throw await lease.hosted.failed(error)
      } finally {
        // A copy of the asker's, made when it crossed the port.
        release(inputs)
        lease.leave()
      }
    },
    async compare(options) {
      // A tab that joins hears here already that there is nothing to serve.
      await catalog()
      return differences(await digestOptions(setup), options)
    },
  }

  async function stateOf(entry: Entry, capabilities: Capabilities): Promise<ModelState> {
    const { tag, type, name } = entry
    const hosted = models.of(tag).at(-1)
    const implementation = hosted?.implementation ?? fitting(entry, capabilities)
    const resources = implementation?.resources ?? []
    const isListed = entry.implementations.length > 0
    const here = await Promise.all(resources.map(({ sha256 }) => hasResource(database, sha256)))
    const stored = here.length > 0 && here.every(Boolean) ? 'stored' : 'remote'
    return {
      tag, type, name,
      status: hosted ? (hosted.ready ? 'loaded' : 'loading') : stored,
      bytes: isListed ? resources.reduce((bytes, resource) => bytes + resource.bytes, 0) : null,
      device: implementation?.device ?? null,
    }
  }

  function fitting(entry: Entry, capabilities: Capabilities) {
    try {
      return pick(entry, capabilities).implementation
    } catch {
      return undefined
    }
  }

  return { host, control }
}

/** Waits for it to be loaded and tells how far it is. */
async function ready(
  { hosted }: Lease,
  signal: AbortSignal,
  onProgress: (progress: LoadProgress) => void,
): Promise<void> {
  // Its progress ends as the load does.
  hosted.load().catch(() => undefined)
  for await (const progress of hosted.progress.read(signal)) onProgress(progress)
  onProgress(hosted.progress.latest)
}

function defaultCatalog(setup: HostSetup): string {
  return new URL('models/catalog.json', setup.assets).href
}

function resourcesOf(entries: readonly Entry[]): Resource[] {
  return entries.flatMap((entry) => entry.implementations.flatMap((one) => one.resources))
}

function wrongType(tag: Tag, param: 'model' | 'tag', what: string): InoriginError {
  return new InoriginError('not_found', `${tag} ${what}.`, { code: 'model_not_found', param })
}

/** Runs once; a failure is not kept, so the next asker tries again. */
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
