/** The client people use, unchanged, with the handler for its `fetch`. */
import Anthropic, { APIUserAbortError, AuthenticationError, NotFoundError } from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { collect, fetchOf, HELLO, KEY, scriptedHost } from './scripted-host.ts'
import type { HostOptions } from './scripted-host.ts'

function clientOf(options: HostOptions = {}, apiKey = KEY, baseURL = 'http://localhost') {
  const host = scriptedHost({ keyed: true, ...options })
  const client = new Anthropic({
    apiKey,
    baseURL,
    fetch: fetchOf(host),
    maxRetries: 2,
    dangerouslyAllowBrowser: true,
  })
  return { host, client }
}

const BODY = {
  model: '@acme/tiny',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hi' }],
}

describe('@anthropic-ai/sdk', () => {
  it.each(['http://localhost', 'http://localhost/v1'])('creates at %s', async (baseURL) => {
    const message = await clientOf({}, KEY, baseURL).client.messages.create(BODY)
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'Hello there' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 7, output_tokens: 3, cache_read_input_tokens: 5 },
    })
    expect(message._request_id).toMatch(/^req_/)
  })

  it('streams', async () => {
    const events = await collect(await clientOf().client.messages.create({ ...BODY, stream: true }))
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  it('streams through its helper', async () => {
    const stream = clientOf().client.messages.stream(BODY)
    const texts: string[] = []
    stream.on('text', (text) => texts.push(text))
    const message = await stream.finalMessage()
    expect(texts).toEqual(['Hello', ' there'])
    expect(message.content).toMatchObject([{ type: 'text', text: 'Hello there' }])
    expect(message.usage).toMatchObject({
      input_tokens: 7,
      output_tokens: 3,
      cache_read_input_tokens: 5,
    })
    expect(await stream.finalText()).toBe('Hello there')
  })

  it('streams an answer of nothing', async () => {
    const script = HELLO.filter((event) => event instanceof Error || event.type !== 'text')
    const message = await clientOf({ script }).client.messages.stream(BODY).finalMessage()
    expect(message.content).toMatchObject([{ type: 'text', text: '' }])
  })

  it('lists and retrieves models, page after page', async () => {
    const { client } = clientOf()
    const models = await collect(client.models.list({ limit: 1 }))
    expect(models.map(({ id }) => id)).toEqual(['@acme/tiny', '@acme/seeing'])
    expect(models[1]?.capabilities?.image_input.supported).toBe(true)
    expect(await client.models.retrieve('@acme/tiny')).toMatchObject({
      type: 'model',
      display_name: 'Tiny',
    })
    await expect(client.models.retrieve('@acme/none')).rejects.toBeInstanceOf(NotFoundError)
  })

  it('counts', async () => {
    const { max_tokens: _, ...body } = BODY
    const { host, client } = clientOf()
    expect(await client.messages.countTokens(body)).toMatchObject({ input_tokens: 42 })
    expect(await client.beta.messages.countTokens(body)).toMatchObject({ input_tokens: 42 })
    expect(host.requests).toHaveLength(2)
  })

  it('creates through its beta', async () => {
    const { host, client } = clientOf()
    const message = await client.beta.messages.create({ ...BODY, betas: ['context-1m-2025-08-07'] })
    expect(message.content).toMatchObject([{ type: 'text', text: 'Hello there' }])
    expect(host.requests).toHaveLength(1)
  })

  it('does without threads', async () => {
    const { host, client } = clientOf()
    const runner = client.beta.messages.toolRunner({ ...BODY, tools: [] })
    expect((await runner.runUntilDone()).content).toMatchObject([
      { type: 'text', text: 'Hello there' },
    ])
    expect(host.requests.map(({ messages }) => messages)).toEqual([
      [{ role: 'user', content: 'Hi' }],
    ])
    expect(host.authorized).toBe(1)
  })

  it('throws its own errors, at the first try when another cannot help', async () => {
    const count = { calls: 0 }
    const generate = () => {
      count.calls++
      return Promise.reject(new InoriginError('unavailable', 'No device here can run it.'))
    }
    const { client } = clientOf({ overrides: { generate } })
    await expect(client.messages.create(BODY)).rejects.toMatchObject({
      status: 503,
      type: 'overloaded_error',
    })
    expect(count.calls).toBe(1)
    await expect(clientOf({}, 'bad').client.messages.create(BODY)).rejects.toBeInstanceOf(
      AuthenticationError,
    )
    await expect(
      clientOf().client.messages.create({ ...BODY, model: 'none' }),
    ).rejects.toBeInstanceOf(NotFoundError)
    await expect(
      clientOf().client.messages.create({ ...BODY, max_tokens: 0 }),
    ).rejects.toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      requestID: expect.stringMatching(/^req_/),
    })
  })

  it('throws what a stream ends in', async () => {
    const script = [...HELLO.slice(0, 4), new InoriginError('internal', 'The device was lost.')]
    const { client } = clientOf({ script })
    const stream = await client.messages.create({ ...BODY, stream: true })
    await expect(collect(stream)).rejects.toMatchObject({ type: 'api_error' })
    await expect(client.messages.stream(BODY).finalMessage()).rejects.toThrow(
      'The device was lost.',
    )
  })

  it('stops what it aborts', async () => {
    const { host, client } = clientOf()
    const stream = await client.messages.create({ ...BODY, stream: true })
    for await (const event of stream) {
      if (event.type === 'content_block_delta') break
    }
    expect(host.callers[0]?.signal.aborted).toBe(true)
    expect(host.returned).toBe(true)

    const helper = client.messages.stream(BODY)
    helper.on('text', () => helper.abort())
    await expect(helper.finalMessage()).rejects.toBeInstanceOf(APIUserAbortError)
    expect(host.callers[1]?.signal.aborted).toBe(true)
  })
})
