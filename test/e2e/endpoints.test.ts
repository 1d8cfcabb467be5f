/** Every endpoint from the console of a page: plain `fetch`, real service worker, embedded model. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  await serveIn(page)
})

afterAll(() => site?.close())

interface Answer {
  status: number
  headers: Record<string, string>
  text: string
}

/** What `fetch` gives inside the page. */
function ask(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return page.evaluate(
    async ([url, json, extra]) => {
      const init: RequestInit =
        json === undefined
          ? { headers: extra }
          : {
              method: 'POST',
              headers: { 'content-type': 'application/json', ...extra },
              body: JSON.stringify(json),
            }
      const response = await fetch(url, init)
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        text: await response.text(),
      }
    },
    [path, body, headers] as const,
  )
}

const model = '@inorigin/guide'
const messages = [{ role: 'user', content: 'What is inorigin?' }]

describe('models', () => {
  test('are listed in one body for both styles', async () => {
    const { status, text } = await ask('/v1/models')
    expect(status).toBe(200)
    const list = JSON.parse(text)
    expect(list).toMatchObject({ object: 'list', has_more: false, first_id: model, last_id: model })
    expect(list.data).toHaveLength(1)
    expect(list.data[0]).toMatchObject({ id: model, type: 'model', object: 'model', owned_by: 'inorigin' })
    expect(Date.parse(list.data[0].created_at)).toBe(list.data[0].created * 1000)
    expect(list.data[0].max_input_tokens).toBeGreaterThanOrEqual(2048)
  })

  test('are found with a raw and with an encoded slash', async () => {
    for (const path of ['/v1/models/@inorigin/guide', '/v1/models/@inorigin%2Fguide']) {
      expect(JSON.parse((await ask(path)).text).id).toBe(model)
    }
  })
})

describe('chat completions', () => {
  test('plain: an answer with true usage', async () => {
    const { status, headers, text } = await ask('/v1/chat/completions', { model, messages, temperature: 0 })
    expect(status).toBe(200)
    expect(headers['content-type']).toContain('application/json')
    const answer = JSON.parse(text)
    expect(answer).toMatchObject({ object: 'chat.completion', model })
    expect(answer.choices[0]).toMatchObject({
      index: 0, finish_reason: 'stop', message: { role: 'assistant' },
    })
    expect(answer.choices[0].message.content).toMatch(/inorigin/i)
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage
    expect(prompt_tokens + completion_tokens).toBe(total_tokens)
  })

  test('streamed: the grammar, event by event, and the same text and usage as plain', async () => {
    const request = { model, messages, temperature: 0 }
    const plain = JSON.parse((await ask('/v1/chat/completions', request)).text)
    const stream_options = { include_usage: true }
    const { headers, text } = await ask('/v1/chat/completions', { ...request, stream: true, stream_options })
    expect(headers['content-type']).toContain('text/event-stream')
    const seen = checkChatStream(text, { includeUsage: true })
    expect(seen.content).toBe(plain.choices[0].message.content)
    expect(seen.finishReason).toBe('stop')
    expect(seen.usage).toEqual(plain.usage)
  })

  test('the same seed gives the same text, another seed another', async () => {
    const request = { model, messages, temperature: 1.5, max_tokens: 24 }
    const texts = []
    for (const seed of [7, 7, 8, 9]) {
      texts.push(JSON.parse((await ask('/v1/chat/completions', { ...request, seed })).text).choices[0].message.content)
    }
    expect(texts[1]).toBe(texts[0])
    expect(new Set(texts).size).toBeGreaterThan(1)
  })

  test('max_completion_tokens ends it with length after that many tokens', async () => {
    const { text } = await ask('/v1/chat/completions', { model, messages, max_completion_tokens: 3 })
    const answer = JSON.parse(text)
    expect(answer.choices[0].finish_reason).toBe('length')
    expect(answer.usage.completion_tokens).toBe(3)
  })

  test('a stop text ends it and never shows, whole or in part', async () => {
    const request = { model, messages, temperature: 0 }
    const whole = JSON.parse((await ask('/v1/chat/completions', request)).text).choices[0].message.content as string
    const stop = whole.slice(10, 16)
    const { text } = await ask('/v1/chat/completions', { ...request, stop, stream: true })
    const seen = checkChatStream(text)
    expect(seen).toMatchObject({ content: whole.slice(0, whole.indexOf(stop)), finishReason: 'stop' })
  })
})

describe('messages', () => {
  test('plain', async () => {
    const { status, text } = await ask('/v1/messages', { model, messages, max_tokens: 200, temperature: 0 })
    expect(status).toBe(200)
    const answer = JSON.parse(text)
    expect(answer).toMatchObject({
      type: 'message', role: 'assistant', model, stop_reason: 'end_turn', stop_sequence: null,
    })
    expect(answer.content).toHaveLength(1)
    expect(answer.content[0].type).toBe('text')
    expect(answer.content[0].text).toMatch(/inorigin/i)
    expect(answer.usage.input_tokens).toBeGreaterThan(0)
  })

  test('streamed: the grammar, and the text that chat completions give', async () => {
    const { text } = await ask('/v1/messages', { model, messages, max_tokens: 200, temperature: 0, stream: true })
    const seen = checkMessageStream(text)
    const chat = JSON.parse((await ask('/v1/chat/completions', { model, messages, temperature: 0 })).text)
    expect(seen.text).toBe(chat.choices[0].message.content)
    expect(seen.stopReason).toBe('end_turn')
    expect(seen.startUsage['input_tokens']).toBe(chat.usage.prompt_tokens)
  })

  test('the stop sequence that matched is reported', async () => {
    const request = { model, messages, max_tokens: 200, temperature: 0 }
    const whole = JSON.parse((await ask('/v1/messages', request)).text).content[0].text as string
    const stop = whole.slice(8, 12)
    const { text } = await ask('/v1/messages', { ...request, stop_sequences: ['never said', stop] })
    expect(JSON.parse(text)).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: stop })
  })

  test('the system prompt and earlier turns are part of the prompt', async () => {
    const count = async (extra: object) => {
      const body = { model, messages, max_tokens: 1, ...extra }
      return JSON.parse((await ask('/v1/messages', body)).text).usage.input_tokens as number
    }
    const bare = await count({})
    expect(await count({ system: 'You answer in one word, and politely.' })).toBeGreaterThan(bare)
    const history = [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello!' }, ...messages]
    expect(await count({ messages: history })).toBeGreaterThan(bare)
  })
})

describe('predictions', () => {
  const tag = '@inorigin/digits'

  test('the predictor, with a raw and an encoded slash', async () => {
    for (const path of ['/v1/predictors/@inorigin/digits', '/v1/predictors/@inorigin%2Fdigits']) {
      const predictor = JSON.parse((await ask(path)).text)
      expect(predictor).toMatchObject({
        tag, status: 'active', access: 'public', owner: { username: 'inorigin' },
      })
      expect(predictor.signature.inputs[0]).toMatchObject({ name: 'image', type: 'image' })
    }
  })

  test('a prediction names resources whose bytes the origin serves', async () => {
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
  })

  test('the same asker gets the same prediction, and an id pins it', async () => {
    const create = async (body: object) => JSON.parse((await ask('/v1/predictions', { tag, ...body })).text)
    const first = await create({ clientId: 'a' })
    expect((await create({ clientId: 'a' })).id).toBe(first.id)
    const other = await create({ clientId: 'b', predictionId: first.id })
    expect(other.id).not.toBe(first.id)
    expect(other.resources).toEqual(first.resources)
    expect(other.configuration).toBe(first.configuration)
    const unknown = await ask('/v1/predictions', { tag, clientId: 'b', predictionId: 'pred_none' })
    expect([unknown.status, JSON.parse(unknown.text).error.param]).toEqual([404, 'predictionId'])
  })

  test('a language model has predictions too', async () => {
    const { text } = await ask('/v1/predictions', { tag: model, clientId: 'test' })
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
      const { server } = globalThis as unknown as { server: import('../../src/index.ts').Server }
      const body = JSON.stringify({ tag: '@inorigin/digits', clientId: 'configured' })
      const headers = { 'content-type': 'application/json' }
      const { configuration } = await (await fetch('/v1/predictions', { method: 'POST', headers, body })).json()
      const phases = new Set<string>()
      const plain = await server.predict('@inorigin/digits', { image: canvas }, {
        onProgress: ({ phase }) => phases.add(phase),
      })
      const same = await server.predict('@inorigin/digits', { image: canvas }, { configuration })
      return { plain, same, phases: [...phases] }
    })
    expect(result.plain.outputs['digit']).toBe('one')
    expect(result.same.outputs).toEqual(result.plain.outputs)
    expect(result.plain.latency).toBeGreaterThan(0)
    expect(result.plain.device).toBe('wasm')
    expect(result.phases.at(-1)).toBe('ready')
  })

  test('a wrong input is refused by name', async () => {
    const error = await page.evaluate(async () => {
      const { server } = globalThis as unknown as { server: import('../../src/index.ts').Server }
      return server.predict('@inorigin/digits', { image: 'no image' }).catch((thrown: Error) => thrown.message)
    })
    expect(error).toContain('inputs.image')
  })
})

describe('errors', () => {
  const body = (text: string) => JSON.parse(text)

  test('an unknown model is 404 in words for every client', async () => {
    const chat = await ask('/v1/chat/completions', { model: '@nobody/nothing', messages })
    expect(chat.status).toBe(404)
    expect(body(chat.text)).toMatchObject({
      type: 'error',
      error: { code: 'model_not_found', message: expect.stringContaining('@nobody/nothing') },
      errors: [{ message: expect.any(String) }],
    })
    expect(chat.headers['x-should-retry']).toBe('false')
    const named = await ask('/v1/messages', { model: 'gpt-4', messages, max_tokens: 5 })
    expect([named.status, body(named.text).error.type]).toEqual([404, 'not_found_error'])
  })

  test('a prompt that does not fit is 400 with the words clients look for', async () => {
    const long = [{ role: 'user', content: 'word '.repeat(3000) }]
    const { status, text } = await ask('/v1/messages', { model, messages: long, max_tokens: 5 })
    expect(status).toBe(400)
    expect(body(text).error).toMatchObject({
      code: 'context_length_exceeded',
      message: expect.stringMatching(/prompt is too long: \d+ tokens > \d+ maximum/),
    })
  })

  test('what is not honoured is refused by name', async () => {
    const tools = [{ type: 'function', function: { name: 'now', parameters: { type: 'object' } } }]
    const refused = await ask('/v1/chat/completions', { model, messages, tools })
    expect([refused.status, body(refused.text).error.param]).toEqual([400, 'tools'])
  })

  test('unknown paths and methods inside /v1 are JSON', async () => {
    const missing = await ask('/v1/nothing')
    expect([missing.status, body(missing.text).error.type]).toEqual([404, 'not_found_error'])
    const method = await ask('/v1/models', {})
    expect([method.status, method.headers['allow']]).toEqual([405, 'GET, HEAD'])
  })

  test('nothing outside /v1 is touched', async () => {
    site.requests.length = 0
    expect((await ask('/v2/models')).text).toBe('404')
    expect((await ask('/v1x')).text).toBe('404')
    expect(site.requests).toEqual(['GET /v2/models', 'GET /v1x'])
    await ask('/v1/models')
    expect(site.requests).toHaveLength(2)
  })

  test('a resource is never shown as a page', async () => {
    const { text } = await ask('/v1/predictions', { tag: '@inorigin/digits', clientId: 'test' })
    const [{ url }] = JSON.parse(text).resources
    const tab = await site.context.newPage()
    const response = await tab.goto(url)
    expect(response?.status()).toBe(403)
    await tab.close()
  })
})
