import { asks, documents, fieldsOf, HINTS } from './documented.ts'
import type { Row } from './documented.ts'
import { chatOf } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { LONG_USAGE, THINKING, tokenOf } from './scripts.ts'

const tool = { type: 'function', function: { name: 'f' } }
const BASE = chatOf({
  messages: [
    { role: 'system', content: 'S' },
    { role: 'developer', content: 'D' },
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: '1' },
  ],
  tools: [{ type: 'function', function: { name: 'f' } }],
})

const LIKELY: Script = [
  { type: 'start', promptTokens: 1, cachedTokens: 0 },
  { type: 'text', text: 'Hi', logprobs: [tokenOf('Hi')] },
  { type: 'finish', reason: 'stop', stopSequence: null, usage: LONG_USAGE },
]

const tools = (rest: object) => asks({ tools: rest })
const message = (index: number, part: object): { asks: object } => ({
  asks: {
    messages: Object.assign(
      Array.from({ length: 5 }, () => ({})),
      { [index]: part },
    ),
  },
})
const thought = asks({ reasoningBudget: 4096 })

const ROWS: Row[] = [
  ['model', '', 'refused'],
  [
    'messages',
    [{ role: 'user', content: 'X' }],
    asks({ messages: [{ role: 'user', content: 'X' }] }),
  ],
  ['messages', [], 'refused'],
  ['messages', [{ role: 'robot', content: '' }], 'refused'],
  [
    'messages',
    [{ role: 'function', name: 'f', content: 'X' }],
    asks({ messages: [{ role: 'tool', name: 'f', content: 'X' }] }),
  ],
  ['messages[0].role', 'user', message(0, { role: 'user' })],
  ['messages[0].content', 'T', message(0, { content: 'T' })],
  ['messages[0].name', 'n', 'ignored'],
  ['messages[1].content', 'T', message(1, { role: 'system', content: 'T' })],
  [
    'messages[2].content',
    [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
    message(2, { content: 'ab' }),
  ],
  [
    'messages[2].content',
    [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }],
    message(2, { images: [{ mediaType: 'image/png' }] }),
  ],
  ['messages[2].content', [{ type: 'input_audio', input_audio: {} }], 'refused'],
  ['messages[2].content', [{ type: 'file', file: {} }], 'refused'],
  ['messages[2].name', 'n', 'ignored'],
  ['messages[3].content', 'T', message(3, { content: 'T' })],
  ['messages[3].refusal', 'No.', message(3, { content: 'No.' })],
  ['messages[3].reasoning_content', 'R', message(3, { reasoning: 'R' })],
  ['messages[3].reasoning', 'R', message(3, { reasoning: 'R' })],
  [
    'messages[3].tool_calls',
    [{ id: 'c', function: { name: 'h', arguments: '' } }],
    message(3, { toolCalls: [{ id: 'c', name: 'h', arguments: '{}' }] }),
  ],
  ['messages[3].tool_calls[0].id', 'toolu_b', message(3, { toolCalls: [{ id: 'call_b' }] })],
  ['messages[3].tool_calls[0].type', 'custom', 'refused'],
  [
    'messages[3].tool_calls[0].function',
    { name: 'g', arguments: '{"a":1}' },
    message(3, { toolCalls: [{ name: 'g', arguments: '{"a":1}' }] }),
  ],
  [
    'messages[3].function_call',
    { name: 'h', arguments: '{}' },
    message(3, { toolCalls: [{ name: 'f' }, { name: 'h', arguments: '{}' }] }),
  ],
  ['messages[3].audio', { id: 'a' }, 'refused'],
  ['messages[3].name', 'n', 'ignored'],
  ['messages[4].content', 'T', message(4, { content: 'T' })],
  ['messages[4].tool_call_id', 'b', message(4, { toolCallId: 'b', name: '' })],
  ['stream', true, { answers: /\[DONE\]/ }],
  ['stream_options', null, 'as ever'],
  ['stream_options.include_usage', true, { answers: /"usage":\{/, stream: true }],
  ['stream_options.include_obfuscation', true, 'ignored'],
  [
    'tools',
    [tool, { type: 'function', function: { name: 'g' } }],
    tools({ tools: [{ name: 'f' }, { name: 'g' }] }),
  ],
  ['tools', [{ type: 'custom', custom: { name: 'f' } }], 'refused'],
  ['tools[0].type', 'web_search', 'refused'],
  ['tools[0].function.name', 'g', tools({ tools: [{ name: 'g' }] })],
  ['tools[0].function.description', 'F', tools({ tools: [{ description: 'F' }] })],
  [
    'tools[0].function.parameters',
    { type: 'object', title: 'P' },
    tools({ tools: [{ parameters: { title: 'P' } }] }),
  ],
  ['tools[0].function.strict', true, 'as ever'],
  ['tool_choice', 'auto', 'as ever'],
  ['tool_choice', 'none', tools({ choice: 'none' })],
  ['tool_choice', 'required', tools({ choice: 'required' })],
  ['tool_choice', tool, tools({ choice: 'required', only: ['f'] })],
  [
    'tool_choice',
    { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [tool] } },
    tools({ choice: 'required', only: ['f'] }),
  ],
  [
    'tool_choice',
    { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [tool] } },
    tools({ choice: 'auto', only: ['f'] }),
  ],
  ['tool_choice', { type: 'custom', custom: { name: 'f' } }, 'refused'],
  ['parallel_tool_calls', false, tools({ parallel: false })],
  ['parallel_tool_calls', true, 'as ever'],
  // Beside tools; without them `functions.test.ts` has it.
  ['functions', [{ name: 'f' }], 'refused'],
  ['function_call', { name: 'f' }, 'refused'],
  ['function_call', 'none', 'as ever'],
  ['response_format', { type: 'text' }, 'as ever'],
  ['response_format', { type: 'json_object' }, asks({ format: { type: 'json_object' } })],
  [
    'response_format',
    { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: { type: 'string' } } },
    asks({ format: { type: 'json_schema', schema: { type: 'string' } } }),
  ],
  [
    'response_format',
    { type: 'grammar', grammar: 'root ::= "a"' },
    asks({ format: { type: 'grammar' } }),
  ],
  ['response_format', { type: 'xml' }, 'refused'],
  ['max_completion_tokens', 7, asks({ maxTokens: 7 })],
  ['max_completion_tokens', 0, 'refused'],
  ['max_tokens', 7, asks({ maxTokens: 7 })],
  ['stop', 'x', asks({ stop: ['x'] })],
  ['stop', ['x', 'y'], asks({ stop: ['x', 'y'] })],
  ['temperature', 0, asks({ sampling: { temperature: 0 } })],
  ['top_p', 0.5, asks({ sampling: { topP: 0.5 } })],
  ['seed', -5, asks({ sampling: { seed: -5 } })],
  ['frequency_penalty', 1, asks({ sampling: { frequencyPenalty: 1 } })],
  ['presence_penalty', -1, asks({ sampling: { presencePenalty: -1 } })],
  ['logit_bias', { 5: -100 }, asks({ sampling: { logitBias: { 5: -100 } } })],
  ['logprobs', true, { answers: /"logprob":-0\.25/, script: LIKELY }],
  ['logprobs', true, asks({ logprobs: 0 })],
  ['top_logprobs', 2, 'refused'],
  ['n', 1, 'as ever'],
  ['n', 2, 'refused'],
  ...(['minimal', 'low', 'medium', 'high', 'xhigh'] as const).map((level, index): Row => [
    'reasoning_effort',
    level,
    asks({ reasoningBudget: [64, 256, 1024, 4096, Infinity][index] }),
  ]),
  ['reasoning_effort', 'none', asks({ reasoningBudget: 0 })],
  ['reasoning_effort', 'high', { answers: /"reasoning_content":"Two cities\."/, script: THINKING }],
  ['thinking', { type: 'adaptive' }, asks({ reasoningBudget: 1024 })],
  ['output_config', { effort: 'high' }, thought],
  ['verbosity', 'medium', 'as ever'],
  ['verbosity', 'low', 'refused'],
  ['modalities', ['text'], 'as ever'],
  ['modalities', ['text', 'audio'], 'refused'],
  ['audio', { voice: 'x' }, 'refused'],
  ['prediction', { type: 'content', content: 'x' }, 'refused'],
  ['moderation', {}, 'refused'],
  ['web_search_options', {}, 'refused'],
  ['metadata', { a: 'b' }, 'ignored'],
  ...HINTS,
  ['store', true, 'ignored'],
  ['something_new', { a: 1 }, 'ignored'],
]

const FILE = 'openai/resources/chat/completions/completions.d.ts'

documents('/v1/chat/completions', BASE, ROWS, [
  ...fieldsOf(FILE, 'ChatCompletionCreateParamsBase'),
  ...fieldsOf(FILE, 'ChatCompletionStreamOptions', 'stream_options.'),
  ...fieldsOf(FILE, 'ChatCompletionUserMessageParam', 'messages[].'),
  ...fieldsOf(FILE, 'ChatCompletionAssistantMessageParam', 'messages[].'),
  ...fieldsOf(FILE, 'ChatCompletionToolMessageParam', 'messages[].'),
  ...fieldsOf(FILE, 'ChatCompletionMessageFunctionToolCall', 'messages[].tool_calls[].'),
  ...fieldsOf('openai/resources/shared.d.ts', 'FunctionDefinition', 'tools[].function.'),
])
