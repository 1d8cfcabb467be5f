import { describe, expect, it } from 'vitest'
import { errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'

const PATH = '/v1/messages/count_tokens'
const { max_tokens: _, ...UNLIMITED } = messageOf({ system: 'S' })

describe('counted tokens', () => {
  it('are what the host counts of the same request', async () => {
    const host = scriptedHost()
    const tools = [{ name: 'f', input_schema: { type: 'object' } }]
    const response = await send(host, PATH, { body: { ...UNLIMITED, tools, metadata: {} } })
    expect(await response.json()).toEqual({ input_tokens: 42 })
    expect(response.headers.get('x-inorigin-ignored')).toBe('metadata')
    await send(host, '/v1/messages', { body: messageOf({ system: 'S', tools }) })
    expect(host.requests).toHaveLength(2)
    expect({ ...host.requests[1], maxTokens: undefined }).toEqual(host.requests[0])
  })

  it.each([
    ['a system text', { system: 'T' }],
    ['thoughts', { thinking: { type: 'enabled', budget_tokens: 50 } }],
    ['nothing said', { messages: [{ role: 'user', content: '' }] }],
    [
      'a turn of the assistant',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
          { role: 'user', content: '' },
        ],
      },
    ],
  ])('count %s as it would be answered', async (_what, fields) => {
    const host = scriptedHost()
    expect((await send(host, PATH, { body: { ...UNLIMITED, ...fields } })).status).toBe(200)
    expect(
      (await send(host, '/v1/messages', { body: messageOf({ system: 'S', ...fields }) })).status,
    ).toBe(200)
    expect({ ...host.requests[1], maxTokens: undefined }).toEqual(host.requests[0])
  })

  it('may have a limit, but need none', async () => {
    for (const body of [messageOf(), { ...UNLIMITED, max_tokens: null }]) {
      expect((await send(scriptedHost(), PATH, { body })).status).toBe(200)
    }
  })

  it.each([
    ['messages', { ...UNLIMITED, messages: [] }],
    ['max_tokens', { ...UNLIMITED, max_tokens: 0 }],
    ['thread', { ...UNLIMITED, thread: { type: 'create' } }],
    ['tools[0].input_schema', { ...UNLIMITED, tools: [{ name: 'f' }] }],
  ])('are refused for what is wrong with %s', async (param, body) => {
    expect((await errorOf(await send(scriptedHost(), PATH, { body }), 400)).param).toBe(param)
  })

  it('need a key where there are keys', async () => {
    const response = await send(scriptedHost({ keyed: true }), PATH, { body: UNLIMITED })
    expect((await errorOf(response, 401)).type).toBe('authentication_error')
  })
})
