/**
 * A host whose local model fails in a phase of an answer, with the real code that chooses between it and
 * a server: what a request gets, and where its bytes go.
 */
import type { Catalog, Embedder, ModelEntry } from '../../src/catalog/schema.ts'
import type { Upstream } from '../../src/catalog/upstream-schema.ts'
import { InoriginError } from '../../src/error.ts'
import { createRecentInputs } from '../../src/host/choice/recent-inputs.ts'
import type { Entries } from '../../src/host/library/entries.ts'
import { createLatestValue } from '../../src/host/models/latest-value.ts'
import type { ModelInstance } from '../../src/host/models/model-instance.ts'
import type { Lease } from '../../src/host/models/models.ts'
import { createImageFetcher } from '../../src/host/requests/image-fetcher.ts'
import { createGenerator, createLanguageModels } from '../../src/host/requests/language-models.ts'
import { createUpstreams } from '../../src/host/requests/upstreams.ts'
import { withFailover } from '../../src/link/failover.ts'
import type { GenerationEvent, Host } from '../../src/types/index.ts'
import { handle } from '../../src/wire/handler.ts'
import { predictor } from '../unit/catalog/entries.ts'
import { scriptedHost } from '../unit/wire/scripted-host.ts'
import { chunkOf, DONE, sendEvents, startUpstream } from './upstream-server.ts'

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

/** Starts a server that answers everything: "far", or the vector 1, 2. */
export const startFarServer = () =>
  startUpstream((response, { path }) => {
    if (path === '/v1/embeddings') {
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify({ data: [{ index: 0, embedding: [1, 2] }] }))
    }
    sendEvents(response, [chunkOf({ content: 'far' }, 'stop'), DONE])
    response.end()
  })

export const embedder = (upstreams: readonly Upstream[]): Embedder =>
  ({
    ...predictor({ tag: '@acme/embed', upstreams }),
    embeddings: { input: 'text', output: 'vector', dimensions: 2, maxInputTokens: 10 },
  }) as Embedder

/** A local model that fails in one phase, and what is counted of it. */
export function openModel(
  fault: Fault | null,
  entry: ModelEntry | Embedder,
  isReady: boolean,
  headersSent: Promise<void>,
) {
  const seen = { loads: 0, released: 0 }
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
  const createInstance = () => {
    const opened = failIn('open')
    opened.catch(() => undefined)
    const progress = createLatestValue({
      tag: entry.tag,
      phase: 'ready' as const,
      loadedBytes: 0,
      totalBytes: 0,
      bytesPerSecond: 0,
      remainingSeconds: null,
    })
    return {
      entry,
      opened,
      ready: isReady,
      progress,
      async load() {
        seen.loads += 1
        await Promise.all([failIn('load'), failLate('load-late')]).catch((thrown: unknown) => {
          progress.fail(thrown)
          throw thrown
        })
        progress.complete()
      },
      explainFailure: async (thrown: unknown) => thrown,
      worker: {
        generate: async () => (await failIn('accept'), { ignored: [], events: generate() }),
        embed: async () => (await failIn('accept'), { events: embed() }),
        countTokens: async () => (await failIn('accept'), 7),
      },
    } as unknown as ModelInstance
  }
  const acquire = async (): Promise<Lease> => {
    await failIn('acquire')
    await failLate('acquire-late')
    return { instance: createInstance(), release: () => (seen.released += 1) }
  }
  return { seen, acquire, createInstance, select: () => failIn('select') }
}

/** Opens a host with the entry. `post` sends it a request, as a client in any style would. */
export function openHost(entry: ModelEntry | Embedder, fault: Fault | null = null, isReady = true) {
  let resolveSent = (): void => undefined
  const headersSent = new Promise<void>((resolve) => (resolveSent = resolve))
  const sendHeaders = (): void => resolveSent()
  const local = openModel(fault, entry, isReady, headersSent)
  const seen = Object.assign(local.seen, { headers: 0 })
  const leases = { acquire: local.acquire } as never
  const upstreams = createUpstreams({
    leases,
    models: { ofTag: () => (isReady ? [local.createInstance()] : []) },
    selector: { select: local.select as never },
    getHeaders: async () => ((seen.headers += 1), {}),
  })
  const entries = { find: async () => entry } as unknown as Entries
  const catalog = async (): Promise<Catalog> => ({ version: 1, entries: [entry] })
  const fetchImages = createImageFetcher([])
  const generate = createGenerator({ entries, leases, upstreams, fetchImages })
  const methods = createLanguageModels({
    authorize: () => undefined,
    catalog,
    entries,
    leases,
    upstreams,
    generate,
    fetchImages,
    recentInputs: createRecentInputs(),
  })
  const host: Host = withFailover(scriptedHost({ overrides: methods }))
  return {
    host,
    upstreams,
    generate,
    seen,
    /** Says that the headers were sent, for requests that `post` does not send. */
    sendHeaders,
    post: (path: string, body: object, route?: string) =>
      post(host, path, body, route, sendHeaders),
  }
}

async function post(
  host: Host,
  path: string,
  body: object,
  route: string | undefined,
  onHeaders: () => void,
) {
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
  onHeaders()
  const text = await response.text().catch(() => 'failed')
  return { status: response.status, served: response.headers.get('x-inorigin-served-by'), text }
}

export const chatOf = (tag: string) => ({ model: tag, messages: [{ role: 'user', content: 'Hi' }] })
