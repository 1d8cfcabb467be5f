import { asks, documents, fieldsOf, HINTS } from './documented.ts'
import type { Row } from './documented.ts'
import { THINKING } from './scripts.ts'

const BASE = {
  model: '@acme/tiny',
  input: [
    { role: 'user', content: 'Hi' },
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: '1' },
  ],
  tools: [{ type: 'function', name: 'f' }],
}
const tools = (part: object) => asks({ tools: part })
const last = (role: string, part: object) => asks({ messages: [{}, {}, {}, { role, ...part }] })
const more = (...items: object[]) => [...BASE.input, ...items]

const ROWS: Row[] = [
  ['model', null, 'refused'],
  ['input', 'X', asks({ messages: [{ role: 'user', content: 'X' }] })],
  ['input', [], 'refused'],
  [
    'input',
    more({ type: 'message', role: 'developer', content: 'D' }),
    last('system', { content: 'D' }),
  ],
  [
    'input',
    more({ role: 'user', content: [{ type: 'input_text', text: 'T' }] }),
    last('user', { content: 'T' }),
  ],
  [
    'input',
    more({
      role: 'user',
      content: [{ type: 'input_image', image_url: 'data:image/png;base64,AA==' }],
    }),
    last('user', { images: [{ mediaType: 'image/png' }] }),
  ],
  ['input', more({ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }), 'refused'],
  [
    'input',
    more({ role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }),
    last('assistant', { content: 'No.' }),
  ],
  [
    'input',
    more({ type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'R' }] }),
    last('assistant', { reasoning: 'R' }),
  ],
  ['input', more({ type: 'computer_call' }), 'refused'],
  [
    'input[1].arguments',
    '{"a":1}',
    asks({ messages: [{}, { toolCalls: [{ arguments: '{"a":1}' }] }, {}] }),
  ],
  [
    'input[2].output',
    [{ type: 'input_text', text: 'T' }],
    asks({ messages: [{}, {}, { content: 'T' }] }),
  ],
  ['instructions', 'S', asks({ messages: [{ role: 'system', content: 'S' }, {}, {}, {}] })],
  ['stream', true, { answers: /event: response\.completed/ }],
  ['stream_options', { include_obfuscation: false }, 'ignored'],
  ['max_output_tokens', 7, asks({ maxTokens: 7 })],
  ['temperature', 0, asks({ sampling: { temperature: 0 } })],
  ['top_p', 0.5, asks({ sampling: { topP: 0.5 } })],
  [
    'tools[0].parameters',
    { type: 'object', title: 'P' },
    tools({ tools: [{ parameters: { title: 'P' } }] }),
  ],
  ['tools[0].description', 'F', tools({ tools: [{ description: 'F' }] })],
  ['tools[0].strict', true, 'as ever'],
  ['tools', [{ type: 'function', name: 'g' }], tools({ tools: [{ name: 'g' }] })],
  ['tools', [{ type: 'web_search' }], 'refused'],
  ['tool_choice', 'required', tools({ choice: 'required' })],
  ['tool_choice', 'none', tools({ choice: 'none' })],
  ['tool_choice', { type: 'function', name: 'f' }, tools({ choice: 'required', only: ['f'] })],
  [
    'tool_choice',
    { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
    tools({ choice: 'auto', only: ['f'] }),
  ],
  ['tool_choice', { type: 'web_search_preview' }, 'refused'],
  ['parallel_tool_calls', false, tools({ parallel: false })],
  [
    'text',
    { format: { type: 'json_schema', name: 'x', schema: { type: 'string' } } },
    asks({ format: { schema: { type: 'string' } } }),
  ],
  ['text', { format: { type: 'json_object' } }, asks({ format: { type: 'json_object' } })],
  ['text', { format: { type: 'text' }, verbosity: 'medium' }, 'as ever'],
  ['text', { verbosity: 'low' }, 'refused'],
  ['reasoning', { effort: 'low' }, asks({ reasoningBudget: 256 })],
  [
    'reasoning',
    { effort: 'low', summary: 'auto' },
    { answers: /"summary_text"/, script: THINKING },
  ],
  ['include', ['message.output_text.logprobs'], asks({ logprobs: 0 })],
  ['top_logprobs', 2, asks({ logprobs: 2 })],
  ['previous_response_id', 'resp_1', 'refused'],
  ['conversation', 'conv_1', 'refused'],
  ['prompt', { id: 'p' }, 'refused'],
  ['background', true, { answers: /"background":true/ }],
  ['background', false, 'as ever'],
  ['truncation', 'auto', 'refused'],
  ['truncation', 'disabled', 'as ever'],
  ['context_management', [{ type: 'compaction' }], 'refused'],
  ['moderation', {}, 'refused'],
  ['metadata', { a: 'b' }, { answers: /"metadata":\{"a":"b"\}/ }],
  ...HINTS,
  ['store', true, 'as ever'],
  ['store', false, { answers: /"store":false/ }],
]

documents(
  '/v1/responses',
  BASE,
  ROWS,
  fieldsOf('openai/resources/responses/responses.d.ts', 'ResponseCreateParamsBase'),
)
