/** The generation endpoints from the console of a page: plain `fetch`, service worker, embedded model. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page, Request } from 'playwright'
import { fetchIn } from '../support/answers.ts'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { checkResponseStream } from '../support/responses-grammar.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  await serveIn(page)
})

afterAll(() => site?.close())

const ask = (path: string, body?: unknown) => fetchIn(page, path, body)
const model = '@inorigin/guide'
const messages = [{ role: 'user', content: 'What is inorigin?' }]
const TIME = [{ role: 'user', content: 'What time is it?' }]
const parameters = {
  type: 'object',
  properties: { zone: { type: 'string', enum: ['utc', 'local'] } },
  required: ['zone'],
  additionalProperties: false,
}
const ZONES = [{ zone: 'utc' }, { zone: 'local' }]

describe('models', () => {
  test('are listed in one body for both styles', async () => {
    const { status, text } = await ask('/v1/models')
    expect(status).toBe(200)
    const list = JSON.parse(text)
    expect(list).toMatchObject({
      object: 'list',
      has_more: false,
      first_id: model,
      last_id: list.data.at(-1).id,
    })
    // The embedded one, then those of the hub.
    expect(list.data.length).toBeGreaterThan(10)
    expect(list.data[0]).toMatchObject({
      id: model,
      type: 'model',
      object: 'model',
      owned_by: 'inorigin',
    })
    expect(Date.parse(list.data[0].created_at)).toBe(list.data[0].created * 1000)
    expect(list.data[0].max_input_tokens).toBeGreaterThanOrEqual(2048)
  })

  test('are found with a raw and with an encoded slash', async () => {
    for (const path of ['/v1/models/@inorigin/guide', '/v1/models/@inorigin%2Fguide']) {
      expect(JSON.parse((await ask(path)).text).id).toBe(model)
    }
  })
})

// First, while nothing has asked for the weights.
test('a prompt is counted exactly, and without the weights', async () => {
  const body = {
    model,
    system: 'Be brief.',
    messages,
    tools: [{ name: 'now', input_schema: parameters }],
  }
  const counted = await ask('/v1/messages/count_tokens', body)
  expect(counted.status).toBe(200)
  expect(site.requests.filter((request) => request.includes('.onnx'))).toEqual([])
  const { usage } = JSON.parse((await ask('/v1/messages', { ...body, max_tokens: 3 })).text)
  const { input_tokens } = JSON.parse(counted.text)
  expect(usage.input_tokens + usage.cache_read_input_tokens).toBe(input_tokens)
  // What does not fit is counted too, for clients that then shorten it; with an end.
  const long = (words: number) => ({
    ...body,
    messages: [{ role: 'user', content: 'word '.repeat(words) }],
  })
  const [one, many] = [
    await ask('/v1/messages/count_tokens', long(1000)),
    await ask('/v1/messages/count_tokens', long(4000)),
  ]
  expect(JSON.parse(many.text).input_tokens - JSON.parse(one.text).input_tokens).toBe(3000)
  const endless = await ask('/v1/messages/count_tokens', long(100_000))
  expect([endless.status, JSON.parse(endless.text).error.message]).toEqual([
    400,
    expect.stringMatching(/^prompt is too long: \d+ tokens > \d+ maximum/),
  ])
})

describe('chat completions', () => {
  test('plain: an answer with true usage', async () => {
    const { status, headers, text } = await ask('/v1/chat/completions', {
      model,
      messages,
      temperature: 0,
    })
    expect(status).toBe(200)
    expect(headers['content-type']).toContain('application/json')
    const answer = JSON.parse(text)
    expect(answer).toMatchObject({ object: 'chat.completion', model })
    expect(answer.choices[0]).toMatchObject({
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant' },
    })
    expect(answer.choices[0].message.content).toMatch(/\w/)
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage
    expect(prompt_tokens + completion_tokens).toBe(total_tokens)
  })

  test('streamed: the grammar, event by event, and the same text and usage as plain', async () => {
    const request = { model, messages, temperature: 0 }
    const plain = JSON.parse((await ask('/v1/chat/completions', request)).text)
    const stream_options = { include_usage: true }
    const { headers, text } = await ask('/v1/chat/completions', {
      ...request,
      stream: true,
      stream_options,
    })
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
      texts.push(
        JSON.parse((await ask('/v1/chat/completions', { ...request, seed })).text).choices[0]
          .message.content,
      )
    }
    expect(texts[1]).toBe(texts[0])
    expect(new Set(texts).size).toBeGreaterThan(1)
  })

  test('max_completion_tokens ends it with length after that many tokens', async () => {
    const { text } = await ask('/v1/chat/completions', {
      model,
      messages,
      max_completion_tokens: 3,
    })
    const answer = JSON.parse(text)
    expect(answer.choices[0].finish_reason).toBe('length')
    expect(answer.usage.completion_tokens).toBe(3)
  })

  test('a stop text ends it and never shows, whole or in part', async () => {
    const request = { model, messages, temperature: 0 }
    const whole = JSON.parse((await ask('/v1/chat/completions', request)).text).choices[0].message
      .content as string
    const stop = whole.slice(10, 16)
    const { text } = await ask('/v1/chat/completions', { ...request, stop, stream: true })
    const seen = checkChatStream(text)
    expect(seen).toMatchObject({
      content: whole.slice(0, whole.indexOf(stop)),
      finishReason: 'stop',
    })
  })
})

describe('messages', () => {
  test('plain', async () => {
    const { status, text } = await ask('/v1/messages', {
      model,
      messages,
      max_tokens: 200,
      temperature: 0,
    })
    expect(status).toBe(200)
    const answer = JSON.parse(text)
    expect(answer).toMatchObject({
      type: 'message',
      role: 'assistant',
      model,
      stop_reason: 'end_turn',
      stop_sequence: null,
    })
    expect(answer.content).toHaveLength(1)
    expect(answer.content[0].type).toBe('text')
    expect(answer.content[0].text).toMatch(/\w/)
    expect(answer.usage.input_tokens).toBeGreaterThan(0)
  })

  test('streamed: the grammar, and the text that chat completions give', async () => {
    const { text } = await ask('/v1/messages', {
      model,
      messages,
      max_tokens: 200,
      temperature: 0,
      stream: true,
    })
    const seen = checkMessageStream(text)
    const chat = JSON.parse(
      (await ask('/v1/chat/completions', { model, messages, temperature: 0 })).text,
    )
    expect(seen.text).toBe(chat.choices[0].message.content)
    expect(seen.stopReason).toBe('end_turn')
    const { input_tokens: fresh, cache_read_input_tokens: cached } = seen.startUsage
    expect(Number(fresh) + Number(cached)).toBe(chat.usage.prompt_tokens)
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
    const history = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello!' },
      ...messages,
    ]
    expect(await count({ messages: history })).toBeGreaterThan(bare)
  })
})

test.each(['/v1/chat/completions', '/v1/messages'])(
  '%s: the browser does not count a stream that is read to its end as aborted',
  async (path) => {
    const isAsked = (request: Request) => request.url() === site.url + path
    const ended = Promise.race([
      page.waitForEvent('requestfinished', isAsked),
      page.waitForEvent('requestfailed', isAsked),
    ])
    const body = JSON.stringify({ model, messages, max_tokens: 24, stream: true })
    await page.evaluate(
      async ([url, json]) => {
        const headers = { 'content-type': 'application/json' }
        const response = await fetch(url, { method: 'POST', headers, body: json })
        const reader = response.body!.getReader()
        while (!(await reader.read()).done);
      },
      [path, body] as const,
    )
    expect((await ended).failure()).toBeNull()
  },
)

describe('calls and schemas', () => {
  test('a tool that must be called is called as its schema says, in every style', async () => {
    const common = { model, stream: true, temperature: 0 }
    const chat = await ask('/v1/chat/completions', {
      ...common,
      messages: TIME,
      tool_choice: { type: 'function', function: { name: 'now' } },
      tools: [
        { type: 'function', function: { name: 'now', parameters } },
        { type: 'function', function: { name: 'then', parameters } },
      ],
      parallel_tool_calls: false,
    })
    const { toolCalls, finishReason } = checkChatStream(chat.text)
    expect([toolCalls.length, toolCalls[0]?.name, finishReason]).toEqual([1, 'now', 'tool_calls'])
    expect(ZONES).toContainEqual(JSON.parse(toolCalls[0]?.arguments ?? ''))

    const message = await ask('/v1/messages', {
      ...common,
      messages: TIME,
      max_tokens: 100,
      tools: [{ name: 'now', input_schema: parameters }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    })
    const { blocks, stopReason } = checkMessageStream(message.text)
    const used = blocks.find(({ type }) => type === 'tool_use')
    expect([used?.name, stopReason]).toEqual(['now', 'tool_use'])
    expect(ZONES).toContainEqual(JSON.parse(used?.text ?? ''))

    const response = await ask('/v1/responses', {
      ...common,
      input: 'What time is it?',
      tool_choice: 'required',
      parallel_tool_calls: false,
      tools: [{ type: 'function', name: 'now', parameters }],
    })
    const item = checkResponseStream(response.text).items.find(
      ({ type }) => type === 'function_call',
    )
    expect(ZONES).toContainEqual(JSON.parse(item?.text ?? ''))
  })

  test('an answer of a schema is one, in both styles', async () => {
    const common = { model, messages: TIME, temperature: 0, max_tokens: 60 }
    const chat = await ask('/v1/chat/completions', {
      ...common,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'zone', strict: true, schema: parameters },
      },
    })
    expect(ZONES).toContainEqual(JSON.parse(JSON.parse(chat.text).choices[0].message.content))
    const message = await ask('/v1/messages', {
      ...common,
      output_config: { format: { type: 'json_schema', schema: parameters } },
    })
    expect(ZONES).toContainEqual(JSON.parse(JSON.parse(message.text).content[0].text))
  })

  test('a schema that cannot be kept is refused by its place in the body', async () => {
    const schema = { type: 'object', properties: { x: { type: 'array', uniqueItems: true } } }
    const chat = await ask('/v1/chat/completions', {
      model,
      messages,
      tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    })
    const message = await ask('/v1/messages', {
      model,
      messages,
      max_tokens: 5,
      tools: [{ name: 'f', input_schema: schema }],
    })
    expect([chat.status, JSON.parse(chat.text).error.param]).toEqual([
      400,
      'tools[0].function.parameters.properties.x.uniqueItems',
    ])
    expect([message.status, JSON.parse(message.text).error.param]).toEqual([
      400,
      'tools[0].input_schema.properties.x.uniqueItems',
    ])
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
    const refused = await ask('/v1/chat/completions', { model, messages, n: 2 })
    expect([refused.status, body(refused.text).error.param]).toEqual([400, 'n'])
  })

  test('unknown paths and methods inside /v1 are JSON', async () => {
    const missing = await ask('/v1/nothing')
    expect([missing.status, body(missing.text).error.type]).toEqual([404, 'not_found_error'])
    const method = await ask('/v1/models', {})
    expect([method.status, method.headers['allow']]).toEqual([405, 'GET, HEAD'])
  })

  test('nothing outside /v1 is touched', async () => {
    site.requests.length = 0
    // The host may fetch its own files meanwhile, to keep them for starts without the server.
    const received = () => site.requests.filter((line) => !line.startsWith('GET /inorigin/'))
    expect((await ask('/v2/models')).text).toBe('404')
    expect((await ask('/v1x')).text).toBe('404')
    expect(received()).toEqual(['GET /v2/models', 'GET /v1x'])
    await ask('/v1/models')
    expect(received()).toHaveLength(2)
  })
})
