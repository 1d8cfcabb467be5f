/** Where a request is answered: the conditions of the catalog, and that nothing else ever leaves. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Catalog, Embedder, ModelEntry } from '../../../src/catalog/schema.ts'
import type { Condition, Upstream } from '../../../src/catalog/upstream-schema.ts'
import { InoriginError, type ErrorKind } from '../../../src/error.ts'
import type { ErrorCode } from '../../../src/error-codes.ts'
import { createRecentInputs } from '../../../src/host/choice/recent-inputs.ts'
import type { Entries } from '../../../src/host/library/entries.ts'
import { createLatestValue } from '../../../src/host/models/latest-value.ts'
import type { ModelInstance } from '../../../src/host/models/model-instance.ts'
import type { Lease } from '../../../src/host/models/models.ts'
import { createImageFetcher } from '../../../src/host/requests/image-fetcher.ts'
import {
  createGenerator,
  createLanguageModels,
} from '../../../src/host/requests/language-models.ts'
import { createUpstreams } from '../../../src/host/requests/upstreams.ts'
import { withFailover } from '../../../src/link/failover.ts'
import type { GenerationEvent, Host } from '../../../src/types/index.ts'
import { handle } from '../../../src/wire/handler.ts'
import { createChance } from '../../support/random.ts'
import { chunkOf, DONE, sendEvents, startUpstream } from '../../support/upstream-server.ts'
import type { UpstreamServer } from '../../support/upstream-server.ts'
import { model, predictor } from '../catalog/entries.ts'
import { scriptedHost } from '../wire/scripted-host.ts'

/** Phases of a local answer in which it can fail. */
const PHASES = ['select', 'acquire', 'open', 'accept', 'load', 'start', 'middle', 'never'] as const
type Phase = (typeof PHASES)[number]

interface Fault {
  phase: Phase
  error: InoriginError
}

const failure = (kind: ErrorKind, code: ErrorCode) =>
  new InoriginError(kind, `It: ${code}.`, { code })
const ERRORS = [
  failure('unavailable', 'no_implementation'),
  failure('unavailable', 'device_lost'),
  failure('unavailable', 'out_of_memory'),
  failure('unavailable', 'worker_ended'),
  failure('unavailable', 'model_unresponsive'),
  failure('unavailable', 'download_failed'),
  failure('unavailable', 'storage_damaged'),
  failure('unavailable', 'host_gone'),
  failure('rate_limit', 'queue_full'),
  failure('invalid_request', 'context_length_exceeded'),
  new InoriginError('internal', 'It is a bug.'),
]
const [NO_IMPLEMENTATION, DEVICE_LOST] = ERRORS as [InoriginError, InoriginError]
const NO_FAULT: Fault = { phase: 'never', error: NO_IMPLEMENTATION }

const USAGE = { promptTokens: 1, cachedTokens: 0, completionTokens: 1, reasoningTokens: 0 }

let server: UpstreamServer
beforeAll(async () => {
  server = await startUpstream((response, { path }) => {
    if (path === '/v1/embeddings') {
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify({ data: [{ index: 0, embedding: [1, 2] }] }))
    }
    sendEvents(response, [chunkOf({ content: 'far' }, 'stop'), DONE])
    response.end()
  })
})
afterAll(() => server?.close())

const upstreamOf = (changes: Partial<Upstream> = {}): Upstream => ({
  id: 'server',
  url: server.url,
  model: 'big',
  when: ['unavailable'],
  forwardAuthorization: false,
  continues: false,
  unsupported: [],
  refusal: null,
  ...changes,
})

const embedder = (upstreams: readonly Upstream[]): Embedder =>
  ({
    ...predictor({ tag: '@acme/embed', upstreams }),
    embeddings: { input: 'text', output: 'vector', dimensions: 2, maxInputTokens: 10 },
  }) as Embedder

/** A local model that fails in one phase, and what is counted of it. */
function openModel({ phase, error }: Fault, entry: ModelEntry | Embedder, isReady: boolean) {
  const seen = { loads: 0, released: 0 }
  const failIn = async (at: Phase) => {
    if (phase === at) throw error
  }
  async function* generate(): AsyncGenerator<GenerationEvent> {
    await failIn('start')
    yield { type: 'start', promptTokens: 1, cachedTokens: 0 }
    yield { type: 'text', text: 'near', tokens: [1] }
    await failIn('middle')
    yield { type: 'finish', reason: 'stop', stopSequence: null, usage: USAGE }
  }
  async function* embed() {
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
        await failIn('load').catch((thrown: unknown) => {
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
    return { instance: createInstance(), release: () => (seen.released += 1) }
  }
  return { seen, acquire, createInstance, select: () => failIn('select') }
}

function openHost(entry: ModelEntry | Embedder, fault: Fault = NO_FAULT, isReady = true) {
  const local = openModel(fault, entry, isReady)
  const leases = { acquire: local.acquire } as never
  const upstreams = createUpstreams({
    leases,
    models: { ofTag: () => (isReady ? [local.createInstance()] : []) },
    selector: { select: local.select as never },
    getHeaders: async () => ({}),
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
  const host: Host = scriptedHost({ overrides: methods })
  return { seen: local.seen, host: withFailover(host) }
}

function openUpstreams(entry: ModelEntry) {
  const local = openModel(NO_FAULT, entry, true)
  const upstreams = createUpstreams({
    leases: { acquire: local.acquire },
    models: { ofTag: () => [] },
    selector: { select: local.select as never },
    getHeaders: async () => ({}),
  })
  return { entry, upstreams }
}

const chatOf = (tag: string) => ({ model: tag, messages: [{ role: 'user', content: 'Hi' }] })

async function post(host: Host, path: string, body: object, route?: string) {
  const request = new Request(`http://localhost/v1/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'content-length': String(JSON.stringify(body).length),
      ...(route !== undefined && { 'x-inorigin-route': route }),
    },
    body: JSON.stringify(body),
  })
  const response = await handle(request, host)
  const text = await response.text().catch(() => 'failed')
  return { status: response.status, served: response.headers.get('x-inorigin-served-by'), text }
}

const ask = (host: Host, route?: string) =>
  post(host, 'chat/completions', { ...chatOf('@acme/tiny'), stream: true }, route)

describe('a condition', () => {
  const tooLong = { phase: 'accept', error: failure('invalid_request', 'context_length_exceeded') }
  const full = { phase: 'accept', error: failure('rate_limit', 'queue_full') }
  const unfit = { phase: 'select', error: NO_IMPLEMENTATION }
  const lost = { phase: 'load', error: DEVICE_LOST }
  const lostLater = { phase: 'acquire', error: DEVICE_LOST }
  const cases: [Condition, Fault | null, boolean][] = [
    ['always', null, true],
    ['unavailable', unfit as Fault, true],
    ['unavailable', lost as Fault, true],
    ['unavailable', lostLater as Fault, true],
    ['not-loaded', null, false],
    ['busy', full as Fault, true],
    ['too-long', tooLong as Fault, true],
  ]
  test.each(cases)('%s has the server answer', async (condition, fault, isReady) => {
    const entry = model({ upstreams: [upstreamOf({ when: [condition] })] })
    const { host } = openHost(entry, fault ?? NO_FAULT, isReady)
    const { status, served, text } = await ask(host)
    expect([status, served, text.includes('"content":"far"')]).toEqual([200, 'upstream', true])
    expect(text).toContain(': served by upstream')
    // Any other condition leaves it to this device.
    const others = cases.map(([one]) => one).filter((one) => one !== condition)
    const left = model({ upstreams: [upstreamOf({ when: ['never'] })] })
    const before = server.counts()
    expect((await ask(openHost(left, fault ?? NO_FAULT, isReady).host)).served).not.toBe('upstream')
    for (const when of others.filter((one) => one !== 'always' && one !== 'not-loaded')) {
      const entryOfOther = model({ upstreams: [upstreamOf({ when: [when] })] })
      const answered = await ask(openHost(entryOfOther, fault ?? NO_FAULT, true).host)
      expect(answered.served).not.toBe('upstream')
    }
    expect(server.counts()).toEqual(before)
  })

  test('not-loaded loads the local model meanwhile', async () => {
    const entry = model({ upstreams: [upstreamOf({ when: ['not-loaded'] })] })
    const { host, seen } = openHost(entry, NO_FAULT, false)
    expect((await ask(host)).served).toBe('upstream')
    expect(seen).toEqual({ loads: 1, released: 1 })
    expect((await ask(openHost(entry).host)).served).toBe('local')
  })

  test('holds for embeddings and for both other styles', async () => {
    const upstreams = [upstreamOf()]
    const unfitHost = openHost(embedder(upstreams), unfit as Fault).host
    const body = { model: '@acme/embed', input: 'Hi' }
    const embedded = await post(unfitHost, 'embeddings', body)
    expect(JSON.parse(embedded.text)).toMatchObject({ data: [{ embedding: [1, 2] }] })
    expect(embedded.served).toBe('upstream')
    const { host } = openHost(model({ upstreams }), unfit as Fault)
    const message = await post(host, 'messages', { ...chatOf('@acme/tiny'), max_tokens: 9 })
    expect(JSON.parse(message.text)).toMatchObject({ content: [{ type: 'text', text: 'far' }] })
    const response = await post(host, 'responses', { model: '@acme/tiny', input: 'Hi' })
    expect(response).toMatchObject({ status: 200, served: 'upstream' })
  })
})

describe('an answer that this device cannot finish', () => {
  const lost: Fault = { phase: 'middle', error: DEVICE_LOST }
  const entryOf = (when: Condition[]) =>
    model({ upstreams: [upstreamOf({ when, continues: true })] })

  test('is continued by the server if the catalog entry says so', async () => {
    const { host } = openHost(entryOf(['interrupted']), lost)
    const { status, served, text } = await ask(host)
    expect([status, served]).toEqual([200, 'local'])
    const parts = ['"content":"near"', ': continued by upstream', '"content":"far"', '[DONE]']
    const places = parts.map((part) => text.indexOf(part))
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    expect(places[0]).toBeGreaterThan(0)
    expect(server.received.at(-1)?.body).toMatchObject({
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'near' },
      ],
      max_tokens: entryOf([]).maxOutputTokens - 1,
      continue_final_message: true,
    })
    const message = { ...chatOf('@acme/tiny'), max_tokens: 9 }
    const whole = await post(host, 'messages', message)
    expect(JSON.parse(whole.text)).toMatchObject({ content: [{ type: 'text', text: 'nearfar' }] })
  })

  test.each([
    ['the entry does not say so', ['unavailable', 'busy'], {}, undefined],
    ['the request is local', ['interrupted'], {}, 'local'],
    ['it has a format', ['interrupted'], { response_format: { type: 'json_object' } }, undefined],
  ] as const)('fails here if %s', async (_why, when, changes, route) => {
    const { host } = openHost(entryOf([...when]), lost)
    const before = server.counts()
    const body = { ...chatOf('@acme/tiny'), stream: true, ...changes }
    const { text } = await post(host, 'chat/completions', body, route)
    expect(text).toContain('device_lost')
    expect(server.counts()).toEqual(before)
  })

  test('is not continued for a request that says so by itself', async () => {
    const { upstreams, entry } = openUpstreams(entryOf(['unavailable', 'busy']))
    const before = server.counts()
    const request = { model: entry.tag, messages: [], sampling: {}, stop: [] }
    const caller = { key: null, signal: new AbortController().signal }
    const begun = { text: 'near', tokens: 1 }
    await expect(upstreams.continueAnswer(entry, request, begun, caller)).rejects.toMatchObject({
      code: 'upstream_not_allowed',
    })
    expect(server.counts()).toEqual(before)
  })
})

describe('the header x-inorigin-route', () => {
  test('narrows to upstream, and never widens', async () => {
    const always = model({ upstreams: [upstreamOf({ when: ['always'] })] })
    expect((await ask(openHost(always).host, 'upstream')).served).toBe('upstream')
    expect((await ask(openHost(always).host, 'local')).served).toBe('local')
    for (const when of [['unavailable'], ['busy'], ['too-long'], ['never']] as Condition[][]) {
      const { host, seen } = openHost(model({ upstreams: [upstreamOf({ when })] }))
      const { status, text } = await ask(host, 'upstream')
      expect([status, text.includes('upstream_not_allowed'), seen.loads]).toEqual([403, true, 0])
    }
    expect((await ask(openHost(model()).host, 'upstream')).status).toBe(403)
  })

  test('must be one of two words', async () => {
    const always = model({ upstreams: [upstreamOf({ when: ['always'] })] })
    const before = server.counts()
    for (const route of ['Local', 'none', ''])
      expect((await ask(openHost(always).host, route)).status).toBe(400)
    expect(server.counts()).toEqual(before)
  })
})

test('1,000 local-only requests send no byte over all fault paths', async () => {
  const { pick, often } = createChance(20)
  const before = server.counts()
  const statuses = new Map<number, number>()
  const paths = ['chat/completions', 'messages', 'responses', 'embeddings', 'messages/count_tokens']
  const all: Condition[] = [
    'unavailable',
    'not-loaded',
    'busy',
    'too-long',
    'interrupted',
    'always',
  ]
  for (let at = 0; at < 1_000; at += 1) {
    // Either the request says so, or the app has not allowed the server, or there is none.
    const reason = pick(['header', 'header', 'refusal', 'never', 'none'] as const)
    const upstream = upstreamOf({
      when: reason === 'never' ? ['never'] : all,
      refusal: reason === 'refusal' ? 'The app does not allow it.' : null,
      continues: true,
      forwardAuthorization: true,
    })
    const upstreams = reason === 'none' ? [] : [upstream]
    const path = pick(paths)
    const entry = path === 'embeddings' ? embedder(upstreams) : model({ upstreams })
    const fault = { phase: pick(PHASES), error: pick(ERRORS) }
    const { host } = openHost(entry, fault, often(0.5))
    const body = {
      ...(path === 'responses' || path === 'embeddings'
        ? { model: entry.tag, input: 'Hi' }
        : chatOf(entry.tag)),
      ...(path === 'messages' && { max_tokens: 9 }),
      ...(!path.includes('count') && path !== 'embeddings' && { stream: often(0.5) }),
    }
    const { status, served } = await post(
      host,
      path,
      body,
      reason === 'header' ? 'local' : undefined,
    )
    expect(served).not.toBe('upstream')
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  expect(server.counts()).toEqual(before)
  // The requests were answered, rejected, and failed in every way, and not refused for their form.
  expect([...statuses.keys()].toSorted()).toEqual([200, 400, 429, 500, 503])
  expect(statuses.get(200)).toBeGreaterThan(300)
})
