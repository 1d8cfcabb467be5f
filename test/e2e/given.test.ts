/**
 * What was given stays: the bytes behind predictions, whatever becomes of catalog and server.
 *
 * @module-tag slow
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Catalog, Server } from '../../src/index.ts'
import { fetchIn } from '../support/answers.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const tag = '@inorigin/digits'

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

describe('resources', () => {
  test('in parts, not again, and by their head alone; also from a tab that does not host', async () => {
    const { text } = await ask('/v1/predictions', { tag, clientId: 'parts' })
    const [{ url }] = JSON.parse(text).resources
    const other = await site.open()
    const seen = await other.evaluate(async (address) => {
      const get = async (headers: Record<string, string>, method = 'GET') => {
        const response = await fetch(address, { method, headers })
        const bytes = new Uint8Array(await response.arrayBuffer())
        return { status: response.status, headers: Object.fromEntries(response.headers), bytes }
      }
      const whole = await get({})
      const etag = whole.headers['etag'] ?? ''
      const size = whole.bytes.length
      const parts = await get({ range: 'bytes=0-3,10-11' })
      const latin = String.fromCharCode(...parts.bytes)
      const suffix = await get({ range: 'bytes=-5' })
      const beyond = await get({ range: `bytes=${size}-` })
      const head = await get({}, 'HEAD')
      return {
        size,
        parts: [
          parts.status,
          parts.headers['content-length'] === String(parts.bytes.length),
          latin.includes(String.fromCharCode(...whole.bytes.slice(0, 4))),
          latin.includes(`bytes 10-11/${size}`),
        ],
        suffix: [suffix.status, suffix.bytes.join() === whole.bytes.slice(-5).join()],
        beyond: [beyond.status, beyond.headers['content-range']],
        head: [
          head.status,
          head.headers['content-length'],
          head.headers['etag'] === etag,
          head.bytes.length,
        ],
        known: (await get({ 'if-none-match': etag })).status,
        old: (await get({ range: 'bytes=0-1', 'if-range': '"old"' })).status,
      }
    }, url)
    const { size } = seen
    expect(seen).toEqual({
      size,
      parts: [206, true, true, true],
      suffix: [206, true],
      beyond: [416, `bytes */${size}`],
      head: [200, String(size), true, 0],
      known: 304,
      old: 200,
    })
    await other.close()
  })

  test('whoever gives up stops only what nobody else wants', async () => {
    const context = await site.browser.newContext()
    const tab = await site.open('/blank.html', context)
    cpSync(join(files, 'model.onnx'), join(files, 'slow.onnx'))
    cpSync(join(files, 'model.fp16.onnx'), join(files, 'slow2.onnx'))
    await serveIn(tab, {
      catalog: await digits(tab, ['slow2.onnx', 'slow.onnx', 'slow.onnx']),
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

  test('takes nothing back that was given, as long as it is to be had', async () => {
    const context = await site.browser.newContext()
    const tab = await site.open('/blank.html', context)
    const old = await digits(tab, ['model.fp16.onnx', 'model.onnx', 'model.onnx'])
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
async function digits(tab: Page, names: readonly string[]): Promise<Catalog> {
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
