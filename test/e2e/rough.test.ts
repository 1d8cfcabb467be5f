/** What goes wrong around a host: workers that do not start, servers opened twice, loads given up. */
import { afterEach, expect, test } from 'vitest'
import type { Page, Request } from 'playwright'
import type { InoriginError, ServeOptions, Server } from '../../src/index.ts'
import { PROBE_PATH } from '../../src/link/protocol.ts'
import { fetchIn } from '../support/answers.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
  serve: (options?: ServeOptions) => Promise<Server>
}

const statusOf = async (page: Page) => (await fetchIn(page, '/v1/models')).status

test(
  'a worker that cannot start gives the lock to the next tab, and its own tab stands again',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const [one, two, three] = [await site.open(), await site.open(), await site.open()]
    for (const page of [one, two, three]) await serveIn(page)
    // From now on a worker that is started fails, until the server is mended.
    site.pages['/inorigin/worker.js'] = 'throw new Error("half deployed")'
    await one.close()
    expect(await statusOf(three)).toBe(503)
    delete site.pages['/inorigin/worker.js']
    await expect.poll(() => statusOf(three), { interval: 500 }).toBe(200)
  },
)

test('an app below a path that passes no `worker` is told which one to pass', async () => {
  site = await openSite({ base: '/app/' })
  const page = await site.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  const { code, message } = await page.evaluate(() => {
    const { serve } = globalThis as unknown as InPage
    return serve().then(
      () => ({ code: 'served', message: '' }),
      (error: InoriginError) => ({ code: error.code, message: error.message }),
    )
  })
  expect(code).toBe('script_missing')
  expect(message).toMatch(/no service worker script at \/sw\.js.* such as \/app\/sw\.js\.$/s)
})

test('a catalog or assets that no worker can take are refused at once', async () => {
  site = await openSite()
  const page = await site.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  const seen = await page.evaluate(async () => {
    const { serve } = globalThis as unknown as InPage
    const kindOf = (options: object) =>
      serve(options).then(
        () => 'served',
        (error: { kind: string }) => error.kind,
      )
    const assets = await kindOf({ assets: 'http://127.0.0.1:9/inorigin/' })
    const catalog = await kindOf({ catalog: { version: 1, entries: [], more: () => {} } })
    const keys = await kindOf({ apiKeys: [' outer '] })
    return { assets, catalog, keys }
  })
  const refused = 'invalid_request'
  expect(seen).toEqual({ assets: refused, catalog: refused, keys: refused })
})

/** Resolves with what the page logs while it runs the program, which has `serve`. */
async function collectWarnings(page: Page, program: string): Promise<string[]> {
  await page.waitForFunction(() => 'serve' in globalThis)
  const warnings: string[] = []
  page.on('console', (line) => line.type() === 'warning' && warnings.push(line.text()))
  await page.evaluate(`(async () => { ${program} })()`)
  return warnings
}

test('a request before serve() resolves is warned of, on the first visit', async () => {
  site = await openSite()
  const page = await site.open()
  const warnings = await collectWarnings(
    page,
    `const recorded = new Promise((resolve) => {
      new PerformanceObserver((list) => list.getEntriesByName(location.origin + '/v1/models').forEach(resolve))
        .observe({ type: 'resource' })
    })
    const early = await fetch('/v1/models')
    if (early.status !== 404) throw new Error('The web server did not answer.')
    await early.text()
    await recorded
    await serve()`,
  )
  expect(warnings).toEqual([expect.stringMatching('/v1/models was requested before serve')])
  expect(await collectWarnings(await site.open(), 'await serve()')).toEqual([])
})

test('no request of a start shows as canceled in the network panel', async () => {
  site = await openSite()
  const ended: { url: string; failure: string | null }[] = []
  const record = (request: Request) =>
    void ended.push({ url: request.url(), failure: request.failure()?.errorText ?? null })
  site.context.on('requestfinished', record)
  site.context.on('requestfailed', record)
  for (const page of [await site.open(), await site.open()]) await serveIn(page)
  const isProbe = ({ url }: { url: string }) => url.endsWith(PROBE_PATH)
  await expect.poll(() => ended.filter(isProbe).length).toBeGreaterThan(1)
  expect(ended.filter(({ failure }) => failure !== null)).toEqual([])
})

test('a second server of a page warns only of other options, and names this page', async () => {
  site = await openSite()
  const page = await site.open()
  expect(await collectWarnings(page, 'await serve(); await serve()')).toEqual([])
  expect(await collectWarnings(page, `await serve({ device: 'wasm' })`)).toEqual([
    expect.stringMatching(/^inorigin: an earlier server of this page .*: device\./),
  ])
})

test(
  'two servers of one page are one host; closing one leaves the other',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    await serveIn(page)
    const seen = await page.evaluate(async () => {
      const { serve, server } = globalThis as unknown as InPage
      const second = await serve()
      const both = (await fetch('/v1/models')).status
      server.close()
      const one = (await fetch('/v1/models')).status
      second.close()
      return { both, one, none: (await fetch('/v1/models')).status }
    })
    expect(seen).toEqual({ both: 200, one: 200, none: 503 })
  },
)

test('serve() that is aborted rejects with its reason, and another may follow', async () => {
  site = await openSite()
  const page = await site.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  const seen = await page.evaluate(async () => {
    const { serve } = globalThis as unknown as InPage
    const names = new Set<string>()
    // Whatever it waits for at that moment.
    for (const after of [0, 5, 20, 60, 120]) {
      const giveUp = new AbortController()
      setTimeout(() => giveUp.abort(), after)
      await serve({ signal: giveUp.signal }).then(
        // It was ready before it was given up.
        (server) => server.close(),
        (error: Error) => names.add(error.name),
      )
    }
    const never = new AbortController()
    const serving = serve({ signal: never.signal })
    never.abort()
    await serving.catch((error: Error) => names.add(error.name))
    await serve()
    return { names: [...names], status: (await fetch('/v1/models')).status }
  })
  expect(seen).toEqual({ names: ['AbortError'], status: 200 })
})

test('a host that is slow to start is waited for, not replaced', { tags: ['slow'] }, async () => {
  site = await openSite({ slow: { '/inorigin/worker.js': 5_000 } })
  const [one, two] = [await site.open(), await site.open()]
  await Promise.all([serveIn(one), serveIn(two)])
  expect(await statusOf(two)).toBe(200)
  const hosts = [one, two].filter((page) => page.workers().length > 0)
  expect(hosts).toHaveLength(1)
})

test('those who ask at once for the same prediction get the same', async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page)
  const body = { tag: '@inorigin/digits', clientId: 'many' }
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => fetchIn(page, '/v1/predictions', body)),
  )
  expect(new Set(answers.map((answer) => JSON.parse(answer.text).id)).size).toBe(1)
})

test(
  'progress goes on with the next host, and can be left while it waits',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const [one, two] = [await site.open(), await site.open()]
    await serveIn(one)
    await serveIn(two)
    await two.evaluate(() => {
      const { server } = globalThis as unknown as InPage
      const steps: string[] = []
      Object.assign(globalThis, { steps })
      void (async () => {
        for await (const { phase } of server.models.progress()) steps.push(phase)
      })()
    })
    await one.close()
    // It takes a moment to find the next host; a load after that must be seen.
    const seen = () =>
      two.evaluate(async () => {
        const { server, steps } = globalThis as unknown as InPage & { steps: string[] }
        await server.models.load('@inorigin/digits')
        await server.models.unload('@inorigin/digits')
        return steps.at(-1)
      })
    await expect.poll(seen).toBe('ready')
    const left = await two.evaluate(async () => {
      const { server } = globalThis as unknown as InPage
      const iterator = server.models.progress()[Symbol.asyncIterator]()
      const next = iterator.next()
      // By the time the host has answered this, both wait for a step.
      await server.models.list()
      await iterator.return?.()
      const giveUp = new AbortController()
      void server.models.list().then(() => giveUp.abort())
      for await (const _step of server.models.progress({ signal: giveUp.signal }));
      return (await next).done
    })
    expect(left).toBe(true)
  },
)

test('unloading what is still on its way is not called a cancellation', async () => {
  site = await openSite({ slow: { '/inorigin/models/guide/tokenizer.json': 10_000 } })
  const page = await site.open()
  await serveIn(page, { device: 'wasm' })
  // The host is ready, so that the refusal comes within the 5 s in which it can be a status.
  expect(await statusOf(page)).toBe(200)
  const asking = fetchIn(page, '/v1/messages', {
    model: '@inorigin/guide',
    max_tokens: 5,
    messages: [{ role: 'user', content: 'Hi' }],
  })
  await expect.poll(() => site.requests).toContain('GET /inorigin/models/guide/tokenizer.json')
  await page.evaluate(() =>
    (globalThis as unknown as InPage).server.models.unload('@inorigin/guide'),
  )
  const { status, text, headers } = await asking
  expect([status, JSON.parse(text).error.code, headers['retry-after']]).toEqual([
    503,
    'unloaded',
    '1',
  ])
})
