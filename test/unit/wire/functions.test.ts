/** Answers to chat completions with functions, the form of calls before there were tools. */
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { chatOf, fetchOf, HELLO, scriptedHost, send } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { CALLING, CUT, WEATHER_SCHEMA } from './scripts.ts'

const weather = { name: 'weather', description: 'Of a city', parameters: { ...WEATHER_SCHEMA } }
const FUNCTIONS = { functions: [weather, { name: 'now' }] }

/** Calls one function after a text. */
const ONCE: Script = CALLING.filter((event) => !('index' in event && event.index === 1))

async function textOf(fields: object, script: Script = ONCE): Promise<string> {
  const body = chatOf({ ...FUNCTIONS, ...fields })
  const response = await send(scriptedHost({ script }), '/v1/chat/completions', { body })
  expect(response.status, await response.clone().text()).toBe(200)
  return response.text()
}

describe('an answer to functions', () => {
  const head = '"object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices"'
  const chunk = (delta: string, reason = 'null') =>
    `data: {"id":"ID",${head}:[{"index":0,"delta":${delta},"finish_reason":${reason},"logprobs":null}]}\n\n`

  it('streams the call in its old form', async () => {
    const text = await textOf({ stream: true })
    checkChatStream(text)
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
  })

  it('has the call in one body', async () => {
    const function_call = { name: 'weather', arguments: '{"city": "Oslo"}' }
    const message = { role: 'assistant', content: 'Let me look.', refusal: null, function_call }
    expect(JSON.parse(await textOf({})).choices).toEqual([
      { index: 0, message, finish_reason: 'function_call', logprobs: null },
    ])
    const silent = ONCE.filter((event) => !('type' in event) || event.type !== 'text')
    expect(JSON.parse(await textOf({}, silent)).choices[0].message.content).toBeNull()
  })

  it.each([false, true])('has no call, or half of one, stream: %s', async (stream) => {
    const text = await textOf({ stream }, HELLO)
    expect(text).not.toContain('function_call')
    expect(text).toContain('"finish_reason":"stop"')
    const cut = await textOf({ stream }, CUT)
    expect(cut).toContain('"finish_reason":"length"')
    expect(cut).toContain('"function_call":{')
  })
})

it('the official client sends back the call that it received, streamed or not', async () => {
  const clientOf = (host: ReturnType<typeof scriptedHost>) =>
    new OpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch: fetchOf(host) }).chat
      .completions
  const calling = clientOf(scriptedHost({ script: ONCE }))
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Oslo?' }]
  const body = { model: '@acme/tiny', messages, ...FUNCTIONS }
  const call = (await calling.create(body)).choices[0]?.message
  expect((await calling.stream(body).finalMessage()).function_call).toEqual(call?.function_call)
  const host = scriptedHost()
  const result = { role: 'function' as const, name: 'weather', content: '5 degrees' }
  const { choices } = await clientOf(host).create({
    ...body,
    messages: [...messages, call as OpenAI.ChatCompletionMessage, result],
  })
  expect(choices[0]?.message.content).toBe('Hello there')
  expect(host.requests[0]?.messages.slice(1)).toMatchObject([
    { role: 'assistant', toolCalls: [{ name: 'weather', arguments: '{"city": "Oslo"}' }] },
    { role: 'tool', name: 'weather', content: '5 degrees' },
  ])
})
