/** Bodies as clients send them that are no part of this project's own tests. */
import { describe, expect, it } from 'vitest'
import { askedOf, WEATHER_SCHEMA } from './scripts.ts'

const draft = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...WEATHER_SCHEMA,
  additionalProperties: false,
}
const text = (value: string, more: object = {}) => ({ type: 'text', text: value, ...more })
const cached = { cache_control: { type: 'ephemeral' } }

describe('the AI SDK', () => {
  it('asks for an object through a tool that must be called alone', async () => {
    const { request } = await askedOf('/v1/messages', {
      model: '@acme/tiny',
      max_tokens: 4096,
      system: [text('S')],
      messages: [{ role: 'user', content: [text('x')] }],
      tools: [
        {
          name: 'json',
          description: 'Respond with a JSON object.',
          input_schema: draft,
          eager_input_streaming: true,
        },
      ],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    })
    expect(request.tools).toMatchObject({
      tools: [{ name: 'json', parameters: draft }],
      choice: 'required',
      parallel: false,
    })
  })

  it('sends back what a compatible server thought and called', async () => {
    const { request, ignored } = await askedOf('/v1/chat/completions', {
      model: '@acme/tiny',
      messages: [
        { role: 'user', content: 'Oslo?' },
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'Hm.',
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'weather', arguments: '{"city":"Oslo"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: '{"degrees":5}' },
      ],
      tools: [{ type: 'function', function: { name: 'weather', parameters: draft } }],
      tool_choice: 'auto',
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(ignored).toBeNull()
    expect(request.messages[1]).toMatchObject({
      content: '',
      reasoning: 'Hm.',
      toolCalls: [{ id: 'call_1' }],
    })
    expect(request.messages[2]).toMatchObject({ toolCallId: 'call_1', content: '{"degrees":5}' })
  })

  it('sends a conversation whole where nothing is stored', async () => {
    const { request } = await askedOf('/v1/responses', {
      model: '@acme/tiny',
      store: false,
      include: ['reasoning.encrypted_content'],
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Oslo?' }] },
        {
          type: 'reasoning',
          id: 'rs_1',
          encrypted_content: 'seal_1',
          summary: [{ type: 'summary_text', text: 'Hm.' }],
        },
        { role: 'assistant', content: [{ type: 'output_text', text: 'A' }], id: 'msg_1' },
        { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
        { type: 'function_call_output', call_id: 'call_1', output: '{"degrees":5}' },
      ],
      reasoning: { effort: 'high', summary: 'auto' },
    })
    expect(request.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: 'A', reasoning: 'Hm.', toolCalls: [{ id: 'call_1' }] },
      { role: 'tool', name: 'weather' },
    ])
  })
})

describe('LangChain', () => {
  it('leaves later system messages and ids of other servers where they are', async () => {
    const { request } = await askedOf('/v1/messages', {
      model: '@acme/tiny',
      max_tokens: 4096,
      stream: false,
      top_k: -1,
      top_p: -1,
      system: 'S',
      messages: [
        { role: 'user', content: 'Oslo?' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'Oslo' } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: '5' }] },
        { role: 'system', content: 'Late.' },
      ],
      tools: [{ name: 'weather', input_schema: WEATHER_SCHEMA }],
      tool_choice: { type: 'tool', name: 'weather' },
    })
    expect(request.messages).toMatchObject([
      { role: 'system', content: 'S' },
      { role: 'user' },
      {
        role: 'assistant',
        toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' }],
      },
      { role: 'tool', toolCallId: 'call_1', name: 'weather', content: '5' },
      { role: 'system', content: 'Late.' },
    ])
    expect(request.tools?.only).toEqual(['weather'])
  })
})

it('a coding client sends all it knows', async () => {
  const { request, ignored } = await askedOf('/v1/messages', {
    model: '@acme/tiny',
    max_tokens: 32_000,
    stream: true,
    metadata: { user_id: 'u' },
    thinking: { type: 'adaptive' },
    output_config: { effort: 'high' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    system: [text('x-anthropic-billing-header: cch=1;'), text('You code.', cached)],
    messages: [
      { role: 'user', content: [text('<system-reminder>x</system-reminder>'), text('Hi', cached)] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: '' },
          {
            type: 'tool_use',
            id: 'toolu_1',
            name: 'Bash',
            input: { command: 'ls' },
            caller: { type: 'direct' },
          },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [text('a'), text('b')],
            is_error: false,
          },
          text('Go on.'),
        ],
      },
    ],
    tools: [{ name: 'Bash', description: 'Runs.', input_schema: draft, ...cached }],
  })
  expect(request.messages).toEqual([
    { role: 'system', content: 'You code.' },
    { role: 'user', content: '<system-reminder>x</system-reminder>Hi' },
    {
      role: 'assistant',
      content: '',
      reasoning: 'Hm.',
      toolCalls: [{ id: 'call_1', name: 'Bash', arguments: '{"command":"ls"}' }],
    },
    { role: 'tool', toolCallId: 'call_1', name: 'Bash', content: 'a\nb' },
    { role: 'user', content: 'Go on.' },
  ])
  expect(request.reasoningBudget).toBe(4096)
  expect(ignored).toContain('metadata')
})
