/** Images through `/v1`, in all styles, for a model of random weights in the layout of idefics3. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fetchIn } from '../support/answers.ts'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const FOLDER = join(import.meta.dirname, '../models/vision')
const TAG = '@me/vision'

let hub: Hub
let site: Site
let page: Page

beforeAll(async () => {
  hub = await openHub({ 'me/vision': repositoryOf(FOLDER, 'c'.repeat(40)) })
  site = await openSite()
  page = await site.open()
  const entry = {
    tag: TAG,
    huggingface: 'me/vision',
    host: hub.url,
    capabilities: { imageInput: true },
  }
  await serveIn(page, { device: 'wasm', catalog: { version: 1, entries: [entry] } })
})

afterAll(async () => {
  await site?.close()
  await hub?.close()
})

const png = (name: string): Buffer => readFileSync(join(FOLDER, `${name}.png`))
const base64 = (name: string): string => png(name).toString('base64')
const dataUrl = (name: string): string => `data:image/png;base64,${base64(name)}`

const post = async (path: string, body: unknown): Promise<{ status: number; body: Answer }> => {
  const { status, text } = await fetchIn(page, path, body)
  return { status, body: JSON.parse(text) as Answer }
}

/** The fields of answers and errors of all styles that the tests read. */
interface Answer {
  usage: {
    prompt_tokens: number
    prompt_tokens_details: { cached_tokens: number }
    input_tokens: number
    cache_read_input_tokens: number
  }
  choices: { message: { content: string } }[]
  input_tokens: number
  error: { code: string; param: string; message: string }
}

const chat = (url: string, detail?: string, question = 'the') => ({
  model: TAG,
  temperature: 0,
  max_tokens: 4,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url, detail } },
        { type: 'text', text: question },
      ],
    },
  ],
})

test('a second question about an image finds it in the prefix cache, another image does not', async () => {
  const first = await post('/v1/chat/completions', chat(dataUrl('large'), 'high'))
  expect(first.status).toBe(200)
  const second = await post('/v1/chat/completions', chat(dataUrl('large'), 'high', 'world'))
  // Five tiles of four rows.
  expect(second.body.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(20)
  const other = await post('/v1/chat/completions', chat(dataUrl('other'), 'high'))
  expect(other.body.usage.prompt_tokens_details.cached_tokens).toBeLessThan(10)
  const low = await post('/v1/chat/completions', chat(dataUrl('large'), 'low'))
  expect(first.body.usage.prompt_tokens - low.body.usage.prompt_tokens).toBeGreaterThanOrEqual(16)
})

test('an image is counted as it is used, also in the result of a tool', async () => {
  const source = { type: 'base64', media_type: 'image/png', data: base64('clear') }
  const image = { type: 'image', source }
  const result = { type: 'tool_result', tool_use_id: 'c1', content: [image] }
  const request = {
    model: TAG,
    messages: [
      { role: 'user', content: [image, { type: 'text', text: 'hello' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'see', input: {} }] },
      { role: 'user', content: [result] },
    ],
  }
  const counted = await post('/v1/messages/count_tokens', request)
  const answered = await post('/v1/messages', { ...request, max_tokens: 2 })
  const { input_tokens: fresh, cache_read_input_tokens: cached } = answered.body.usage
  expect(counted.body.input_tokens).toBe(fresh + cached)
  const withoutImages = structuredClone(request)
  withoutImages.messages[0]?.content.splice(0, 1)
  const fewer = await post('/v1/messages/count_tokens', withoutImages)
  expect(counted.body.input_tokens - fewer.body.input_tokens).toBeGreaterThanOrEqual(4)
})

test('files that a page writes as JPEG, WebP and PNG are read', async () => {
  const urls = await page.evaluate(async () => {
    const canvas = document.createElement('canvas')
    Object.assign(canvas, { width: 90, height: 20 })
    canvas.getContext('2d')?.fillRect(5, 5, 20, 10)
    return ['image/jpeg', 'image/webp', 'image/png'].map((type) => canvas.toDataURL(type))
  })
  for (const url of urls) {
    const part = { type: 'input_image', image_url: url, detail: 'auto' }
    const body = { model: TAG, input: [{ role: 'user', content: [part] }], max_output_tokens: 2 }
    expect((await post('/v1/responses', body)).status).toBe(200)
  }
})

test('what is no image, not all of one, or too large is a 400 that names it', async () => {
  const whole = png('large')
  const huge = Buffer.from(whole.subarray(0, 200))
  huge.writeUInt32BE(20_000, 16)
  const cases = [
    ['invalid_image', Buffer.from('hello, world')],
    ['invalid_image', whole.subarray(0, 40)],
    ['image_too_large', huge],
  ] as const
  for (const [code, bytes] of cases) {
    const url = `data:image/png;base64,${bytes.toString('base64')}`
    const { status, body } = await post('/v1/chat/completions', chat(url))
    expect({ status, code: body.error.code }).toEqual({ status: 400, code })
    expect(body.error.param).toBe('messages[0].content[0]')
  }
})

test('a model without images refuses them and names one that takes them', async () => {
  const { status, body } = await post('/v1/chat/completions', {
    ...chat(dataUrl('wide')),
    model: '@inorigin/guide',
  })
  expect(status).toBe(400)
  expect(body.error.message).toContain(`use ${TAG}`)
})
