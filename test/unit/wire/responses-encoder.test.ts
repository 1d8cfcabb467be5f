/** Responses as they are answered, and through the client people use. */
import OpenAI from 'openai'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { checkResponse, checkResponseStream } from '../../support/responses-grammar.ts'
import { collect, fetchOf, HELLO, scriptedHost, send } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { CALLING, CUT, LONG_USAGE, THINKING, tokenOf } from './scripts.ts'

const PATH = '/v1/responses'
const bodyOf = (fields: object = {}) => ({ model: '@acme/tiny', input: 'Hi', ...fields })
const thinking = { reasoning: { effort: 'high', summary: 'auto' } }

async function streamed(fields: object, script: Script = CALLING): Promise<string> {
  const response = await send(scriptedHost({ script }), PATH, {
    body: bodyOf({ stream: true, ...fields }),
  })
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  return response.text()
}

async function whole(fields: object, script: Script = CALLING): Promise<Record<string, unknown>> {
  const response = await send(scriptedHost({ script }), PATH, { body: bodyOf(fields) })
  return checkResponse(await response.json())
}

const settled = (raw: string) =>
  raw
    .replaceAll(/"(resp|msg|fc|rs)_[0-9a-f]{24}"/g, '"$1"')
    .replaceAll(/"created_at":\d{10},/g, '"created_at":0,')

describe('a streamed response', () => {
  it('is what the book says, to the letter', async () => {
    const rest =
      '"background":false,"error":null,"instructions":null,"max_output_tokens":null,"metadata":{},"model":"@acme/tiny",' +
      '"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":true,' +
      '"temperature":null,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":null,"truncation":"disabled",' +
      '"incomplete_details":null'
    const head = (status: string, end: string) =>
      `{"id":"resp","object":"response","created_at":0,"status":"${status}",${rest},${end}}`
    const beginning = head('in_progress', '"output":[],"usage":null')
    const message = (status: string, content: string) =>
      `{"id":"msg","type":"message","status":"${status}","role":"assistant","content":[${content}]}`
    const part = (text: string) =>
      `{"type":"output_text","text":"${text}","annotations":[],"logprobs":[]}`
    const usage =
      '{"input_tokens":12,"input_tokens_details":{"cached_tokens":5},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":15}'
    const done = message('completed', part('Hello there'))
    let number = 0
    const event = (type: string, fields: string) =>
      `event: ${type}\ndata: {"type":"${type}","sequence_number":${number++},${fields}}\n\n`
    const place = '"output_index":0,"item_id":"msg","content_index":0'
    expect(settled(await streamed({}, HELLO))).toBe(
      ': downloading @acme/tiny 45% 3.1 MB/s\n\n: heartbeat\n\n' +
        event('response.created', `"response":${beginning}`) +
        event('response.in_progress', `"response":${beginning}`) +
        event(
          'response.output_item.added',
          `"output_index":0,"item":${message('in_progress', '')}`,
        ) +
        event('response.content_part.added', `${place},"part":${part('')}`) +
        event('response.output_text.delta', `${place},"delta":"Hello","logprobs":[]`) +
        ': heartbeat\n\n' +
        event('response.output_text.delta', `${place},"delta":" there","logprobs":[]`) +
        event('response.output_text.done', `${place},"text":"Hello there","logprobs":[]`) +
        event('response.content_part.done', `${place},"part":${part('Hello there')}`) +
        event('response.output_item.done', `"output_index":0,"item":${done}`) +
        event(
          'response.completed',
          `"response":${head('completed', `"output":[${done}],"usage":${usage}`)}`,
        ),
    )
  })

  it('thinks, speaks and calls', async () => {
    const { items, response } = checkResponseStream(await streamed(thinking))
    expect(items).toMatchObject([
      { type: 'reasoning', text: 'Two cities.' },
      { type: 'message', text: 'Let me look.', status: 'completed' },
      { type: 'function_call', callId: 'call_A1', name: 'weather', text: '{"city": "Oslo"}' },
      { type: 'function_call', callId: 'call_B2', name: 'now', text: '{}', status: 'completed' },
    ])
    expect(response).toMatchObject({
      reasoning: thinking.reasoning,
      usage: { output_tokens: 30, output_tokens_details: { reasoning_tokens: 4 } },
    })
  })

  it('seals its thoughts for a client that sends them back', async () => {
    const fields = { ...thinking, include: ['reasoning.encrypted_content'] }
    const { response } = checkResponseStream(await streamed(fields))
    for (const answer of [response, await whole(fields)]) {
      const sealed = { type: 'reasoning', encrypted_content: expect.stringMatching(/^seal_/) }
      expect(answer).toMatchObject({ output: [sealed, {}, {}, {}] })
    }
  })

  it('keeps its thoughts to itself where no one asked for them', async () => {
    const { items } = checkResponseStream(await streamed({}))
    expect(items.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call'])
  })

  it.each([[CUT], [[...HELLO.slice(0, -1), ...CUT.slice(-1)]]])(
    'is incomplete when it is cut off',
    async (script) => {
      const { items, response } = checkResponseStream(await streamed({}, script))
      expect(items.at(-1)?.status).toBe('incomplete')
      expect(response).toMatchObject({
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      })
    },
  )

  it('of nothing has one empty message', async () => {
    const script = HELLO.filter((event) => event instanceof Error || event.type !== 'text')
    expect(checkResponseStream(await streamed({}, script)).items).toMatchObject([
      { type: 'message', text: '' },
    ])
  })

  it.each([[HELLO.slice(0, 4)], [HELLO.slice(0, 2)]])(
    'ends in an error event when it fails',
    async (begun) => {
      const failure = new InoriginError('unavailable', 'The device was lost.', {
        code: 'device_lost',
      })
      const { error } = checkResponseStream(await streamed({}, [...begun, failure]))
      const said = { message: 'The device was lost.', code: 'device_lost' }
      expect(error).toMatchObject({ ...said, error: { ...said, type: 'overloaded_error' } })
    },
  )

  it('tells how probable its tokens were', async () => {
    const script: Script = [
      { type: 'start', promptTokens: 1, cachedTokens: 0 },
      { type: 'text', text: 'Hi', logprobs: [tokenOf('Hi')] },
      // Tokens of a character that is not whole.
      { type: 'text', text: '', logprobs: [tokenOf('')] },
      { type: 'finish', reason: 'stop', stopSequence: null, usage: LONG_USAGE },
    ]
    const told = {
      token: 'Hi',
      logprob: -0.25,
      bytes: [72, 105],
      top_logprobs: [{ token: 'Hi' }, { logprob: -9999 }],
    }
    const { response } = checkResponseStream(await streamed({ top_logprobs: 2 }, script))
    for (const answer of [response, await whole({ top_logprobs: 2 }, script)]) {
      expect(answer).toMatchObject({
        output: [{ content: [{ text: 'Hi', logprobs: [told, { token: '' }] }] }],
      })
    }
  })
})

describe('a response', () => {
  it('tells at once what it streams', async () => {
    expect(await whole({ ...thinking, instructions: 'S', max_output_tokens: 50 })).toMatchObject({
      status: 'completed',
      instructions: 'S',
      max_output_tokens: 50,
      store: true,
      output: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Two cities.' }] },
        {
          type: 'message',
          content: [{ type: 'output_text', text: 'Let me look.', annotations: [] }],
        },
        {
          type: 'function_call',
          call_id: 'call_A1',
          name: 'weather',
          arguments: '{"city": "Oslo"}',
        },
        { type: 'function_call', call_id: 'call_B2', name: 'now', arguments: '{}' },
      ],
    })
  })

  it('is incomplete when it is cut off', async () => {
    expect(await whole({}, CUT)).toMatchObject({
      status: 'incomplete',
      output: [{ status: 'completed' }, { status: 'incomplete' }],
    })
  })

  it('of nothing has one empty message', async () => {
    const script = THINKING.filter((event) => event instanceof Error || event.type !== 'text')
    expect(await whole({}, script)).toMatchObject({
      output: [{ type: 'message', content: [{ text: '' }] }],
    })
  })
})

describe('openai', () => {
  const clientOf = (script: Script) => {
    const host = scriptedHost({ script })
    const client = new OpenAI({
      apiKey: 'k',
      baseURL: 'http://localhost/v1',
      fetch: fetchOf(host),
      dangerouslyAllowBrowser: true,
    })
    return { host, client }
  }
  const body = { model: '@acme/tiny', input: 'Hi' }

  it('creates', async () => {
    const response = await clientOf(HELLO).client.responses.create(body)
    expect(response.output_text).toBe('Hello there')
    expect(response.usage?.total_tokens).toBe(15)
  })

  it('streams through its helper', async () => {
    const stream = clientOf(CALLING).client.responses.stream(body)
    const events = await collect(stream)
    expect(events.at(-1)?.type).toBe('response.completed')
    const response = await stream.finalResponse()
    expect(response.output_text).toBe('Let me look.')
    expect(response.output.filter(({ type }) => type === 'function_call')).toHaveLength(2)
  })

  it('goes on with the items it got', async () => {
    const { host, client } = clientOf(CALLING)
    const { output } = await client.responses.create({ ...body, reasoning: { effort: 'low' } })
    const results = output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'x' }]
        : [],
    )
    // What comes out may go in, though the types of the client do not say it of every item.
    const input = [{ role: 'user', content: 'Hi' }, ...output, ...results] as ResponseInputItem[]
    await client.responses.create({ ...body, input })
    expect(host.requests[1]?.messages).toMatchObject([
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: 'Let me look.',
        reasoning: 'Two cities.',
        toolCalls: [{ id: 'call_A1' }, { id: 'call_B2' }],
      },
      { role: 'tool', toolCallId: 'call_A1', name: 'weather', content: 'x' },
      { role: 'tool', toolCallId: 'call_B2', name: 'now', content: 'x' },
    ])
  })

  it('throws what a stream ends in', async () => {
    const failure = new InoriginError('internal', 'The device was lost.', { code: 'device_lost' })
    const stream = await clientOf([...HELLO.slice(0, 4), failure]).client.responses.create({
      ...body,
      stream: true,
    })
    await expect(collect(stream)).rejects.toMatchObject({ code: 'device_lost' })
  })
})
