import { describe, expect, it } from 'vitest'
import { errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'

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
            { type: 'text', text: 'A' },
          ],
        },
        { role: 'system', content: 'late' },
        { role: 'system', content: [{ type: 'text', text: 'later' }] },
        { role: 'user', content: 'b' },
        { role: 'assistant', content: 'prefill' },
      ],
    })
    expect(request?.messages).toEqual([
      { role: 'user', content: 'ab' },
      { role: 'assistant', content: 'A' },
      { role: 'system', content: 'late' },
      { role: 'system', content: 'later' },
      { role: 'user', content: 'b' },
      { role: 'assistant', content: 'prefill' },
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

const user = (...content: object[]) => ({
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'user', content },
  ],
})
const assistant = (...content: object[]) => ({ messages: [{ role: 'assistant', content }] })

describe('what cannot be honoured', () => {
  it.each([
    ['tools', { tools: [{ name: 'f', input_schema: { type: 'object' } }] }],
    ['tools', { tools: [{ type: 'web_search_20260101', name: 'web_search' }] }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
    ['tool_choice', { tool_choice: { type: 'tool', name: 'f' } }],
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
    ['thinking', { thinking: { type: 'adaptive' } }],
    ['output_config.effort', { output_config: { effort: 'low' } }],
    ['output_config.format', { output_config: { format: { type: 'json_schema', schema: {} } } }],
    ['mcp_servers', { mcp_servers: [{ type: 'url' }] }],
    ['container', { container: 'c' }],
    ['context_management', { context_management: { edits: [] } }],
    [
      'messages[1].content[1]',
      user({ type: 'text', text: 'What?' }, { type: 'image', source: {} }),
    ],
    ['messages[1].content[0]', user({ type: 'document', source: {} })],
    ['messages[1].content[0]', user({ type: 'tool_result', tool_use_id: 't', content: '1' })],
    ['messages[0].content[0]', assistant({ type: 'tool_use', id: 't', name: 'f', input: {} })],
    [
      'messages[0].content[0]',
      assistant({ type: 'server_tool_use', id: 't', name: 'f', input: {} }),
    ],
  ])('is refused by name: %s', async (param, fields) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body: messageOf(fields) }), 400)
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      param,
      code: 'unsupported_parameter',
    })
    expect(error.message).toContain(`\`${param}\``)
    expect(error.message).toContain('not supported')
  })

  it('is a thread, whatever else is there, in the words that make a client do without', async () => {
    const body = messageOf({ thread: { type: 'create' }, tools: [{ name: 'f' }], messages: [] })
    const error = await errorOf(await send(scriptedHost(), PATH, { body }), 400)
    expect(error).toMatchObject({
      param: 'thread',
      details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
    })
  })
})

describe('what is wrong', () => {
  it.each([
    ['max_tokens', { max_tokens: 0 }, 'an integer of at least 1, not 0'],
    ['max_tokens', { max_tokens: null }, 'an integer of at least 1, not null'],
    ['messages', { messages: [] }, 'an array with at least one message, not an array of 0'],
    [
      'messages[0].role',
      { messages: [{ role: 'robot', content: '' }] },
      'one of user, assistant, system, not "robot"',
    ],
    [
      'messages[0].role',
      { messages: [{ role: 'developer', content: '' }] },
      'one of user, assistant, system, not "developer"',
    ],
    [
      'messages[0].content',
      { messages: [{ role: 'assistant', content: null }] },
      'a string or an array of parts, not null',
    ],
    ['system', { system: 5 }, 'a string or an array of parts, not 5'],
    ['system[0].type', { system: [{ type: 'image' }] }, '"text", not "image"'],
    [
      'thinking.type',
      { thinking: { type: 'x' } },
      'one of disabled, enabled, adaptive, between_tools, not "x"',
    ],
    ['thinking', { thinking: 'enabled' }, 'an object, not "enabled"'],
    ['thinking', { thinking: [] }, 'an object, not an array of 0'],
    ['output_config', { output_config: [] }, 'an object, not an array of 0'],
    ['messages[0]', { messages: [[{ role: 'user' }]] }, 'an object, not an array of 1'],
    [
      'output_config.effort',
      { output_config: { effort: 'banana' } },
      'one of low, medium, high, xhigh, max, not "banana"',
    ],
    ['stop_sequences', { stop_sequences: 'END' }, 'an array, not "END"'],
    [
      'stop_sequences',
      { stop_sequences: Array(65).fill('x') },
      'an array of at most 64 strings, not an array of 65',
    ],
    ['stop_sequences[0]', { stop_sequences: [''] }, 'a string that is not empty, not ""'],
    ['top_p', { top_p: -0.5 }, 'a number from 0 to 1, not -0.5'],
    ['top_k', { top_k: 1.5 }, 'an integer of at least 0, not 1.5'],
    ['top_k', { top_k: -2 }, 'an integer of at least 0, not -2'],
  ])('is told by its path and what is allowed: %s %o', async (param, fields, said) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body: messageOf(fields) }), 400)
    expect(error).toMatchObject({
      param,
      code: 'invalid_value',
      message: `\`${param}\` must be ${said}.`,
    })
  })

  it('is told of a type that only the other side may send', async () => {
    const fields = user({ type: 'thinking', thinking: 'Hm.', signature: 's' })
    const error = await errorOf(await send(scriptedHost(), PATH, { body: messageOf(fields) }), 400)
    expect(error.param).toBe('messages[1].content[0].type')
  })

  it.each(['model', 'max_tokens', 'messages'])('is told when %s is missing', async (param) => {
    const { [param]: _, ...body } = messageOf() as Record<string, unknown>
    const error = await errorOf(await send(scriptedHost(), PATH, { body }), 400)
    expect(error).toMatchObject({
      message: `\`${param}\` is required.`,
      param,
      code: 'missing_required_parameter',
    })
  })
})
