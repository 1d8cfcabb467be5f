import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { checkChatStream, checkChatUsage } from '../../support/openai-grammar.ts'
import { chatOf, HELLO, scriptedHost, send, USAGE } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'

const PATH = '/v1/chat/completions'

async function streamed(fields: object, script: Script = HELLO): Promise<string> {
  const response = await send(scriptedHost({ script }), PATH, {
    body: chatOf({ stream: true, ...fields }),
  })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-cache')
  return response.text()
}

/** Takes out what differs from run to run. */
const settled = (raw: string) =>
  raw
    .replaceAll(/"chatcmpl-[0-9a-f]{24}"/g, '"ID"')
    .replaceAll(/"created":\d{10},/g, '"created":0,')

describe('a streamed chat completion', () => {
  it('is what the book says, to the letter', async () => {
    expect(settled(await streamed({}))).toBe(
      ': downloading @acme/tiny 45% 3.1 MB/s\n\n' +
        ': heartbeat\n\n' +
        'data: {"id":"ID","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null,"logprobs":null}]}\n\n' +
        'data: {"id":"ID","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null,"logprobs":null}]}\n\n' +
        ': heartbeat\n\n' +
        'data: {"id":"ID","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null,"logprobs":null}]}\n\n' +
        'data: {"id":"ID","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[{"index":0,"delta":{},"finish_reason":"stop","logprobs":null}]}\n\n' +
        'data: [DONE]\n\n',
    )
  })

  it.each([
    ['download', 0, 0, 0, 'downloading @acme/tiny'],
    ['download', 999, 1000, 0, 'downloading @acme/tiny 99%'],
    ['download', 0, 1000, 49_000, 'downloading @acme/tiny 0% 0.0 MB/s'],
    ['compile', 5, 5, 0, 'compiling @acme/tiny 100%'],
    ['ready', 0, 0, 0, 'ready @acme/tiny'],
  ] as const)('tells of %s %i/%i at %i', async (phase, loadedBytes, totalBytes, rate, told) => {
    const progress = {
      tag: '@acme/tiny',
      phase,
      loadedBytes,
      totalBytes,
      bytesPerSecond: rate,
      remainingSeconds: null,
    }
    const raw = await streamed({}, [{ type: 'progress', progress }, ...HELLO])
    expect(raw.startsWith(`: ${told}\n\n`)).toBe(true)
  })

  it('tells tokens that have no text of their own', async () => {
    const cut = { text: '\ufffd', bytes: [0xf0], logprob: -1, top: [] }
    const raw = await streamed({ logprobs: true }, [
      ...HELLO.slice(0, -1),
      { type: 'text', text: '', logprobs: [cut] },
      HELLO.at(-1) as Script[number],
    ])
    expect(checkChatStream(raw, { logprobs: true }).content).toBe('Hello there')
    expect(raw).toContain(
      '"delta":{"content":""},"finish_reason":null,"logprobs":{"content":[{"token":"\ufffd","logprob":-1,"bytes":[240],"top_logprobs":[]}],"refusal":null}',
    )
  })

  it('ends in usage when that is asked for', async () => {
    const raw = await streamed({ stream_options: { include_usage: true } })
    expect(checkChatStream(raw, { includeUsage: true }).usage).toEqual({
      prompt_tokens: 12,
      completion_tokens: 3,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
    expect(settled(raw)).toContain(
      'data: {"id":"ID","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":0}}}\n\ndata: [DONE]\n\n',
    )
  })

  it.each([
    { stream_options: null },
    { stream_options: {} },
    { stream_options: { include_usage: null } },
    { stream_options: { include_usage: false } },
  ])('has no usage with %o', async (fields) =>
    expect(checkChatStream(await streamed(fields)).usage).toBeNull(),
  )

  it.each([
    ['stop', null, 'stop'],
    ['length', null, 'length'],
    ['stop_sequence', 'END', 'stop'],
  ] as const)('tells the end %s', async (reason, stopSequence, told) => {
    const script: Script = [
      ...HELLO.slice(0, -1),
      { type: 'finish', reason, stopSequence, usage: USAGE },
    ]
    expect(checkChatStream(await streamed({}, script)).finishReason).toBe(told)
  })

  it('keeps whatever the text holds', async () => {
    const text = 'line\nline\r\n\n"quoted" \u2028 data: [DONE]\n\n \ud83d\ude00'
    const script: Script = [
      { type: 'start', promptTokens: 1, cachedTokens: 0 },
      { type: 'text', text },
      { type: 'text', text: '' },
      { type: 'finish', reason: 'stop', stopSequence: null, usage: USAGE },
    ]
    expect(checkChatStream(await streamed({}, script)).content).toBe(text)
  })

  it('may be empty', async () => {
    const script = HELLO.filter((event) => event instanceof Error || event.type !== 'text')
    expect(checkChatStream(await streamed({}, script))).toMatchObject({
      content: '',
      finishReason: 'stop',
    })
  })

  it.each([
    ['in the middle', HELLO.slice(0, 4), 'Hello'],
    ['before the start', HELLO.slice(0, 2), ''],
  ])('ends in an error frame when it fails %s', async (_, begun, content) => {
    const failure = new InoriginError('unavailable', 'The tab that computed was closed.', {
      code: 'host_gone',
    })
    const raw = await streamed({}, [...begun, failure])
    expect(checkChatStream(raw)).toMatchObject({
      content,
      error: {
        message: 'The tab that computed was closed.',
        type: 'overloaded_error',
        code: 'host_gone',
        param: null,
      },
    })
    expect(
      raw.endsWith(
        'data: {"error":{"message":"The tab that computed was closed.","type":"overloaded_error","param":null,"code":"host_gone"}}\n\n',
      ),
    ).toBe(true)
  })

  it('is an error when its events end too soon', async () => {
    expect(checkChatStream(await streamed({}, HELLO.slice(0, 4))).error).toMatchObject({
      type: 'api_error',
    })
  })
})

describe('a chat completion', () => {
  it('is one JSON body, with spaces while it is made', async () => {
    const response = await send(scriptedHost(), PATH, { body: chatOf({ stream: false }) })
    expect(response.headers.get('content-type')).toBe('application/json')
    const raw = await response.text()
    expect(raw.startsWith('   {')).toBe(true)
    expect(settled(raw.trim())).toBe(
      '{"id":"ID","object":"chat.completion","created":0,"model":"@acme/tiny","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there","refusal":null},"finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":0}}}',
    )
    const body = JSON.parse(raw) as { usage: unknown; created: number }
    checkChatUsage(body.usage)
    expect(Math.abs(body.created - Date.now() / 1000)).toBeLessThan(5)
  })

  it('breaks its body off when it fails late', async () => {
    const script = [...HELLO.slice(0, 4), new InoriginError('internal', 'The device was lost.')]
    const response = await send(scriptedHost({ script }), PATH, { body: chatOf() })
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow('The device was lost.')
  })

  it('has another id every time', async () => {
    const host = scriptedHost()
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const response = await send(host, PATH, { body: chatOf() })
        return ((await response.json()) as { id: string }).id
      }),
    )
    expect(new Set(ids).size).toBe(20)
  })
})
