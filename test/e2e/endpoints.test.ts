/** The endpoints from the console of a page: plain `fetch`, service worker, embedded models. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page, Request } from 'playwright'
import { checkEndpoints, type Traits } from '../contract/wire.ts'
import { CHAT, fetchIn, fetchThrough, GUIDE, MESSAGES } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site
let page: Page
let traits: Traits
/** Paths of the workers that were started. */
const workers: string[] = []

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  page.on('worker', (worker) => workers.push(new URL(worker.url()).pathname))
  await serveIn(page)
  const { max_input_tokens } = JSON.parse((await fetchIn(page, `/v1/models/${GUIDE}`)).text)
  traits = { model: GUIDE, contextWindow: max_input_tokens, reasons: true, goesOn: true }
})

afterAll(() => site?.close())

const messages = [{ role: 'user', content: 'What is inorigin?' }]
const EVERYDAY = { tags: ['everyday'] }

// First, while nothing has asked for the weights.
test('a prompt is counted without the weights, also one that is too long', EVERYDAY, async () => {
  const count = async (words: number) => {
    const body = { model: GUIDE, messages: [{ role: 'user', content: 'word '.repeat(words) }] }
    const { status, text } = await fetchIn(page, `${MESSAGES}/count_tokens`, body)
    return { status, ...JSON.parse(text) }
  }
  const [one, many] = [await count(1000), await count(4000)]
  expect(many.input_tokens - one.input_tokens).toBe(3000)
  const { status, error } = await count(100_000)
  expect([status, error.message]).toEqual([
    400,
    expect.stringMatching(/^prompt is too long: \d+ tokens > \d+ maximum/),
  ])
  expect(site.requests.filter((request) => request.includes('.onnx'))).toEqual([])
})

describe('the contract', EVERYDAY, () => {
  checkEndpoints(
    () => ({ fetch: fetchThrough(page) }),
    () => traits,
  )
})

test('an answer continues from its beginning, word for word', EVERYDAY, async () => {
  const post = async (path: string, given: object[], fields: object = {}) => {
    const body = { model: GUIDE, temperature: 0, messages: given, ...fields }
    const { headers, text } = await fetchIn(page, path, body)
    return { headers, ...JSON.parse(text) }
  }
  const whole = (await post(MESSAGES, messages, { max_tokens: 200 })).content[0].text as string
  const at = whole.indexOf(' ', whole.length / 2)
  const begun = [...messages, { role: 'assistant', content: whole.slice(0, at) }]
  const rest = await post(MESSAGES, begun, { max_tokens: 200 })
  const chat = await post(CHAT, begun, { continue_final_message: true, reasoning_effort: 'low' })
  expect(whole.slice(at).length).toBeGreaterThan(10)
  expect(rest.content[0].text).toBe(whole.slice(at))
  expect(chat.choices[0].message.content).toBe(whole.slice(at))
  expect(chat.headers['x-inorigin-ignored']).toBe('reasoning_effort')
  const { input_tokens: counted } = await post(`${MESSAGES}/count_tokens`, begun)
  const { input_tokens: fresh, cache_read_input_tokens: cached, output_tokens } = rest.usage
  expect(fresh + cached).toBe(counted)
  expect(chat.usage).toMatchObject({ prompt_tokens: counted, completion_tokens: output_tokens })
  // What was answered just before is still there.
  expect(chat.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(5)
})

test('what a schema does not keep is named in a header', EVERYDAY, async () => {
  const schema = { type: 'integer', minimum: 5, maximum: 5, 'x-unit': 'px' }
  const format = { type: 'json_schema', json_schema: { schema } }
  const body = { model: GUIDE, messages, response_format: format }
  const { headers, text } = await fetchIn(page, CHAT, body)
  expect(headers['x-inorigin-ignored']).toBe('x-unit')
  expect(JSON.parse(text).choices[0].message.content).toBe('5')
  // The model's own thread does not build its vocabulary.
  expect(workers.filter((path) => path === '/inorigin/vocabulary-worker.js')).toHaveLength(1)
})

test.each([CHAT, MESSAGES])(
  '%s: the browser does not count a stream that is read to its end as aborted',
  async (path) => {
    const isAsked = (request: Request) => request.url() === site.url + path
    const ended = Promise.race([
      page.waitForEvent('requestfinished', isAsked),
      page.waitForEvent('requestfailed', isAsked),
    ])
    await fetchIn(page, path, { model: GUIDE, messages, max_tokens: 24, stream: true })
    expect((await ended).failure()).toBeNull()
  },
)

test('nothing outside /v1 is touched', async () => {
  site.requests.length = 0
  // The host may fetch its own files meanwhile, to keep them for starts without the server.
  const received = () => site.requests.filter((line) => !line.startsWith('GET /inorigin/'))
  expect((await fetchIn(page, '/v2/models')).text).toBe('404')
  expect((await fetchIn(page, '/v1x')).text).toBe('404')
  expect(received()).toEqual(['GET /v2/models', 'GET /v1x'])
  await fetchIn(page, '/v1/models')
  expect(received()).toHaveLength(2)
})
