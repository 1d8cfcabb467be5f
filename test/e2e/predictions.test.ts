/** Predictions from the console of a page, and the bytes behind them, whatever becomes of catalog and server. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Catalog, Server } from '../../src/index.ts'
import { makePatient } from '../support/browser.ts'
import { fetchIn, GUIDE } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const tag = '@inorigin/digits'
const SLOW = { tags: ['slow'] }

/** A copy of the digits' files, to be taken away. */
const files = mkdtempSync(join(tmpdir(), 'inorigin-digits-'))

let site: Site
let page: Page

beforeAll(async () => {
  cpSync('demo/models/digits', files, { recursive: true })
  site = await openSite({
    folders: { '/files/': files },
    slow: { '/files/slow.onnx': 4_000, '/files/slow2.onnx': 4_000 },
  })
  page = await site.open()
  await serveIn(page)
})

afterAll(async () => {
  await site?.close()
  rmSync(files, { recursive: true })
})

const ask = (path: string, body?: unknown) => fetchIn(page, path, body)

test(
  'a prediction names resources whose bytes the origin serves',
  { tags: ['everyday'] },
  async () => {
    const { status, text } = await ask('/v1/predictions', { tag, clientId: 'test' })
    expect(status).toBe(200)
    const prediction = JSON.parse(text)
    expect(prediction.id).toMatch(/^pred_/)
    expect(prediction).toMatchObject({ tag })
    expect(typeof prediction.configuration).toBe('string')
    expect(new Date(prediction.created).toISOString()).toBe(prediction.created)
    expect(prediction.resources.length).toBeGreaterThan(0)
    for (const { url, type, name } of prediction.resources) {
      expect([typeof type, typeof name]).toEqual(['string', 'string'])
      const got = await page.evaluate(async (address) => {
        const response = await fetch(address)
        const bytes = await response.arrayBuffer()
        const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
        const part = await fetch(address, { headers: { range: 'bytes=2-5' } })
        return {
          etag: response.headers.get('etag'),
          length: response.headers.get('content-length'),
          type: response.headers.get('content-type'),
          size: bytes.byteLength,
          sha256: Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join(''),
          part: [part.status, (await part.arrayBuffer()).byteLength],
        }
      }, url)
      expect(got.etag).toBe(`"${got.sha256}"`)
      expect(got.length).toBe(String(got.size))
      expect(got.type).toBe('application/octet-stream')
      expect(got.part).toEqual([206, 4])
    }
  },
)

test('a language model has predictions too', async () => {
  const { text } = await ask('/v1/predictions', { tag: GUIDE, clientId: 'test' })
  const types = JSON.parse(text).resources.map((resource: { type: string }) => resource.type)
  expect(types).toEqual(expect.arrayContaining(['onnx', 'tokenizer', 'config']))
})

test('server.predict runs it, also with a configuration', async () => {
  const result = await page.evaluate(async () => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 200
    const context = canvas.getContext('2d')!
    context.fillStyle = 'white'
    context.fillRect(0, 0, 200, 200)
    context.lineWidth = 18
    context.lineCap = 'round'
    context.beginPath()
    context.moveTo(100, 40)
    context.lineTo(100, 160)
    context.stroke()
    const { server } = globalThis as unknown as { server: Server }
    const body = JSON.stringify({ tag: '@inorigin/digits', clientId: 'configured' })
    const headers = { 'content-type': 'application/json' }
    const { configuration } = await (
      await fetch('/v1/predictions', { method: 'POST', headers, body })
    ).json()
    const phases = new Set<string>()
    const plain = await server.predict(
      '@inorigin/digits',
      { image: canvas },
      {
        onProgress: ({ phase }) => phases.add(phase),
      },
    )
    const same = await server.predict('@inorigin/digits', { image: canvas }, { configuration })
    return { plain, same, phases: [...phases] }
  })
  expect(result.plain.outputs['digit']).toBe('one')
  expect(result.same.outputs).toEqual(result.plain.outputs)
  expect(result.plain.latency).toBeGreaterThan(0)
  expect(result.plain.device).toBe('wasm')
  expect(result.phases.at(-1)).toBe('ready')
})

test('what is no input at all is refused by name too', async () => {
  const seen = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const failing = (name: unknown, inputs: unknown) =>
      server.predict(name as string, inputs as Record<string, unknown>).then(
        () => 'answered',
        (error: { kind: string; message: string }) => `${error.kind} ${error.message}`,
      )
    const digits = '@inorigin/digits'
    const closed = await createImageBitmap(new ImageData(2, 2))
    closed.close()
    return {
      nothing: await failing(digits, undefined),
      nil: await failing(digits, null),
      symbol: await failing(digits, { image: Symbol('image') }),
      element: await failing(digits, { image: document.createElement('div') }),
      closed: await failing(digits, { image: closed }),
      noTag: await failing(undefined, {}),
    }
  })
  const named = expect.stringMatching(/^invalid_request inputs\.image: /)
  expect(seen).toEqual({
    nothing: expect.stringMatching(/^invalid_request inputs: must be an object/),
    nil: expect.stringMatching(/^invalid_request inputs: must be an object/),
    symbol: named,
    element: named,
    closed: named,
    noTag: expect.stringMatching(
      /^invalid_request tag must be a string such as @owner\/name, not undefined/,
    ),
  })
})

test('a wrong input is refused by name', async () => {
  const error = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    return server
      .predict('@inorigin/digits', { image: 'no image' })
      .catch((thrown: Error) => thrown.message)
  })
  expect(error).toContain('inputs.image')
})

test('a resource is never shown as a page', async () => {
  const { text } = await ask('/v1/predictions', { tag: '@inorigin/digits', clientId: 'test' })
  const [{ url }] = JSON.parse(text).resources
  const tab = makePatient(await site.context.newPage())
  const response = await tab.goto(url)
  expect(response?.status()).toBe(403)
  await tab.close()
})

test('whoever gives up stops only what nobody else wants', SLOW, async () => {
  const context = await site.browser.newContext()
  const tab = await site.open('/blank.html', context)
  cpSync(join(files, 'model.onnx'), join(files, 'slow.onnx'))
  cpSync(join(files, 'model.fp16.onnx'), join(files, 'slow2.onnx'))
  await serveIn(tab, {
    catalog: await createCatalog(tab, ['slow2.onnx', 'slow.onnx', 'slow.onnx']),
    device: 'wasm',
  })
  const seen = await tab.evaluate(async (name) => {
    const create = async () =>
      (
        await fetch('/v1/predictions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ tag: name, clientId: 'impatient' }),
        })
      ).json()
    const [{ url }] = (await create()).resources
    const sha256 = url.split('/')[5] ?? ''
    const downloading = async () => {
      const { held = [] } = await navigator.locks.query()
      return held.some((lock) => lock.name?.endsWith(`download:${sha256}`))
    }
    const until = async (state: boolean) => {
      const end = performance.now() + 60_000
      while ((await downloading()) !== state && performance.now() < end) {
        // oxlint-disable-next-line tests/no-fixed-wait -- This is a poll: locks have no events.
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      return performance.now() < end
    }
    const first = new AbortController()
    const second = new AbortController()
    const one = await fetch(url, { signal: first.signal })
    const isRunning = await downloading()
    first.abort()
    const reading = await one.arrayBuffer().then(
      () => 'read',
      (error: Error) => error.name,
    )
    const hasStopped = await until(false)
    // Begun anew by two, of which one leaves.
    const [left, stayed] = [await fetch(url, { signal: second.signal }), await fetch(url)]
    second.abort()
    await left.arrayBuffer().catch(() => undefined)
    const bytes = (await stayed.arrayBuffer()).byteLength
    return {
      isRunning,
      reading,
      hasStopped,
      whole: bytes === Number(stayed.headers.get('content-length')),
    }
  }, '@me/digits')
  expect(seen).toMatchObject({
    isRunning: true,
    reading: 'AbortError',
    hasStopped: true,
    whole: true,
  })
  await context.close()
})

describe('a catalog that changes', () => {
  interface Made {
    id: string
    configuration: string
    resources: { url: string }[]
  }

  const mine = '@me/digits'
  const create = async (tab: Page, body: object) => {
    const { status, text } = await fetchIn(tab, '/v1/predictions', {
      tag: mine,
      clientId: 'embedded',
      ...body,
    })
    return { status, body: JSON.parse(text) }
  }
  const again = async (tab: Page, catalog?: Catalog) => {
    await tab.reload()
    await serveIn(tab, { device: 'wasm', ...(catalog && { catalog }) })
  }
  const fetched = (tab: Page, { resources }: Made) =>
    tab.evaluate(
      (urls) => Promise.all(urls.map(async (url) => (await fetch(url)).status)),
      resources.map(({ url }) => url),
    )
  const predict = (tab: Page, configuration: string) =>
    tab.evaluate(
      async ([name, token]) => {
        const { server } = globalThis as unknown as { server: Server }
        const inputs = { image: new ImageData(8, 8) }
        return server.predict(name, inputs, { configuration: token }).then(
          ({ outputs }) => Object.keys(outputs).join(),
          (error: { kind: string; code: string }) => `${error.kind} ${error.code}`,
        )
      },
      [mine, configuration] as const,
    )

  test('takes back nothing that was given, as long as it is available', SLOW, async () => {
    const context = await site.browser.newContext()
    const tab = await site.open('/blank.html', context)
    const old = await createCatalog(tab, ['model.fp16.onnx', 'model.onnx', 'model.onnx'])
    const {
      version,
      entries: [entry],
    } = old
    // The same name, another file: what a new version of a model is.
    const renewed = {
      version,
      entries: [
        {
          ...entry!,
          implementations: [
            { ...entry!.implementations![2]!, resources: entry!.implementations![0]!.resources },
          ],
        },
      ],
    } as Catalog

    await serveIn(tab, { catalog: old, device: 'wasm' })
    const given: Made = (await create(tab, {})).body
    const configured: Made = (await create(tab, { clientId: 'other', configurationId: 'mine' }))
      .body
    expect(configured.id).not.toBe(given.id)

    // Not stored, but still served.
    await again(tab, renewed)
    const pinned = await create(tab, { clientId: 'third', predictionId: given.id })
    expect(pinned.body).toMatchObject({
      resources: given.resources,
      configuration: given.configuration,
    })
    expect((await create(tab, { clientId: 'third', predictionId: given.id })).body.id).toBe(
      pinned.body.id,
    )
    const fresh = await create(tab, { clientId: 'third' })
    expect(fresh.body.resources).not.toEqual(given.resources)
    // Neither is in the way of the other.
    expect((await create(tab, { clientId: 'third', predictionId: given.id })).body.id).toBe(
      pinned.body.id,
    )
    expect((await create(tab, { clientId: 'third' })).body.id).toBe(fresh.body.id)

    // Not stored, and served no more.
    const away = join(files, 'away.onnx')
    cpSync(join(files, 'model.onnx'), away)
    rmSync(join(files, 'model.onnx'))
    const refused = await create(tab, { clientId: 'fourth', predictionId: given.id })
    expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([
      404,
      'implementation_gone',
      'predictionId',
    ])
    expect(refused.body.errors[0].message).toContain('neither stored here nor at')
    expect(await predict(tab, given.configuration)).toBe('not_found implementation_gone')
    cpSync(away, join(files, 'model.onnx'))

    // Downloaded by its address, then kept, though neither catalog nor server has it.
    expect(await fetched(tab, given)).toEqual([200])
    rmSync(join(files, 'model.onnx'))
    await again(tab)
    expect((await create(tab, { clientId: 'fifth' })).status).toBe(404)
    expect((await create(tab, { predictionId: given.id })).body.id).toBe(given.id)
    expect(
      (await create(tab, { clientId: 'sixth', configurationId: given.configuration })).body
        .resources,
    ).toEqual(given.resources)
    expect(await predict(tab, given.configuration)).toBe('digit,confidence,scores')
    expect(await fetched(tab, given)).toEqual([200])
    // As long as its files are here, the same asker has the same.
    await again(tab, renewed)
    expect((await create(tab, { clientId: 'other', configurationId: 'mine' })).body.id).toBe(
      configured.id,
    )
    cpSync(away, join(files, 'model.onnx'))
    await context.close()
  })
})

/** The digits under another tag, with those files for their three implementations. */
async function createCatalog(tab: Page, names: readonly string[]): Promise<Catalog> {
  const { version, entries } = await tab.evaluate(async (): Promise<Catalog> =>
    (await fetch('/inorigin/models/catalog.json')).json(),
  )
  const entry = entries.find((one) => one.tag === tag)
  if (!entry?.implementations) throw new Error('The catalog has no digits.')
  const implementations = entry.implementations.map((one, index) => ({
    ...one,
    resources: one.resources.map((file) => ({ ...file, url: `/files/${names[index]}` })),
  }))
  return {
    version,
    entries: [{ ...entry, tag: '@me/digits', implementations } as Catalog['entries'][number]],
  }
}
