import { asks, documents, fieldsOf } from './documented.ts'
import type { Row } from './documented.ts'
import { messageOf } from './scripted-host.ts'
import { THINKING } from './scripts.ts'

const SDK = '@anthropic-ai/sdk/resources/'
const FILE = `${SDK}messages/messages.d.ts`
const BETA = `${SDK}beta/messages/messages.d.ts`

const BASE = messageOf({
  max_tokens: 9999,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '1' }] },
  ],
  tools: [{ name: 'f', input_schema: { type: 'object' } }],
  tool_choice: { type: 'auto' },
})

const message = (index: number, part: object) =>
  asks({
    messages: Object.assign(
      Array.from({ length: 3 }, () => ({})),
      { [index]: part },
    ),
  })
const tools = (part: object) => asks({ tools: part })
const tool = (part: object) => tools({ tools: [part] })

const SHARED: Row[] = [
  ['model', 5, 'refused'],
  ['messages', [{ role: 'user', content: 'X' }], asks({ messages: [{ content: 'X' }] })],
  ['messages', [], 'refused'],
  [
    'messages',
    [
      { role: 'user', content: 'X' },
      { role: 'system', content: 'S' },
    ],
    asks({ messages: [{ content: 'X' }, { role: 'system' }] }),
  ],
  ['messages', [{ role: 'user', content: [{ type: 'document', source: {} }] }], 'refused'],
  [
    'messages',
    [{ role: 'user', content: [{ type: 'server_tool_use', id: 'a', name: 'b', input: {} }] }],
    'refused',
  ],
  ['messages[0].content[0].text', 'T', message(0, { content: 'T' })],
  ['messages[0].content[0].type', 'search_result', 'refused'],
  ['messages[0].content[0].cache_control', { type: 'ephemeral' }, 'ignored'],
  ['messages[0].content[0].citations', [], 'ignored'],
  [
    'messages[0].content[1].source',
    { type: 'url', url: 'data:image/gif;base64,AA==' },
    message(0, { images: [{ mediaType: 'image/gif' }] }),
  ],
  [
    'messages[0].content[1].source',
    { type: 'url', url: 'https://example.com/a.gif' },
    message(0, { images: [{ url: 'https://example.com/a.gif' }] }),
  ],
  ['messages[0].content[1].type', 'video', 'refused'],
  ['messages[0].content[1].cache_control', { type: 'ephemeral' }, 'ignored'],
  ['messages[0].content[1].transformations', [], 'ignored'],
  ['messages[1].content[0].thinking', 'Ha.', message(1, { reasoning: 'Ha.' })],
  ['messages[1].content[0].signature', 't', 'as ever'],
  ['messages[1].content[0].type', 'thought', 'refused'],
  ['messages[1].content[1].data', 'e', 'as ever'],
  ['messages[1].content[1].type', 'hidden', 'refused'],
  ['messages[1].content[2].id', 'toolu_2', message(1, { toolCalls: [{ id: 'call_2' }] })],
  ['messages[1].content[2].name', 'g', message(1, { toolCalls: [{ name: 'g' }] })],
  ['messages[1].content[2].input', { a: 1 }, message(1, { toolCalls: [{ arguments: '{"a":1}' }] })],
  ['messages[1].content[2].type', 'mcp_tool_use', 'refused'],
  ['messages[1].content[2].cache_control', { type: 'ephemeral' }, 'ignored'],
  ['messages[1].content[2].caller', { type: 'direct' }, 'ignored'],
  ['messages[1].content[2].toolset_name', 't', 'ignored'],
  ['messages[2].content[0].tool_use_id', 'toolu_2', message(2, { toolCallId: 'call_2' })],
  [
    'messages[2].content[0].content',
    [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
    message(2, { content: 'a\nb' }),
  ],
  ['messages[2].content[0].is_error', true, message(2, { isError: true })],
  ['messages[2].content[0].type', 'web_search_tool_result', 'refused'],
  ['messages[2].content[0].cache_control', { type: 'ephemeral' }, 'ignored'],
  ['messages[2].content[0].toolset_name', 't', 'ignored'],
  ['system', 'S', asks({ messages: [{ role: 'system', content: 'S' }, {}, {}, {}] })],
  [
    'system',
    [
      { type: 'text', text: 'S' },
      { type: 'text', text: 'T' },
    ],
    asks({ messages: [{ content: 'ST' }, {}, {}, {}] }),
  ],
  ['tools[0].name', 'g', tool({ name: 'g' })],
  ['tools[0].description', 'F', tool({ description: 'F' })],
  ['tools[0].input_schema', { type: 'object', title: 'P' }, tool({ parameters: { title: 'P' } })],
  [
    'tools[0].input_examples',
    [{ a: 1 }],
    tool({ description: 'Examples of its arguments:\n{"a":1}' }),
  ],
  ['tools[0].type', 'custom', 'as ever'],
  ['tools[0].type', 'web_search_20260101', 'refused'],
  ['tools[0].strict', true, 'as ever'],
  ['tools[0].allowed_callers', ['direct'], 'as ever'],
  ['tools[0].allowed_callers', ['code_execution_20260101'], 'refused'],
  ['tools[0].cache_control', { type: 'ephemeral' }, 'ignored'],
  ['tools[0].defer_loading', false, 'ignored'],
  ['tools[0].eager_input_streaming', true, 'ignored'],
  ['tools', [], asks({ tools: undefined })],
  ['tool_choice', { type: 'any' }, tools({ choice: 'required' })],
  ['tool_choice', { type: 'none' }, tools({ choice: 'none' })],
  ['tool_choice', { type: 'tool', name: 'f' }, tools({ choice: 'required', only: ['f'] })],
  ['tool_choice.type', 'auto', 'as ever'],
  ['tool_choice.name', 'f', 'ignored'],
  ['tool_choice.disable_parallel_tool_use', true, tools({ parallel: false })],
  [
    'tool_choice',
    { type: 'any', disable_parallel_tool_use: true },
    tools({ choice: 'required', parallel: false }),
  ],
  [
    'tool_choice',
    { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    tools({ parallel: false }),
  ],
  ['thinking', { type: 'disabled' }, asks({ reasoningBudget: 0 })],
  ['thinking', { type: 'enabled', budget_tokens: 99 }, asks({ reasoningBudget: 99 })],
  ['thinking', { type: 'adaptive' }, asks({ reasoningBudget: 1024 })],
  ['thinking', { type: 'enabled' }, 'refused'],
  ['thinking', { type: 'between_tools' }, 'refused'],
  ...(['low', 'medium', 'high', 'xhigh', 'max'] as const).map((level, index): Row => [
    'output_config',
    { effort: level },
    asks({ reasoningBudget: [256, 1024, 4096, Infinity, Infinity][index] }),
  ]),
  ['output_config', { effort: 'none' }, 'refused'],
  [
    'output_config',
    { format: { type: 'json_schema', schema: { type: 'string' } } },
    asks({ format: { schema: { type: 'string' } } }),
  ],
  ['output_config', { task_budget: { type: 'tokens', total: 1 } }, 'refused'],
  [
    'output_format',
    { type: 'json_schema', schema: { type: 'string' } },
    asks({ format: { schema: { type: 'string' } } }),
  ],
  ['cache_control', { type: 'ephemeral' }, 'ignored'],
  ['speed', 'fast', 'ignored'],
  ['user_profile_id', 'u', 'ignored'],
  ['workspace_id', 'w', 'ignored'],
  ['billing_policy', {}, 'ignored'],
  ['betas', [], 'ignored'],
  ['compaction', {}, 'refused'],
  ['context_management', { edits: [{ type: 'clear_tool_uses_20250919' }] }, 'refused'],
  ['context_management', { edits: [] }, 'as ever'],
  ['mcp_servers', [{ type: 'url', url: 'x', name: 'x' }], 'refused'],
  ['mcp_servers', [], 'as ever'],
  ['something_new', { a: 1 }, 'ignored'],
]

const ROWS: Row[] = [
  ...SHARED,
  ['max_tokens', 7, asks({ maxTokens: 7 })],
  ['max_tokens', null, 'refused'],
  ['max_tokens', 0, 'refused'],
  ['stream', true, { answers: /event: message_stop/ }],
  ['stop_sequences', ['x'], asks({ stop: ['x'] })],
  ['temperature', 0, asks({ sampling: { temperature: 0 } })],
  ['top_p', 0.5, asks({ sampling: { topP: 0.5 } })],
  ['top_k', 3, asks({ sampling: { topK: 3 } })],
  ['thinking', { type: 'enabled', budget_tokens: 9999 }, 'refused'],
  ['thinking', { type: 'adaptive' }, { answers: /"thinking":"Two cities\./, script: THINKING }],
  ['metadata', { user_id: 'u' }, 'ignored'],
  ['service_tier', 'auto', 'ignored'],
  ['inference_geo', 'eu', 'ignored'],
  ['diagnostics', {}, 'ignored'],
  ['fallback_credit_token', 't', 'ignored'],
  ['fallbacks', [{ model: 'x' }], 'refused'],
  ['container', 'c', 'refused'],
  ['thread', { type: 'create' }, 'refused'],
]

documents('/v1/messages', BASE, ROWS, [
  ...fieldsOf(FILE, 'MessageCreateParamsBase'),
  ...fieldsOf(BETA, 'MessageCreateParamsBase'),
  ...['Text', 'Image', 'Thinking', 'RedactedThinking', 'ToolUse', 'ToolResult'].flatMap((kind) =>
    fieldsOf(FILE, `${kind}BlockParam`, 'messages[].content[].'),
  ),
  ...fieldsOf(FILE, 'Tool', 'tools[].'),
  ...fieldsOf(FILE, 'ToolChoiceTool', 'tool_choice.'),
  'temperature',
  'top_p',
  'top_k',
])

documents('/v1/messages/count_tokens', BASE, SHARED, [
  ...fieldsOf(FILE, 'MessageCountTokensParams'),
  ...fieldsOf(BETA, 'MessageCountTokensParams'),
])
