/** Tools, thoughts and schemas through the clients people use, round trips included. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { RunnableToolFunctionWithoutParse } from 'openai/lib/RunnableFunction'
import { describe, expect, it } from 'vitest'
import { collect, fetchOf, HELLO, scriptedHost } from './scripted-host.ts'
import type { Script, ScriptedHost } from './scripted-host.ts'
import { CALLING, LONG_USAGE, THINKING, WEATHER_SCHEMA } from './scripts.ts'

/** Calls tools first, and answers once it has their results. */
function callingHost(): ScriptedHost {
  const [first, second] = [scriptedHost({ script: CALLING }), scriptedHost()]
  return {
    ...first,
    generate: (request, caller) => {
      const hasResults = request.messages.some(({ role }) => role === 'tool')
      return (hasResults ? second : first).generate(request, caller).finally(() => {
        if (hasResults) first.requests.push(request)
      })
    },
  }
}

const openai = (host: ScriptedHost) =>
  new OpenAI({
    apiKey: 'k',
    baseURL: 'http://localhost/v1',
    fetch: fetchOf(host),
    dangerouslyAllowBrowser: true,
  })
const anthropic = (host: ScriptedHost) =>
  new Anthropic({
    apiKey: 'k',
    baseURL: 'http://localhost',
    fetch: fetchOf(host),
    dangerouslyAllowBrowser: true,
  })
const of = (script: Script) => scriptedHost({ script })

const CHAT = { model: '@acme/tiny', messages: [{ role: 'user' as const, content: 'Oslo?' }] }
const MESSAGE = { ...CHAT, max_tokens: 100 }
const CHAT_TOOLS = [
  { type: 'function' as const, function: { name: 'weather', parameters: { ...WEATHER_SCHEMA } } },
  { type: 'function' as const, function: { name: 'now' } },
]
const cities: string[] = []
const weather = (city: string) => {
  cities.push(city)
  return '5 degrees'
}

/** The turns that a client with tools of its own must have sent the second time. */
const RESULTS = [
  { role: 'user', content: 'Oslo?' },
  {
    role: 'assistant',
    content: 'Let me look.',
    toolCalls: [
      { id: 'call_A1', name: 'weather' },
      { id: 'call_B2', name: 'now', arguments: '{}' },
    ],
  },
  { role: 'tool', toolCallId: 'call_A1', name: 'weather', content: '5 degrees' },
  { role: 'tool', toolCallId: 'call_B2', name: 'now', content: 'noon' },
]

describe('openai', () => {
  it('gets calls, at once and streamed', async () => {
    const client = openai(of(CALLING))
    const { choices } = await client.chat.completions.create({ ...CHAT, tools: CHAT_TOOLS })
    const helper = client.chat.completions.stream({ ...CHAT, tools: CHAT_TOOLS })
    const streamed = await helper.finalChatCompletion()
    for (const choice of [choices[0], streamed.choices[0]]) {
      expect(choice?.finish_reason).toBe('tool_calls')
      expect(choice?.message.tool_calls).toMatchObject([
        {
          id: 'call_A1',
          type: 'function',
          function: { name: 'weather', arguments: '{"city": "Oslo"}' },
        },
        { id: 'call_B2', type: 'function', function: { name: 'now', arguments: '{}' } },
      ])
    }
  })

  it.each([false, true])('runs tools until it has its answer, streamed: %s', async (stream) => {
    const host = callingHost()
    const client = openai(host)
    const tools: RunnableToolFunctionWithoutParse[] = [
      {
        type: 'function',
        function: {
          name: 'weather',
          description: 'The weather of a city',
          parameters: { ...WEATHER_SCHEMA, required: ['city'] },
          function: (text: string) => weather((JSON.parse(text) as { city: string }).city),
        },
      },
      {
        type: 'function',
        function: { name: 'now', description: 'The time', parameters: {}, function: () => 'noon' },
      },
    ]
    const runner = stream
      ? client.chat.completions.runTools({ ...CHAT, stream: true, tools })
      : client.chat.completions.runTools({ ...CHAT, tools })
    expect(await runner.finalContent()).toBe('Hello there')
    expect(cities.at(-1)).toBe('Oslo')
    expect(host.requests.at(-1)?.messages).toMatchObject(RESULTS)
    expect(host.requests.at(-1)?.tools?.tools).toHaveLength(2)
  })

  it('gets an object of a schema', async () => {
    const script: Script = [
      ...HELLO.slice(0, 3),
      { type: 'text', text: '{"city": "Oslo"}' },
      ...HELLO.slice(-1),
    ]
    const host = of(script)
    const { choices } = await openai(host).chat.completions.parse({
      ...CHAT,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'place', strict: true, schema: { ...WEATHER_SCHEMA } },
      },
    })
    expect(choices[0]?.message.parsed).toEqual({ city: 'Oslo' })
    expect(host.requests[0]?.format).toEqual({ type: 'json_schema', schema: WEATHER_SCHEMA })
  })

  it('gets thoughts where it asks for them', async () => {
    const chunks = await collect(
      await openai(of(THINKING)).chat.completions.create({
        ...CHAT,
        stream: true,
        reasoning_effort: 'low',
      }),
    )
    const deltas = chunks.map(({ choices }) => choices[0]?.delta as { reasoning_content?: string })
    expect(deltas.map((delta) => delta.reasoning_content ?? '').join('')).toBe('Two cities.')
  })
})

describe('@anthropic-ai/sdk', () => {
  const tools = [
    { name: 'weather', input_schema: { ...WEATHER_SCHEMA, required: ['city'] } },
    { name: 'now', input_schema: { type: 'object' as const } },
  ]

  it('gets calls and thoughts, at once and streamed', async () => {
    const client = anthropic(of(CALLING))
    const body = { ...MESSAGE, tools, thinking: { type: 'enabled' as const, budget_tokens: 50 } }
    const [created, streamed] = [
      await client.messages.create(body),
      await client.messages.stream(body).finalMessage(),
    ]
    for (const { content, stop_reason, usage } of [created, streamed]) {
      expect(stop_reason).toBe('tool_use')
      expect(content).toMatchObject([
        { type: 'thinking', thinking: 'Two cities.' },
        { type: 'text', text: 'Let me look.' },
        { type: 'tool_use', id: 'toolu_A1', name: 'weather', input: { city: 'Oslo' } },
        { type: 'tool_use', id: 'toolu_B2', name: 'now', input: {} },
      ])
      expect(usage.output_tokens).toBe(LONG_USAGE.completionTokens)
    }
  })

  it.each([false, true])('runs tools until it has its answer, streamed: %s', async (stream) => {
    const host = callingHost()
    const runnable = [
      {
        ...tools[0],
        type: 'custom' as const,
        name: 'weather',
        input_schema: { ...WEATHER_SCHEMA, required: ['city'] },
        parse: (input: unknown) => input as { city: string },
        run: ({ city }: { city: string }) => weather(city),
      },
      {
        type: 'custom' as const,
        name: 'now',
        input_schema: { type: 'object' as const },
        parse: (input: unknown) => input,
        run: () => 'noon',
      },
    ]
    const runner = anthropic(host).beta.messages.toolRunner({ ...MESSAGE, stream, tools: runnable })
    const { content } = await runner.runUntilDone()
    expect(content).toMatchObject([{ type: 'text', text: 'Hello there' }])
    expect(host.requests.at(-1)?.messages).toMatchObject(RESULTS)
    expect(host.requests.at(-1)?.tools?.tools).toHaveLength(2)
  })

  it('sends thoughts back as it got them', async () => {
    const host = of(THINKING)
    const client = anthropic(host)
    const body = { ...MESSAGE, thinking: { type: 'adaptive' as const } }
    const { content } = await client.messages.create(body)
    await client.messages.create({
      ...body,
      messages: [...MESSAGE.messages, { role: 'assistant', content }, ...MESSAGE.messages],
    })
    expect(host.requests[1]?.messages[1]).toEqual({
      role: 'assistant',
      content: 'Let me look.',
      reasoning: 'Two cities.',
    })
  })

  it('gets an object of a schema', async () => {
    const script: Script = [
      ...HELLO.slice(0, 3),
      { type: 'text', text: '{"city": "Oslo"}' },
      ...HELLO.slice(-1),
    ]
    const host = of(script)
    const format = { type: 'json_schema' as const, schema: { ...WEATHER_SCHEMA } }
    const message = await anthropic(host).messages.parse({ ...MESSAGE, output_config: { format } })
    expect(message.content[0]).toMatchObject({ type: 'text', text: '{"city": "Oslo"}' })
    expect(host.requests[0]?.format).toEqual({ type: 'json_schema', schema: WEATHER_SCHEMA })
  })
})
