/** Embeddings on the wire: plain, as clients people use send and read them, and what is refused. */
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { OpenAIEmbeddings } from '@langchain/openai'
import { embed, embedMany } from 'ai'
import OpenAI, { BadRequestError } from 'openai'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { EmbeddingEvent } from '../../../src/types/index.ts'
import { errorOf, fetchOf, KEY, scriptedHost, send, type HostOptions } from './scripted-host.ts'

const model = '@acme/embed'
const post = (body: object, options: HostOptions = {}, signal?: AbortSignal) =>
  send(scriptedHost(options), '/v1/embeddings', { body, signal })

/** What the host says of texts of these lengths, as it crosses the wire. */
const vector = (length: number): number[] => [length, Math.fround(length / 3), -length]

describe('embeddings', () => {
  it('are a list in the order of the texts', async () => {
    const host = scriptedHost()
    const response = await send(host, '/v1/embeddings', {
      body: { model, input: ['one', 'three'], encoding_format: 'float', user: 'u', extra: 1 },
    })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-inorigin-ignored')).toBe('user, extra')
    expect(host.embedded).toEqual([{ model, input: ['one', 'three'] }])
    const text = await response.text()
    // It took long enough for a sign of life.
    expect(text.startsWith(' {')).toBe(true)
    expect(JSON.parse(text)).toEqual({
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: vector(3) },
        { object: 'embedding', index: 1, embedding: vector(5) },
      ],
      model,
      usage: { prompt_tokens: 8, total_tokens: 8 },
    })
  })

  it.each([
    ['a text', { input: 'one' }, ['one'], undefined],
    ['a format that is null', { input: ['one'], encoding_format: null }, ['one'], undefined],
    ['fewer dimensions', { input: 'one', dimensions: 2 }, ['one'], 2],
    ['as many texts as may be', { input: Array(2048).fill('a') }, Array(2048).fill('a'), undefined],
    ['spaces, and half a character', { input: [' ', '\ud83d'] }, [' ', '\ud83d'], undefined],
    [
      'fields of other servers that change nothing',
      { input: 'one', truncate: false, normalize: true, stream: false, messages: [] },
      ['one'],
      undefined,
    ],
  ])('may be of %s', async (_what, fields, input, dimensions) => {
    const host = scriptedHost()
    const response = await send(host, '/v1/embeddings', { body: { model, ...fields } })
    expect(response.status).toBe(200)
    expect(host.embedded).toEqual([{ model, input, dimensions }])
  })

  it('as base64 are the bytes of the same numbers, lowest first', async () => {
    const { data } = await (await post({ model, input: 'one', encoding_format: 'base64' })).json()
    const bytes = Buffer.from(data[0].embedding, 'base64')
    expect([0, 4, 8].map((at) => bytes.readFloatLE(at))).toEqual(vector(3))
    expect(bytes).toHaveLength(12)
  })

  it.each<[object, string | null, RegExp]>([
    [{ model }, 'input', /^`input` is required\.$/],
    [{ input: 'x' }, 'model', /^`model` is required\.$/],
    [{ model, input: '' }, 'input', /must be a string that is not empty, not ""/],
    [{ model, input: [] }, 'input', /must be an array with at least one string, not an array of 0/],
    [{ model, input: ['a', ''] }, 'input[1]', /must be a string that is not empty/],
    [{ model, input: ['a', 5] }, 'input[1]', /must be a string, not 5/],
    [
      { model, input: [{ type: 'text', text: 'a' }] },
      'input[0]',
      /must be a string, not an object/,
    ],
    [{ model, input: 5 }, 'input', /must be a string or an array of strings, not 5/],
    [
      { model, input: Array(2049).fill('a') },
      'input',
      /an array of at most 2048 strings, not an array of 2049/,
    ],
    [
      { model, input: [1, 2, 3] },
      'input',
      /not supported by this server; send the text itself: each model has/,
    ],
    [
      { model, input: [[1, 2], [3]] },
      'input',
      /not supported by this server; send the text itself/,
    ],
    [
      { model, input: 'x', encoding_format: 'int8' },
      'encoding_format',
      /must be one of float, base64/,
    ],
    [{ model, input: 'x', dimensions: 0 }, 'dimensions', /an integer of at least 1, not 0/],
    [{ model, input: 'x', dimensions: 1.5 }, 'dimensions', /an integer/],
    [{ model, input: 'x', input_type: 'query' }, 'input_type', /own prefix/],
    [{ model, input: 'x', truncate: true }, 'truncate', /split long texts into several/],
    [{ model, input: 'x', truncate: 'END' }, 'truncate', /split long texts into several/],
    [{ model, input: 'x', normalize: false }, 'normalize', /leave it out/],
    [{ model, input: 'x', output_dtype: 'int8' }, 'output_dtype', /leave it out/],
    [{ model, input: 'x', stream: true }, 'stream', /leave it out/],
    [{ model, input: 'x', truncate_prompt_tokens: 8 }, 'truncate_prompt_tokens', /leave it out/],
    [{ model, input: 'x', late_chunking: true }, 'late_chunking', /leave it out/],
    [{ model, input: 'x', add_special_tokens: false }, 'add_special_tokens', /leave it out/],
    [{ model, input: 'x', embedding_types: ['int8'] }, 'embedding_types', /leave it out/],
    [{ model, input: 'x', task: 'query' }, 'task', /own prefix/],
    [{ model, input: 'x', prompt_name: 'query' }, 'prompt_name', /own prefix/],
    [{ model, input: 'x', output_dimension: 2 }, 'output_dimension', /send dimensions instead/],
  ])('%#: of %j are refused', async (body, param, why) => {
    const error = await errorOf(await post(body), 400)
    expect(error.param).toBe(param)
    expect(error.message).toMatch(why)
  })

  it.each([
    ['x', 'input', 'input is too long.'],
    [['x'], 'input[0]', 'input[0] is too long.'],
  ])('of %j name the text as the client does', async (input, param, message) => {
    const error = new InoriginError('invalid_request', 'input[0] is too long.', {
      param: 'input[0]',
    })
    const sent = await post({ model, input }, { overrides: { embed: () => Promise.reject(error) } })
    expect(await errorOf(sent, 400)).toMatchObject({ param, message })
  })

  it('need a good key, whatever else is wrong', async () => {
    expect((await post({ model }, { keyed: true })).status).toBe(401)
    expect((await post({ model, input: 'x' }, { keyed: true })).status).toBe(401)
  })

  it('that fail late break the body off', async () => {
    async function* late(): AsyncGenerator<EmbeddingEvent> {
      yield { type: 'heartbeat' }
      throw new InoriginError('unavailable', 'The GPU is gone.')
    }
    const response = await post(
      { model, input: 'x' },
      { overrides: { embed: async () => ({ events: late() }) } },
    )
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow('The GPU is gone.')
  })

  it('are given up with the request', async () => {
    const controller = new AbortController()
    let asked: AbortSignal | undefined
    async function* never(): AsyncGenerator<EmbeddingEvent> {
      yield { type: 'heartbeat' }
      await new Promise(() => undefined)
    }
    const overrides: HostOptions['overrides'] = {
      embed: async (_request, { signal }) => {
        asked = signal
        return { events: never() }
      },
    }
    const response = await post({ model, input: 'x' }, { overrides }, controller.signal)
    const text = response.text()
    controller.abort()
    await expect(text).rejects.toMatchObject({ name: 'AbortError' })
    expect(asked?.aborted).toBe(true)
  })
})

describe('clients', () => {
  const baseURL = 'http://localhost/v1'
  const given = { apiKey: KEY, baseURL, fetch: fetchOf(scriptedHost({ keyed: true })) }
  const values = ['one', 'three', 'seventeen letters']
  const all = values.map(({ length }) => vector(length))

  it('openai asks for base64 and gives the numbers', async () => {
    const client = new OpenAI(given)
    const answer = await client.embeddings.create({ model, input: values })
    expect(answer.data.map(({ embedding }) => embedding)).toEqual(all)
    expect(answer.usage).toEqual({ prompt_tokens: 25, total_tokens: 25 })
    const plain = await client.embeddings.create({ model, input: 'one', encoding_format: 'float' })
    expect(plain.data[0]?.embedding).toEqual(vector(3))
    await expect(client.embeddings.create({ model, input: '' })).rejects.toBeInstanceOf(
      BadRequestError,
    )
  })

  it.each([
    ['openai', createOpenAI(given).embedding(model)],
    ['openai-compatible', createOpenAICompatible({ ...given, name: 'page' }).embeddingModel(model)],
  ])('the AI SDK with %s', async (_name, embedding) => {
    const one = await embed({ model: embedding, value: 'one' })
    expect(one).toMatchObject({ embedding: vector(3), usage: { tokens: 3 } })
    const many = await embedMany({ model: embedding, values })
    expect(many).toMatchObject({ embeddings: all, usage: { tokens: 25 } })
  })

  it('LangChain', async () => {
    const { apiKey, fetch } = given
    const embeddings = new OpenAIEmbeddings({
      model,
      apiKey,
      batchSize: 2,
      configuration: { baseURL, fetch },
    })
    expect(await embeddings.embedDocuments(values)).toEqual(all)
    expect(await embeddings.embedQuery('one')).toEqual(vector(3))
  })
})
