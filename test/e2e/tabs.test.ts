/** Several tabs, and what happens to them: sharing a host, losing it, reloading, hanging. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { askGuide } from '../support/answers.ts'
import { threadsOf } from '../support/dying.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

beforeEach(async () => {
  site = await openSite()
})

afterEach(() => site?.close())

test('two tabs share one host', async () => {
  const one = await site.open()
  await serveIn(one)
  const two = await site.open()
  await serveIn(two)
  const text = await askGuide(one)
  expect(text).not.toMatch(/^\d{3} /)
  expect(await askGuide(two)).toBe(text)
  expect(threadsOf(one)).toContain('/inorigin/worker.js')
  expect(threadsOf(two)).toEqual([])
})

test('a tab that never calls serve() is served too', { tags: ['slow'] }, async () => {
  const one = await site.open()
  await serveIn(one)
  const two = await site.open()
  expect(await askGuide(two)).toBe(await askGuide(one))
})

test('the host tab is closed: the next request works', { tags: ['slow'] }, async () => {
  const one = await site.open()
  await serveIn(one)
  const two = await site.open()
  await serveIn(two)
  await askGuide(one)
  await one.close()
  expect(await two.evaluate(async () => (await fetch('/v1/models')).status)).toBe(200)
  expect(await askGuide(two)).not.toMatch(/^\d{3} /)
  expect(threadsOf(two)).toContain('/inorigin/worker.js')
})

/** A response; its status and the message where there is none. */
function respond(page: Page, fields: object) {
  return page.evaluate(async (more) => {
    const response = await fetch('/v1/responses', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: '@inorigin/guide', max_output_tokens: 4, ...more }),
    })
    const { id, output, usage, error } = await response.json()
    const items = output?.map((item: { id: string }) => item.id) as string[] | undefined
    return { status: response.status, id, items, read: usage?.input_tokens, error: error?.message }
  }, fields)
}

test(
  'responses are kept, also where they were cut, and are gone with the last tab',
  { tags: ['slow'] },
  async () => {
    const one = await site.open()
    await serveIn(one)
    const two = await site.open()
    await serveIn(two)
    const first = await respond(two, { input: 'What is inorigin?' })
    const after = { input: 'And what else?', previous_response_id: first.id }
    const second = await respond(one, after)
    expect(second).toMatchObject({ status: 200 })
    expect(second.read).toBeGreaterThan(first.read)

    const cut = await two.evaluate(async () => {
      const leaving = new AbortController()
      const response = await fetch('/v1/responses', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: '@inorigin/guide',
          input: 'What is inorigin?',
          stream: true,
        }),
        signal: leaving.signal,
      })
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      let told = ''
      while (!told.includes('output_text.delta')) told += (await reader.read()).value
      leaving.abort()
      return /"item_id":"(msg_\w+)"/.exec(told)?.[1]
    })
    const referring = {
      input: [
        { type: 'item_reference', id: cut },
        { role: 'user', content: 'Well?' },
      ],
    }
    await expect.poll(() => respond(two, referring)).toMatchObject({ status: 200 })

    await one.close()
    await expect.poll(() => respond(two, { input: 'Hi' })).toMatchObject({ status: 200 })
    expect(await respond(two, after)).toMatchObject({ status: 200 })
    expect(await respond(two, referring)).toMatchObject({ status: 200 })

    await two.reload()
    await serveIn(two)
    const lost = await respond(two, after)
    expect(lost).toMatchObject({ status: 400 })
    expect(lost.error).toMatch(
      /^Previous response with id 'resp_\w+' not found\. .* store: false\.$/,
    )
    const unknown = await respond(two, referring)
    expect(unknown).toMatchObject({ status: 404 })
    expect(unknown.error).toContain(`Item with id '${cut}' not found.`)
  },
)

test('a hard reload: the page is controlled again without another reload', async () => {
  const page = await site.open()
  await serveIn(page)
  await askGuide(page)
  const session = await site.context.newCDPSession(page)
  await Promise.all([page.waitForEvent('load'), session.send('Page.reload', { ignoreCache: true })])
  expect(await page.evaluate(() => navigator.serviceWorker.controller)).toBeNull()
  await serveIn(page)
  expect(await askGuide(page)).not.toMatch(/^\d{3} /)
  expect(site.requests.filter((request) => request.includes('/v1/'))).toEqual([])
})

test('the service worker is stopped between two requests', { tags: ['slow'] }, async () => {
  const page = await site.open()
  await serveIn(page)
  const text = await askGuide(page)
  const session = await site.context.newCDPSession(page)
  await session.send('ServiceWorker.enable')
  await session.send('ServiceWorker.stopAllWorkers')
  expect(await askGuide(page)).toBe(text)
})

test(
  'the host tab hangs: another tab takes over, and the hung one gives way when it wakes',
  { tags: ['slow'] },
  async () => {
    await site.close()
    let isAwake = false
    site = await openSite({ slow: { '/inorigin/licenses.md': () => isAwake } })
    const one = await site.open()
    await serveIn(one)
    const two = await site.open()
    await serveIn(two)
    await askGuide(two)
    const awake = one.evaluate(() => {
      const request = new XMLHttpRequest()
      // Not asynchronous: the page stands still until it has the whole file.
      request.open('GET', '/inorigin/licenses.md', false)
      request.send()
    })
    expect(await askGuide(two)).not.toMatch(/^\d{3} /)
    expect(threadsOf(two)).toContain('/inorigin/worker.js')
    isAwake = true
    await awake
    await expect.poll(() => threadsOf(one)).toEqual([])
    expect(await askGuide(one)).not.toMatch(/^\d{3} /)
  },
)

test("options that differ from the host's are named", { tags: ['slow'] }, async () => {
  const one = await site.open()
  await serveIn(one, { device: 'wasm' })
  const two = await site.open()
  const warnings: string[] = []
  two.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()))
  await serveIn(two, { apiKeys: ['secret'] })
  const seen = await two.evaluate(() => {
    const { server } = globalThis as unknown as { server: import('../../src/index.ts').Server }
    return server.differences
  })
  expect(seen).toEqual(['apiKeys', 'device'])
  expect(warnings.join()).toContain('apiKeys, device')
  // The options of the host apply: it takes any key.
  expect(await askGuide(two)).not.toMatch(/^\d{3} /)
})

test(
  'the host is closed by close(): the origin answers 503 until a tab hosts again',
  { tags: ['slow'] },
  async () => {
    const page = await site.open()
    await serveIn(page)
    const sent = await page.evaluate(() => {
      const { server } = globalThis as unknown as { server: import('../../src/index.ts').Server }
      const types: string[] = []
      const post = ServiceWorker.prototype.postMessage
      ServiceWorker.prototype.postMessage = function (this: ServiceWorker, ...given: unknown[]) {
        types.push((given[0] as { type: string }).type)
        Reflect.apply(post, this, given)
      }
      server.close()
      return types
    })
    // Otherwise the service worker would ask this tab first until the browser no longer lists it.
    expect(sent).toContain('inorigin:left')
    expect(await askGuide(page)).toMatch(/^503 /)
    await serveIn(page)
    expect(await askGuide(page)).not.toMatch(/^503 /)
  },
)

test('serve() says what to do when script, worker or catalog are missing, or the page is outside', async () => {
  const page = await site.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  const failing = (options: object) =>
    page.evaluate(async (given) => {
      const { serve } = globalThis as unknown as typeof import('../../src/index.ts')
      return serve(given).then(
        () => 'served',
        (error: Error) => `${error.name}: ${error.message}`,
      )
    }, options)
  expect(await failing({ worker: '/nowhere.js' })).toMatch(
    /InoriginError: .*nowhere\.js.*npx inorigin init/,
  )
  expect(await failing({ worker: '/elsewhere/sw.js' })).toMatch(
    /InoriginError: .*outside \/elsewhere\//,
  )
  expect(await failing({ catalog: '/nowhere.json' })).toMatch(/InoriginError: .*nowhere\.json/)
  expect(await failing({ catalog: { version: 1, entries: [{ tag: 'x' }] } })).toMatch(
    /entries\[0\]/,
  )
  expect(await failing({ apiKeys: 'abc' })).toMatch(/InoriginError: apiKeys must be an array/)
  expect(await failing({ device: 'tpu' })).toMatch(
    /InoriginError: device must be auto, webgpu or wasm/,
  )
  expect(await failing({ assets: '/nowhere/' })).toMatch(
    /InoriginError: .*\/nowhere\/worker\.js.*npx inorigin init/,
  )
})

test('an app under a sub-path is served under its scope', { tags: ['slow'] }, async () => {
  await site.close()
  site = await openSite({ base: '/app/' })
  const page = await site.open('/app/blank.html')
  await serveIn(page, { worker: '/app/sw.js' })
  const seen = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: import('../../src/index.ts').Server }
    const [inside, outside] = [await fetch('/app/v1/models'), await fetch('/v1/models')]
    return {
      baseURL: server.baseURL,
      origin: server.origin,
      inside: inside.status,
      outside: await outside.text(),
      direct: (await server.fetch(`${server.baseURL}/models`)).status,
    }
  })
  expect(seen).toEqual({
    baseURL: `${site.url}/app/v1`,
    origin: `${site.url}/app`,
    inside: 200,
    outside: '404',
    direct: 200,
  })
})
