/** The server of `inorigin/testing`, besides the contract that every endpoint keeps. */
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import {
  createTestServer,
  type TestModel,
  type TestServerOptions,
} from '../../../src/extras/testing/server.ts'
import { InoriginError } from '../../../src/error.ts'
import { createDeferred } from '../../support/deferred.ts'

const tag = '@me/chat'
const body = (content: string, fields: object = {}) => ({
  model: tag,
  messages: [{ role: 'user' as const, content }],
  ...fields,
})

function openServer(options: TestServerOptions, apiKey = 'none') {
  const server = createTestServer(options)
  const { baseURL, fetch } = server
  return { server, client: new OpenAI({ baseURL, fetch, apiKey, maxRetries: 0 }) }
}

function open(answers: TestModel['answers'], options: Partial<TestModel> = {}) {
  const { server, client } = openServer({ models: [{ tag, answers, ...options }] })
  const ask = (content: string, fields: object = {}) =>
    client.chat.completions.create(body(content, fields))
  return { server, client, ask }
}

describe('answers', () => {
  test('come in order, and the requests are recorded', async () => {
    const { server, ask } = open(['One two', 'Three'])
    const first = await ask('Hi')
    const choice = { message: { content: 'One two' }, finish_reason: 'stop' }
    expect(first.choices).toMatchObject([choice])
    expect(first.usage).toMatchObject({ prompt_tokens: 1, completion_tokens: 3 })
    expect((await ask('And?')).choices[0]?.message.content).toBe('Three')
    expect(server.requests.map(({ messages }) => messages[0]?.content)).toEqual(['Hi', 'And?'])
  })

  test('stream word by word, with reasoning and a tool call', async () => {
    const call = { name: 'weather', arguments: { city: 'Oslo' } }
    const { client } = open([{ reasoning: 'Look it up.', text: 'A moment.', toolCalls: [call] }])
    const tools = [{ type: 'function' as const, function: { name: 'weather' } }]
    const runner = client.chat.completions.stream({ ...body('Is it warm?'), tools })
    const pieces: string[] = []
    runner.on('content', (piece) => pieces.push(piece))
    const { choices } = await runner.finalChatCompletion()
    expect(pieces).toEqual(['A', ' moment.'])
    const calls = [{ function: { name: 'weather', arguments: '{"city":"Oslo"}' } }]
    expect(choices).toMatchObject([{ message: { tool_calls: calls }, finish_reason: 'tool_calls' }])
  })

  test.each([
    [{ max_tokens: 2 }, 'length', 2],
    [{ stop: [' three'] }, 'stop', 3],
  ])('keep to %j', async (fields, finish_reason, tokens) => {
    const { choices, usage } = await open(['one two three']).ask('Hi', fields)
    expect(choices).toMatchObject([{ message: { content: 'one two' }, finish_reason }])
    expect(usage?.completion_tokens).toBe(tokens)
  })

  test('may be computed from the request, and may fail', async () => {
    const { ask } = open(({ messages }) =>
      messages[0]?.content === 'fail'
        ? { text: 'I', error: new InoriginError('unavailable', 'Gone.', { code: 'device_lost' }) }
        : `You said ${messages[0]?.content}.`,
    )
    expect((await ask('hello')).choices[0]?.message.content).toBe('You said hello.')
    expect(await ask('fail')).toMatchObject({ error: { message: 'Gone.', code: 'device_lost' } })
  })

  test('that are missing, or call a tool that is not offered, say so', async () => {
    const { ask } = open([{ toolCalls: [{ name: 'weather', arguments: {} }] }])
    await expect(ask('Hi')).rejects.toThrow(/calls weather, which the request does not offer/)
    await expect(ask('Hi')).rejects.toThrow(/no scripted answer for request 2/)
    await expect(ask('Hi', { model: '@me/other' })).rejects.toThrow(/It has: @me\/chat/)
  })

  test('may be computed in the background, while their readers wait or come later', async () => {
    const { promise, resolve } = createDeferred<string>()
    const { client } = open([{ text: 'Half', error: new InoriginError('internal', 'Gone.') }, ''])
    const { client: slow } = open(async () => promise)
    const request = { model: tag, input: 'Hi', background: true }
    const failed = await client.responses.create(request)
    await expect
      .poll(() => client.responses.retrieve(failed.id))
      .toMatchObject({ status: 'failed', output_text: 'Half', error: { message: 'Gone.' } })
    const creating = slow.responses.create({ ...request, stream: true })
    resolve('One two')
    const types: string[] = []
    let id = ''
    for await (const event of await creating) {
      types.push(event.type)
      if (event.type === 'response.created') id = event.response.id
    }
    expect(types.slice(1, 3)).toEqual(['response.queued', 'response.in_progress'])
    expect(types.at(-1)).toBe('response.completed')
    expect(await slow.responses.retrieve(id)).toMatchObject({ output_text: 'One two' })
    await slow.responses.delete(id)
    await expect(slow.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })
})

test('loads report their progress, and can be paused while a request waits', async () => {
  let allow = (): void => undefined
  const load = () => new Promise<void>((resolve) => (allow = resolve))
  const { server, ask } = open(['Hello', 'Hello'], { load, bytes: 10 })
  let attempts = 0
  const pauseOrAllow = async () => {
    attempts += 1
    if (attempts === 1) await server.models.pause(tag)
    else allow()
  }
  const phases: string[] = []
  const following = (async () => {
    for await (const { phase, loadedBytes } of server.models.progress()) {
      phases.push(`${phase} ${loadedBytes}`)
      if (phase === 'download' && loadedBytes === 5) await pauseOrAllow()
      if (phase === 'ready') return
    }
  })()
  await expect(ask('Hi')).rejects.toThrow(/was paused/)
  expect(await server.models.list()).toMatchObject([{ status: 'remote' }])
  expect((await ask('Hi')).choices[0]?.message.content).toBe('Hello')
  await following
  const steps = ['download 5', 'download 5', 'download 10', 'compile 10', 'warm 10', 'ready 10']
  expect(phases).toEqual(steps)
  expect(await server.models.list()).toMatchObject([{ status: 'loaded', bytes: 10 }])
})

test('predictors compute what the test says, by call and over HTTP', async () => {
  const signature = {
    inputs: [{ name: 'x', type: 'float32' as const }],
    outputs: [{ name: 'y', type: 'float32' as const }],
  }
  const predict = ({ x }: Record<string, unknown>) => ({ y: Number(x) * 2 })
  const double = { tag: '@me/double' as const, signature, predict }
  const { server } = openServer({ models: [{ tag, answers: [] }], predictors: [double] })
  const { outputs } = await server.predict('@me/double', { x: 21 })
  expect(outputs).toEqual({ y: 42 })
  const described = await server.fetch('/v1/predictors/@me/double')
  expect(await described.json()).toMatchObject({ tag: '@me/double', signature: { inputs: [{}] } })
  for (const other of ['@me/none', tag] as const)
    await expect(server.predict(other, {})).rejects.toMatchObject({ kind: 'not_found' })
})

test('embedders compute the vectors of texts, also with fewer dimensions', async () => {
  const model = '@me/embed'
  const embed = (text: string) => (text === 'bad' ? [1] : [text.length, 0.5, -1])
  const embedders = [{ tag: model, dimensions: 3, embed }]
  const { client } = openServer({ models: [{ tag, answers: [] }], embedders })
  const create = async (input: string[], fields: object = {}) =>
    (await client.embeddings.create({ model, input, ...fields })).data.map((one) => one.embedding)
  expect(await create(['a', 'bc'])).toEqual([
    [1, 0.5, -1],
    [2, 0.5, -1],
  ])
  expect(await create(['abc'], { dimensions: 2 })).toEqual([[3, 0.5]])
  const wrong = { status: 400, param: 'dimensions' }
  await expect(create(['a'], { dimensions: 4 })).rejects.toMatchObject(wrong)
  await expect(create(['bad'])).rejects.toThrow('`embed` of @me/embed returned 1 numbers')
  await expect(create(['a'], { model: tag })).rejects.toThrow('Add it to `embedders`.')
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual([tag, model])
})

test('requests over HTTP need one of the API keys', async () => {
  const options = { models: [{ tag, answers: ['Hi'] }], apiKeys: ['one', 'two'] }
  const { client } = openServer(options, 'two')
  expect((await client.chat.completions.create(body('Hi'))).choices[0]?.message.content).toBe('Hi')
  const { client: stranger } = openServer(options, 'three')
  const error = { status: 401, code: 'invalid_api_key' }
  await expect(stranger.chat.completions.create(body('Hi'))).rejects.toMatchObject(error)
  await expect(stranger.models.list()).rejects.toMatchObject(error)
})
