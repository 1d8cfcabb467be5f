/** The options of `serve()`, its refusals and warnings, and the handle that it returns. */
import type { Page, Request } from 'playwright'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { InoriginError, Server, ServeOptions } from '../../src/index.ts'
import { PROBE_PATH } from '../../src/link/protocol.ts'
import { askGuide, fetchIn, GUIDE } from '../support/requests.ts'
import { bundleScript, bundleSdks } from '../support/sdks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

interface InPage {
  serve(options?: ServeOptions): Promise<Server>
  server: Server
  sdks: typeof import('../support/sdks-entry.ts')
}

const EVERYDAY = { tags: ['everyday'] }

let site: Site

beforeAll(async () => {
  const worker = await bundleScript('./mistyped-worker.ts', 'mistyped')
  site = await openSite({
    pages: { '/own-sw.js': worker, '/sdks.js': await bundleSdks() },
  })
})

afterAll(() => site?.close())

afterEach(async () => {
  for (const context of site.browser.contexts()) await context.close()
})

/** Opens a page in a browser profile that nobody has used. */
async function openPage(): Promise<Page> {
  const page = await site.open('/blank.html', await site.browser.newContext())
  await page.waitForFunction(() => 'serve' in globalThis)
  return page
}

/** Opens another page of the same profile. */
const openBeside = (page: Page): Promise<Page> => site.open('/blank.html', page.context())

/** Calls `serve()` with each of the options, and resolves with the errors. */
const reject = (page: Page, all: readonly object[]) =>
  page.evaluate(async (given) => {
    const { serve } = globalThis as unknown as InPage
    const failures: string[] = []
    for (const options of given) {
      const failure = await serve(options).then(
        () => 'served',
        ({ name, code, message }: InoriginError) => `${name} ${code}: ${message}`,
      )
      failures.push(failure)
    }
    return failures
  }, all)

/** Runs a program that has `serve`, and resolves with the warnings that the page logs meanwhile. */
async function collectWarnings(page: Page, program: string): Promise<string[]> {
  await page.waitForFunction(() => 'serve' in globalThis)
  const warnings: string[] = []
  page.on('console', (line) => line.type() === 'warning' && warnings.push(line.text()))
  await page.evaluate(`(async () => { ${program} })()`)
  return warnings
}

test('serve() says what is wrong with its options, and what to do', EVERYDAY, async () => {
  const page = await openPage()
  const cases: readonly (readonly [options: object, error: RegExp])[] = [
    [{ apikeys: [] }, /Unknown option "apikeys"\. Did you mean apiKeys\?$/],
    [{ worker: '/nowhere.js' }, /nowhere\.js.*npx inorigin init/],
    [{ worker: '/elsewhere/sw.js' }, /outside \/elsewhere\//],
    [{ assets: '/nowhere/' }, /\/nowhere\/worker\.js.*npx inorigin init/],
    [{ assets: 'http://127.0.0.1:9/inorigin/' }, /assets/],
    [{ catalog: '/nowhere.json' }, /nowhere\.json/],
    [{ catalog: { version: 1, entries: [{ tag: 'x' }] } }, /entries\[0\]/],
    [{ apiKeys: 'abc' }, /apiKeys must be an array/],
    [{ apiKeys: [' outer '] }, /apiKeys/],
    [{ device: 'tpu' }, /device must be auto, webgpu or wasm/],
    [{ precision: 'high' }, /precision must be fast or exact, not high\.$/],
    [{ model: 7 }, /model must be a string such as @owner\/name, not number\.$/],
    [{ imageUrls: 'https://images.example' }, /`imageUrls` must be an array of URLs\.$/],
    [{ imageUrls: ['ftp://a.example'] }, /`imageUrls\[0\]` must be an http or https URL\.$/],
    [{ isolate: 'yes' }, /isolate must be true or false, not string\.$/],
    [{ isolate: 1 }, /isolate must be true or false, not number\.$/],
    [{ isolate: null }, /isolate must be true or false, not null\.$/],
    [
      { isolate: true, assets: '/inorigin/', scope: '/blank' },
      /isolate needs assets inside the scope .*\/blank, not .*\/inorigin\/\./,
    ],
  ]
  const failures = await reject(
    page,
    cases.map(([options]) => options),
  )
  for (const [index, [, error]] of cases.entries()) expect(failures[index]).toMatch(error)
  for (const failure of failures) expect(failure).toMatch(/^InoriginError /)
})

test(
  'the named model is loaded without a request, and one that fails is warned of',
  EVERYDAY,
  async () => {
    const page = await openPage()
    const warned = page.waitForEvent('console', (line) => line.text().includes('was not loaded'))
    await serveIn(page, { model: '@inorigin/absent' })
    expect((await warned).text()).toContain('@inorigin/absent')
    await serveIn(page, { model: GUIDE })
    const isLoaded = (tag: string) =>
      page.evaluate(async (wanted) => {
        const { server } = globalThis as unknown as InPage
        const models = await server.models.list()
        return models.some((one) => one.tag === wanted && one.status === 'loaded')
      }, tag)
    await expect.poll(() => isLoaded(GUIDE), { timeout: 30_000 }).toBe(true)
  },
)

test('a catalog that cannot be sent to a worker is refused', async () => {
  const page = await openPage()
  const kind = await page.evaluate(() => {
    const { serve } = globalThis as unknown as InPage
    const catalog = { version: 1, entries: [], more: () => {} } as unknown as string
    return serve({ catalog }).catch((error: InoriginError) => error.kind)
  })
  expect(kind).toBe('invalid_request')
})

test('an app below a path has to pass its script, and is served under its scope', async ({
  onTestFinished,
}) => {
  const below = await openSite({ base: '/app/' })
  onTestFinished(() => below.close())
  const page = await below.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  expect(await reject(page, [{}])).toEqual([
    expect.stringMatching(
      /script_missing: .*no service worker script at \/sw\.js.* such as \/app\/sw\.js\.$/s,
    ),
  ])
  await serveIn(page, { worker: '/app/sw.js' })
  const seen = await page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const [inside, outside] = [await fetch('/app/v1/models'), await fetch('/v1/models')]
    const direct = await server.fetch(`${server.baseURL}/models`)
    return {
      urls: [server.baseURL, server.origin],
      answers: [inside.status, await outside.text(), direct.status],
    }
  })
  expect(seen).toEqual({
    urls: [`${below.url}/app/v1`, `${below.url}/app`],
    answers: [200, '404', 200],
  })
})

test('the methods of a server refuse unknown options', async () => {
  const page = await openPage()
  await serveIn(page)
  const messages = await page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const { models, storage } = server
    const tag = '@inorigin/digits'
    const mistyped = { sigal: new AbortController().signal } as object
    const session = await server.session(tag)
    const calls: (() => Promise<unknown>)[] = [
      () => models.load(tag, mistyped),
      () => models.progress(mistyped)[Symbol.asyncIterator]().next(),
      () => server.predict(tag, {}, mistyped),
      () => server.session(tag, mistyped),
      () => session.predict({}, mistyped),
      () => server.explain(tag, mistyped),
      () => server.trace(mistyped)[Symbol.asyncIterator]().next(),
      () => storage.repair(tag, mistyped),
      () => storage.import(tag, [], mistyped),
    ]
    const failures: string[] = []
    for (const call of calls) {
      // Some throw at once.
      const failure = await Promise.resolve()
        .then(call)
        .then(
          () => 'accepted',
          ({ message }: Error) => message,
        )
      failures.push(failure)
    }
    return failures
  })
  for (const message of messages) expect(message).toContain('Unknown option "sigal".')
})

test("attach() in an app's own service worker refuses unknown options", async () => {
  const page = await openPage()
  const message = await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.register('/own-sw.js', { scope: '/own/' })
    const { port1, port2 } = new MessageChannel()
    const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)))
    const worker = registration.installing ?? registration.waiting ?? registration.active
    worker?.postMessage('what', [port2])
    return answer
  })
  expect(message).toBe('Unknown option "isolated". Did you mean isolate?')
})

test('an SDK sends its requests through server.fetch', EVERYDAY, async () => {
  const page = await openPage()
  await serveIn(page, { apiKeys: ['right'] })
  await page.addScriptTag({ url: '/sdks.js' })
  const seen = await page.evaluate(async () => {
    const { server, sdks } = globalThis as unknown as InPage
    const open = (apiKey: string) => {
      const { baseURL, fetch } = server
      return new sdks.OpenAI({ baseURL, fetch, apiKey, dangerouslyAllowBrowser: true })
    }
    const { data } = await open('right').models.list()
    const refused = await open('wrong')
      .models.list()
      .catch(({ status }) => status)
    return [data[0]?.id, refused]
  })
  expect(seen).toEqual([GUIDE, 401])
})

test('`using` closes the server and a session at the end of the block', async () => {
  const page = await openPage()
  // The test's own compiler does not know `using`; the browser does.
  const rejection = await page.evaluate(`(async () => {
    let closed
    {
      using server = await serve()
      using session = await server.session('@inorigin/digits')
      closed = { server, session }
    }
    const ends = [closed.session.predict({}), closed.server.models.list()]
    return Promise.all(ends.map((end) => end.then(() => 'answered', ({ kind }) => kind)))
  })()`)
  expect(rejection).toEqual(['aborted', expect.not.stringMatching('answered')])
  await expect.poll(() => page.workers().length).toBe(0)
})

test('a request before serve() resolves is warned of, on the first visit', async () => {
  const page = await openPage()
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
  expect(await collectWarnings(await openBeside(page), 'await serve()')).toEqual([])
})

test('no request of a start shows as canceled in the network panel', async () => {
  const context = await site.browser.newContext()
  const ended: { url: string; failure: string | null }[] = []
  const record = (request: Request) =>
    void ended.push({ url: request.url(), failure: request.failure()?.errorText ?? null })
  context.on('requestfinished', record)
  context.on('requestfailed', record)
  for (let count = 0; count < 2; count += 1) await serveIn(await site.open(undefined, context))
  const isProbe = ({ url }: { url: string }) => url.endsWith(PROBE_PATH)
  await expect.poll(() => ended.filter(isProbe).length).toBeGreaterThan(1)
  expect(ended.filter(({ failure }) => failure !== null)).toEqual([])
})

test('a second server of a page warns only of other options, and names this page', async () => {
  const page = await openPage()
  expect(await collectWarnings(page, 'await serve(); await serve()')).toEqual([])
  expect(await collectWarnings(page, `await serve({ device: 'wasm' })`)).toEqual([
    expect.stringMatching(/^inorigin: an earlier server of this page .*: device\./),
  ])
})

test("options that differ from the host's are named", async () => {
  const page = await openPage()
  await serveIn(page, { device: 'wasm', precision: 'exact' })
  const two = await openBeside(page)
  const warnings = await collectWarnings(
    two,
    `globalThis.server = await serve({ apiKeys: ['secret'] })`,
  )
  expect(await two.evaluate(() => (globalThis as unknown as InPage).server.differences)).toEqual([
    'apiKeys',
    'device',
    'precision',
  ])
  expect(warnings.join()).toContain('apiKeys, device, precision')
  // The options of the host apply: it takes any key.
  expect((await fetchIn(two, '/v1/models')).status).toBe(200)
})

test('two servers of one page are one host, and without a server the origin answers 503', async () => {
  const page = await openPage()
  await serveIn(page)
  const seen = await page.evaluate(async () => {
    const { serve, server } = globalThis as unknown as InPage
    const types: string[] = []
    const post = ServiceWorker.prototype.postMessage
    ServiceWorker.prototype.postMessage = function (this: ServiceWorker, ...given: unknown[]) {
      types.push((given[0] as { type: string }).type)
      Reflect.apply(post, this, given)
    }
    const read = async () => (await fetch('/v1/models')).status
    const second = await serve()
    const statuses = [await read()]
    server.close()
    statuses.push(await read())
    second.close()
    statuses.push(await read())
    await serve()
    statuses.push(await read())
    return { statuses, types }
  })
  expect(seen.statuses).toEqual([200, 200, 503, 200])
  // Otherwise the service worker would ask this tab first until the browser no longer lists it.
  expect(seen.types).toContain('inorigin:left')
})

test('serve() that is aborted rejects with its reason, and another may follow', async () => {
  const page = await openPage()
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

test('a page without a service worker is its own host and says so', async () => {
  const page = await openPage()
  await page.addInitScript(() => {
    // What Firefox does in windows that may keep nothing.
    ServiceWorkerContainer.prototype.register = () =>
      Promise.reject(new DOMException('The operation is insecure.', 'SecurityError'))
  })
  await page.reload()
  const warnings = await collectWarnings(page, 'globalThis.server = await serve()')
  const controlled = await page.evaluate(() => (globalThis as unknown as InPage).server.controlled)
  expect(controlled).toBe(false)
  expect(warnings.join()).toContain('Use server.fetch')
  expect(await askGuide(page, 'server.fetch')).not.toMatch(/^\d{3} /)
})
