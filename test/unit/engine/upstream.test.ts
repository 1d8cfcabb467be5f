/** The requests to an upstream server and its answers, over real connections. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Upstream } from '../../../src/catalog/upstream-schema.ts'
import { embedUpstream, generateUpstream } from '../../../src/engine/upstream/index.ts'
import { InoriginError } from '../../../src/error.ts'
import {
  askUpstream,
  failureOf,
  MODEL,
  openUpstreamCall,
  readAll,
  REQUEST,
} from '../../support/upstream-call.ts'
import {
  chunkOf,
  DONE,
  sendEvents,
  type Respond,
  type UpstreamServer,
} from '../../support/upstream-server.ts'

const USAGE = {
  prompt_tokens: 7,
  completion_tokens: 3,
  prompt_tokens_details: { cached_tokens: 2 },
  completion_tokens_details: { reasoning_tokens: 1 },
}
const END = [{ choices: [], usage: USAGE }, DONE]
const HELLO = [chunkOf({ role: 'assistant', content: 'Hel' }), chunkOf({ content: 'lo' }, 'stop')]

let server: UpstreamServer | undefined
afterEach(() => server?.close())

async function open(respond: Respond, changes: Partial<Upstream> = {}) {
  const opened = await openUpstreamCall(respond, changes)
  server = opened.server
  return opened
}

const answers =
  (...chunks: unknown[]): Respond =>
  (response) => {
    sendEvents(response, chunks)
    response.end()
  }

describe('an answer', () => {
  test('is text with its usage', async () => {
    const { call, received } = await open(answers(...HELLO, ...END))
    const { events } = await askUpstream(call, {
      sampling: { temperature: 0.5, seed: 3 },
      maxTokens: 999,
    })
    expect(events).toEqual([
      { type: 'served_by', servedBy: 'upstream' },
      { type: 'start', promptTokens: 0, cachedTokens: 0 },
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
      {
        type: 'finish',
        reason: 'stop',
        stopSequence: null,
        usage: { promptTokens: 7, cachedTokens: 2, completionTokens: 3, reasoningTokens: 1 },
      },
    ])
    expect(received[0]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { 'x-app': 'token', 'content-type': 'application/json' },
      body: {
        model: 'big',
        messages: [{ role: 'user', content: 'Hi' }],
        max_tokens: 50,
        temperature: 0.5,
        seed: 3,
        stream: true,
        stream_options: { include_usage: true },
      },
    })
    expect(received[0]?.headers).not.toHaveProperty('authorization')
  })

  test('has reasoning, tool calls and log probabilities', async () => {
    const call1 = { index: 0, id: 'a', function: { name: 'add', arguments: '{"x"' } }
    const { call } = await open(
      answers(
        chunkOf({ reasoning: 'Hm' }),
        chunkOf({ content: 'é' }, null, {
          logprobs: { content: [{ token: 'é', logprob: -1, top_logprobs: [] }] },
        }),
        chunkOf({ tool_calls: [call1] }),
        chunkOf({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
        // Some servers give every call the index 0.
        chunkOf({ tool_calls: [{ index: 0, id: 'b', function: { name: 'now' } }] }, 'stop'),
        ...END,
      ),
    )
    const { events } = await askUpstream(call, { logprobs: 1 })
    expect(events.slice(2)).toMatchObject([
      { type: 'reasoning', text: 'Hm' },
      { type: 'text', text: 'é', logprobs: [{ text: 'é', bytes: [195, 169], logprob: -1 }] },
      { type: 'tool_call', index: 0, id: 'a', name: 'add' },
      { type: 'tool_arguments', index: 0, text: '{"x"' },
      { type: 'tool_arguments', index: 0, text: ':1}' },
      { type: 'tool_call', index: 1, id: 'b', name: 'now' },
      { type: 'finish', reason: 'tool_calls' },
    ])
  })

  test('names the stop sequence if the server does', async () => {
    const { call } = await open(
      answers(chunkOf({ content: 'a' }, 'stop', { stop_reason: 'X' }), ...END),
    )
    const { events } = await askUpstream(call, { stop: ['X'] })
    expect(events.at(-1)).toMatchObject({ reason: 'stop_sequence', stopSequence: 'X' })
  })

  test.each([
    ['no end marker', [...HELLO], 'upstream_invalid'],
    ['no reason for its end', [chunkOf({ content: 'a' }), DONE], 'upstream_invalid'],
    ['an error in the middle', [HELLO[0], { error: { message: 'out of GPUs' } }], 'upstream_error'],
    ['a filtered end', [chunkOf({ content: 'a' }, 'content_filter'), DONE], 'upstream_refused'],
  ])('fails with %s', async (_name, chunks, code) => {
    const { call } = await open(answers(...chunks))
    expect(await failureOf(askUpstream(call))).toMatchObject({ code })
  })

  test('fails if its connection breaks', async () => {
    const { call } = await open((response) => {
      sendEvents(response, [HELLO[0]])
      response.write('data: {', () => response.destroy())
    })
    expect(await failureOf(askUpstream(call))).toMatchObject({ code: 'upstream_unreachable' })
  })

  test('that is no stream is refused, and so is a redirect', async () => {
    const { call, server: target } = await open((response, { path }) => {
      if (path === '/v1/chat/completions') response.writeHead(307, { location: '/elsewhere' }).end()
      else answers(...HELLO, ...END)(response, target.received[0] as never, 1)
    })
    expect(await failureOf(askUpstream(call))).toMatchObject({ code: 'upstream_unreachable' })
    expect(target.received.map(({ path }) => path)).toEqual(['/v1/chat/completions'])
    await target.close()
    const plain = await open((response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
    expect(await failureOf(askUpstream(plain.call))).toMatchObject({ code: 'upstream_invalid' })
  })
})

describe('a request', () => {
  test('keeps the status of a rejection and says where it came from', async () => {
    const { call } = await open((response) => {
      response.writeHead(422).end(JSON.stringify({ error: { message: 'no such sampler' } }))
    })
    const error = await failureOf(askUpstream(call))
    expect(error).toMatchObject({ kind: 'invalid_request', status: 422, code: 'upstream_error' })
    expect(error.message).toContain(
      `${call.upstream.url} responded with status 422: no such sampler`,
    )
    expect(InoriginError.fromRecord(error.toRecord()).status).toBe(422)
  })

  test('is retried while the server asks for it, twice at most', async () => {
    const busy: Respond = (response, _request, attempt) => {
      if (attempt < 3) response.writeHead(429, { 'retry-after': '0' }).end()
      else answers(...HELLO, ...END)(response, _request, attempt)
    }
    const { call, received, server: first } = await open(busy)
    await askUpstream(call)
    expect(received).toHaveLength(3)
    await first.close()
    const never = await open((response) => {
      response.writeHead(503, { 'retry-after': '0' }).end()
    })
    expect(await failureOf(askUpstream(never.call))).toMatchObject({ status: 503, retryAfter: 0 })
    expect(never.received).toHaveLength(3)
  })

  test('does not wait longer than the bound', async () => {
    const { call, received } = await open((response) => {
      response.writeHead(429, { 'retry-after': '60' }).end()
    })
    expect(await failureOf(askUpstream(call))).toMatchObject({ status: 429, retryAfter: 60 })
    expect(received).toHaveLength(1)
  })

  test('closes its connection when it is aborted', async () => {
    const {
      call,
      abort,
      server: target,
    } = await open((response) => {
      sendEvents(response, [HELLO[0]])
    })
    const { events } = await generateUpstream(REQUEST, MODEL, call)
    const reading = failureOf(readAll(events))
    const closed = target.closed()
    abort.abort()
    await closed
    expect(await reading).toMatchObject({ kind: 'aborted' })
  })

  test('forwards the key of the client only if the entry says so', async () => {
    const { call, received } = await open(answers(...HELLO, ...END), { forwardAuthorization: true })
    await askUpstream(call)
    expect(received[0]?.headers.authorization).toBe('Bearer sk-client')
  })

  test('names a tool by leaving out the others, which every server understands', async () => {
    const { call, received } = await open(answers(...HELLO, ...END))
    const tools = ['add', 'now'].map((name) => ({ name, parameters: { type: 'object' } }))
    const use = { tools, choice: 'required', parallel: true } as const
    await askUpstream(call, { tools: { ...use, only: ['now'] } })
    await askUpstream(call, { tools: use })
    const sent = received.map(({ body }) => body)
    expect(sent[0]).toMatchObject({
      tools: [{ function: { name: 'now' } }],
      tool_choice: 'required',
    })
    expect(sent[1]).toMatchObject({
      tools: [{ function: { name: 'add' } }, { function: { name: 'now' } }],
      tool_choice: 'required',
    })
  })

  test('refuses or lists what the server does not honor', async () => {
    const { call, received } = await open(answers(...HELLO, ...END), {
      unsupported: ['top_k', 'response_format', 'reasoning_effort'],
    })
    const { ignored } = await askUpstream(call, {
      sampling: { topK: 3, topP: 0.5 },
      reasoningBudget: 64,
    })
    expect(ignored).toEqual(['top_k', 'reasoningBudget'])
    expect(received[0]?.body).toMatchObject({ top_p: 0.5 })
    expect(received[0]?.body).not.toHaveProperty('top_k')
    for (const [changes, param] of [
      [{ format: { type: 'json_object' } }, 'format'],
      [{ format: { type: 'grammar', grammar: 'root ::= "a"' } }, 'format'],
      [{ sampling: { logitBias: { 1: 2 } } }, 'logit_bias'],
      [{ responsePrefix: 'Once' }, 'messages'],
      [{ logprobs: 2 }, 'logprobs'],
    ] as const)
      expect(await failureOf(askUpstream(call, changes))).toMatchObject({
        kind: 'invalid_request',
        code: 'unsupported_parameter',
        param,
      })
  })
})

test('embeddings are vectors in the order of the texts', async () => {
  const data = [
    { index: 1, embedding: [3, 4] },
    { index: 0, embedding: [1, 2] },
  ]
  const body = { data, usage: { prompt_tokens: 9 } }
  const { call, received } = await open((response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const request = { model: '@a/b', input: ['a', 'b'] }
  const { vectors, dimensions, tokens } = await embedUpstream(request, 2, call)
  expect([[...vectors], dimensions, tokens]).toEqual([[1, 2, 3, 4], 2, 9])
  expect(received[0]).toMatchObject({ path: '/v1/embeddings', body: { input: ['a', 'b'] } })
  expect(await failureOf(embedUpstream(request, 3, call))).toMatchObject({
    code: 'upstream_invalid',
  })
})
