import { expect, test } from 'vitest'
import {
  LanguageModelToolCall,
  LanguageModelToolSuccess,
} from '../../../../src/adapters/language-model/index.ts'
import { open, readAll, rejection } from './open.ts'

const inputSchema = { type: 'object', properties: { city: { type: 'string' } } }
const expectedOutputs = [{ type: 'tool-call' as const }]
const call = (city: string) => ({ name: 'weather', arguments: { city } })

test('tools are executed until the model answers', async () => {
  const asked: unknown[] = []
  const { LanguageModel, server } = open({
    answers: ({ messages }) =>
      messages.at(-1)?.role === 'user'
        ? { text: 'Looking.', toolCalls: [call('Oslo'), call('Rome')] }
        : 'Rome is warmer.',
  })
  const session = await LanguageModel.create({
    expectedOutputs,
    tools: [
      {
        name: 'weather',
        description: 'Tells the weather',
        inputSchema,
        execute: async (input: { city: string }) => {
          asked.push(input)
          return `${input.city}: ${input.city.length}`
        },
      },
    ],
  })
  expect(await session.prompt('Where is it warmer?')).toBe('Looking.Rome is warmer.')
  expect(asked).toEqual([{ city: 'Oslo' }, { city: 'Rome' }])
  expect(server.requests[1]?.messages).toMatchObject([
    { role: 'user' },
    {
      role: 'assistant',
      content: 'Looking.',
      toolCalls: [{ name: 'weather' }, { name: 'weather' }],
    },
    { role: 'tool', content: 'Oslo: 4' },
    { role: 'tool', content: 'Rome: 4' },
  ])
  await session.prompt('Thanks')
  expect(server.requests[2]?.messages).toHaveLength(6)
})

test('a model that calls without end has to answer in words', async () => {
  const { LanguageModel, server } = open({
    answers: ({ tools }) => (tools?.choice === 'none' ? 'Enough.' : { toolCalls: [call('Oslo')] }),
  })
  const execute = () => 'cold'
  const session = await LanguageModel.create({
    expectedOutputs,
    tools: [{ name: 'weather', description: 'Tells the weather', inputSchema, execute }],
  })
  expect(await session.prompt('Weather?')).toBe('Enough.')
  expect(server.requests).toHaveLength(9)
})

test('a server that does not keep to that is not asked again', async () => {
  const { server } = open({
    answers: () => ({ text: 'Once more.', toolCalls: [call('Oslo')] }),
  })
  const fetchWithTools: typeof fetch = (input, init) => {
    const body = String(init?.body).replace('"tool_choice":"none"', '"tool_choice":"auto"')
    return server.fetch(input, init?.body ? { ...init, body } : init)
  }
  const { LanguageModel: Endless } = open({ server: { ...server, fetch: fetchWithTools } })
  const execute = () => 'cold'
  const session = await Endless.create({
    expectedOutputs,
    tools: [{ name: 'weather', description: 'Tells the weather', inputSchema, execute }],
  })
  expect(await session.prompt('Weather?')).toBe('Once more.'.repeat(9))
})

test('the error of a tool is that of the prompt, which leaves no trace', async () => {
  const { LanguageModel } = open({ answers: () => ({ toolCalls: [call('Oslo')] }) })
  const error = new Error('no network')
  const execute = async () => {
    throw error
  }
  const session = await LanguageModel.create({
    expectedOutputs,
    tools: [{ name: 'weather', description: 'Tells the weather', inputSchema, execute }],
  })
  const usage = session.contextUsage
  expect(await rejection(session.prompt('Weather?'))).toBe(error)
  expect(session.contextUsage).toBe(usage)
})

test('calls of tools without a function are the answer, and their results a prompt', async () => {
  const { LanguageModel, server } = open({
    answers: ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Cold.' : { toolCalls: [call('Oslo')] },
  })
  const session = await LanguageModel.create({
    expectedInputs: [{ type: 'tool-response' }],
    expectedOutputs,
    tools: [{ name: 'weather', description: 'Tells the weather', inputSchema }],
  })
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
  ['no expected output', [{ name: 'a', description: 'b', inputSchema }], []],
  ['an empty name', [{ name: '', description: 'b', inputSchema }], expectedOutputs],
  ['an empty description', [{ name: 'a', description: '', inputSchema }], expectedOutputs],
  ['a schema of another type', [{ name: 'a', description: 'b', inputSchema: {} }], expectedOutputs],
  [
    'a name twice',
    [1, 2].map(() => ({ name: 'a', description: 'b', inputSchema })),
    expectedOutputs,
  ],
])('tools with %s are refused', async (_what, tools, outputs) => {
  const { LanguageModel } = open()
  const created = LanguageModel.create({ tools, expectedOutputs: outputs })
  expect(await rejection(created)).toBeInstanceOf(TypeError)
})

test('calls and results must come from their role, in sessions that take them', async () => {
  const { LanguageModel } = open()
  const session = await LanguageModel.create({ expectedInputs: [{ type: 'tool-call' }] })
  const value = new LanguageModelToolCall({ callID: '1', name: 'a', arguments: {} })
  const content = [{ type: 'tool-call' as const, value }]
  expect(await rejection(session.prompt([{ role: 'user', content }]))).toBeInstanceOf(TypeError)
  const loop: Record<string, unknown> = {}
  loop['self'] = loop
  const endless = new LanguageModelToolCall({ callID: '1', name: 'a', arguments: loop })
  const wrong = [{ type: 'tool-call' as const, value: endless }]
  expect(await rejection(session.prompt([{ role: 'assistant', content: wrong }]))).toMatchObject({
    name: 'DataError',
  })
  const plain = await LanguageModel.create()
  expect(await rejection(plain.prompt([{ role: 'assistant', content }]))).toMatchObject({
    name: 'NotSupportedError',
  })
})
