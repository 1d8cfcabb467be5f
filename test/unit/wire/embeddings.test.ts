/** Embeddings over HTTP: bodies, refusals, and clients that read them. */
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { OpenAIEmbeddings } from '@langchain/openai'
import { embed, embedMany } from 'ai'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { EmbeddingEvent } from '../../../src/types/index.ts'
import { EMBEDDER, errorOf, fetchOf, KEY, scriptedHost, send } from './scripted-host.ts'
import type { HostOptions } from './scripted-host.ts'

const model = EMBEDDER
const post = (fields: object, options: HostOptions = {}, signal?: AbortSignal) =>
  send(scriptedHost(options), '/v1/embeddings', { body: { model, ...fields }, signal })
/** A host whose vectors come by these events. */
const withEvents = (
  createEvents: (signal: AbortSignal) => AsyncGenerator<EmbeddingEvent>,
): HostOptions => ({
  overrides: { embed: async (_, { signal }) => ({ events: createEvents(signal) }) },
})

/** The numbers for a text of this length, with the precision of the wire. */
const vector = (length: number): number[] => [length, Math.fround(length / 3), -length]

describe('embeddings', () => {
  it('are a list in the order of the texts', async () => {
    const input = ['one', 'of three words']
    const response = await post({ input, encoding_format: 'float', user: 'u', extra: 1 })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-inorigin-ignored')).toBe('user, extra')
    expect(await response.json()).toEqual({
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: vector(3) },
        { object: 'embedding', index: 1, embedding: vector(14) },
      ],
      model,
      usage: { prompt_tokens: 4, total_tokens: 4 },
    })
  })

  it.each<[string, object, string[], number?]>([
    ['a text', { input: 'one' }, ['one']],
    ['a format that is null', { input: ['one'], encoding_format: null }, ['one']],
    ['fewer dimensions', { input: 'one', dimensions: 2 }, ['one'], 2],
    ['2048 texts', { input: Array(2048).fill('a') }, Array(2048).fill('a')],
    ['spaces, and half a character', { input: [' ', '\ud83d'] }, [' ', '\ud83d']],
    [
      'fields of other servers that change nothing',
      { input: 'one', normalize: true, stream: false, messages: [] },
      ['one'],
    ],
  ])('are computed for %s', async (_, fields, input, dimensions) => {
    const host = scriptedHost()
    const response = await send(host, '/v1/embeddings', { body: { model, ...fields } })
    expect(response.status).toBe(200)
    expect(host.embedded).toEqual([{ model, input, dimensions }])
    expect((await response.json()).data[0].embedding).toHaveLength(dimensions ?? 3)
  })

  it.each([
    [{ prompt_name: 'query' }, { promptName: 'query' }],
    [{ truncate: true }, { truncate: true }],
    [{ truncate: 'END' }, { truncate: true }],
    [{ truncate: 'NONE' }, { truncate: false }],
    [{ truncation: false }, { truncate: false }],
  ])('pass on %j', async (fields, passed) => {
    const host = scriptedHost()
    const body = { model, input: 'one', ...fields }
    expect((await send(host, '/v1/embeddings', { body })).status).toBe(200)
    expect(host.embedded).toEqual([expect.objectContaining(passed)])
  })

  it('as base64 are the bytes of the same numbers, lowest first', async () => {
    const { data } = await (await post({ input: 'one', encoding_format: 'base64' })).json()
    const bytes = Buffer.from(data[0].embedding, 'base64')
    expect([0, 4, 8].map((at) => bytes.readFloatLE(at))).toEqual(vector(3))
    expect(bytes).toHaveLength(12)
  })

  const NO_TOKENS = /not supported by this server; send the text itself: each model has/
  it.each<[object, string, RegExp]>([
    [{ input: undefined }, 'input', /^`input` is required\.$/],
    [{ model: undefined }, 'model', /^`model` is required\.$/],
    [{ input: '' }, 'input', /must be a string that is not empty, not ""/],
    [{ input: [] }, 'input', /must be an array with at least one string, not an array of 0/],
    [{ input: ['a', ''] }, 'input[1]', /must be a string that is not empty/],
    [{ input: ['a', 5] }, 'input[1]', /must be a string, not 5/],
    [{ input: [{ type: 'text' }] }, 'input[0]', /must be a string, not an object/],
    [{ input: 5 }, 'input', /must be a string or an array of strings, not 5/],
    [{ input: Array(2049).fill('a') }, 'input', /at most 2048 strings, not an array of 2049/],
    [{ input: [1, 2, 3] }, 'input', NO_TOKENS],
    [{ input: [[1, 2], [3]] }, 'input', NO_TOKENS],
    [{ encoding_format: 'int8' }, 'encoding_format', /must be one of float, base64/],
    [{ dimensions: 0 }, 'dimensions', /an integer of at least 1, not 0/],
    [{ dimensions: 1.5 }, 'dimensions', /an integer/],
    [{ input_type: 'query' }, 'input_type', /own prefix/],
    [{ task: 'query' }, 'task', /own prefix/],
    [{ prompt_name: 5 }, 'prompt_name', /a string/],
    [{ truncate: 'START' }, 'truncate', /send "END", or split long texts into several/],
    [{ normalize: false }, 'normalize', /leave it out/],
    [{ output_dtype: 'int8' }, 'output_dtype', /leave it out/],
    [{ stream: true }, 'stream', /leave it out/],
    [{ truncate_prompt_tokens: 8 }, 'truncate_prompt_tokens', /leave it out/],
    [{ late_chunking: true }, 'late_chunking', /leave it out/],
    [{ add_special_tokens: false }, 'add_special_tokens', /leave it out/],
    [{ embedding_types: ['int8'] }, 'embedding_types', /leave it out/],
    [{ output_dimension: 2 }, 'output_dimension', /send dimensions instead/],
  ])('%#: are refused for %j', async (fields, param, why) => {
    const error = await errorOf(await post({ input: 'x', ...fields }), 400)
    expect(error.param).toBe(param)
    expect(error.message).toMatch(why)
  })

  it.each([
    ['x', 'input', 'input is too long.'],
    [['x'], 'input[0]', 'input[0] is too long.'],
  ])('of %j have errors that name the text as the client does', async (input, param, message) => {
    const details = { param: 'input[0]' }
    const error = new InoriginError('invalid_request', 'input[0] is too long.', details)
    const sent = await post({ input }, { overrides: { embed: () => Promise.reject(error) } })
    expect(await errorOf(sent, 400)).toMatchObject({ param, message })
  })

  it('that fail late end the body with the error, after its spaces', async () => {
    async function* late(): AsyncGenerator<EmbeddingEvent> {
      yield { type: 'heartbeat' }
      throw new InoriginError('unavailable', 'The GPU is gone.')
    }
    const response = await post({ input: 'x' }, withEvents(late))
    expect(response.status).toBe(200)
    const reader = response.body!.getReader()
    expect((await reader.read()).value).toEqual(new TextEncoder().encode(' '))
    const { value } = await reader.read()
    const { error } = JSON.parse(new TextDecoder().decode(value))
    expect(error).toMatchObject({ message: 'The GPU is gone.', type: 'overloaded_error' })
    expect(await reader.read()).toMatchObject({ done: true })
  })

  it('are canceled with the request', async () => {
    const controller = new AbortController()
    let received: AbortSignal | undefined
    async function* never(signal: AbortSignal): AsyncGenerator<EmbeddingEvent> {
      received = signal
      yield { type: 'heartbeat' }
      await new Promise(() => undefined)
    }
    const response = await post({ input: 'x' }, withEvents(never), controller.signal)
    const reader = response.body!.getReader()
    await reader.read()
    controller.abort()
    await expect(reader.read()).rejects.toMatchObject({ name: 'AbortError' })
    expect(received?.aborted).toBe(true)
  })
})

describe('a client', () => {
  const baseURL = 'http://localhost/v1'
  const settings = { apiKey: KEY, baseURL, fetch: fetchOf(scriptedHost({ keyed: true })) }
  const values = ['one', 'three', 'seventeen letters']
  const all = values.map(({ length }) => vector(length))

  it.each([undefined, 'float'] as const)('reads the format %s: openai', async (format) => {
    const client = new OpenAI(settings)
    const body = { model, input: values, encoding_format: format }
    const { data, usage } = await client.embeddings.create(body)
    expect(data.map(({ embedding }) => embedding)).toEqual(all)
    expect(usage).toEqual({ prompt_tokens: 4, total_tokens: 4 })
  })

  it.each([
    ['openai', createOpenAI(settings).embedding(model)],
    [
      'openai-compatible',
      createOpenAICompatible({ ...settings, name: 'page' }).embeddingModel(model),
    ],
  ])('reads one text and many: the AI SDK with %s', async (_name, embedding) => {
    const one = await embed({ model: embedding, value: 'one' })
    expect(one).toMatchObject({ embedding: vector(3), usage: { tokens: 1 } })
    const many = await embedMany({ model: embedding, values })
    expect(many).toMatchObject({ embeddings: all, usage: { tokens: 4 } })
  })

  it('reads one text and many: LangChain', async () => {
    const { apiKey, fetch } = settings
    const configuration = { baseURL, fetch }
    const embeddings = new OpenAIEmbeddings({ model, apiKey, batchSize: 2, configuration })
    expect(await embeddings.embedDocuments(values)).toEqual(all)
    expect(await embeddings.embedQuery('one')).toEqual(vector(3))
  })
})
