/** Rounds of tool calls against a server with scripted answers, in the form of each endpoint. */
import { expect, test } from 'vitest'
import type { ToolDefinition } from '../../../demo/tools/types.ts'
import { readCalls, withRound, withTools } from '../../../demo/tools/wire.ts'
import { createTestServer } from '../../../src/adapters/testing/server.ts'

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
