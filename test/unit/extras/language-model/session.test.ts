import { expect, test } from 'vitest'
import { createDeferred } from '../../../support/deferred.ts'
import { open, openSession, readAll } from './open.ts'

test('Answers follow the whole conversation, and streams give the same text', async () => {
  const initialPrompts = [{ role: 'system' as const, content: 'Be brief.' }]
  const { session, server } = await openSession({}, { initialPrompts })
  expect(session.contextUsage).toBe(2)
  expect(await session.prompt('One two')).toBe('Heard: One two')
  expect(session.contextUsage).toBe(2 + 2 + 3)
  await session.append([{ role: 'user', content: 'Three' }])
  expect((await readAll(session.promptStreaming('Four'))).join('')).toBe('Heard: Four')
  expect(server.requests.at(-1)?.messages).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'One two' },
    { role: 'assistant', content: 'Heard: One two' },
    { role: 'user', content: 'Three' },
    { role: 'user', content: 'Four' },
  ])
})

test('Prompts wait for each other in the order of the calls', async () => {
  const { server, session } = await openSession()
  const [first, second] = await Promise.all([session.prompt('a'), session.prompt('b')])
  expect([first, second]).toEqual(['Heard: a', 'Heard: b'])
  expect(server.requests.map(({ messages }) => messages.length)).toEqual([1, 3])
})

test('A clone continues by itself', async () => {
  const { LanguageModel, server, session } = await openSession({}, { samplingMode: 'creative' })
  await session.prompt('a')
  const clone = await session.clone()
  expect(clone).toBeInstanceOf(LanguageModel)
  expect(clone.contextUsage).toBe(session.contextUsage)
  expect(clone.samplingMode).toBe('creative')
  session.destroy()
  await clone.prompt('b')
  expect(clone.contextUsage).toBeGreaterThan(session.contextUsage)
  expect(server.requests.at(-1)?.messages).toHaveLength(3)
  expect(server.requests.at(-1)?.sampling).toMatchObject({ temperature: 1.3 })
})

test('A prefix is continued, and becomes part of the answer in the conversation', async () => {
  const { server, session } = await openSession({ answers: () => ' = 2' })
  const answer = await session.prompt([
    { role: 'user', content: 'Sum' },
    { role: 'assistant', content: '1 + 1', prefix: true },
  ])
  expect(answer).toBe(' = 2')
  expect(server.requests[0]).toMatchObject({
    messages: [{ role: 'user', content: 'Sum' }],
    responsePrefix: '1 + 1',
  })
  await session.prompt('Next')
  expect(server.requests[1]?.messages[1]).toEqual({ role: 'assistant', content: '1 + 1 = 2' })
})

test('The oldest exchanges make room, but not the initial prompts', async () => {
  const initialPrompts = [{ role: 'system' as const, content: 'x x x x' }]
  const small = { maxInputTokens: 20, answers: () => 'ok' }
  const { server, session } = await openSession(small, { initialPrompts })
  const events: string[] = []
  session.oncontextoverflow = ({ type }) => events.push(type)
  await session.prompt('a a a a a')
  await session.prompt('b b b b b')
  expect(session.contextUsage).toBe(16)
  expect(events).toEqual([])
  await session.prompt('c c c c c')
  expect(events).toEqual(['contextoverflow'])
  const sent = server.requests.at(-1)?.messages.map(({ content }) => content[0])
  expect(sent).toEqual(['x', 'b', 'o', 'c'])
  expect(session.contextUsage).toBe(16)
})

test('A prompt that can never fit is refused with its size, and drops nothing', async () => {
  const small = { maxInputTokens: 10, answers: () => 'ok' }
  const { LanguageModel, session } = await openSession(small)
  await session.prompt('a a')
  const long = 'b '.repeat(10).trim()
  const fields = { name: 'QuotaExceededError', requested: 11, quota: 10 }
  await expect(session.prompt(long)).rejects.toMatchObject(fields)
  expect(session.contextUsage).toBe(3)
  await expect(session.append(`${long} b`)).rejects.toMatchObject(fields)
  expect(session.contextUsage).toBe(3)
  const initialPrompts = [{ role: 'user' as const, content: `${long} b` }]
  await expect(LanguageModel.create({ initialPrompts })).rejects.toMatchObject(fields)
})

test('An aborted prompt leaves no trace, running or waiting', async () => {
  const started = createDeferred()
  const { server, session } = await openSession({
    answers: ({ messages }) => {
      if (messages.at(-1)?.content !== 'slow') return 'ok'
      started.resolve()
      return new Promise(() => {})
    },
  })
  const [running, waiting] = [new AbortController(), new AbortController()]
  const slow = session.prompt('slow', { signal: running.signal })
  const next = session.prompt('never', { signal: waiting.signal })
  await started.promise
  const reason = new Error('enough')
  waiting.abort()
  await expect(next).rejects.toMatchObject({ name: 'AbortError' })
  running.abort(reason)
  await expect(slow).rejects.toBe(reason)
  expect(session.contextUsage).toBe(0)
  await session.prompt('last')
  expect(server.requests.map(({ messages }) => messages[0]?.content)).toEqual(['slow', 'last'])
})

test('destroy() ends prompts and streams, and the signal of create() does so with its reason', async () => {
  const { LanguageModel, session } = await openSession({ answers: () => new Promise(() => {}) })
  const prompt = session.prompt('a')
  const stream = session.promptStreaming('b')
  session.destroy()
  for (const work of [prompt, readAll(stream), session.prompt('c'), session.clone()]) {
    await expect(work).rejects.toMatchObject({ name: 'AbortError' })
  }
  const error = expect.objectContaining({ name: 'AbortError' })
  expect(() => session.promptStreaming('d')).toThrow(error)

  const controller = new AbortController()
  const other = await LanguageModel.create({ signal: controller.signal })
  const reason = new Error('closed')
  controller.abort(reason)
  await expect(other.measureContextUsage('a')).rejects.toBe(reason)
  await expect(LanguageModel.create({ signal: controller.signal })).rejects.toBe(reason)
})

test('A canceled stream ends the prompt, and the next one is answered', async () => {
  const { session } = await openSession({
    answers: ({ messages }) => (messages.at(-1)?.content === 'slow' ? new Promise(() => {}) : 'ok'),
  })
  const reader = session.promptStreaming('slow').getReader()
  await reader.cancel()
  expect(await session.prompt('b')).toBe('ok')
  expect(session.contextUsage).toBe(2)
})

test('Long prompts are measured, although the server counts only shorter ones', async () => {
  const { LanguageModel, server } = open({ maxInputTokens: 10 })
  const counts: number[] = []
  const limited: typeof fetch = async (input, init) => {
    const body = typeof init?.body === 'string' ? init.body : ''
    if (!String(input).endsWith('input_tokens') || body.length < 600) {
      return server.fetch(input, init)
    }
    counts.push(body.length)
    const error = { message: 'too long', code: 'context_length_exceeded' }
    return Response.json({ error }, { status: 400 })
  }
  const { session } = await openSession({ server: { ...server, fetch: limited } })
  expect(await session.measureContextUsage('a '.repeat(1_024).trim())).toBe(1_024)
  expect(counts.length).toBeGreaterThan(1)
  expect(await LanguageModel.availability()).toBe('available')
})
