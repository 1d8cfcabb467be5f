/** Models on a server of another origin, asked through the service worker of a page. */
import type { Page } from 'playwright'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { CatalogInput, Server, ServeOptions } from '../../src/index.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { CHAT, fetchIn, MESSAGES } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { startFetchServer, type UpstreamServer } from '../support/upstream-server.ts'
import { fetchOf, scriptedHost, TINY } from '../unit/wire/scripted-host.ts'

const EVERYDAY = { tags: ['everyday'] }

interface InPage {
  server: Server
  serve: (options: ServeOptions) => Promise<Server>
}

const FAR = '@app/far'

let site: Site
let server: UpstreamServer
/** `true` to leave answers open after their first words. */
let isSlow = false

beforeAll(async () => {
  const host = scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        const plain = scriptedHost()
        const { events } = await plain.generate(
          { ...request, model: TINY.tag },
          { key: null, signal },
        )
        async function* slowly() {
          for await (const event of events) {
            if (event.type === 'finish' && isSlow)
              await new Promise((_resolve, reject) =>
                signal.addEventListener('abort', () => reject(signal.reason)),
              )
            yield event
          }
        }
        return { ignored: [], events: slowly() }
      },
    },
  })
  server = await startFetchServer(fetchOf(host))
  const document = JSON.stringify(catalogOf(server.url))
  site = await openSite({ pages: { '/far.json': document } })
})
afterAll(async () => {
  await site?.close()
  await server?.close()
})

/** The least entry: no device and no resources. */
function catalogOf(url: string): CatalogInput {
  const entry = {
    tag: FAR,
    type: 'model' as const,
    name: 'Far',
    maxInputTokens: 32_000,
    maxOutputTokens: 1_000,
    created: '2026-11-01T00:00:00Z',
    implementations: [{ id: 'server', engine: 'upstream' as const, url, model: TINY.tag }],
  }
  return { version: 1, entries: [entry] }
}

let page: Page
beforeEach(async () => {
  isSlow = false
  page = await site.open('/blank.html', await site.browser.newContext())
})
afterEach(() => page.context().close())

const body = { model: FAR, messages: [{ role: 'user', content: 'Hi' }], stream: true }
const ask = (headers: Record<string, string> = {}) => fetchIn(page, CHAT, body, headers)

test('both styles are answered by the server, with the headers of the app', EVERYDAY, async () => {
  await page.waitForFunction(() => 'serve' in globalThis)
  await page.evaluate(
    async ([catalog, url]) => {
      const { serve } = globalThis as unknown as InPage
      let count = 0
      const headers = async () => ({ 'x-token': `short-lived-${++count}` })
      Object.assign(globalThis, { server: await serve({ catalog, upstreams: [{ url, headers }] }) })
    },
    [catalogOf(server.url), server.url] as const,
  )
  const before = server.received.length
  const keys = { authorization: 'Bearer sk-of-the-client', 'x-api-key': 'sk-of-the-client' }
  const { text } = await fetchIn(page, CHAT, body, keys)
  expect(checkChatStream(text).content).toBe('Hello there')
  const message = { ...body, stream: false, max_tokens: 9 }
  const { content, usage } = JSON.parse((await fetchIn(page, MESSAGES, message, keys)).text)
  expect([content[0].text, usage.output_tokens]).toEqual(['Hello there', 3])
  const seen = server.received.slice(before).map(({ headers }) => headers)
  expect(seen.map((headers) => headers['x-token'])).toEqual(['short-lived-1', 'short-lived-2'])
  for (const headers of seen) {
    expect(headers).not.toHaveProperty('authorization')
    expect(headers).not.toHaveProperty('x-api-key')
    expect(headers).not.toHaveProperty('referer')
  }
})

test('a response, the list and the explanation say where it is answered', async () => {
  await serveIn(page, { catalog: catalogOf(server.url) })
  const { status, headers, text } = await ask()
  expect([status, headers['x-inorigin-served-by']]).toEqual([200, 'upstream'])
  expect(text).toContain(': served by upstream')
  const [states, explained] = await page.evaluate(async (tag) => {
    const { server: own } = globalThis as unknown as InPage
    return [await own.models.list(), await own.explain(tag)] as const
  }, FAR)
  expect(states.find(({ tag }) => tag === FAR)).toMatchObject({
    servedBy: 'upstream',
    device: null,
  })
  expect(states.find(({ tag }) => tag === '@inorigin/guide')).toMatchObject({ servedBy: 'local' })
  expect(explained).toMatchObject({
    chosen: 'server',
    reasons: [{ id: 'server', device: 'upstream', chosen: true }],
  })
})

test('nothing leaves if the request or the app does not allow it', async () => {
  await serveIn(page, { catalog: catalogOf(server.url) })
  const before = server.counts().connections
  expect(await ask({ 'x-inorigin-route': 'local' })).toMatchObject({ status: 503 })
  await page.context().close()
  page = await site.open('/blank.html', await site.browser.newContext())
  await serveIn(page, { catalog: '/far.json' })
  const { status, text } = await ask()
  expect([status, text]).toEqual([503, expect.stringContaining('serve({ upstreams })')])
  expect(server.counts().connections).toBe(before)
})

test('a catalog from a URL is used with the consent of the app', async () => {
  await serveIn(page, { catalog: '/far.json', upstreams: [server.url] })
  expect((await ask()).headers['x-inorigin-served-by']).toBe('upstream')
})

test('an aborted request closes the connection to the server', EVERYDAY, async () => {
  isSlow = true
  await serveIn(page, { catalog: catalogOf(server.url) })
  const closed = server.closed()
  const began = await page.evaluate(async (json) => {
    const abort = new AbortController()
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(json),
      signal: abort.signal,
    })
    await response.body?.getReader().read()
    abort.abort()
    return performance.timeOrigin + performance.now()
  }, body)
  await closed
  expect(Date.now() - began).toBeLessThan(1_000)
})
