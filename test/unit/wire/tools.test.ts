/** Tools, choices and calls of earlier turns, on their way to the host. */
import { describe, expect, it } from 'vitest'
import { chatOf, messageOf } from './scripted-host.ts'
import { askedOf, WEATHER_SCHEMA } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

const chatTool = (name: string, more: object = {}) => ({
  type: 'function',
  function: { name, ...more },
})
const weather = chatTool('weather', { description: 'W', parameters: WEATHER_SCHEMA, strict: true })
const useTool = { name: 'weather', description: 'W', input_schema: WEATHER_SCHEMA }
const asked = { name: 'weather', description: 'W', parameters: WEATHER_SCHEMA }
const nothing = { type: 'object', properties: {} }

const chatTools = async (fields: object) => (await askedOf(CHAT, chatOf(fields))).request.tools
const useTools = async (fields: object) =>
  (await askedOf(MESSAGES, messageOf(fields))).request.tools

describe('tools', () => {
  it('of a chat completion reach the host', async () => {
    const tools = [
      weather,
      chatTool('now'),
      chatTool('then', { description: null, parameters: null }),
    ]
    expect(await chatTools({ tools })).toEqual({
      tools: [asked, { name: 'now', parameters: nothing }, { name: 'then', parameters: nothing }],
      choice: 'auto',
      parallel: true,
    })
  })

  it('of a message reach the host', async () => {
    const tools = [
      useTool,
      { type: 'custom', name: 'now', input_schema: { type: 'object' }, strict: true },
    ]
    expect(await useTools({ tools })).toEqual({
      tools: [asked, { name: 'now', parameters: { type: 'object' } }],
      choice: 'auto',
      parallel: true,
    })
  })

  it('keep their schemas to the letter', async () => {
    const schema = JSON.parse(
      '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,' +
        '"properties":{"__proto__":{"type":"string"},"a":{"enum":[null,1,"x"]}}}',
    ) as object
    const told = await chatTools({ tools: [chatTool('f', { parameters: schema })] })
    expect(JSON.stringify(told?.tools[0]?.parameters)).toBe(JSON.stringify(schema))
  })

  it.each([
    [{}, { choice: 'auto' }],
    [{ tool_choice: null }, { choice: 'auto' }],
    [{ tool_choice: 'auto' }, { choice: 'auto' }],
    [{ tool_choice: 'none' }, { choice: 'none' }],
    [{ tool_choice: 'required' }, { choice: 'required' }],
    [
      { tool_choice: { type: 'function', function: { name: 'weather' } } },
      { choice: 'required', only: ['weather'] },
    ],
    [
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: {
            mode: 'auto',
            tools: [{ type: 'function', function: { name: 'weather' } }],
          },
        },
      },
      { choice: 'auto', only: ['weather'] },
    ],
    [
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: {
            mode: 'required',
            tools: [{ type: 'function', function: { name: 'weather' } }],
          },
        },
      },
      { choice: 'required', only: ['weather'] },
    ],
    [{ parallel_tool_calls: null }, { parallel: true }],
    [{ parallel_tool_calls: false }, { parallel: false }],
  ])('of a chat completion are chosen by %j', async (fields, choice) => {
    expect(await chatTools({ tools: [weather], ...fields })).toEqual({
      tools: [asked],
      choice: 'auto',
      parallel: true,
      ...choice,
    })
  })

  it.each([
    [{}, { choice: 'auto' }],
    [{ tool_choice: { type: 'auto' } }, { choice: 'auto' }],
    [{ tool_choice: { type: 'none' } }, { choice: 'none' }],
    [{ tool_choice: { type: 'any' } }, { choice: 'required' }],
    [{ tool_choice: { type: 'tool', name: 'weather' } }, { choice: 'required', only: ['weather'] }],
    [{ tool_choice: { type: 'auto', disable_parallel_tool_use: true } }, { parallel: false }],
    [
      { tool_choice: { type: 'any', disable_parallel_tool_use: true } },
      { choice: 'required', parallel: false },
    ],
    [{ tool_choice: { type: 'any', disable_parallel_tool_use: false } }, { choice: 'required' }],
  ])('of a message are chosen by %j', async (fields, choice) => {
    expect(await useTools({ tools: [useTool], ...fields })).toEqual({
      tools: [asked],
      choice: 'auto',
      parallel: true,
      ...choice,
    })
  })

  it.each([{}, { tools: null }, { tools: [] }, { tools: [], tool_choice: 'none' }])(
    'are none with %j',
    async (fields) => expect(await chatTools(fields)).toBeUndefined(),
  )

  it('that must be called are asked of the host though there are none', async () => {
    expect(await chatTools({ tool_choice: 'required' })).toMatchObject({
      tools: [],
      choice: 'required',
    })
  })

  it('have fields without effect, which are listed', async () => {
    const tool = { ...useTool, cache_control: { type: 'ephemeral' }, eager_input_streaming: true }
    const { ignored } = await askedOf(MESSAGES, messageOf({ tools: [tool] }))
    expect(ignored).toBe('tools[].cache_control, tools[].eager_input_streaming')
  })
})

const call = (id: string, name: string, text: string) => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})

/** What both conversations below are, free of a style. */
const HISTORY = [
  { role: 'user', content: 'Oslo?' },
  {
    role: 'assistant',
    content: 'Let me look.',
    reasoning: 'Hm.',
    toolCalls: [
      { id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
      { id: 'call_2', name: 'now', arguments: '{}' },
    ],
  },
  { role: 'tool', toolCallId: 'call_1', name: 'weather', content: '5 degrees' },
  { role: 'tool', toolCallId: 'call_2', name: 'now', content: 'No clock.' },
  { role: 'user', content: 'And?' },
]

describe('calls of earlier turns', () => {
  it.each(['call', 'toolu'])(
    'reach the host from a chat completion, with ids of %s_',
    async (kind) => {
      const messages = [
        { role: 'user', content: 'Oslo?' },
        {
          role: 'assistant',
          content: 'Let me look.',
          reasoning_content: 'Hm.',
          tool_calls: [
            call(`${kind}_1`, 'weather', '{"city":"Oslo"}'),
            call(`${kind}_2`, 'now', ''),
          ],
        },
        { role: 'tool', tool_call_id: `${kind}_1`, content: '5 degrees' },
        {
          role: 'tool',
          tool_call_id: `${kind}_2`,
          content: [{ type: 'text', text: 'No clock.' }],
          name: 'now',
        },
        { role: 'user', content: 'And?' },
      ]
      expect((await askedOf(CHAT, chatOf({ messages }))).request.messages).toEqual(HISTORY)
    },
  )

  it.each(['call', 'toolu'])('reach the host from a message, with ids of %s_', async (kind) => {
    const messages = [
      { role: 'user', content: 'Oslo?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 's' },
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: `${kind}_1`, name: 'weather', input: { city: 'Oslo' } },
          { type: 'tool_use', id: `${kind}_2`, name: 'now', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'And?' },
          {
            type: 'tool_result',
            tool_use_id: `${kind}_1`,
            content: [{ type: 'text', text: '5 degrees' }],
          },
          { type: 'tool_result', tool_use_id: `${kind}_2`, content: 'No clock.', is_error: true },
        ],
      },
    ]
    const expected = HISTORY.map((message) =>
      message.content === 'No clock.' ? { ...message, isError: true } : message,
    )
    expect((await askedOf(MESSAGES, messageOf({ messages }))).request.messages).toEqual(expected)
  })

  it('may have results of nothing, and of several texts', async () => {
    const content = [
      { type: 'tool_result', tool_use_id: 'x' },
      { type: 'tool_result', tool_use_id: 'y', content: null },
      {
        type: 'tool_result',
        tool_use_id: 'z',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ]
    const { request } = await askedOf(
      MESSAGES,
      messageOf({ messages: [{ role: 'user', content }] }),
    )
    expect(request.messages).toEqual([
      { role: 'tool', toolCallId: 'x', name: '', content: '' },
      { role: 'tool', toolCallId: 'y', name: '', content: '' },
      { role: 'tool', toolCallId: 'z', name: '', content: 'a\nb' },
    ])
  })

  it('have a result whose tool no one named', async () => {
    const messages = [
      { role: 'tool', content: 'x' },
      { role: 'tool', tool_call_id: null, content: null },
    ]
    expect((await askedOf(CHAT, chatOf({ messages }))).request.messages).toEqual([
      { role: 'tool', toolCallId: '', name: '', content: 'x' },
      { role: 'tool', toolCallId: '', name: '', content: '' },
    ])
  })

  it('have results named by the last call of their id', async () => {
    const calling = (name: string) => ({
      role: 'assistant',
      tool_calls: [call('same', name, '{}')],
    })
    const result = { role: 'tool', tool_call_id: 'same', content: 'x' }
    const messages = [calling('a'), result, calling('b'), result]
    const told = (await askedOf(CHAT, chatOf({ messages }))).request.messages
    expect(told.map((message) => message.role === 'tool' && message.name)).toEqual([
      false,
      'a',
      false,
      'b',
    ])
  })

  it('keep the JSON text that a chat completion sends', async () => {
    const text = '{ "a" : 1.0,\n"b":[] }'
    const messages = [{ role: 'assistant', content: null, tool_calls: [call('c', 'f', text)] }]
    const [message] = (await askedOf(CHAT, chatOf({ messages }))).request.messages
    expect(message).toEqual({
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'c', name: 'f', arguments: text }],
    })
  })
})
