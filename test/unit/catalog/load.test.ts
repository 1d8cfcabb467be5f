import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  MAX_CATALOG_BYTES,
  loadCatalog,
  type CatalogCopies,
  type CatalogText,
} from '../../../src/catalog/load.ts'
import { catalog, model, predictor } from './entries.ts'

const embedded = catalog(model({ tag: '@inorigin/guide' }))
const own = catalog(model(), predictor())

const PAGES: Record<string, [status: number, body: string]> = {
  '/inorigin/models/catalog.json': [200, JSON.stringify(embedded)],
  '/own.json': [200, JSON.stringify(own)],
  '/clash.json': [200, JSON.stringify(embedded)],
  '/broken.json': [200, '{"version": 1,'],
  '/wrong.json': [200, '{"version": 1, "entries": [{}]}'],
  '/app.html': [200, '<!doctype html><title>App</title>'],
  '/huge.json': [200, `"${'x'.repeat(MAX_CATALOG_BYTES)}"`],
  '/busy.json': [503, 'no'],
}

let origin = ''
const server = createServer((request, response) => {
  if (request.url === '/latest.json') {
    return void response.writeHead(302, { location: '/v3/own.json' }).end()
  }
  const [status, body] = PAGES[request.url?.replace('/v3', '') ?? ''] ?? [404, 'not here']
  response.writeHead(status).end(body)
})

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => new Promise((resolve) => server.close(resolve)))

const defaultUrl = () => `${origin}/inorigin/models/catalog.json`
const tagsOf = ({ entries }: typeof own) => entries.map((entry) => entry.tag)
const firstUrl = ({ entries }: typeof own) => entries[0]?.implementations[0]?.resources[0]?.url

test('The embedded catalog is used if the app has none', async () => {
  const found = await loadCatalog(null, defaultUrl())
  expect(tagsOf(found)).toEqual(['@inorigin/guide'])
  expect(firstUrl(found)).toBe(`${origin}/inorigin/models/tiny/m.onnx`)
})

test("The app's entries come first, from a URL or a document", async () => {
  for (const source of [`${origin}/own.json`, '/own.json', own]) {
    const found = await loadCatalog(source, defaultUrl(), `${origin}/`)
    expect(tagsOf(found)).toEqual(['@acme/tiny', '@acme/digits', '@inorigin/guide'])
    expect(firstUrl(found)).toBe(`${origin}/tiny/m.onnx`)
  }
})

test('The app may name the embedded catalog by its URL', async () => {
  expect(tagsOf(await loadCatalog(defaultUrl(), defaultUrl()))).toEqual(['@inorigin/guide'])
})

test("A copy replaces the app's catalog while its server sends none, and never another", async () => {
  const kept = new Map<string, CatalogText>()
  const copies: CatalogCopies = {
    find: async (url) => kept.get(url),
    put: async (url, fetched) => void kept.set(url, fetched),
  }
  const load = (url: string) => loadCatalog(url, defaultUrl(), `${origin}/`, copies)
  const found = await load(`${origin}/latest.json`)
  expect([...kept]).toEqual([
    [`${origin}/latest.json`, { text: JSON.stringify(own), base: `${origin}/v3/own.json` }],
  ])
  const [copy] = kept.values()
  if (!copy) throw new Error('There is no copy.')
  const failing = ['busy.json', 'missing.json', 'app.html'].map((name) => `${origin}/${name}`)
  for (const url of [...failing, 'http://127.0.0.1:9/own.json']) {
    await expect(load(url)).rejects.toMatchObject({ code: 'catalog_unavailable' })
    kept.set(url, copy)
    expect(await load(url)).toEqual(found)
  }
  // A catalog that is wrong must be noticed.
  const url = `${origin}/wrong.json`
  kept.set(url, copy)
  await expect(load(url)).rejects.toMatchObject({ code: 'invalid_catalog' })
  expect(kept.get(url)).toBe(copy)
})

test('Relative URLs are resolved against the end of a redirect', async () => {
  const found = await loadCatalog(`${origin}/latest.json`, defaultUrl())
  expect(firstUrl(found)).toBe(`${origin}/v3/tiny/m.onnx`)
})

test.each(['/nowhere/catalog.json', '/app.html'])(
  'Without an embedded catalog at %s, the app needs its own',
  async (path) => {
    expect(tagsOf(await loadCatalog(own, origin + path))).toEqual(['@acme/tiny', '@acme/digits'])
    await expect(loadCatalog(null, origin + path)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'catalog_unavailable',
      message: expect.stringMatching(/could not be read: .* Run "npx inorigin init/),
    })
  },
)

test('A catalog that redefines a tag of the package is refused', async () => {
  for (const source of [`${origin}/clash.json`, embedded]) {
    await expect(loadCatalog(source, defaultUrl())).rejects.toMatchObject({
      kind: 'invalid_request',
      message: expect.stringContaining('entries[0].tag: tags of @inorigin are reserved'),
    })
  }
})

test.each([
  ['/broken.json', 'invalid_request', /broken\.json is not JSON: /],
  ['/wrong.json', 'invalid_request', /wrong\.json cannot be used:\nentries\[0\]\.type: /],
  ['/huge.json', 'invalid_request', /huge\.json is larger than the limit of 4194304 bytes/],
  ['/app.html', 'unavailable', /could not be read: the response is an HTML page, not JSON/],
  ['/missing.json', 'unavailable', /missing\.json could not be read: the server returned 404/],
  ['/busy.json', 'unavailable', /busy\.json could not be read: the server returned 503/],
  ['file:///etc/passwd', 'invalid_request', /"file:\/\/\/etc\/passwd" is not an http or https URL/],
  ['http://127.0.0.1:9/x.json', 'unavailable', /x\.json could not be read: .*CORS/],
])('The error says why %s cannot be used', async (path, kind, message) => {
  const loading = loadCatalog(path, defaultUrl(), `${origin}/`)
  await expect(loading).rejects.toMatchObject({ kind, message: expect.stringMatching(message) })
})
