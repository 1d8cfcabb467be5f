import { describe, expect, it } from 'vitest'
import { messageOf, scriptedHost, send } from './scripted-host.ts'

const PATH = '/v1/messages'

async function requestOf(fields: object, headers: Record<string, string> = {}) {
  const host = scriptedHost()
  const response = await send(host, PATH, { body: messageOf(fields), headers })
  expect(response.status, await response.text()).toBe(200)
  return { request: host.requests[0], ignored: response.headers.get('x-inorigin-ignored') }
}

const billing = { type: 'text', text: 'x-anthropic-billing-header: cch=12345;' }

describe('the fields of a message', () => {
  it('reach the host', async () => {
    const { request, ignored } = await requestOf({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      max_tokens: 64,
      stop_sequences: ['a', 'b'],
      system: 'S',
    })
    expect(request).toEqual({
      model: '@acme/tiny',
      messages: [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'Hi' },
      ],
      maxTokens: 64,
      sampling: { temperature: 0.5, topP: 0.9, topK: 40 },
      stop: ['a', 'b'],
    })
    expect(ignored).toBeNull()
  })

  it.each([
    [
      'blocks',
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      'ab',
    ],
    ['blocks and a billing note', [billing, { type: 'text', text: 'b' }], 'b'],
  ])('take a system of %s', async (_, system, content) => {
    expect((await requestOf({ system })).request?.messages[0]).toEqual({ role: 'system', content })
  })

  it.each([{ system: null }, { system: '' }, { system: [] }, { system: [billing] }])(
    'take what says nothing: %j',
    async (fields) => {
      expect((await requestOf(fields)).request?.messages).toEqual([{ role: 'user', content: 'Hi' }])
    },
  )

  it('take messages in all their forms', async () => {
    const { request } = await requestOf({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 's' },
            { type: 'redacted_thinking', data: 'd' },
            { type: 'thinking', thinking: ' So.', signature: '' },
            { type: 'text', text: 'A' },
          ],
        },
        { role: 'system', content: 'late' },
        { role: 'system', content: [{ type: 'text', text: 'later' }] },
        { role: 'user', content: 'b' },
        { role: 'assistant', content: 'B' },
        { role: 'user', content: 'c' },
      ],
    })
    expect(request?.messages).toEqual([
      { role: 'user', content: 'ab' },
      { role: 'assistant', content: 'A', reasoning: 'Hm. So.' },
      { role: 'system', content: 'late' },
      { role: 'system', content: 'later' },
      { role: 'user', content: 'b' },
      { role: 'assistant', content: 'B' },
      { role: 'user', content: 'c' },
    ])
  })

  it('may be null where they are optional', async () => {
    const names = [
      'system',
      'stream',
      'temperature',
      'top_p',
      'top_k',
      'stop_sequences',
      'tools',
      'tool_choice',
      'thinking',
      'output_config',
      'thread',
      'mcp_servers',
      'container',
      'context_management',
      'metadata',
      'service_tier',
    ]
    const { ignored } = await requestOf(Object.fromEntries(names.map((name) => [name, null])))
    expect(ignored).toBeNull()
  })

  it.each([
    { tools: [] },
    { tool_choice: { type: 'auto' } },
    { tool_choice: { type: 'none' } },
    { thinking: { type: 'disabled' } },
    { output_config: {} },
    { output_config: { effort: null, format: null } },
    { mcp_servers: [] },
    { stop_sequences: [] },
  ])('may say what is so anyway: %o', async (fields) =>
    expect((await requestOf(fields)).ignored).toBeNull(),
  )

  it('without effect are listed', async () => {
    const content = [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }]
    const fields = {
      messages: [{ role: 'user', content }],
      metadata: { user_id: 'u' },
      service_tier: 'auto',
      system: content,
      x: 1,
    }
    const { ignored } = await requestOf(fields, {
      'anthropic-beta': 'a-2026-01-01,b',
      'anthropic-version': '1999-01-01',
    })
    expect(ignored).toBe(
      'messages[].content[].cache_control, metadata, service_tier, system[].cache_control, x, anthropic-beta',
    )
  })

  it('may name many texts to stop at', async () => {
    const texts = Array.from({ length: 64 }, (_, i) => `stop ${i}`)
    expect((await requestOf({ stop_sequences: texts })).request?.stop).toEqual(texts)
  })

  it('may come with a query', async () => {
    const response = await send(scriptedHost(), `${PATH}?beta=true`, { body: messageOf() })
    expect(response.status).toBe(200)
  })
})
