import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { createTestServer, type TestModel } from '../../../src/adapters/testing/server.ts'
import { InoriginError } from '../../../src/error.ts'

const tag = '@me/chat'
const weather = {
  type: 'function' as const,
  function: { name: 'weather', parameters: { type: 'object', properties: { city: {} } } },
}

function open(answers: TestModel['answers'], options: Partial<TestModel> = {}) {
  const server = createTestServer({ models: [{ tag, answers, ...options }] })
  const { baseURL, fetch } = server
  const client = new OpenAI({ baseURL, fetch, apiKey: 'none' })
  const ask = (content: string, fields: object = {}) =>
    client.chat.completions.create({
      model: tag,
      messages: [{ role: 'user', content }],
      ...fields,
    })
  return { server, client, ask }
}

describe('answers', () => {
  test('come in order, and the requests are recorded', async () => {
    const { server, ask } = open(['One two', 'Three'])
    const first = await ask('Hi')
    expect(first.choices[0]).toMatchObject({
      message: { content: 'One two' },
      finish_reason: 'stop',
    })
    expect(first.usage).toMatchObject({ prompt_tokens: 1, completion_tokens: 3 })
    expect((await ask('And?')).choices[0]?.message.content).toBe('Three')
    expect(server.requests.map(({ messages }) => messages[0]?.content)).toEqual(['Hi', 'And?'])
  })

  test('stream word by word, with reasoning and a tool call', async () => {
    const call = { name: 'weather', arguments: { city: 'Oslo' } }
    const { client } = open([{ reasoning: 'Look it up.', text: 'A moment.', toolCalls: [call] }])
    const runner = client.chat.completions.stream({
      model: tag,
      messages: [{ role: 'user', content: 'Is it warm in Oslo?' }],
      tools: [weather],
    })
    const pieces: string[] = []
    runner.on('content', (piece) => pieces.push(piece))
    const { choices } = await runner.finalChatCompletion()
    expect(pieces).toEqual(['A', ' moment.'])
    const calls = choices[0]?.message.tool_calls
    expect(calls).toMatchObject([{ function: { name: 'weather', arguments: '{"city":"Oslo"}' } }])
    expect(choices[0]?.finish_reason).toBe('tool_calls')
  })

  test('keep to the limit of tokens and the stop sequences', async () => {
    const { ask } = open(['one two three', 'one two three'])
    const [limited, stopped] = [
      await ask('Hi', { max_tokens: 2 }),
      await ask('Hi', { stop: [' three'] }),
    ]
    expect(limited.choices[0]).toMatchObject({
      message: { content: 'one two' },
      finish_reason: 'length',
    })
    expect(stopped.choices[0]?.message.content).toBe('one two')
  })

  test('may be computed from the request, and may fail', async () => {
    const { ask } = open(({ messages }) =>
      messages[0]?.content === 'fail'
        ? { text: 'I', error: new InoriginError('unavailable', 'Gone.', { code: 'device_lost' }) }
        : `You said ${messages[0]?.content}.`,
    )
    expect((await ask('hello')).choices[0]?.message.content).toBe('You said hello.')
    await expect(ask('fail')).rejects.toThrow('Gone.')
  })

  test('that are missing, or call a tool that is not offered, say so', async () => {
    const { ask } = open([{ toolCalls: [{ name: 'weather', arguments: {} }] }])
    await expect(ask('Hi')).rejects.toThrow(/calls weather, which the request does not offer/)
    await expect(ask('Hi')).rejects.toThrow(/no scripted answer for request 2/)
    await expect(ask('Hi', { model: '@me/other' })).rejects.toThrow(/It has: @me\/chat/)
  })
})

describe('loads', () => {
  test('report their progress, and can be paused while a request waits', async () => {
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
    expect(phases).toEqual([
      'download 5',
      'download 5',
      'download 10',
      'compile 10',
      'warm 10',
      'ready 10',
    ])
    expect(await server.models.list()).toMatchObject([{ status: 'loaded', bytes: 10 }])
  })
})

test('predictors compute what the test says, by call and over HTTP', async () => {
  const server = createTestServer({
    predictors: [
      {
        tag: '@me/double',
        signature: {
          inputs: [{ name: 'x', type: 'float32' }],
          outputs: [{ name: 'y', type: 'float32' }],
        },
        predict: ({ x }) => ({ y: Number(x) * 2 }),
      },
    ],
  })
  const { outputs } = await server.predict('@me/double', { x: 21 })
  expect(outputs).toEqual({ y: 42 })
  const described = await server.fetch('/v1/predictors/@me/double')
  expect(await described.json()).toMatchObject({ tag: '@me/double', signature: { inputs: [{}] } })
  await expect(server.predict('@me/none', {})).rejects.toMatchObject({ kind: 'not_found' })
})
