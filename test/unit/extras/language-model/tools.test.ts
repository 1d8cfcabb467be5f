import { expect, test } from 'vitest'
import {
  LanguageModelToolCall,
  LanguageModelToolSuccess,
} from '../../../../src/extras/language-model/index.ts'
import { open, openSession, readAll } from './open.ts'

const inputSchema = { type: 'object', properties: { city: { type: 'string' } } }
const WEATHER = { name: 'weather', description: 'Describes the weather', inputSchema }
const expectedOutputs = [{ type: 'tool-call' as const }]
const call = (city: string) => ({ name: 'weather', arguments: { city } })
const execute = () => 'cold'

/** Opens a session with the tool and its function. */
const openTool = (
  answers: NonNullable<Parameters<typeof open>[0]>['answers'],
  run: (input: { city: string }) => string | Promise<string> = execute,
) => openSession({ answers }, { expectedOutputs, tools: [{ ...WEATHER, execute: run }] })

test('Tools are executed until the model answers', async () => {
  const inputs: unknown[] = []
  const calls = { text: 'Looking.', toolCalls: [call('Oslo'), call('Rome')] }
  const { session, server } = await openTool(
    ({ messages }) => (messages.at(-1)?.role === 'user' ? calls : 'Rome is warmer.'),
    async (input) => {
      inputs.push(input)
      return `${input.city}: ${input.city.length}`
    },
  )
  expect(await session.prompt('Where is it warmer?')).toBe('Looking.Rome is warmer.')
  expect(inputs).toEqual([{ city: 'Oslo' }, { city: 'Rome' }])
  const toolCalls = [{ name: 'weather' }, { name: 'weather' }]
  expect(server.requests[1]?.messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: 'Looking.', toolCalls },
    { role: 'tool', content: 'Oslo: 4' },
    { role: 'tool', content: 'Rome: 4' },
  ])
  await session.prompt('Thanks')
  expect(server.requests[2]?.messages).toHaveLength(6)
})

test('A model that calls without end has to answer in text', async () => {
  const { session, server } = await openTool(({ tools }) =>
    tools?.choice === 'none' ? 'Enough.' : { toolCalls: [call('Oslo')] },
  )
  expect(await session.prompt('Weather?')).toBe('Enough.')
  expect(server.requests).toHaveLength(9)
})

test('A server that calls although it must not gets no further request', async () => {
  const { server } = open({ answers: () => ({ text: 'Once more.', toolCalls: [call('Oslo')] }) })
  const fetchWithTools: typeof fetch = (input, init) => {
    const body = String(init?.body).replace('"tool_choice":"none"', '"tool_choice":"auto"')
    return server.fetch(input, init?.body ? { ...init, body } : init)
  }
  const { session } = await openSession(
    { server: { ...server, fetch: fetchWithTools } },
    { expectedOutputs, tools: [{ ...WEATHER, execute }] },
  )
  expect(await session.prompt('Weather?')).toBe('Once more.'.repeat(9))
})

test('The error of a tool is that of the prompt, which leaves no trace', async () => {
  const error = new Error('no network')
  const { session } = await openTool(
    () => ({ toolCalls: [call('Oslo')] }),
    () => Promise.reject(error),
  )
  const usage = session.contextUsage
  await expect(session.prompt('Weather?')).rejects.toBe(error)
  expect(session.contextUsage).toBe(usage)
})

test('Calls of tools without a function are the answer, and their results a prompt', async () => {
  const { session, server } = await openSession(
    {
      answers: ({ messages }) =>
        messages.at(-1)?.role === 'tool' ? 'Cold.' : { toolCalls: [call('Oslo')] },
    },
    { expectedInputs: [{ type: 'tool-response' }], expectedOutputs, tools: [WEATHER] },
  )
  const answer = await session.prompt('Weather?')
  const [part] = Array.isArray(answer) ? answer : []
  const value = part?.value as LanguageModelToolCall
  expect(part?.type).toBe('tool-call')
  expect(value).toMatchObject({ name: 'weather', arguments: { city: 'Oslo' } })
  const result = new LanguageModelToolSuccess({
    callID: value.callID,
    name: 'weather',
    result: [{ type: 'text', value: '-3' }],
  })
  const content = [{ type: 'tool-response' as const, value: result }]
  expect(await readAll(session.promptStreaming([{ role: 'user', content }]))).toEqual(['Cold.'])
  expect(server.requests[1]?.messages.at(-1)).toMatchObject({
    role: 'tool',
    toolCallId: value.callID,
    content: '-3',
  })
})

test.each([
  ['no expected output', [WEATHER], []],
  ['an empty name', [{ ...WEATHER, name: '' }], expectedOutputs],
  ['an empty description', [{ ...WEATHER, description: '' }], expectedOutputs],
  ['a schema of another type', [{ ...WEATHER, inputSchema: {} }], expectedOutputs],
  ['a name twice', [WEATHER, WEATHER], expectedOutputs],
])('Tools with %s are refused', async (_what, tools, outputs) => {
  const created = open().LanguageModel.create({ tools, expectedOutputs: outputs })
  await expect(created).rejects.toBeInstanceOf(TypeError)
})

test('Calls and results must come from their role, in sessions that accept them', async () => {
  const { LanguageModel, session } = await openSession(
    {},
    { expectedInputs: [{ type: 'tool-call' }] },
  )
  const loop: Record<string, unknown> = {}
  loop['self'] = loop
  const send = (to: typeof session, role: 'user' | 'assistant', input: object) => {
    const value = new LanguageModelToolCall({ callID: '1', name: 'a', arguments: input })
    return to.prompt([{ role, content: [{ type: 'tool-call', value }] }])
  }
  await expect(send(session, 'user', {})).rejects.toBeInstanceOf(TypeError)
  const endless = send(session, 'assistant', loop)
  await expect(endless).rejects.toMatchObject({ name: 'DataError' })
  const plain = send(await LanguageModel.create(), 'assistant', {})
  await expect(plain).rejects.toMatchObject({ name: 'NotSupportedError' })
})
