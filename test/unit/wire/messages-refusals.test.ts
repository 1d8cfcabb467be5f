import { describe, expect, it } from 'vitest'
import { errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'

const PATH = '/v1/messages'

const user = (...content: object[]) => ({
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'user', content },
  ],
})
const resultOf = (content: unknown) => ({ type: 'tool_result', tool_use_id: 't', content })
const tool = { name: 'f', input_schema: { type: 'object' } }
const assistant = (...content: object[]) => ({ messages: [{ role: 'assistant', content }] })

describe('what cannot be honoured', () => {
  it.each([
    ['tools[0]', { tools: [{ type: 'web_search_20260101', name: 'web_search' }] }],
    ['tools[1]', { tools: [tool, { type: 'bash_20250124', name: 'bash' }] }],
    ['thinking', { thinking: { type: 'between_tools' } }],
    ['mcp_servers', { mcp_servers: [{ type: 'url' }] }],
    ['output_config.task_budget', { output_config: { task_budget: { type: 'tokens', total: 9 } } }],
    ['container', { container: 'c' }],
    [
      'messages[1].content[1]',
      user({ type: 'text', text: 'What?' }, { type: 'document', source: {} }),
    ],
    ['messages[1].content[0]', user({ type: 'document', source: {} })],
    ['messages[1].content[0].content[0]', user(resultOf([{ type: 'search_result' }]))],
    [
      'messages[1].content[0].content[1]',
      user(resultOf([{ type: 'text', text: '1' }, { type: 'document' }])),
    ],
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
    const body = messageOf({ thread: { type: 'create' }, tools: [{ type: 'x' }], messages: [] })
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
    [
      'thinking.budget_tokens',
      { thinking: { type: 'enabled', budget_tokens: 0 } },
      'an integer of at least 1, not 0',
    ],
    [
      'thinking.budget_tokens',
      { thinking: { type: 'enabled', budget_tokens: 100 } },
      'less than the limit of output tokens, 100, not 100',
    ],
    [
      'thinking.display',
      { thinking: { type: 'adaptive', display: 'x' } },
      'one of summarized, omitted, not "x"',
    ],
    ['tools[0]', { tools: [null] }, 'an object, not null'],
    ['tools[0].name', { tools: [{ ...tool, name: 5 }] }, 'a string, not 5'],
    [
      'tools[0].input_schema',
      { tools: [{ ...tool, input_schema: [] }] },
      'an object, not an array of 0',
    ],
    [
      'tool_choice.name',
      { tool_choice: { type: 'tool', name: '' } },
      'a string that is not empty, not ""',
    ],
    [
      'output_config.format.type',
      { output_config: { format: { type: 'text' } } },
      '"json_schema", not "text"',
    ],
    [
      'output_config.format.schema',
      { output_config: { format: { type: 'json_schema', schema: 'x' } } },
      'an object, not "x"',
    ],
    [
      'messages[1].content[0].is_error',
      user({ ...resultOf('1'), is_error: 1 }),
      'true or false, not 1',
    ],
    [
      'messages[1].content[0].tool_use_id',
      user({ ...resultOf('1'), tool_use_id: '' }),
      'a string that is not empty, not ""',
    ],
    ['messages[1].content[0].content', user(resultOf(5)), 'a string or an array of parts, not 5'],
    [
      'messages[0].content[0].input',
      assistant({ type: 'tool_use', id: 't', name: 'f', input: '{}' }),
      'an object, not "{}"',
    ],
    [
      'messages[0].content[0].id',
      assistant({ type: 'tool_use', id: '', name: 'f', input: {} }),
      'a string that is not empty, not ""',
    ],
    [
      'messages[0].content[0].thinking',
      assistant({ type: 'thinking', thinking: 1 }),
      'a string, not 1',
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
