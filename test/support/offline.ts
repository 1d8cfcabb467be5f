/** The files that the library keeps for starts without a network, as tests look at them. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { expect } from 'vitest'
import type { ServeOptions, Server } from '../../src/index.ts'
import type { FileList } from '../../src/types/index.ts'
import { CHAT, fetchIn, GUIDE } from './requests.ts'
import { serveIn, type Site } from './site.ts'

interface InPage {
  server: Server
}

/** Name of the cache. */
const cacheName = ({ url }: Site) => `inorigin:1:${url}/:assets`

/** The keys of all kept files, relative to `inorigin/`. */
export function keysIn(site: Site, page: Page): Promise<string[]> {
  return page.evaluate(async (name) => {
    const keys = await (await caches.open(name)).keys()
    return keys.map(({ url }) => url.replace(`${location.origin}/inorigin/`, ''))
  }, cacheName(site))
}

/** The list that a mark is set on; `null` if there is none. */
export function markIn(site: Site, page: Page, mark: 'latest' | 'current' | 'complete') {
  return page.evaluate(
    async ([name, key]) => {
      const found = await (await caches.open(name)).match(key)
      return found ? found.text() : null
    },
    [cacheName(site), `/inorigin/files.json?inorigin=${mark}`] as const,
  )
}

/** Tells whether a version is kept as a whole for the scope. */
export function isKept(page: Page, scope: string): Promise<boolean> {
  return page.evaluate(async (name) => {
    const keys = await (await caches.open(name)).keys()
    return keys.some(({ url }) => url.endsWith('inorigin=complete'))
  }, `inorigin:1:${scope}:assets`)
}

/** Waits until the version that the site serves now is kept as a whole. */
export async function untilKept(site: Site, page: Page): Promise<void> {
  const list = site.pages['/inorigin/files.json'] ?? builtFile('files.json')
  await expect.poll(async () => (await markIn(site, page, 'complete')) === list).toBe(true)
}

/** Changes the bytes of the kept files whose key matches. */
export async function damageKept(
  site: Site,
  page: Page,
  part: string,
  damage: 'cut' | 'replace',
): Promise<void> {
  const damaged = await page.evaluate(
    async ([name, text, way]) => {
      const cache = await caches.open(name)
      const keys = (await cache.keys()).filter(({ url }) => url.includes(text))
      for (const key of keys) {
        const { headers, bytes } = await cache.match(key).then(async (found) => ({
          headers: found!.headers,
          bytes: await found!.arrayBuffer(),
        }))
        const tampered = `new BroadcastChannel('ran').postMessage('tampered')`
        const body = way === 'cut' ? bytes.slice(0, -1000) : tampered
        await cache.put(key, new Response(body, { headers }))
      }
      return keys.length
    },
    [cacheName(site), part, damage] as const,
  )
  expect(damaged).toBe(1)
}

export const builtFile = (name: string): string =>
  readFileSync(join('dist-demo/inorigin', name), 'utf8')

const announce = (name: string, version: number) =>
  `new BroadcastChannel('ran').postMessage('${name} ${version}');\n`

/** Scripts that tell the page which version of them runs. */
export const SCRIPTS = ['worker.js', 'model-worker.js']

/**
 * Pages of another version of `inorigin/`: its scripts announce themselves, its catalog names the
 * guide differently, and its list has their digests.
 */
export function versionOf(version: number): Record<string, string> {
  const contents: Record<string, string> = {
    'models/catalog.json': builtFile('models/catalog.json').replace(
      '"tag": "@inorigin/guide"',
      `"tag": "@inorigin/guide${version}"`,
    ),
  }
  for (const name of SCRIPTS) contents[name] = announce(name, version) + builtFile(name)
  const list = JSON.parse(builtFile('files.json')) as FileList
  const files = list.files.map((file) => {
    const content = contents[file.name]
    if (content === undefined) return file
    return { ...file, sha256: createHash('sha256').update(content).digest('hex') }
  })
  const pages = { ...contents, 'files.json': JSON.stringify({ ...list, files }) }
  return Object.fromEntries(
    Object.entries(pages).map(([name, content]) => [`/inorigin/${name}`, content]),
  )
}

/** Collects what scripts announce from now on, also over reloads of other tabs. */
export async function listenIn(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(() => {
    const ran: string[] = []
    Object.assign(globalThis, { ran })
    const channel = new BroadcastChannel('ran')
    channel.addEventListener('message', ({ data }) => ran.push(data))
  })
  return () => page.evaluate(() => (globalThis as unknown as { ran: string[] }).ran)
}

/** Opens another tab of the same options, which hosts when the first is closed. */
export async function openFollower(site: Site, options: ServeOptions = {}): Promise<Page> {
  const page = await site.open()
  await serveIn(page, { device: 'wasm', ...options })
  return page
}

/** Answers of the endpoints that need nothing but the library and the embedded models. */
export async function useAll(page: Page, model = GUIDE) {
  const models = await fetchIn(page, '/v1/models')
  const chat = await fetchIn(page, CHAT, {
    model,
    messages: [{ role: 'user', content: 'What is inorigin?' }],
    max_tokens: 8,
    temperature: 0,
  })
  const digit = await page.evaluate(async () => {
    const image = new ImageData(28, 28)
    const { server } = globalThis as unknown as InPage
    const { outputs } = await server.predict('@inorigin/digits', { image })
    return String(outputs['digit'])
  })
  const text = chat.status === 200 ? JSON.parse(chat.text).choices[0].message.content : chat.text
  return { models: models.status, chat: chat.status, text: String(text), digit }
}
