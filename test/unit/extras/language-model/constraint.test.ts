import { describe, expect, test } from 'vitest'
import { normalizeJson, readConstraint } from '../../../../src/extras/language-model/generate.ts'
import {
  type LanguageModelPromptOptions,
  LanguageModelToolCall,
} from '../../../../src/extras/language-model/index.ts'
import { type ErrorCode, InoriginError } from '../../../../src/error.ts'
import { open, openSession } from './open.ts'

const rating = {
  type: 'object',
  required: ['rating'],
  additionalProperties: false,
  properties: { rating: { type: 'integer', minimum: 0, maximum: 5 }, note: { type: 'string' } },
}
const json = { type: 'json_schema', json_schema: { name: 'answer', schema: rating, strict: true } }
const greeting = { type: 'regex', pattern: '^Hello [a-z]+$' }

/** Returns a prompt whose answer begins with a text. */
const begin = (content: string) => [
  { role: 'user' as const, content: 'Go on' },
  { role: 'assistant' as const, content, prefix: true },
]

interface ChatBody {
  messages: { role: string; content: unknown }[]
  continue_final_message?: boolean
  response_format?: object
}

/** Opens a session, and keeps the bodies of its requests to chat completions. */
async function openSpy(
  options: Parameters<typeof open>[0],
  created: Parameters<typeof openSession>[1] = {},
) {
  const { server } = open(options)
  const bodies: ChatBody[] = []
  const spy: typeof fetch = (input, init) => {
    if (String(input).endsWith('/chat/completions')) {
      bodies.push(JSON.parse(String(init?.body)) as ChatBody)
    }
    return server.fetch(input, init)
  }
  const { session } = await openSession({ server: { ...server, fetch: spy } }, created)
  return { bodies, session }
}

const quiet = (responseConstraint: object): LanguageModelPromptOptions => ({
  responseConstraint,
  omitResponseConstraintInput: true,
})

describe('Regular expressions', () => {
  test.each([
    [/^\d{3}-[a-f]+$/, { pattern: '^\\d{3}-[a-f]+$' }],
    [/b+|^c$/, { pattern: 'b+|^c$' }],
    [/é😀?/u, { pattern: 'é😀?', flags: 'u' }],
    [/^hello .$/dgis, { pattern: '^hello .$', flags: 'is' }],
  ])('%s is sent as a pattern of the whole answer', (constraint, format) => {
    expect(readConstraint(constraint).format).toEqual({ type: 'regex', ...format })
  })

  test.each([/^a$/m, /a/y, new RegExp('a', 'v')])('%s is refused', async (constraint) => {
    const { session, bodies } = await openSpy({})
    const asked = session.prompt('Go on', { responseConstraint: constraint })
    await expect(asked).rejects.toMatchObject({ name: 'NotSupportedError' })
    expect(bodies).toEqual([])
  })

  test('hold for the answer with its prefix', async () => {
    const { session, bodies } = await openSpy({ answers: () => 'lo all' })
    expect(await session.prompt(begin('Hel'), quiet(/^Hello [a-z]+$/))).toBe('lo all')
    expect(bodies[0]).toMatchObject({
      messages: [{ role: 'user' }, { role: 'assistant', content: 'Hel' }],
      continue_final_message: true,
      response_format: greeting,
    })
    const wrong = session.prompt(begin('Bye'), quiet(/^Hello [a-z]+$/))
    await expect(wrong).rejects.toMatchObject({ name: 'SyntaxError' })
  })
})

describe('JSON Schemas', () => {
  test('continue the prefix with the spaces of the server, and do not repeat it', async () => {
    const { session, bodies } = await openSpy({ answers: () => ' 4}' })
    const content = '{ "rating" :'
    const answer = await session.prompt(begin(content), quiet(rating))
    expect(JSON.parse(content + String(answer))).toEqual({ rating: 4 })
    expect(bodies[0]).toMatchObject({
      messages: [{ role: 'user' }, { role: 'assistant', content: '{"rating":' }],
      continue_final_message: true,
      response_format: json,
    })
    await session.prompt('Next')
    expect(bodies[1]?.messages[1]).toEqual({ role: 'assistant', content: '{ "rating" : 4}' })
  })

  test('begin the answer if the prefix has only spaces', async () => {
    const { session, bodies } = await openSpy({ answers: () => '{"rating": 4}' })
    expect(await session.prompt(begin(' \n'), quiet(rating))).toBe('{"rating": 4}')
    expect(bodies[0]).toMatchObject({ messages: [{ role: 'user' }], response_format: json })
    expect(bodies[0]?.messages).toHaveLength(1)
    expect(bodies[0]).not.toHaveProperty('continue_final_message')
  })

  test('keep spaces in strings, and an open end', () => {
    expect(normalizeJson('{ "a  b"  : [1 ,2, ')).toBe('{"a  b": [1, 2, ')
    expect(normalizeJson('{"a":')).toBe('{"a":')
    expect(normalizeJson('["x \\" y')).toBe('["x \\" y')
  })

  test('are refused if they are invalid', () => {
    expect(() => readConstraint([])).toThrow(TypeError)
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    expect(() => readConstraint(loop)).toThrow(
      expect.objectContaining({ name: 'NotSupportedError' }),
    )
  })
})

test('The prompt describes the constraint unless that is omitted', async () => {
  const { server, session } = await openSession({ answers: () => '{"rating": 4}' })
  await session.prompt('Rate it', { responseConstraint: rating })
  expect(server.requests[0]?.messages[0]?.content).toContain(JSON.stringify(rating))
  expect(server.requests[0]?.format).toEqual({ type: 'json_schema', schema: rating, strict: true })
  await session.prompt('Again', quiet(rating))
  expect(server.requests[1]?.messages.at(-1)?.content).toBe('Again')
  const [more, less] = await Promise.all([
    session.measureContextUsage('Again', { responseConstraint: rating }),
    session.measureContextUsage('Again', quiet(rating)),
  ])
  expect(more).toBeGreaterThan(less)
})

test('The description of a constraint comes before the prefix', async () => {
  const { session, bodies } = await openSpy({ answers: () => '"rating": 4}' })
  await session.prompt(begin('{').slice(1), { responseConstraint: rating })
  expect(bodies[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
})

test('After calls of tools, the answer continues the same prefix', async () => {
  const { session, bodies } = await openSpy(
    {
      answers: ({ messages }) =>
        messages.at(-1)?.role === 'tool' ? ' 4}' : { toolCalls: [{ name: 'ask', arguments: {} }] },
    },
    {
      expectedOutputs: [{ type: 'tool-call' }],
      tools: [
        {
          name: 'ask',
          description: 'Asks a guest',
          inputSchema: { type: 'object' },
          execute: () => '4',
        },
      ],
    },
  )
  expect(await session.prompt(begin('{ "rating" :'), quiet(rating))).toBe(' 4}')
  expect(bodies[1]).toMatchObject({
    messages: [
      { role: 'user' },
      { role: 'assistant', tool_calls: [{}] },
      { role: 'tool' },
      { role: 'assistant', content: '{"rating":' },
    ],
    continue_final_message: true,
    response_format: json,
  })
})

test('An incomplete answer is a SyntaxError', async () => {
  const { session } = await openSession({ answers: () => '{"rating":' })
  const asked = session.prompt('Rate it', { responseConstraint: rating })
  await expect(asked).rejects.toMatchObject({ name: 'SyntaxError' })
})

test.each<[string, ErrorCode, string]>([
  ['format.schema.properties.a', 'unsupported_schema', 'responseConstraint.properties.a'],
  ['format', 'unsupported_constraint', 'responseConstraint'],
])('The error of %s with the code %s names %s', async (param, code, name) => {
  const error = new InoriginError('invalid_request', `${param} is not supported.`, { code, param })
  const { session } = await openSession({ answers: () => ({ error }) })
  await expect(session.prompt('Rate it', { responseConstraint: rating })).rejects.toMatchObject({
    name: 'NotSupportedError',
    message: `${name} is not supported.`,
  })
})

test('A prefix has no calls of tools', async () => {
  const { session } = await openSession({}, { expectedInputs: [{ type: 'tool-call' }] })
  const value = new LanguageModelToolCall({ callID: '1', name: 'ask', arguments: {} })
  const content = [{ type: 'tool-call' as const, value }]
  const asked = session.prompt([{ role: 'assistant', content, prefix: true }])
  await expect(asked).rejects.toMatchObject({ name: 'NotSupportedError' })
})
