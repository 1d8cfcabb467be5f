/** `serve({ imageUrls })`: images that requests name by URL, from a server on another origin. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fetchIn } from '../support/answers.ts'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const FOLDER = join(import.meta.dirname, '../models/vision')
const TAG = '@me/vision'
const PNG = readFileSync(join(FOLDER, 'large.png'))

let hub: Hub
let site: Site
let page: Page
let images: Server
let origin: string

beforeAll(async () => {
  images = createServer(({ url }, response) => {
    if (url === '/open/large.png') response.setHeader('access-control-allow-origin', '*')
    response.end(PNG)
  })
  await new Promise<void>((resolve) => images.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(images.address() as AddressInfo).port}`
  hub = await openHub({ 'me/vision': repositoryOf(FOLDER, 'c'.repeat(40)) })
  site = await openSite()
  page = await site.open()
  const capabilities = { imageInput: true }
  const entry = { tag: TAG, huggingface: 'me/vision', host: hub.url, capabilities }
  await serveIn(page, {
    device: 'wasm',
    catalog: { version: 1, entries: [entry] },
    imageUrls: [`${origin}/open`, `${origin}/closed/`],
  })
})

afterAll(async () => {
  await site?.close()
  await hub?.close()
  images?.closeAllConnections()
  images?.close()
})

const ask = async (url: string, question: string) => {
  const content = [
    { type: 'image', source: { type: 'url', url } },
    { type: 'text', text: question },
  ]
  const body = { model: TAG, max_tokens: 2, messages: [{ role: 'user', content }] }
  const { status, text } = await fetchIn(page, '/v1/messages', body)
  const counted = await fetchIn(page, '/v1/messages/count_tokens', {
    model: TAG,
    messages: body.messages,
  })
  return {
    status,
    body: JSON.parse(text) as {
      usage: { input_tokens: number; cache_read_input_tokens: number }
      error: { code: string; details: object; message: string }
    },
    counted: JSON.parse(counted.text) as { input_tokens: number },
  }
}

test('an allowed URL is the same image as its bytes', async () => {
  const fetched = await ask(`${origin}/open/large.png`, 'the')
  expect(fetched.status).toBe(200)
  const { usage } = fetched.body
  expect(usage.input_tokens + usage.cache_read_input_tokens).toBe(fetched.counted.input_tokens)
  const inline = await ask(`data:image/png;base64,${PNG.toString('base64')}`, 'world')
  // The tile of four rows is found in the prefix cache.
  expect(inline.body.usage.cache_read_input_tokens).toBeGreaterThanOrEqual(4)
})

test.for([
  ['closed/large.png', 'image_download_failed', 'CORS'],
  ['other/large.png', 'image_url_not_allowed', 'imageUrls'],
])('%s is a 400 with the code %s', async ([path, code, words]) => {
  const { status, body } = await ask(`${origin}/${path}`, 'the')
  expect(status).toBe(400)
  expect(body.error.code).toBe(code)
  expect(body.error.message).toContain('`messages[0].content[0]`')
  expect(body.error.message).toContain(words)
})

test('a value that is no list of http URLs is refused', async () => {
  const messages = await page.evaluate(async () => {
    const { serve } = globalThis as unknown as typeof import('../../src/index.ts')
    const given = ['https://images.example', ['ftp://images.example']] as unknown as string[][]
    return Promise.all(
      given.map((imageUrls) => serve({ imageUrls }).catch(({ message }: Error) => message)),
    )
  })
  expect(messages).toEqual([
    '`imageUrls` must be an array of URLs.',
    '`imageUrls[0]` must be an http or https URL.',
  ])
})
