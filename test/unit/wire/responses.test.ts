/** `POST /v1/responses`, on its way to the host. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { errorOf, scriptedHost, send } from './scripted-host.ts'
import { askedOf, WEATHER_SCHEMA } from './scripts.ts'

const PATH = '/v1/responses'
const bodyOf = (fields: object = {}) => ({ model: '@acme/tiny', input: 'Hi', ...fields })
const requestOf = async (fields: object) => (await askedOf(PATH, bodyOf(fields))).request
const tool = {
  type: 'function',
  name: 'weather',
  description: 'W',
  parameters: WEATHER_SCHEMA,
  strict: true,
}

describe('the fields of a response', () => {
  it('reach the host', async () => {
    const { request, ignored } = await askedOf(
      PATH,
      bodyOf({
        instructions: 'S',
        max_output_tokens: 9,
        temperature: 0.5,
        top_p: 0.9,
        seed: 1,
        truncation: 'disabled',
        include: ['reasoning.encrypted_content'],
        background: false,
        store: false,
        metadata: {},
      }),
    )
    expect(request).toEqual({
      model: '@acme/tiny',
      messages: [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'Hi' },
      ],
      maxTokens: 9,
      sampling: { temperature: 0.5, topP: 0.9, seed: 1 },
      stop: [],
    })
    expect(ignored).toBeNull()
  })

  it('are told as without effect where they ask for what no answer here has', async () => {
    const include = ['reasoning.encrypted_content', 'web_search_call.action.sources']
    expect((await askedOf(PATH, bodyOf({ include }))).ignored).toBe('include')
  })

  it.each([
    [{ reasoning: { effort: 'low', summary: 'auto' } }, { reasoningBudget: 256 }],
    [{ reasoning: { effort: 'none' } }, { reasoningBudget: 0 }],
    [{ reasoning: null }, { reasoningBudget: undefined }],
    [{ top_logprobs: 3 }, { logprobs: 3 }],
    [{ include: ['message.output_text.logprobs'] }, { logprobs: 0 }],
    [{ top_logprobs: 0 }, { logprobs: undefined }],
    [{ text: { format: { type: 'text' } } }, { format: undefined }],
    [
      { text: { format: { type: 'json_object' }, verbosity: 'medium' } },
      { format: { type: 'json_object' } },
    ],
    [
      {
        text: { format: { type: 'json_schema', name: 'x', strict: true, schema: WEATHER_SCHEMA } },
      },
      { format: { type: 'json_schema', schema: WEATHER_SCHEMA } },
    ],
  ])('%j asks for %j', async (fields, asked) => {
    const request = await requestOf(fields)
    for (const [name, value] of Object.entries(asked)) {
      expect(request[name as keyof typeof request]).toEqual(value)
    }
  })

  it.each([
    [{}, { choice: 'auto', parallel: true }],
    [{ tool_choice: 'none' }, { choice: 'none' }],
    [
      { tool_choice: 'required', parallel_tool_calls: false },
      { choice: 'required', parallel: false },
    ],
    [
      { tool_choice: { type: 'function', name: 'weather' } },
      { choice: 'required', only: ['weather'] },
    ],
    [
      {
        tool_choice: {
          type: 'allowed_tools',
          mode: 'auto',
          tools: [{ type: 'function', name: 'weather' }],
        },
      },
      { choice: 'auto', only: ['weather'] },
    ],
  ])('take tools, chosen by %j', async (fields, asked) => {
    const bare = { type: 'function', name: 'now', parameters: null, strict: null }
    const { tools } = await requestOf({ tools: [tool, bare], ...fields })
    expect(tools).toMatchObject({
      tools: [
        { name: 'weather', description: 'W', parameters: WEATHER_SCHEMA },
        { name: 'now', parameters: { type: 'object' } },
      ],
      ...asked,
    })
  })

  it('take a conversation item by item', async () => {
    const input = [
      { role: 'developer', content: 'S' },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Os' },
          { type: 'input_text', text: 'lo?' },
        ],
      },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'Hm.' }],
        encrypted_content: null,
      },
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Let me look.', annotations: [] }],
      },
      {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_1',
        name: 'weather',
        arguments: '{"city":"Oslo"}',
        status: 'completed',
      },
      { type: 'function_call', call_id: 'call_2', name: 'now', arguments: '' },
      { type: 'function_call_output', call_id: 'call_1', output: '5 degrees' },
      {
        type: 'function_call_output',
        call_id: 'call_2',
        output: [{ type: 'input_text', text: 'noon' }],
      },
      { type: 'function_call', call_id: 'call_3', name: 'now', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_3', output: 'noon' },
      { role: 'assistant', content: 'A' },
      { role: 'assistant', content: 'B' },
      { type: 'reasoning', summary: [] },
      { role: 'user', content: 'And?' },
    ]
    expect((await requestOf({ input })).messages).toEqual([
      { role: 'system', content: 'S' },
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
      { role: 'tool', toolCallId: 'call_2', name: 'now', content: 'noon' },
      {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'call_3', name: 'now', arguments: '{}' }],
      },
      { role: 'tool', toolCallId: 'call_3', name: 'now', content: 'noon' },
      { role: 'assistant', content: 'A' },
      { role: 'assistant', content: 'B' },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'And?' },
    ])
  })
})

describe('what cannot be honoured', () => {
  it.each([
    ['conversation', { conversation: 'conv_1' }],
    ['reasoning.mode', { reasoning: { mode: 'pro' } }],
    ['reasoning.context', { reasoning: { context: 'all_turns' } }],
    ['prompt', { prompt: { id: 'p' } }],
    ['truncation', { truncation: 'auto' }],
    ['tools[0]', { tools: [{ type: 'web_search' }] }],
    ['tools[1]', { tools: [tool, { type: 'custom', name: 'x' }] }],
    ['tool_choice', { tool_choice: { type: 'custom', name: 'x' } }],
    ['text.verbosity', { text: { verbosity: 'low' } }],
    ['messages', { messages: [{ role: 'user', content: 'Hi' }] }],
    ['max_tokens', { max_tokens: 5 }],
    ['stop', { stop: 'END' }],
    ['response_format', { response_format: { type: 'json_object' } }],
    [
      'input[0].content[0]',
      { input: [{ role: 'assistant', content: [{ type: 'input_image', image_url: 'data:,' }] }] },
    ],
    [
      'input[0].content[1]',
      {
        input: [
          { role: 'user', content: [{ type: 'input_text', text: '' }, { type: 'input_file' }] },
        ],
      },
    ],
  ])('is refused by name: %s', async (param, fields) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body: bodyOf(fields) }), 400)
    expect(error).toMatchObject({ param, code: 'unsupported_parameter' })
  })
})

describe('what is wrong', () => {
  it.each([
    ['input', { input: 5 }, 'a string or an array of items, not 5'],
    ['input', { input: [] }, 'an array with at least one item, not an array of 0'],
    ['input[0]', { input: ['Hi'] }, 'an object, not "Hi"'],
    [
      'input[0].type',
      { input: [{ type: 'web_search_call' }] },
      'one of message, function_call, function_call_output, reasoning, item_reference, not "web_search_call"',
    ],
    ['input[0].id', { input: [{ type: 'item_reference', id: 5 }] }, 'a string, not 5'],
    ['store', { store: 'yes' }, 'true or false, not "yes"'],
    ['previous_response_id', { previous_response_id: '' }, 'a string that is not empty, not ""'],
    [
      'input[0].role',
      { input: [{ role: 'tool', content: 'x' }] },
      'one of user, assistant, system, developer, not "tool"',
    ],
    [
      'input[0].arguments',
      { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '[' }] },
      'the JSON text of an object, not "["',
    ],
    [
      'tools[0].parameters',
      { tools: [{ type: 'function', name: 'f', parameters: [] }] },
      'an object, not an array of 0',
    ],
    [
      'text.format.schema',
      { text: { format: { type: 'json_schema', schema: 1 } } },
      'an object, not 1',
    ],
    ['top_logprobs', { top_logprobs: 21 }, 'at most 20, not 21'],
    ['max_output_tokens', { max_output_tokens: 0 }, 'an integer of at least 1, not 0'],
  ])('is told by its path: %s %j', async (param, fields, said) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body: bodyOf(fields) }), 400)
    expect(error).toMatchObject({ param, message: `\`${param}\` must be ${said}.` })
  })

  it.each([
    ['format.schema.not', 'text.format.schema.not'],
    ['tools[0].parameters.not', 'tools[0].parameters.not'],
    ['messages', 'input'],
  ])('is told in the words of this style: %s is %s', async (param, named) => {
    const generate = () => Promise.reject(new InoriginError('invalid_request', 'No.', { param }))
    const host = scriptedHost({ overrides: { generate } })
    expect((await errorOf(await send(host, PATH, { body: bodyOf() }), 400)).param).toBe(named)
  })

  it('is told of an effort without effect', async () => {
    const host = scriptedHost({ ignored: ['reasoningBudget'] })
    const response = await send(host, PATH, { body: bodyOf({ reasoning: { effort: 'low' } }) })
    expect(response.headers.get('x-inorigin-ignored')).toBe('reasoning.effort')
  })
})
