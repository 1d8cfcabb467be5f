/** What the Open Responses specification asks for, over HTTP and over the WebSocket of the bridge. */
import { once } from 'node:events'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { lend } from '../../../src/bridge/lend.ts'
import { openBridgeServer, type BridgeServer } from '../../../src/cli/bridge/http-server.ts'
import { createTestServer, type ScriptedAnswer } from '../../../src/extras/testing/server.ts'
import type { GenerationRequest } from '../../../src/types/index.ts'
import {
  compactionSchema,
  eventSchema,
  messageSchema,
  responseSchema,
  type ResponseMessage,
} from '../../support/open-responses.ts'

const TOKEN = 'token-of-the-test'
const model = '@me/chat'
const WEATHER = {
  type: 'function' as const,
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}

const bridges: BridgeServer[] = []
afterEach(async () => {
  vi.unstubAllGlobals()
  await Promise.all(bridges.splice(0).map((server) => server.close()))
})

/** Calls the weather if it may, remembers words, and repeats what it was asked for otherwise. */
function answer({ messages, tools }: GenerationRequest): ScriptedAnswer {
  const text = messages.map(({ content }) => content).join('\n')
  if (tools) return { toolCalls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] }
  if (messages[0]?.content.startsWith('You summarize')) return `Summary: ${text.slice(-200)}`
  return /code word is (\w+)/.exec(text)?.[1] ?? 'One two three'
}

/** Opens a bridge with a tab that has a scripted model. */
async function open({
  requireKey = false,
  answers = answer,
  fetchTab,
}: {
  requireKey?: boolean
  answers?: (request: GenerationRequest) => ScriptedAnswer
  fetchTab?: (request: Request) => Promise<Response>
} = {}) {
  vi.stubGlobal('WebSocket', WebSocket)
  vi.stubGlobal('crossOriginIsolated', true)
  vi.stubGlobal('navigator', { hardwareConcurrency: 1 })
  const server = await openBridgeServer({
    port: 0,
    token: TOKEN,
    requireKey,
    origins: [],
    files: { send: (_request, response) => void response.writeHead(404).end() },
    onTab: () => {},
  })
  bridges.push(server)
  const tab = createTestServer({ models: [{ tag: model, answers }], origin: 'http://localhost:1' })
  const { signal: closing } = new AbortController()
  const page = {
    origin: tab.origin,
    fetch: fetchTab ?? ((each: Request) => tab.fetch(each)),
    closing,
  }
  await lend(server.url, { token: TOKEN }, page)
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify({ model, ...body }) }
    return fetch(`${server.url}/v1${path}`, init)
  }
  return {
    server,
    tab,
    post,
    create: async (body: object) =>
      responseSchema.parse(await (await post('/responses', body)).json()),
    connect: (headers: Record<string, string> = {}) => connect(server.url, headers),
  }
}

/** Opens a WebSocket. `turn` sends a message and resolves with all messages up to the last one. */
async function connect(url: string, headers: Record<string, string>) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`, { headers })
  const messages: ResponseMessage[] = []
  let wake = (): void => {}
  socket.on('message', (data) => {
    messages.push(messageSchema.parse(JSON.parse(String(data))))
    wake()
  })
  await once(socket, 'open')
  const isLast = ({ type }: ResponseMessage) =>
    ['error', 'response.completed', 'response.incomplete', 'response.failed'].includes(type)
  async function next(): Promise<ResponseMessage[]> {
    while (!messages.some(isLast)) await new Promise<void>((resolve) => (wake = resolve))
    return messages.splice(0, messages.findIndex(isLast) + 1)
  }
  const send = (body: object) =>
    socket.send(JSON.stringify({ type: 'response.create', model, store: false, ...body }))
  return {
    socket,
    send,
    next,
    async turn(body: object) {
      send(body)
      const turn = await next()
      const last = turn.at(-1)!
      return {
        turn,
        error: 'error' in last && 'status' in last ? last : null,
        response: 'response' in last ? last.response : null,
      }
    },
  }
}

const text = (response: { output: unknown[] } | null) => JSON.stringify(response?.output)
const user = (content: string) => ({ type: 'message', role: 'user', content })
const assistant = (content: string) => ({ type: 'message', role: 'assistant', content })

describe('over HTTP', () => {
  test.each<[string, object]>([
    ['a message', { input: [user('Say hello.')] }],
    ['a system prompt', { input: [{ ...user('Be a pirate.'), role: 'system' }, user('Hello')] }],
    [
      'several turns with phases',
      {
        input: [
          { ...assistant('I look.'), phase: 'commentary' },
          { ...assistant('Four.'), phase: 'final_answer' },
          user('Again'),
        ],
      },
    ],
    [
      'all that a response repeats',
      {
        input: 'Hi',
        max_tool_calls: 3,
        service_tier: 'flex',
        safety_identifier: 's',
        prompt_cache_key: 'k',
        temperature: 0.5,
        top_p: 0.9,
        presence_penalty: 0.1,
        frequency_penalty: 0.2,
        metadata: { a: 'b' },
        text: { format: { type: 'json_schema', name: 'x', schema: {} }, verbosity: 'low' },
        reasoning: { effort: 'low', summary: 'auto' },
      },
    ],
  ])('%s is answered with every field', async (_, body) => {
    const { create } = await open({ answers: () => '{}' })
    const response = await create(body)
    expect(response).toMatchObject({ status: 'completed', output: [{ type: 'message' }] })
    expect(response.completed_at).toBeGreaterThanOrEqual(response.created_at)
    const { input: _input, text: _text, ...repeated } = body as Record<string, unknown>
    expect(response).toMatchObject({
      ...repeated,
      ...('service_tier' in body && { service_tier: 'default' }),
    })
  })

  test('a stream has the events of the specification, also of a call', async () => {
    const { post } = await open()
    for (const tools of [undefined, [WEATHER]]) {
      const response = await post('/responses', { input: 'Hi', stream: true, tools })
      const data = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, json]) => json)
      const types = data.map((json) => eventSchema.parse(JSON.parse(json ?? '')).type)
      const calls = types.filter((type) => type.startsWith('response.function_call_arguments'))
      expect([types.at(-1), new Set(calls).size]).toEqual(['response.completed', tools ? 2 : 0])
    }
  })

  test('a call and its output are two turns', async () => {
    const { create } = await open({
      answers: (request) => (request.messages.length > 1 ? 'Rain.' : answer(request)),
    })
    const tool_choice = { type: 'function', name: 'get_weather' }
    const input = [user('How is the weather?')]
    const { output } = await create({ input, tools: [WEATHER], tool_choice })
    const [call] = output
    if (call?.type !== 'function_call') throw new Error('It called nothing.')
    const result = { type: 'function_call_output', call_id: call.call_id, output: 'rain' }
    expect(text(await create({ input: [...input, call, result] }))).toContain('Rain.')
  })

  test('a background response keeps the time of its end', async () => {
    const { create, server } = await open()
    const { id, completed_at } = await create({ input: 'Hi', background: true })
    expect(completed_at).toBeNull()
    const read = async () => (await fetch(`${server.url}/v1/responses/${id}`)).json()
    await expect.poll(async () => (await read()).status).toBe('completed')
    vi.setSystemTime(Date.now() + 60_000)
    const first = responseSchema.parse(await read())
    expect(Math.abs(first.completed_at! - first.created_at)).toBeLessThan(30)
    vi.useRealTimers()
  })
})

describe('a compaction', () => {
  const conversation = [
    { ...user('Speak like a pirate.'), role: 'developer' },
    user('The code word is cobalt.'),
    assistant('Aye.'),
  ]

  test('is a summary by the model, with which a conversation goes on', async () => {
    const { post, create, tab } = await open()
    const response = await post('/responses/compact', {
      input: conversation,
      prompt_cache_key: 'k',
    })
    const compaction = compactionSchema.parse(await response.json())
    expect(compaction.output.map(({ type }) => type)).toEqual(['message', 'message', 'compaction'])
    expect(compaction.usage.output_tokens).toBeGreaterThan(0)
    expect(tab.requests[0]).toMatchObject({ maxTokens: expect.any(Number), reasoningBudget: 0 })
    const next = await create({ input: [...compaction.output, user('Which word?')] })
    expect(text(next)).toContain('cobalt')
    const [instructions, , summary] = tab.requests[1]?.messages ?? []
    expect(instructions).toEqual({ role: 'system', content: 'Speak like a pirate.' })
    expect(summary?.content).toMatch(/^Summary of the conversation so far:\nSummary: /)
  })

  describe('that the input asks for', () => {
    const input = [...conversation, { type: 'compaction_trigger' }]

    test('is a response with one item, plain and streamed', async () => {
      const { post, create, tab } = await open()
      const response = await create({ input, tools: [WEATHER] })
      expect(response.output.map(({ type }) => type)).toEqual(['compaction'])
      expect(tab.requests[0]?.tools).toBeUndefined()
      const streamed = await (await post('/responses', { input, stream: true })).text()
      const data = [...streamed.matchAll(/^data: (.*)$/gm)].map(([, json]) => json ?? '')
      expect(data.map((json) => eventSchema.parse(JSON.parse(json)).type)).toEqual([
        'response.created',
        'response.in_progress',
        'response.output_item.added',
        'response.output_item.done',
        'response.completed',
      ])
      const next = await create({ input: [...response.output, user('Which word?')] })
      expect(text(next)).toContain('cobalt')
      const after = { previous_response_id: response.id, input: 'Which word?' }
      expect(text(await create(after))).toContain('cobalt')
    })

    test('is made over a WebSocket, too', async () => {
      const { connect: dial } = await open()
      const { turn } = await dial()
      const { response } = await turn({ input: conversation })
      const { response: compaction } = await turn({
        previous_response_id: response?.id,
        input: [{ type: 'compaction_trigger' }],
      })
      expect(compaction?.output.map(({ type }) => type)).toEqual(['compaction'])
      const next = await turn({ input: [...compaction!.output, user('Which word?')] })
      expect(text(next.response)).toContain('cobalt')
    })

    test('is refused in the background', async () => {
      const { post } = await open()
      const response = await post('/responses', { input, background: true })
      expect([response.status, (await response.json()).error.param]).toEqual([400, 'background'])
    })
  })

  test('of a stored response keeps calls without an output', async () => {
    const { post, create } = await open()
    const { id } = await create({ input: 'The weather?', tools: [WEATHER] })
    const response = await post('/responses/compact', { previous_response_id: id })
    const { output } = compactionSchema.parse(await response.json())
    expect(output.map(({ type }) => type)).toEqual(['message', 'compaction', 'function_call'])
  })

  test('of a long conversation is made part by part, with a bound', async () => {
    const { post, tab } = await open()
    const input = Array.from({ length: 400 }, (_, at) => user(`${at} ${'word '.repeat(200)}`))
    const response = await post('/responses/compact', { input })
    const { output } = compactionSchema.parse(await response.json())
    expect(tab.requests.length).toBeGreaterThan(1)
    expect(tab.requests.length).toBeLessThanOrEqual(8)
    expect(JSON.stringify(output).length).toBeLessThan(6_000)
  })

  test.each([
    [{ model: undefined, input: [user('Hi')] }, 'model'],
    [{}, 'input'],
    [{ input: 'Hi', previous_response_id: 'resp_0' }, 'previous_response_id'],
  ])('without what it needs is a 400: %j', async (body, param) => {
    const { post } = await open()
    const response = await post('/responses/compact', body)
    expect([response.status, (await response.json()).error.param]).toEqual([400, param])
  })
})

describe('over a WebSocket', () => {
  test('a response is one message for each event, and the next one follows', async () => {
    const { connect: dial } = await open()
    const { turn } = await dial()
    const first = await turn({ input: [user('Count.')], store: undefined })
    expect(first.turn.map(({ type }) => type).slice(0, 3)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
    ])
    expect(first.response).toMatchObject({ status: 'completed', previous_response_id: null })
    expect((await turn({ input: 'Reply: second' })).response?.status).toBe('completed')
  })

  test('messages that are sent at once are answered in order', async () => {
    const { connect: dial } = await open({ answers: ({ messages }) => messages[0]!.content })
    const { send, next } = await dial()
    for (const input of ['first', 'second']) send({ input })
    expect(JSON.stringify(await next())).toContain('first')
    expect(JSON.stringify(await next())).toContain('second')
  })

  test('a response that is not stored can be continued on its connection only', async () => {
    const { connect: dial } = await open()
    const { turn } = await dial()
    const { response } = await turn({ input: 'The code word is cobalt.' })
    const more = { previous_response_id: response?.id, input: 'Which word?' }
    const second = await turn(more)
    expect(second.response?.previous_response_id).toBe(response?.id)
    expect(text(second.response)).toContain('cobalt')
    const third = await turn({ previous_response_id: second.response?.id, input: 'Again?' })
    expect(text(third.response)).toContain('cobalt')
    const other = await dial()
    expect((await other.turn(more)).error).toMatchObject({
      status: 400,
      error: { code: 'previous_response_not_found' },
    })
    expect((await other.turn({ input: 'Start anew' })).response?.status).toBe('completed')
  })

  test.each([
    [[user('Which word?'), 5], 'input[3]'],
    [[null], 'input[2]'],
    [7, 'input'],
    [{ role: 'user', content: 'Which word?' }, 'input'],
  ])('a continuation with the input %j is refused', async (input, param) => {
    const { connect: dial } = await open()
    const { turn } = await dial()
    const { response } = await turn({ input: 'The code word is cobalt.' })
    const { error } = await turn({ previous_response_id: response?.id, input })
    expect(error).toMatchObject({ status: 400, error: { param } })
  })

  test('a stored response can be continued, and what follows it is kept', async () => {
    const { connect: dial, create } = await open()
    const { id } = await create({ input: 'The code word is slate.' })
    const { turn } = await dial()
    const { response } = await turn({ previous_response_id: id, input: 'Which word?' })
    expect(text(response)).toContain('slate')
    const next = await turn({ previous_response_id: response?.id, input: 'Again?' })
    expect(text(next.response)).toContain('slate')
    expect(next.response?.previous_response_id).toBe(response?.id)
  })

  test('a continuation that fails forgets what it continued', async () => {
    const { connect: dial } = await open()
    const { turn } = await dial()
    const { response } = await turn({ input: 'The code word is ember.' })
    const previous_response_id = response?.id
    const orphan = { type: 'function_call_output', call_id: 'call_none', output: 'x' }
    expect((await turn({ previous_response_id, input: [orphan] })).error).toMatchObject({
      status: 400,
      error: { code: 'invalid_value', param: 'input[0].call_id' },
    })
    expect((await turn({ previous_response_id, input: 'Go on' })).error).toMatchObject({
      error: { code: 'previous_response_not_found' },
    })
  })

  test('a compaction begins a new chain', async () => {
    const { connect: dial, post } = await open()
    const input = [user('The code word is slate.'), assistant('OK.')]
    const { output } = await (await post('/responses/compact', { input })).json()
    const { turn } = await dial()
    const { response } = await turn({ input: [...output, user('Which word?')], tools: [] })
    expect(text(response)).toContain('slate')
  })

  test('a request that is only prepared is counted, and can be continued', async () => {
    const { connect: dial, tab } = await open()
    const { turn } = await dial()
    const { response } = await turn({ generate: false, input: 'The code word is warm.' })
    expect(response).toMatchObject({ status: 'completed', output: [] })
    expect(response?.usage?.input_tokens).toBeGreaterThan(0)
    expect(tab.requests).toEqual([])
    const next = await turn({ previous_response_id: response?.id, input: 'Which word?' })
    expect(text(next.response)).toContain('warm')
    const wrong = await turn({ generate: false, input: 5 })
    expect(wrong.error).toMatchObject({ status: 400, error: { param: 'input' } })
  })

  test.each<[string, string]>([
    ['no json', 'invalid_json'],
    ['[]', 'invalid_json'],
    ['{"type":"response.cancel"}', 'invalid_value'],
    ['{"type":"response.create","background":true}', 'unsupported_parameter'],
    ['{"type":"response.create"}', 'missing_required_parameter'],
    [`{"type":"response.create","model":"@no/one","input":"x"}`, 'model_not_found'],
  ])('%s is an error, after which the connection goes on', async (message, code) => {
    const { connect: dial } = await open()
    const { socket, next, turn } = await dial()
    socket.send(message)
    expect((await next())[0]).toMatchObject({ type: 'error', error: { code } })
    expect((await turn({ input: 'Hi' })).response?.status).toBe('completed')
  })

  test('the tab gets the numbers of a message as they were sent, also in a continuation', async () => {
    const bodies: string[] = []
    const { connect: dial, tab } = await open({
      answers: () => 'Fine.',
      fetchTab: async (request) => {
        bodies.push(await request.clone().text())
        return tab.fetch(request)
      },
    })
    const { socket, next } = await dial()
    const sendText = async (fields: string) => {
      socket.send(`{ "type":"response.create", "store":false,\n"model":"${model}" , ${fields}}`)
      const last = (await next()).at(-1)!
      return 'response' in last ? last.response.id : last
    }
    const schema = '{"type":"object", "2":[1.0 ,1e2], "1":{"a\\u0022,]":12345678901234567890}}'
    const tool = `{"type":"function","name":"f","parameters":${schema}}`
    const id = await sendText(
      `"tools":[${tool}],"input":[{"role":"user","content":"[\\"{"} , {"type":"additional_tools","tools":[${tool}]}]`,
    )
    const second = await sendText(`"previous_response_id":"${id}", "input":"Go on"`)
    await sendText(`"previous_response_id":"${second}","input":[ ],"metadata":{}`)
    expect(bodies.map((body) => body.split(schema).length - 1)).toEqual([2, 1, 1])
    expect(bodies.map((body) => (JSON.parse(body) as { input: unknown[] }).input.length)).toEqual([
      2, 4, 5,
    ])
    expect(await sendText('"input":"Hi","temperature":1e400')).toMatchObject({
      error: { param: 'temperature', message: expect.stringContaining('not Infinity') },
    })
  })

  test('a client that leaves cancels its response', async () => {
    let signal: AbortSignal | undefined
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('data: {"type":"x"}\n\n')),
    })
    const { server } = await open({
      fetchTab: async (request) => {
        signal = request.signal
        return new Response(body)
      },
    })
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/responses`)
    await once(socket, 'open')
    socket.send(JSON.stringify({ type: 'response.create', model, input: 'Hi' }))
    await once(socket, 'message')
    expect(signal?.aborted).toBe(false)
    socket.terminate()
    await expect.poll(() => signal?.aborted).toBe(true)
  })

  test('the token is needed, and pages of other origins are refused', async () => {
    const { server, connect: dial } = await open({ requireKey: true })
    const refusalOf = (headers: Record<string, string>) =>
      dial(headers).catch((error: Error) => error.message)
    expect(await refusalOf({})).toContain('401')
    const key = { authorization: `Bearer ${TOKEN}` }
    expect(await refusalOf({ ...key, origin: 'https://evil.example' })).toContain('403')
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: TOKEN })
    const socket = new ResponsesWS(client)
    const ended = new Promise<string>((resolve, reject) => {
      socket.on('error', reject)
      socket.on('response.completed', ({ response }) => resolve(response.status ?? ''))
    })
    socket.send({ type: 'response.create', model, input: 'Hi' })
    expect(await ended).toBe('completed')
    socket.close()
  })
})
