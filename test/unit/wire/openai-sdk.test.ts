/** The client people use, unchanged, with the handler for its `fetch`. */
import OpenAI, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  RateLimitError,
} from 'openai'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { collect, fetchOf, HELLO, KEY, scriptedHost } from './scripted-host.ts'
import type { HostOptions } from './scripted-host.ts'

function clientOf(options: HostOptions = {}, apiKey = KEY) {
  const host = scriptedHost({ keyed: true, ...options })
  const client = new OpenAI({
    apiKey,
    baseURL: 'http://localhost/v1',
    fetch: fetchOf(host),
    maxRetries: 2,
    dangerouslyAllowBrowser: true,
  })
  return { host, client }
}

const BODY = { model: '@acme/tiny', messages: [{ role: 'user' as const, content: 'Hi' }] }
const refusing = (error: InoriginError, count = { calls: 0 }) => ({
  count,
  overrides: {
    generate: () => {
      count.calls++
      return Promise.reject(error)
    },
  },
})

describe('openai', () => {
  it('creates', async () => {
    const completion = await clientOf().client.chat.completions.create(BODY)
    expect(completion.choices[0]?.message).toMatchObject({
      role: 'assistant',
      content: 'Hello there',
    })
    expect(completion.choices[0]?.finish_reason).toBe('stop')
    expect(completion.usage?.total_tokens).toBe(15)
    expect(completion._request_id).toMatch(/^req_/)
  })

  it('streams', async () => {
    const stream = await clientOf().client.chat.completions.create({
      ...BODY,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collect(stream)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(
      'Hello there',
    )
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(3)
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
  })

  it('streams through its helper', async () => {
    const stream = clientOf().client.chat.completions.stream({
      ...BODY,
      stream_options: { include_usage: true },
    })
    const contents: string[] = []
    stream.on('content', (delta) => contents.push(delta))
    const completion = await stream.finalChatCompletion()
    expect(contents).toEqual(['Hello', ' there'])
    expect(completion.choices[0]?.message.content).toBe('Hello there')
    expect((await stream.totalUsage()).total_tokens).toBe(15)
  })

  it('lists and retrieves models', async () => {
    const { client } = clientOf()
    const models = await collect(client.models.list())
    expect(models.map(({ id }) => id)).toEqual(['@acme/tiny', '@acme/seeing'])
    expect(await client.models.retrieve('@acme/tiny')).toMatchObject({
      object: 'model',
      owned_by: 'acme',
    })
    await expect(client.models.retrieve('@acme/none')).rejects.toBeInstanceOf(NotFoundError)
  })

  it('throws its own errors, at the first try when another cannot help', async () => {
    const { count, overrides } = refusing(
      new InoriginError('unavailable', 'No device here can run it.'),
    )
    const { client } = clientOf({ overrides })
    await expect(client.chat.completions.create(BODY)).rejects.toThrow('No device here can run it.')
    expect(count.calls).toBe(1)
    await expect(clientOf({}, 'bad').client.chat.completions.create(BODY)).rejects.toBeInstanceOf(
      AuthenticationError,
    )
    await expect(
      clientOf().client.chat.completions.create({ ...BODY, model: 'none' }),
    ).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
      type: 'not_found_error',
      requestID: expect.stringMatching(/^req_/),
    })
    await expect(
      clientOf().client.chat.completions.create({ ...BODY, n: 2 }),
    ).rejects.toBeInstanceOf(BadRequestError)
  })

  it('tries again when it is told to', async () => {
    const { count, overrides } = refusing(
      new InoriginError('rate_limit', 'The queue is full.', { retryAfter: 0.01 }),
    )
    await expect(
      clientOf({ overrides }).client.chat.completions.create(BODY),
    ).rejects.toBeInstanceOf(RateLimitError)
    expect(count.calls).toBe(3)
  })

  it('throws what a stream ends in', async () => {
    const script = [
      ...HELLO.slice(0, 4),
      new InoriginError('internal', 'The device was lost.', { code: 'device_lost' }),
    ]
    const { client } = clientOf({ script })
    const stream = await client.chat.completions.create({ ...BODY, stream: true })
    await expect(collect(stream)).rejects.toMatchObject({
      code: 'device_lost',
      message: 'The device was lost.',
    })
    await expect(client.chat.completions.stream(BODY).finalChatCompletion()).rejects.toBeInstanceOf(
      APIError,
    )
  })

  it('rejects when a body breaks off', async () => {
    const script = [...HELLO.slice(0, 4), new InoriginError('internal', 'The device was lost.')]
    await expect(clientOf({ script }).client.chat.completions.create(BODY)).rejects.toThrow(
      'The device was lost.',
    )
  })

  it('stops what it aborts', async () => {
    const { host, client } = clientOf()
    const stream = await client.chat.completions.create({ ...BODY, stream: true })
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content === 'Hello') break
    }
    expect(host.callers[0]?.signal.aborted).toBe(true)
    expect(host.returned).toBe(true)

    const helper = client.chat.completions.stream(BODY)
    helper.on('content', () => helper.abort())
    await expect(helper.finalChatCompletion()).rejects.toBeInstanceOf(APIUserAbortError)
    expect(host.callers[1]?.signal.aborted).toBe(true)

    const abort = AbortSignal.abort()
    await expect(client.chat.completions.create(BODY, { signal: abort })).rejects.toBeInstanceOf(
      APIUserAbortError,
    )
  })
})
