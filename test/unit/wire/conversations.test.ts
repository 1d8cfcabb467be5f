/** The messages of each wire style, as the host receives them. */
import { describe, expect, it } from 'vitest'
import { bodyOf } from './field-table.ts'
import { askedOf, WEATHER_SCHEMA } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'

const messagesOf = async (path: string, list: readonly object[]) => {
  const fields = path === RESPONSES ? { input: list } : { messages: list }
  return (await askedOf(path, bodyOf(path, fields))).request.messages
}

const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: unknown, rest: object = {}) => ({ role: 'assistant', content, ...rest })
const system = (content: unknown) => ({ role: 'system', content })
const result = (toolCallId: string, name: string, content: string) => ({
  role: 'tool',
  toolCallId,
  name,
  content,
})
const toolCall = (id: string, name: string, text = '{}') => ({ id, name, arguments: text })
const text = (value: string) => ({ type: 'text', text: value })
const thought = (thinking: string) => ({ type: 'thinking', thinking, signature: '' })
const redacted = { type: 'redacted_thinking', data: 'd' }
const chatCall = (id: string, name: string, given = '{}') => ({
  id,
  type: 'function',
  function: { name, arguments: given },
})
const functionCall = (name: string, given: string) => ({
  function_call: { name, arguments: given },
})
const toolUse = (id: string, name: string, input: object = {}) => ({
  type: 'tool_use',
  id,
  name,
  input,
})
const toolResult = (id: string, content?: unknown, rest: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...rest,
})
const called = (call_id: string, name: string, given: string) => ({
  type: 'function_call',
  call_id,
  name,
  arguments: given,
})
const output = (call_id: string, value: unknown) => ({
  type: 'function_call_output',
  call_id,
  output: value,
})
const inputText = (value: string) => ({ type: 'input_text', text: value })
const summary = (...list: string[]) => ({
  type: 'reasoning',
  id: 'rs_1',
  summary: list.map((each) => ({ type: 'summary_text', text: each })),
  encrypted_content: null,
})

/** One conversation, which each style below writes in its own way. */
const HISTORY = [
  system('S'),
  user('Oslo?'),
  assistant('Let me look.', {
    reasoning: 'Hm.',
    toolCalls: [toolCall('call_1', 'weather', '{"city":"Oslo"}'), toolCall('call_2', 'now')],
  }),
  result('call_1', 'weather', '5 degrees'),
  result('call_2', 'now', 'noon'),
  user('And?'),
]
const OSLO = '{"city":"Oslo"}'

const chatHistory = (kind: string) => [
  { role: 'developer', content: 'S' },
  user('Oslo?'),
  assistant('Let me look.', {
    reasoning_content: 'Hm.',
    tool_calls: [chatCall(`${kind}_1`, 'weather', OSLO), chatCall(`${kind}_2`, 'now', '')],
  }),
  { role: 'tool', tool_call_id: `${kind}_1`, content: '5 degrees', name: 'weather' },
  { role: 'tool', tool_call_id: `${kind}_2`, content: [text('noon')], name: 'now' },
  user('And?'),
]
// Results come before the text beside them, in either order.
const messageHistory = (kind: string) => [
  system('S'),
  user('Oslo?'),
  assistant([
    thought('Hm.'),
    text('Let me look.'),
    toolUse(`${kind}_1`, 'weather', { city: 'Oslo' }),
    toolUse(`${kind}_2`, 'now'),
  ]),
  user([
    text('An'),
    toolResult(`${kind}_1`, [text('5 degrees')]),
    toolResult(`${kind}_2`, 'noon'),
    text('d?'),
  ]),
]
const RESPONSE_HISTORY = [
  { role: 'developer', content: 'S' },
  { type: 'message', role: 'user', content: [inputText('Os'), inputText('lo?')] },
  summary('Hm.'),
  assistant([{ type: 'output_text', text: 'Let me look.', annotations: [] }], {
    id: 'msg_1',
    type: 'message',
    status: 'completed',
  }),
  { ...called('call_1', 'weather', OSLO), id: 'fc_1', status: 'completed' },
  called('call_2', 'now', ''),
  output('call_1', '5 degrees'),
  output('call_2', [inputText('noon')]),
  user('And?'),
]

describe('a conversation', () => {
  it.each([
    ['a chat with ids of call_', CHAT, chatHistory('call')],
    ['a chat with ids of toolu_', CHAT, chatHistory('toolu')],
    ['messages with ids of call_', MESSAGES, messageHistory('call')],
    ['messages with ids of toolu_', MESSAGES, messageHistory('toolu')],
    ['the input of a response', RESPONSES, RESPONSE_HISTORY],
  ])('is the same for the host as %s', async (_, path, list) => {
    expect(await messagesOf(path, list)).toEqual(HISTORY)
  })

  it.each([
    ['texts in parts', [user([text('a'), text('b')])], [user('ab')]],
    ['a late system message', [user('a'), system('late')], [user('a'), system('late')]],
    ['an empty text', [user('')], [user('')]],
    [
      'no content',
      [{ role: 'user' }, assistant(null), system([])],
      [user(''), assistant(''), system('')],
    ],
    [
      'fields of nothing',
      [assistant('A', { refusal: null, tool_calls: [], function_call: null })],
      [assistant('A')],
    ],
    [
      'results without the name of a tool',
      [
        { role: 'tool', content: 'x' },
        { role: 'tool', tool_call_id: null, content: null },
      ],
      [result('', '', 'x'), result('', '', '')],
    ],
    [
      'results without names',
      [
        assistant(null, { tool_calls: [chatCall('a', 'now')] }),
        { role: 'tool', tool_call_id: 'a', content: 'x' },
      ],
      [assistant('', { toolCalls: [toolCall('a', 'now')] }), result('a', '', 'x')],
    ],
    [
      'arguments whose JSON text stays as it is',
      [assistant(null, { tool_calls: [chatCall('c', 'f', '{ "a" : 1.0,\n"b":[] }')] })],
      [assistant('', { toolCalls: [toolCall('c', 'f', '{ "a" : 1.0,\n"b":[] }')] })],
    ],
    [
      'calls of functions and their results',
      [
        { role: 'function', name: 'now', content: 'long ago' },
        assistant(null, functionCall('weather', OSLO)),
        { role: 'function', name: 'weather', content: '5 degrees' },
        assistant('And now:', functionCall('now', '')),
        { role: 'function', name: 'now', content: null },
        assistant('', functionCall('weather', '{}')),
        { role: 'function', name: 'weather', content: [text('none')] },
      ],
      [
        result('', 'now', 'long ago'),
        assistant('', { toolCalls: [toolCall('call_function_1', 'weather', OSLO)] }),
        result('call_function_1', 'weather', '5 degrees'),
        assistant('And now:', { toolCalls: [toolCall('call_function_3', 'now')] }),
        result('call_function_3', 'now', ''),
        assistant('', { toolCalls: [toolCall('call_function_5', 'weather')] }),
        result('call_function_5', 'weather', 'none'),
      ],
    ],
  ])('of a chat may have %s', async (_, list, expected) => {
    expect(await messagesOf(CHAT, list)).toEqual(expected)
  })

  it.each([
    [
      'system blocks between others',
      [user('a'), system([text('la'), text('te')]), user('b')],
      [user('a'), system('late'), user('b')],
    ],
    ['a past turn as text', [assistant('B'), user('c')], [assistant('B'), user('c')]],
    [
      'thoughts of several blocks',
      [assistant([thought('Hm.'), redacted, thought(' So.'), text('A')]), user('c')],
      [assistant('A', { reasoning: 'Hm. So.' }), user('c')],
    ],
    [
      'thoughts alone',
      [assistant([thought('Hm.')]), assistant([redacted]), user('c')],
      [assistant('', { reasoning: 'Hm.' }), assistant(''), user('c')],
    ],
    [
      'results of nothing and of several texts',
      [user([toolResult('x'), toolResult('y', null), toolResult('z', [text('a'), text('b')])])],
      [result('x', '', ''), result('y', '', ''), result('z', '', 'a\nb')],
    ],
    [
      'a result that is an error',
      [user([toolResult('x', 'No such city', { is_error: true })])],
      [{ ...result('x', '', 'No such city'), isError: true }],
    ],
  ])('of messages may have %s', async (_, list, expected) => {
    expect(await messagesOf(MESSAGES, list)).toEqual(expected)
  })

  it('of a response has one assistant message for reasoning, text and calls in a row', async () => {
    const input = [
      called('call_3', 'now', '{}'),
      output('call_3', 'noon'),
      assistant('A'),
      assistant('B'),
      summary(),
      user('And?'),
    ]
    expect(await messagesOf(RESPONSES, input)).toEqual([
      assistant('', { toolCalls: [toolCall('call_3', 'now')] }),
      result('call_3', 'now', 'noon'),
      assistant('A'),
      assistant('B'),
      assistant(''),
      user('And?'),
    ])
  })
})

describe('the tools of a conversation', () => {
  const weather = { name: 'weather', description: 'W', parameters: WEATHER_SCHEMA }
  const functions = [weather, { name: 'now' }]

  it('are the same for the host in all styles', async () => {
    const chat = functions.map((each) => ({ type: 'function', function: each }))
    const messages = [
      { name: 'weather', description: 'W', input_schema: WEATHER_SCHEMA },
      { type: 'custom', name: 'now', input_schema: { type: 'object', properties: {} } },
    ]
    const response = functions.map((each) => ({ type: 'function', ...each }))
    for (const [path, tools] of [
      [CHAT, chat],
      [MESSAGES, messages],
      [RESPONSES, response],
    ] as const) {
      expect((await askedOf(path, bodyOf(path, { tools }))).request.tools).toEqual({
        tools: [weather, { name: 'now', parameters: { type: 'object', properties: {} } }],
        choice: 'auto',
        parallel: true,
      })
    }
  })

  it('keep every character of their schemas', async () => {
    const schema = JSON.parse(
      '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,' +
        '"properties":{"__proto__":{"type":"string"},"a":{"enum":[null,1,"x"]}}}',
    ) as object
    const tools = [{ type: 'function', function: { name: 'f', parameters: schema } }]
    const { request } = await askedOf(CHAT, bodyOf(CHAT, { tools }))
    expect(JSON.stringify(request.tools?.tools[0]?.parameters)).toBe(JSON.stringify(schema))
  })
})
