/** Tools of the playground: the calculator, schemas, rounds of calls, and the policy of the sandbox. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { calculate } from '../../../demo/tools/calculator.ts'
import { findMismatch, findSchemaError } from '../../../demo/tools/schema.ts'
import type { ToolDefinition } from '../../../demo/tools/types.ts'
import { readCalls, withRound, withTools } from '../../../demo/tools/wire.ts'
import { createTestServer } from '../../../src/extras/testing/server.ts'

describe('the calculator', () => {
  test.each([
    ['27 + 15', 42],
    ['12 * (3 + 4)', 84],
    ['2 ^ 3 ^ 2', 512],
    ['-2 ** 2', -4],
    ['2 ^ -1', 0.5],
    ['10 - 4 - 3', 3],
    ['64 / 4 / 2', 8],
    ['17 % 5', 2],
    ['1e3 + .5', 1000.5],
    ['SQRT(16) + max(1, 2, 3)', 7],
    ['2 × 3 ÷ 4 − 1', 0.5],
    ['cos(pi)', -1],
    ['ln(e) ', 1],
    ['--3', 3],
  ])('%s is %d', (expression, value) => {
    expect(calculate(expression)).toBeCloseTo(value, 12)
  })

  test.each([
    ['', 'ends too early'],
    ['1 +', 'ends too early'],
    ['2 2', 'Unexpected "2" at position 3'],
    ['(1', 'ends too early'],
    ['1)', 'Unexpected ")" at position 2'],
    ['alert(1)', 'Unexpected "alert" at position 1'],
    ['constructor', 'Unexpected "constructor" at position 1'],
    ['1 ; 2', 'Unexpected ";" at position 2'],
    ['1 / 0', 'not a number'],
    ['sqrt(-1)', 'not a number'],
    [`${'('.repeat(5000)}1`, 'nested over 100 levels'],
  ])('%s is refused', (expression, message) => {
    expect(() => calculate(expression)).toThrow(message)
  })
})

describe('the schema of arguments', () => {
  const schema = (properties: unknown, rest: object = {}): string =>
    JSON.stringify({ type: 'object', properties, ...rest })

  test('a schema of arguments is accepted', () => {
    const nested = { type: 'array', items: { anyOf: [{ type: 'string' }, { enum: [1, null] }] } }
    expect(findSchemaError(schema({ nested, any: true }, { required: ['nested'] }))).toBeUndefined()
    const $defs = { city: { type: 'string', pattern: '^[A-Z]' } }
    expect(findSchemaError(schema({ city: { $ref: '#/$defs/city' } }, { $defs }))).toBeUndefined()
  })

  test.each([
    ['{"type": "object",\n "properties": x}', /^This is not JSON/],
    ['[]', /not a JSON Schema/],
    ['{"type": "string"}', /"type": "object"/],
    [schema({ city: { type: 'text' } }), /properties\/city/],
    [schema({ city: 'string' }), /properties\/city/],
    [schema({}, { required: 'city' }), /required/],
    [schema({ list: { type: 'array', minItems: -1 } }), /minItems/],
    [schema({ city: { $ref: '#/$defs/none' } }), /leads nowhere/],
  ])('%s is refused', (text, message) => {
    expect(findSchemaError(text)).toMatch(message)
  })

  test('a mismatch names the part of the arguments', () => {
    const parameters = JSON.parse(schema({ count: { type: 'integer' } }, { required: ['count'] }))
    expect(findMismatch(parameters, { count: 2 })).toBeUndefined()
    expect(findMismatch(parameters, { count: 'two' })).toMatch(/^"count": /)
    expect(findMismatch(parameters, {})).toMatch(/count/)
  })
})

describe('a round of calls', () => {
  const TOOLS: ToolDefinition[] = [
    { name: 'weather', description: 'Tells the weather', parameters: toSchema('city') },
    { name: 'clock', description: 'Tells the time', parameters: toSchema('zone') },
  ]

  function toSchema(name: string): Record<string, unknown> {
    return { type: 'object', properties: { [name]: { type: 'string' } }, required: [name] }
  }

  const user = { role: 'user', content: 'How is it in Oslo?' }

  const BODIES = {
    'chat/completions': { messages: [user] },
    messages: { messages: [user], max_tokens: 100 },
    responses: { input: user.content },
  }

  test.each(['chat/completions', 'messages', 'responses'] as const)(
    'POST /v1/%s offers tools, and gets their results',
    async (path) => {
      const toolCalls = [
        { name: 'weather', arguments: { city: 'Oslo "north"' } },
        { name: 'clock', arguments: { zone: 'Europe/Oslo' } },
      ]
      const answers = [{ text: 'I look.', toolCalls }, 'It is warm.']
      const server = createTestServer({ models: [{ tag: '@test/model', answers }] })
      const send = async (request: { path: string; body: object }): Promise<string> => {
        const response = await server.fetch(`${server.baseURL}/${request.path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(request.body),
        })
        const text = await response.text()
        expect(response.status, text).toBe(200)
        return text
      }
      const body = { model: '@test/model', stream: true, ...BODIES[path] }
      const first = withTools({ path, headers: {}, body }, TOOLS, 'required')
      const calls = readCalls(first, await send(first))
      expect(calls.map(({ name, arguments: json }) => [name, JSON.parse(json)])).toEqual(
        toolCalls.map(({ name, arguments: args }) => [name, args]),
      )
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2)

      const results = calls.map((call, at) => ({ call, content: `No. ${at}`, isError: at === 1 }))
      const second = withRound(withTools({ path, headers: {}, body }, TOOLS, 'auto'), {
        text: 'I look.',
        results,
      })
      expect(readCalls(second, await send(second))).toEqual([])
      expect(server.requests.map(({ tools }) => tools?.choice)).toEqual(['required', 'auto'])
      const sent = JSON.stringify(server.requests[1]?.messages)
      expect(sent).toContain('I look.')
      expect(sent).toContain('No. 0')
      expect(sent).toMatch(path === 'messages' ? /No\. 1/ : /Error: No\. 1/)
      for (const { id } of calls) expect(sent).toContain(id.replace('toolu_', 'call_'))
    },
  )
})

const PAGE = readFileSync(join(import.meta.dirname, '../../../demo/sandbox.html'), 'utf8')

test('the policy of the sandbox names the digest of its script, and allows no request', () => {
  const [, script = ''] = /<script>([^]*)<\/script>/.exec(PAGE) ?? []
  const digest = createHash('sha256').update(script).digest('base64')
  const [, policy = ''] = /content="([^"]*)"/.exec(PAGE) ?? []
  expect(policy.split('; ')).toEqual([
    "default-src 'none'",
    `script-src 'sha256-${digest}' 'unsafe-eval'`,
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
  ])
})
