/** The official SDKs beyond the contract of the endpoints, which `test/contract/clients.ts` checks. */
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, stepCountIs, streamText, type ToolSet } from 'ai'
import OpenAI from 'openai'
import { describe, expect, it, test } from 'vitest'
import { createTestServer } from '../../../src/extras/testing/server.ts'
import { InoriginError } from '../../../src/error.ts'
import type { EmbeddingEvent } from '../../../src/types/index.ts'
import { collect, fetchOf, HELLO, scriptedHost, TINY } from './scripted-host.ts'
import { WEATHER_SCHEMA } from './scripts.ts'

type Fetch = typeof fetch

const openai = (fetch: Fetch) =>
  new OpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch, maxRetries: 2 })
const anthropic = (fetch: Fetch) =>
  new Anthropic({ apiKey: 'k', baseURL: 'http://localhost', fetch, maxRetries: 2 })

const CHAT = { model: TINY.tag, messages: [{ role: 'user' as const, content: 'Oslo?' }] }
const MESSAGE = { ...CHAT, max_tokens: 100 }
const RESPONSE = { model: TINY.tag, input: 'Oslo?' }

const LOST = new InoriginError('internal', 'The device was lost.', { code: 'device_lost' })
const LOST_HOST = () => scriptedHost({ script: [...HELLO.slice(0, 4), LOST] })

interface Client {
  name: string
  create(fetch: Fetch): Promise<unknown>
  stream(fetch: Fetch): PromiseLike<AsyncIterable<unknown>>
  /** Reads the SDK's own helper to its end. It is aborted at the first text if `isAborted`. */
  help(fetch: Fetch, isAborted: boolean): Promise<unknown>
  /** Fields of the error with which a stream ends. */
  lost: object
}

const CLIENTS: Client[] = [
  {
    name: 'openai, chat completions',
    create: (fetch) => openai(fetch).chat.completions.create(CHAT),
    stream: (fetch) => openai(fetch).chat.completions.create({ ...CHAT, stream: true }),
    help(fetch, isAborted) {
      const helper = openai(fetch).chat.completions.stream(CHAT)
      if (isAborted) helper.on('content', () => helper.abort())
      return helper.finalChatCompletion()
    },
    lost: { code: 'device_lost', message: LOST.message },
  },
  {
    name: 'openai, responses',
    create: (fetch) => openai(fetch).responses.create(RESPONSE),
    stream: (fetch) => openai(fetch).responses.create({ ...RESPONSE, stream: true }),
    help(fetch, isAborted) {
      const helper = openai(fetch).responses.stream(RESPONSE)
      if (isAborted) helper.on('response.output_text.delta', () => helper.abort())
      return helper.finalResponse()
    },
    lost: { code: 'device_lost' },
  },
  {
    name: '@anthropic-ai/sdk',
    create: (fetch) => anthropic(fetch).messages.create(MESSAGE),
    stream: (fetch) => anthropic(fetch).messages.create({ ...MESSAGE, stream: true }),
    help(fetch, isAborted) {
      const helper = anthropic(fetch).messages.stream(MESSAGE)
      if (isAborted) helper.on('text', () => helper.abort())
      return helper.finalMessage()
    },
    lost: { type: 'api_error' },
  },
]

describe.each(CLIENTS)('$name', ({ create, stream, help, lost }) => {
  it.each([
    ['once if a retry cannot help', new InoriginError('unavailable', 'No device.'), 503, 1],
    ['again when it may', new InoriginError('rate_limit', 'Full.', { retryAfter: 0.01 }), 429, 3],
  ])('sends a request %s', async (_, error, status, count) => {
    let calls = 0
    const generate = () => {
      calls += 1
      return Promise.reject(error)
    }
    const sent = create(fetchOf(scriptedHost({ overrides: { generate } })))
    await expect(sent).rejects.toMatchObject({
      status,
      message: expect.stringContaining(error.message),
      requestID: expect.stringMatching(/^req_/),
    })
    expect(calls).toBe(count)
  })

  it('throws the error with which a stream ends', async () => {
    await expect(collect(await stream(fetchOf(LOST_HOST())))).rejects.toMatchObject(lost)
    await expect(help(fetchOf(LOST_HOST()), false)).rejects.toThrow(/./)
  })

  // These SDKs read only the status. So the result has the error, and nothing that looks like text.
  it('resolves with the error if a body ends with one', async () => {
    const result = (await create(fetchOf(LOST_HOST()))) as Record<string, unknown>
    expect(result['error']).toMatchObject({ code: 'device_lost', message: LOST.message })
    expect([result['choices'], result['content']]).toEqual([undefined, undefined])
    expect(['error', 'response']).toContain(result['type'] ?? result['object'])
    if (result['object']) expect(result).toMatchObject({ status: 'failed', store: false })
  })

  it('ends the work by leaving its stream, and by aborting its helper', async () => {
    const host = scriptedHost()
    for await (const _ of await stream(fetchOf(host))) break
    const aborted = () => host.callers.filter(({ signal }) => signal.aborted).length
    await expect.poll(() => [host.returned, aborted()]).toEqual([true, 1])
    await expect(help(fetchOf(host), true)).rejects.toThrow('Request was aborted.')
    await expect.poll(aborted).toBe(2)
  })
})

test('embeddings of openai resolve with the error that ends their body', async () => {
  async function* late(): AsyncGenerator<EmbeddingEvent> {
    yield { type: 'heartbeat' }
    throw LOST
  }
  const embed = () => Promise.resolve({ events: late() })
  const { embeddings } = openai(fetchOf(scriptedHost({ overrides: { embed } })))
  const result = await embeddings.create({ model: TINY.tag, input: 'x' })
  expect(result).toMatchObject({ error: { message: LOST.message, code: 'device_lost' } })
  expect(result.data).toBeUndefined()
})

describe('the AI SDK', () => {
  const provider = (fetch: Fetch) =>
    createOpenAI({ apiKey: 'k', baseURL: 'http://localhost/v1', fetch })

  it('throws the message of a response that failed', async () => {
    const model = provider(fetchOf(LOST_HOST())).responses(TINY.tag)
    await expect(generateText({ model, prompt: 'Oslo?' })).rejects.toThrow(LOST.message)
  })

  it('throws for a chat completion without choices, with the body', async () => {
    const model = provider(fetchOf(LOST_HOST())).chat(TINY.tag)
    await expect(generateText({ model, prompt: 'Oslo?' })).rejects.toMatchObject({
      responseBody: expect.stringContaining(LOST.message),
    })
  })
})

describe('a custom tool', () => {
  const INPUT = 'SELECT "a"\nFROM b'
  const regex = { syntax: 'regex' as const, definition: 'SELECT [^;]+' }
  const tool = {
    type: 'custom' as const,
    name: 'sql',
    description: 'Runs SQL.',
    format: { type: 'grammar' as const, ...regex },
  }
  const chatTool = {
    type: 'custom' as const,
    custom: { name: 'sql', format: { type: 'grammar' as const, grammar: regex } },
  }
  const open = () => {
    const toolCalls = [{ name: 'sql', arguments: { input: INPUT } }]
    return createTestServer({
      models: [{ tag: TINY.tag, answers: [{ toolCalls }, 'Two rows.'] }],
    })
  }
  /** Expects that the second request has the call and its result. */
  const expectCall = ({ requests }: ReturnType<typeof open>): void =>
    expect(requests[1]?.messages.slice(1)).toMatchObject([
      { toolCalls: [{ name: 'sql', arguments: `{"input": ${JSON.stringify(INPUT)}}` }] },
      { role: 'tool', content: '2 rows' },
    ])

  it.each([false, true])('is called in responses, helper: %s', async (isHelped) => {
    const server = open()
    const { responses } = openai(server.fetch)
    const body = { ...RESPONSE, tools: [tool] }
    const { output } = isHelped
      ? await responses.stream(body).finalResponse()
      : await responses.create(body)
    const [call] = output
    if (call?.type !== 'custom_tool_call') throw new Error(`not a call: ${call?.type}`)
    expect(call).toMatchObject({ name: 'sql', input: INPUT })
    const { type, call_id, name, input } = call
    const result = { type: 'custom_tool_call_output' as const, call_id, output: '2 rows' }
    const items = [
      { role: 'user' as const, content: 'Oslo?' },
      { type, call_id, name, input },
      result,
    ]
    const answer = await responses.create({ ...body, input: items })
    expect(answer.output_text).toBe('Two rows.')
    expectCall(server)
  })

  it('is called in chat completions', async () => {
    const server = open()
    const { completions } = openai(server.fetch).chat
    const tools = [chatTool]
    const [choice] = (await completions.create({ ...CHAT, tools })).choices
    const [call] = choice?.message.tool_calls ?? []
    expect(call).toMatchObject({ type: 'custom', custom: { name: 'sql', input: INPUT } })
    const result = { role: 'tool' as const, tool_call_id: call?.id ?? '', content: '2 rows' }
    const messages = [...CHAT.messages, choice!.message, result]
    await completions.create({ ...CHAT, messages, tools })
    expectCall(server)
  })

  it.each([false, true])('is called by the AI SDK, stream: %s', async (isStream) => {
    const server = open()
    const provider = createOpenAI({
      apiKey: 'k',
      baseURL: 'http://localhost/v1',
      fetch: server.fetch,
    })
    const inputs: unknown[] = []
    const execute = (input: unknown) => {
      inputs.push(input)
      return '2 rows'
    }
    const sql = provider.tools.customTool({ name: 'sql', format: tool.format })
    Object.assign(sql, { execute })
    const options = {
      model: provider.responses(TINY.tag),
      prompt: 'Oslo?',
      tools: { sql } as ToolSet,
      providerOptions: { openai: { store: false } },
      stopWhen: stepCountIs(2),
    }
    const { text } = isStream ? streamText(options) : await generateText(options)
    expect(await text).toBe('Two rows.')
    expect(inputs).toEqual([INPUT])
    expectCall(server)
  })
})

describe('a tool loop over streams', () => {
  const ANSWER = 'It is warm.'
  const open = () =>
    createTestServer({
      models: [
        {
          tag: TINY.tag,
          answers: [
            {
              reasoning: 'Two cities.',
              text: 'Let me look.',
              toolCalls: [
                { name: 'weather', arguments: { city: 'Oslo' } },
                { name: 'now', arguments: {} },
              ],
            },
            ANSWER,
          ],
        },
      ],
    })
  const parameters = { ...WEATHER_SCHEMA, required: ['city'] }
  const empty = { type: 'object' as const }

  /** Expects the calls, and their results with the ids of the calls, in the second request. */
  function expectResults({ requests }: ReturnType<typeof open>, reasoning: object): void {
    const messages = requests[1]?.messages ?? []
    const calls = [
      { name: 'weather', arguments: '{"city":"Oslo"}' },
      { name: 'now', arguments: '{}' },
    ]
    expect(messages).toMatchObject([
      { role: 'user', content: 'Oslo?' },
      { role: 'assistant', content: 'Let me look.', toolCalls: calls, ...reasoning },
      { role: 'tool', content: 'Oslo: 5 degrees' },
      { role: 'tool', content: 'noon' },
    ])
    const ids = messages.flatMap((message) => ('toolCalls' in message ? message.toolCalls : []))
    const results = messages.filter((message) => message.role === 'tool')
    expect(results.map(({ toolCallId }) => toolCallId)).toEqual(ids.map((call) => call?.id))
  }

  it('runs with openai', async () => {
    const server = open()
    const runner = openai(server.fetch).chat.completions.runTools({
      ...CHAT,
      stream: true,
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            description: 'The weather of a city',
            parameters,
            parse: JSON.parse,
            function: ({ city }: { city: string }) => `${city}: 5 degrees`,
          },
        },
        {
          type: 'function',
          function: { name: 'now', description: 'Time', parameters: {}, function: () => 'noon' },
        },
      ],
    })
    expect(await runner.finalContent()).toBe(ANSWER)
    expectResults(server, {})
  })

  it('runs with @anthropic-ai/sdk, and sends back the thoughts', async () => {
    const server = open()
    const runner = anthropic(server.fetch).beta.messages.toolRunner({
      ...MESSAGE,
      stream: true,
      thinking: { type: 'enabled', budget_tokens: 50 },
      tools: [
        {
          type: 'custom',
          name: 'weather',
          input_schema: parameters,
          parse: (input) => input as { city: string },
          run: ({ city }: { city: string }) => `${city}: 5 degrees`,
        },
        {
          type: 'custom',
          name: 'now',
          input_schema: empty,
          parse: (input) => input,
          run: () => 'noon',
        },
      ],
    })
    const { content } = await runner.runUntilDone()
    expect(content).toMatchObject([{ type: 'text', text: ANSWER }])
    expectResults(server, { reasoning: 'Two cities.' })
  })

  it('has its calls in the helper for responses', async () => {
    const { fetch } = open()
    const tools = [
      { type: 'function' as const, name: 'weather', parameters, strict: false },
      { type: 'function' as const, name: 'now', parameters: empty, strict: false },
    ]
    const stream = openai(fetch).responses.stream({ ...RESPONSE, tools })
    expect((await collect(stream)).at(-1)?.type).toBe('response.completed')
    const { output, output_text: text } = await stream.finalResponse()
    expect(text).toBe('Let me look.')
    expect(output.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call'])
  })
})
