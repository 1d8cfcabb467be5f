/** Pages of other origins get nothing from `/v1` and start no work. */
import type { Page, Response } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { makePatient } from '../support/browser.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

const EVERYDAY = { tags: ['everyday'] }
const SLOW = { tags: ['slow'] }

const CHAT = '/v1/chat/completions'
const BODY = JSON.stringify({
  model: '@inorigin/guide',
  messages: [{ role: 'user', content: 'Hello' }],
  max_tokens: 8,
})
/** A form sends this as its one field's name and value, which together are JSON. */
const FIELD = { name: BODY.replace(/\}$/, ',"user":"'), value: '"}' }

let site: Site
let foreign: StaticServer
/** A page of the served origin, which hosts. */
let host: Page

beforeAll(async () => {
  site = await openSite()
  foreign = await serveStatic({
    folders: {},
    pages: { '/page.html': '<!doctype html><title>foreign</title>' },
  })
  host = await site.open()
  await serveIn(host)
})

afterAll(async () => {
  await site?.close()
  await foreign?.close()
})

async function openForeign(): Promise<Page> {
  const page = makePatient(await site.context.newPage())
  await page.goto(`${foreign.url}/page.html`)
  return page
}

/** Tags that were loaded, stored or begun to be: any work would begin one. */
function begun(): Promise<string[]> {
  return host.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const states = await server.models.list()
    return states.filter(({ status }) => status !== 'remote').map(({ tag }) => tag)
  })
}

/** Path of a resource of the embedded model, which nobody has downloaded yet. */
function resourcePath(): Promise<string> {
  return host.evaluate(async () => {
    const response = await fetch('/v1/predictions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ tag: '@inorigin/digits', clientId: 'test' }),
    })
    const { resources } = await response.json()
    return new URL(resources[0].url, location.href).pathname
  })
}

/** What each way of asking came to, in a page or frame that is of another origin than `/v1`. */
async function asked({
  origin,
  resource,
  body,
}: {
  origin: string
  resource: string
  body: string
}) {
  const outcome = (work: Promise<globalThis.Response>) =>
    work.then(
      (response) => `${response.type} ${response.status}`,
      () => 'failed',
    )
  const chat = `${origin}/v1/chat/completions`
  const json = { 'content-type': 'application/json' }
  const tag = (name: 'img' | 'script', url: string) =>
    new Promise<string>((resolve) => {
      const element = document.createElement(name)
      element.addEventListener('load', () => resolve('loaded'))
      element.addEventListener('error', () => resolve('failed'))
      element.src = url
      document.head.append(element)
    })
  return {
    list: await outcome(fetch(`${origin}/v1/models`)),
    opaqueList: await outcome(fetch(`${origin}/v1/models`, { mode: 'no-cors' })),
    post: await outcome(fetch(chat, { method: 'POST', headers: json, body })),
    simplePost: await outcome(fetch(chat, { method: 'POST', body })),
    opaquePost: await outcome(fetch(chat, { method: 'POST', mode: 'no-cors', body })),
    resource: await outcome(fetch(origin + resource)),
    opaqueResource: await outcome(fetch(origin + resource, { mode: 'no-cors' })),
    imageOfList: await tag('img', `${origin}/v1/models`),
    imageOfResource: await tag('img', origin + resource),
    scriptOfList: await tag('script', `${origin}/v1/models`),
    scriptOfResource: await tag('script', origin + resource),
  }
}

const NOTHING = {
  list: 'failed',
  post: 'failed',
  simplePost: 'failed',
  resource: 'failed',
  // They left for the web server, and whatever it answered cannot be read.
  opaqueList: 'opaque 0',
  opaquePost: 'opaque 0',
  opaqueResource: 'opaque 0',
  imageOfList: 'failed',
  imageOfResource: 'failed',
  scriptOfList: 'failed',
  scriptOfResource: 'failed',
}

test('a page of another port', EVERYDAY, async () => {
  const page = await openForeign()
  const resource = await resourcePath()
  expect(await page.evaluate(asked, { origin: site.url, resource, body: BODY })).toEqual(NOTHING)
  expect(await begun()).toEqual([])
})

test.each([
  ['with an address of this origin', 'src'],
  ['with its own text', 'srcdoc'],
])('a sandboxed frame %s', async (_how, attribute) => {
  await host.evaluate((name) => {
    const frame = document.createElement('iframe')
    frame.setAttribute('sandbox', 'allow-scripts')
    frame.setAttribute(
      name,
      name === 'src' ? '/blank.html' : '<!doctype html><title>sandboxed</title>',
    )
    const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
    document.body.append(frame)
    return loaded.then(() => undefined)
  }, attribute)
  const frame = host.frames().at(-1)
  expect(await frame?.evaluate(() => origin)).toBe('null')
  const given = { origin: site.url, resource: await resourcePath(), body: BODY }
  expect(await frame?.evaluate(asked, given)).toEqual(NOTHING)
  expect(await begun()).toEqual([])
})

/** The answer of the service worker to a navigation that the page is told to begin. */
async function navigated(page: Page, path: string, go: () => Promise<unknown>): Promise<Response> {
  const [response] = await Promise.all([
    page.waitForResponse((each) => new URL(each.url()).pathname === path),
    go(),
  ])
  expect(response.fromServiceWorker()).toBe(true)
  return response
}

test.each([
  ['the page itself', '_self'],
  ['a frame', 'frame'],
])('a form that posts into %s', SLOW, async (_where, target) => {
  for (const path of [
    CHAT,
    '/v1/messages',
    '/v1/responses',
    '/v1/predictions',
    '/v1/predictions/remote',
  ]) {
    const page = await openForeign()
    const response = await navigated(page, path, () =>
      page.evaluate(
        ([action, field, name]) => {
          const frame = Object.assign(document.createElement('iframe'), { name })
          const form = Object.assign(document.createElement('form'), {
            action,
            method: 'post',
            enctype: 'text/plain',
            target: name,
          })
          form.append(Object.assign(document.createElement('input'), field))
          document.body.replaceChildren(...(name === '_self' ? [form] : [frame, form]))
          form.submit()
        },
        [site.url + path, FIELD, target] as const,
      ),
    )
    expect(response.status()).toBe(403)
  }
  expect(await begun()).toEqual([])
})

test('a navigation to a resource, and one to an endpoint that is posted to', SLOW, async () => {
  const resource = await resourcePath()
  for (const [path, status] of [
    [resource, 403],
    [CHAT, 405],
  ] as const) {
    const page = await openForeign()
    const response = await navigated(page, path, () =>
      page.evaluate((url) => void (location.href = url), site.url + path),
    )
    expect(response.status()).toBe(status)
  }
  expect(await begun()).toEqual([])
})

test('a frame that shows the list of models cannot be read', SLOW, async () => {
  const page = await openForeign()
  const response = await navigated(page, '/v1/models', () =>
    page.evaluate((src) => {
      document.body.append(Object.assign(document.createElement('iframe'), { src }))
    }, `${site.url}/v1/models`),
  )
  await response.finished()
  expect(
    await page.evaluate(() => document.querySelector('iframe')?.contentDocument ?? null),
  ).toBeNull()
  expect(await begun()).toEqual([])
})

// Last, because the others find no model that was begun.
test('its own page is answered, which begins a model', async () => {
  expect(await begun()).toEqual([])
  const [status, resource] = await host.evaluate(
    async ([chat, body, path]) => [
      (await fetch(chat, { method: 'POST', headers: { 'content-type': 'application/json' }, body }))
        .status,
      (await fetch(path)).status,
    ],
    [CHAT, BODY, await resourcePath()] as const,
  )
  expect([status, resource]).toEqual([200, 200])
  expect(await begun()).toContain('@inorigin/guide')
})
