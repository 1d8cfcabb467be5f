/**
 * A host whose local model fails in a phase of an answer, with the real code that chooses between it and
 * a server, and that tries again: what a request gets, and where its bytes go.
 */
import type { Embedder, ModelEntry } from '../../src/catalog/schema.ts'
import { InoriginError } from '../../src/error.ts'
import { RecentInputs } from '../../src/host/choice/recent-inputs.ts'
import type { Entries } from '../../src/host/library/entries.ts'
import { LatestValue } from '../../src/host/models/event-hub.ts'
import type { ModelInstance } from '../../src/host/models/model-instance.ts'
import type { ModelService } from '../../src/host/models/model-service.ts'
import type { Lease } from '../../src/host/models/models.ts'
import { createImageFetcher } from '../../src/host/requests/image-fetcher.ts'
import { LanguageModels } from '../../src/host/requests/language-models.ts'
import { Upstreams } from '../../src/host/requests/upstreams.ts'
import { withFailover } from '../../src/link/failover.ts'
import type { GenerationEvent, Host, Remote } from '../../src/types/index.ts'
import { handle } from '../../src/wire/handler.ts'
import { predictor } from '../unit/catalog/entries.ts'
import { scriptedHost } from '../unit/wire/scripted-host.ts'
import { createDeferred } from './deferred.ts'
import { progressOf } from './samples.ts'

/**
 * Phases of a local answer in which it can fail, in their order. Those that end in `late` fail when the
 * headers of the response were sent: no implementation was chosen until then, or no weights were loaded.
 */
export const PHASES = [
  'select',
  'acquire',
  'acquire-late',
  'open',
  'accept',
  'load',
  'load-late',
  'start',
  'middle',
] as const
export type Phase = (typeof PHASES)[number]

export interface Fault {
  phase: Phase
  error: unknown
}

export const DEVICE_LOST = new InoriginError('unavailable', 'It: device_lost.', {
  code: 'device_lost',
})

const USAGE = { promptTokens: 1, cachedTokens: 0, completionTokens: 1, reasoningTokens: 0 }

export const embedder = (changes: Partial<Embedder> = {}): Embedder =>
  ({
    ...predictor({ tag: '@acme/embed' }),
    embeddings: { input: 'text', output: 'vector', dimensions: 2, maxInputTokens: 10 },
    ...changes,
  }) as Embedder

export interface LocalModel {
  /** The fault of each lease in turn. Leases after those have none. */
  faults?: readonly (Fault | null)[]
  isReady?: boolean
  /** Worker of the model. Default: one that writes "near", or the vector 5, 6. */
  worker?: Remote<Pick<ModelService, 'generate'>>
  /** Other models of the catalog. */
  others?: readonly ModelEntry[]
  /** Promise for which a load waits. */
  loaded?: Promise<void>
}

/** A local model that fails in a phase, and a record of its use. */
function openModel(
  { faults = [], isReady = true, worker, loaded }: LocalModel,
  entry: ModelEntry | Embedder,
  headersSent: Promise<void>,
) {
  const seen = { leases: 0, loads: 0, released: 0, explained: [] as unknown[] }
  function createInstance(fault: Fault | null | undefined) {
    const failIn = async (at: Phase) => {
      if (fault?.phase === at) throw fault.error
    }
    const failLate = async (at: Phase) => {
      if (fault?.phase !== at) return
      await headersSent
      throw fault.error
    }
    async function* generate(): AsyncGenerator<GenerationEvent> {
      await failIn('start')
      yield { type: 'start', promptTokens: 1, cachedTokens: 0 }
      yield { type: 'text', text: 'near', tokens: [1] }
      await failIn('middle')
      yield { type: 'finish', reason: 'stop', stopSequence: null, usage: USAGE }
    }
    async function* embed() {
      await failIn('start')
      await failIn('middle')
      yield { vectors: new Float32Array([5, 6]), dimensions: 2, tokens: 1 }
    }
    const opened = failIn('open')
    opened.catch(() => undefined)
    const phase = isReady ? 'ready' : 'download'
    const progress = new LatestValue(progressOf({ tag: entry.tag, phase }))
    const instance = {
      entry,
      opened,
      ready: isReady,
      progress,
      async load() {
        seen.loads += 1
        await loaded
        await Promise.all([failIn('load'), failLate('load-late')]).catch((thrown: unknown) => {
          progress.fail(thrown)
          throw thrown
        })
        progress.complete()
      },
      async explainFailure(thrown: unknown) {
        seen.explained.push(thrown)
        return thrown
      },
      worker: worker ?? {
        generate: async () => (await failIn('accept'), { ignored: [], events: generate() }),
        embed: async () => (await failIn('accept'), { events: embed() }),
        countTokens: async () => (await failIn('accept'), 7),
      },
    } as unknown as ModelInstance
    return { instance, failIn, failLate }
  }
  const acquire = async (): Promise<Lease> => {
    const { instance, failIn, failLate } = createInstance(faults[seen.leases++])
    await failIn('acquire')
    await failLate('acquire-late')
    let isHeld = true
    const release = () => {
      if (isHeld) seen.released += 1
      isHeld = false
    }
    return { instance, release }
  }
  return {
    seen,
    acquire,
    current: () => createInstance(null).instance,
    select: () => createInstance(faults[0]).failIn('select'),
  }
}

/** Opens a host with the entry. `post` sends it a request, as a client in any style would. */
export function openHost(entry: ModelEntry | Embedder, model: LocalModel = {}) {
  const { promise: headersSent, resolve: sendHeaders } = createDeferred()
  const local = openModel(model, entry, headersSent)
  const seen = Object.assign(local.seen, { headers: 0 })
  const leases = { acquire: local.acquire, lookUp: async () => undefined } as never
  const upstreams = new Upstreams({
    leases,
    models: { ofTag: () => (model.isReady === false ? [] : [local.current()]) },
    selector: { select: local.select as never },
    getHeaders: async () => ((seen.headers += 1), {}),
  })
  const all = [entry, ...(model.others ?? [])]
  const entries = { find: async () => entry, all: async () => all } as unknown as Entries
  const fetchImages = createImageFetcher([])
  const recentInputs = new RecentInputs()
  const { methods } = new LanguageModels({
    entries,
    leases,
    upstreams,
    fetchImages,
    recentInputs,
  })
  const host: Host = withFailover(scriptedHost({ overrides: methods }))
  return {
    upstreams,
    recentInputs,
    generate: methods.generate,
    embed: methods.embed,
    seen,
    /** Answers a request of a client. */
    fetch: (request: Request) => handle(request, host),
    /** Says that the headers were sent, for requests that `post` does not send. */
    sendHeaders,
    async post(path: string, body: object, route?: string) {
      const json = JSON.stringify(body)
      const request = new Request(`http://localhost/v1/${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': String(json.length),
          ...(route !== undefined && { 'x-inorigin-route': route }),
        },
        body: json,
      })
      const response = await handle(request, host)
      sendHeaders()
      const text = await response.text().catch(() => 'failed')
      const served = response.headers.get('x-inorigin-served-by')
      return { status: response.status, served, text }
    },
  }
}

export const chatOf = (tag: string) => ({ model: tag, messages: [{ role: 'user', content: 'Hi' }] })
