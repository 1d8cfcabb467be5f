/**
 * A local answer whose model worker keeps ending, and the server that writes the rest of it.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CatalogDocument, ModelEntry } from '../../src/catalog/schema.ts'
import type { CatalogInput } from '../../src/index.ts'
import { fetchIn } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { startFetchServer, type UpstreamServer } from '../support/upstream-server.ts'
import { fetchOf, scriptedHost, TINY } from '../unit/wire/scripted-host.ts'

const TAG = '@app/guide'

let site: Site
let server: UpstreamServer

beforeAll(async () => {
  server = await startFetchServer(fetchOf(scriptedHost()))
  const built = readFileSync('dist-demo/inorigin/model-worker.js', 'utf8')
  const script = `(${endEarly.toString()})()\n${built}`
  site = await openSite({ pages: { '/inorigin/model-worker.js': script } })
})
afterAll(async () => {
  await site?.close()
  await server?.close()
})

/** Runs in the model worker, before its own script: the thread ends after two events of text. */
function endEarly(): void {
  const { postMessage } = MessagePort.prototype
  let texts = 0
  MessagePort.prototype.postMessage = function (this: MessagePort, ...args: [unknown]) {
    const event = (args[0] as { event?: { type?: string } } | null)?.event
    if (event?.type === 'text') texts += 1
    // The task in which a worker is closed runs to its end.
    if (texts > 2) return self.close()
    return postMessage.apply(this, args)
  } as typeof postMessage
}

/** The embedded model under a tag of the app, with a server that answers under the condition. */
function catalogOf(when: 'interrupted' | 'busy'): CatalogInput {
  const file = 'dist-demo/inorigin/models/catalog.json'
  const { entries } = JSON.parse(readFileSync(file, 'utf8')) as CatalogDocument
  const guide = entries.find((entry) => entry.tag === '@inorigin/guide') as ModelEntry
  const local = guide.implementations.map((implementation) => ({
    ...implementation,
    resources: implementation.resources.map((resource) => ({
      ...resource,
      url: new URL(resource.url, 'http://localhost/inorigin/models/').pathname,
    })),
  }))
  const far = { id: 'server', engine: 'upstream' as const, url: server.url, model: TINY.tag }
  const implementations = [...local, { ...far, when, continues: true }]
  return { version: 1, entries: [{ ...guide, tag: TAG, implementations }] } as CatalogInput
}

async function ask(when: 'interrupted' | 'busy', route?: string) {
  const page = await site.open('/blank.html', await site.browser.newContext())
  await serveIn(page, { device: 'wasm', catalog: catalogOf(when) })
  const messages = [{ role: 'user', content: 'What is inorigin?' }]
  const body = { model: TAG, temperature: 0, max_tokens: 40, stream: true, messages }
  const headers: Record<string, string> = route ? { 'x-inorigin-route': route } : {}
  const answer = await fetchIn(page, '/v1/chat/completions', body, headers)
  await page.context().close()
  return answer
}

const textOf = (frames: string): string =>
  [...frames.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)]
    .map(([, json]) => JSON.parse(json ?? '') as string)
    .join('')

test('a server continues it if the app allows that', async () => {
  const { headers, text } = await ask('interrupted')
  expect(headers['x-inorigin-served-by']).toBe('local')
  const [near = '', far = ''] = text.split(': continued by upstream')
  expect(textOf(near).length).toBeGreaterThan(5)
  expect(textOf(far)).toBe('Hello there')
  expect(text.match(/"role":"assistant"/g)).toHaveLength(1)
  expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
})

test('it fails, and nothing leaves, if the app or the request does not', async () => {
  const before = server.counts().connections
  const failures = [await ask('busy'), await ask('interrupted', 'local')]
  for (const { text } of failures) expect(text).toContain('"code":"worker_ended"')
  expect(server.counts().connections).toBe(before)
})
