/** What clients from before there were tools ask for and get. */
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { openGuide, planningHost } from './guide-host.ts'
import { chatOf, errorOf, fetchOf, HELLO, scriptedHost, send } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { CALLING, CUT, LONG_USAGE, WEATHER_SCHEMA } from './scripts.ts'

const PATH = '/v1/chat/completions'
const weather = { name: 'weather', description: 'Of a city', parameters: { ...WEATHER_SCHEMA } }
const now = { name: 'now' }
const FUNCTIONS = { functions: [weather, now] }

/** Calls one function, behind a word of its own. */
const ONCE: Script = CALLING.filter((event) => !('index' in event && event.index === 1))

async function asked(fields: object, script: Script = ONCE) {
  const host = scriptedHost({ script })
  const response = await send(host, PATH, { body: chatOf(fields) })
  expect(response.status, await response.clone().text()).toBe(200)
  const text = await response.text()
  return { text, request: host.requests[0], ignored: response.headers.get('x-inorigin-ignored') }
}

describe('functions', () => {
  it.each([
    [{}, {}],
    [{ function_call: null }, {}],
    [{ function_call: 'auto', tools: [], tool_choice: 'auto' }, { tool_choice: 'auto' }],
    [{ function_call: 'none', parallel_tool_calls: false }, { tool_choice: 'none' }],
    [{ tool_choice: 'none' }, { tool_choice: 'none' }],
    [{ function_call: { name: 'now' } }, { tool_choice: { type: 'function', function: now } }],
  ])('with %j are tools, called one at a time', async (fields, same) => {
    const { request, ignored } = await asked({ ...FUNCTIONS, ...fields })
    const tools = FUNCTIONS.functions.map((told) => ({ type: 'function', function: told }))
    expect(ignored).toBeNull()
    expect(request?.tools?.parallel).toBe(false)
    expect(request).toEqual((await asked({ tools, parallel_tool_calls: false, ...same })).request)
  })

  it('cannot be called severally, which is said', async () => {
    const { request, ignored } = await asked({ ...FUNCTIONS, parallel_tool_calls: true })
    expect([request?.tools?.parallel, ignored]).toEqual([false, 'parallel_tool_calls'])
  })

  it('are refused by their own places', async () => {
    const host = planningHost(await openGuide())
    const paramOf = async (fields: object) =>
      errorOf(await send(host, PATH, { body: chatOf(fields) }), 400)
    const odd = { type: 'object', properties: { x: { type: 'array', uniqueItems: true } } }
    expect((await paramOf({ functions: [now, { name: 'f', parameters: odd }] })).param).toBe(
      'functions[1].parameters.properties.x.uniqueItems',
    )
    expect((await paramOf({ functions: [now, now] })).param).toBe('functions[1].name')
    const { param, message } = await paramOf({ ...FUNCTIONS, function_call: { name: 'then' } })
    expect([param, message.slice(0, 26)]).toEqual(['function_call', 'function_call names "then"'])
  })
})

describe('the answer to them', () => {
  const head = '"object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices"'
  const chunk = (delta: string, reason = 'null') =>
    `data: {"id":"ID",${head}:[{"index":0,"delta":${delta},"finish_reason":${reason},"logprobs":null}]}\n\n`

  it('streams the call as it did then, to the letter', async () => {
    const { text } = await asked({ ...FUNCTIONS, stream: true })
    const settled = text
      .replaceAll(/"chatcmpl-[0-9a-f]{24}"/g, '"ID"')
      .replaceAll(/"created":\d{10},/g, '"created":0,')
    expect(settled).toBe(
      chunk('{"role":"assistant","content":""}') +
        chunk('{"content":"Let me"}') +
        chunk('{"content":" look."}') +
        chunk('{"function_call":{"name":"weather","arguments":""}}') +
        chunk('{"function_call":{"arguments":"{\\"city\\":"}}') +
        ': heartbeat\n\n' +
        chunk('{"function_call":{"arguments":" \\"Oslo\\"}"}}') +
        chunk('{}', '"function_call"') +
        'data: [DONE]\n\n',
    )
    checkChatStream(text)
  })

  it('tells at once what it streams', async () => {
    const { choices } = JSON.parse((await asked(FUNCTIONS)).text)
    expect(choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Let me look.',
          refusal: null,
          function_call: { name: 'weather', arguments: '{"city": "Oslo"}' },
        },
        finish_reason: 'function_call',
        logprobs: null,
      },
    ])
    const silent = ONCE.filter((event) => !('type' in event) || event.type !== 'text')
    expect(JSON.parse((await asked(FUNCTIONS, silent)).text).choices[0].message.content).toBeNull()
  })

  it('is one like any other where there is no call, or half of one', async () => {
    for (const fields of [FUNCTIONS, { ...FUNCTIONS, stream: true }]) {
      const { text } = await asked(fields, HELLO)
      expect(text).not.toContain('function_call')
      expect(text).toContain('"finish_reason":"stop"')
      const cut = (await asked(fields, CUT)).text
      expect(cut).toContain('"finish_reason":"length"')
      expect(cut).toContain('"function_call":{')
    }
  })
})

it('calls of earlier turns and what came of them are those of tools', async () => {
  const { request } = await asked({
    messages: [
      { role: 'function', name: 'now', content: 'long ago' },
      { role: 'user', content: 'Oslo, and when?' },
      {
        role: 'assistant',
        content: null,
        function_call: { name: 'weather', arguments: '{"city":"Oslo"}' },
      },
      { role: 'function', name: 'weather', content: '5 degrees' },
      { role: 'assistant', content: 'And now:', function_call: { name: 'now', arguments: '' } },
      { role: 'function', name: 'now', content: null },
      { role: 'assistant', content: '', function_call: { name: 'weather', arguments: '{}' } },
      { role: 'function', name: 'weather', content: [{ type: 'text', text: 'none' }] },
    ],
  })
  const called = (content: string, id: string, name: string, text: string) => ({
    role: 'assistant',
    content,
    toolCalls: [{ id, name, arguments: text }],
  })
  const result = (toolCallId: string, name: string, content: string) => ({
    role: 'tool',
    toolCallId,
    name,
    content,
  })
  expect(request?.messages).toEqual([
    result('', 'now', 'long ago'),
    { role: 'user', content: 'Oslo, and when?' },
    called('', 'call_function_2', 'weather', '{"city":"Oslo"}'),
    result('call_function_2', 'weather', '5 degrees'),
    called('And now:', 'call_function_4', 'now', '{}'),
    result('call_function_4', 'now', ''),
    called('', 'call_function_6', 'weather', '{}'),
    result('call_function_6', 'weather', 'none'),
  ])
})

it('the official client goes round with them, streamed or not', async () => {
  const last: Script = [
    ...HELLO.slice(2, -1),
    { type: 'finish', reason: 'stop', stopSequence: null, usage: LONG_USAGE },
  ]
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Oslo?' }]
  const client = (script: Script, host = scriptedHost({ script })) => ({
    host,
    chat: new OpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch: fetchOf(host) }).chat,
  })
  const body = { model: '@acme/tiny', messages, ...FUNCTIONS }
  const plain = (await client(ONCE).chat.completions.create(body)).choices[0]?.message
  const stream = client(ONCE).chat.completions.stream(body)
  expect((await stream.finalMessage()).function_call).toEqual(plain?.function_call)
  expect(plain?.function_call?.name).toBe('weather')
  const second = client(last)
  const result = { role: 'function' as const, name: 'weather', content: '5 degrees' }
  const { choices } = await second.chat.completions.create({
    ...body,
    messages: [...messages, plain as OpenAI.ChatCompletionMessage, result],
  })
  expect(choices[0]?.message.content).toBe('Hello there')
  expect(second.host.requests[0]?.messages.slice(1)).toMatchObject([
    { role: 'assistant', toolCalls: [{ name: 'weather', arguments: '{"city": "Oslo"}' }] },
    { role: 'tool', name: 'weather', content: '5 degrees' },
  ])
})
