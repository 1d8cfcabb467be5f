/** Every field of a response. */
import { describe } from 'vitest'
import {
  asks,
  fieldsOf,
  IGNORED,
  messageAt,
  REQUIRED,
  SAME,
  testCoverage,
  testFields,
  UNSUPPORTED,
} from './field-table.ts'
import type { Row } from './field-table.ts'
import { THINKING, WEATHER_SCHEMA } from './scripts.ts'
import {
  asksJson,
  asksSchema,
  asksStrict,
  CUT_ARGUMENTS,
  customTool,
  effortRows,
  limitRows,
  NO_ARRAY,
  NO_CHAT,
  NOT_EMPTY,
  NOT_HERE,
  pngUrl,
  SHARED,
  jsonSchema,
  tools,
  toolWith,
} from './shared-fields.ts'

const PATH = '/v1/responses'
const withSystem = (content: string) =>
  asks({ messages: [{ role: 'system', content }, {}, {}, {}] })
const BASE = {
  model: '@acme/tiny',
  input: [
    { role: 'user', content: 'Hi' },
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: '1' },
  ],
  tools: [{ type: 'function', name: 'f' }],
}

const more = (...items: object[]) => [...BASE.input, ...items]
const partOf = (role: string, part: object) => more({ role, content: [part] })
const lastItem = (role: string, part: object) => messageAt(3, { role, ...part }, 4)
const ITEMS =
  'function_call, function_call_output, custom_tool_call, custom_tool_call_output, local_shell_call, ' +
  'local_shell_call_output, shell_call, shell_call_output, apply_patch_call, apply_patch_call_output, ' +
  'reasoning, compaction, compaction_trigger, additional_tools, tool_search_output, item_reference'
const namespaceOf = (...inner: object[]) => ({ type: 'namespace', name: 'ns', tools: inner })
const call = (fields: object) => ({
  type: 'function_call',
  call_id: 'b',
  arguments: '{}',
  ...fields,
})
const lastCall = (name: string, text = '{}') =>
  messageAt(3, { toolCalls: [{ id: 'b', name, arguments: text }] }, 4)
const lastResult = (content: string) => messageAt(4, { role: 'tool', toolCallId: 'b', content }, 5)
const CHOICES = 'one of function, allowed_tools, custom, not'
const inputImage = { type: 'input_image', image_url: pngUrl }
const named = { type: 'function', name: 'f' }
const custom = { type: 'custom', name: 'f' }
const inGrammar = (syntax: string, definition: string) => ({
  ...custom,
  format: { type: 'grammar', syntax, definition },
})

const ROWS: Row[] = [
  // Responses accept context edits, which have no effect.
  ...SHARED.filter(([field]) => field !== 'context_management'),
  ['input', 'X', asks({ messages: [{ role: 'user', content: 'X' }] })],
  ['input', 5, 'a string or an array of items, not 5'],
  ['input', [], 'an array with at least one item, not an array of 0'],
  [
    'input',
    more({ type: 'message', role: 'developer', content: 'D' }),
    lastItem('system', { content: 'D' }),
  ],
  ['input', partOf('user', { type: 'input_text', text: 'T' }), lastItem('user', { content: 'T' })],
  ['input', partOf('user', inputImage), lastItem('user', { images: [{ mediaType: 'image/png' }] })],
  ['input', partOf('user', { type: 'input_file' }), UNSUPPORTED, 'input[3].content[0]'],
  ['input', partOf('assistant', inputImage), NOT_HERE, 'input[3].content[0]'],
  [
    'input',
    partOf('assistant', { type: 'refusal', refusal: 'No.' }),
    lastItem('assistant', { content: 'No.' }),
  ],
  [
    'input',
    more({ type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'R' }] }),
    lastItem('assistant', { reasoning: 'R' }),
  ],
  ['input[0]', 'Hi', 'an object, not "Hi"'],
  ['input[0].role', 'tool', 'one of user, assistant, system, developer, not "tool"'],
  ['input', more({ type: 'web_search_call', id: 'w' }), IGNORED, 'input[3]:web_search_call'],
  ['input', more({ type: 'tool_of_tomorrow', a: 1 }), IGNORED, 'input[3]:tool_of_tomorrow'],
  ['input[0].type', 5, `one of message, ${ITEMS}, not 5`],
  ['input', more(call({ name: 'g', namespace: 'ns' })), lastCall('ns__g')],
  [
    'input',
    more({ type: 'local_shell_call', id: 'b', action: { type: 'exec', command: ['ls'] } }),
    lastCall('local_shell', '{"type":"exec","command":["ls"]}'),
  ],
  [
    'input',
    more(
      { type: 'local_shell_call', id: 'x', call_id: 'b', action: {} },
      { type: 'local_shell_call_output', id: 'b', output: 'a.txt' },
    ),
    lastResult('a.txt'),
  ],
  [
    'input',
    more(
      { type: 'shell_call', call_id: 'b', action: { commands: ['ls'] } },
      { type: 'shell_call_output', call_id: 'b', output: [{ stdout: 'a' }] },
    ),
    lastResult('[{"stdout":"a"}]'),
  ],
  [
    'input',
    more({ type: 'apply_patch_call', call_id: 'b', operation: { type: 'delete_file', path: 'a' } }),
    lastCall('apply_patch', '{"type":"delete_file","path":"a"}'),
  ],
  ['input', more({ type: 'local_shell_call', id: 'b' }), REQUIRED, 'input[3].action'],
  [
    'input',
    more({ type: 'additional_tools', role: 'developer', tools: [named, { ...named, name: 'g' }] }),
    tools({ tools: [{ name: 'f' }, { name: 'g' }] }),
    'input[].role',
  ],
  [
    'input',
    more({ type: 'tool_search_output', tools: [namespaceOf({ ...named, name: 'g' })] }),
    tools({ tools: [{ name: 'f' }, { name: 'ns__g' }] }),
  ],
  [
    'input',
    more({ type: 'compaction', encrypted_content: 'gAAAA' }),
    IGNORED,
    'input[3]:compaction',
  ],
  [
    'input',
    more({ type: 'compaction', encrypted_content: 'inorigin.1.T2xk' }),
    lastItem('user', { content: 'Summary of the conversation so far:\nOld' }),
  ],
  [
    'input',
    more({ type: 'compaction', encrypted_content: 'inorigin.1./w==' }),
    IGNORED,
    'input[3]:compaction',
  ],
  ['input', more({ type: 'compaction' }), REQUIRED, 'input[3].encrypted_content'],
  ['input', [{ type: 'item_reference', id: 5 }], 'a string, not 5', 'input[0].id'],
  ['input[1].arguments', '{"a":1}', messageAt(1, { toolCalls: [{ arguments: '{"a":1}' }] }, 3)],
  ...CUT_ARGUMENTS.map((text): Row => [
    'input[1].arguments',
    text,
    messageAt(1, { toolCalls: [{ arguments: text }] }, 3),
  ]),
  ['input[1].arguments', 5, 'a string, not 5'],
  [
    'input[1]',
    { type: 'custom_tool_call', call_id: 'a', name: 'f', input: 'a "b"' },
    messageAt(1, { toolCalls: [{ id: 'a', name: 'f', arguments: '{"input": "a \\"b\\""}' }] }, 3),
  ],
  ['input[1]', { type: 'custom_tool_call', call_id: 'a', name: 'f' }, REQUIRED, 'input[1].input'],
  [
    'input[2]',
    { type: 'custom_tool_call_output', call_id: 'a', output: 'T' },
    messageAt(2, { role: 'tool', toolCallId: 'a', name: 'f', content: 'T' }, 3),
  ],
  ['input[2].output', [{ type: 'input_text', text: 'T' }], messageAt(2, { content: 'T' }, 3)],
  ['instructions', 'S', withSystem('S')],
  ['stream', true, { answers: /event: response\.completed/ }],
  ['stream_options', { include_obfuscation: false }, IGNORED],
  ...limitRows('max_output_tokens'),
  ['top_p', -1, 'a number from 0 to 1, not -1'],
  ['tools', [{ type: 'function', name: 'g' }], tools({ tools: [{ name: 'g' }] })],
  ['tools[0].parameters', WEATHER_SCHEMA, toolWith({ parameters: WEATHER_SCHEMA })],
  ['tools[0].parameters', null, SAME],
  ['tools[0].parameters', [], NO_ARRAY],
  ['tools[0].description', 'F', toolWith({ description: 'F' })],
  ['tools[0].strict', true, toolWith({ strict: true })],
  ['tools[0].strict', false, SAME],
  ['tools[0]', custom, toolWith(customTool())],
  ['tools[0]', { ...custom, description: 'F' }, toolWith({ description: 'F' })],
  ['tools[0]', { ...custom, format: { type: 'text' } }, toolWith(customTool())],
  [
    'tools[0]',
    inGrammar('regex', 'a|b'),
    toolWith(customTool({ syntax: 'regex', definition: 'a|b' })),
  ],
  [
    'tools[0]',
    inGrammar('lark', 'start: "a"'),
    toolWith(customTool({ syntax: 'lark', definition: 'start: "a"' })),
  ],
  ['tools[0]', inGrammar('x', 'a'), 'one of lark, regex, not "x"', 'tools[0].format.syntax'],
  ['tools[0]', { type: 'custom' }, REQUIRED, 'tools[0].name'],
  ...[
    'web_search',
    'local_shell',
    'tool_search',
    'file_search',
    'code_interpreter',
    'image_generation',
    'mcp',
    'computer',
  ].map((type, index): Row => {
    const hosted = { type, ...(index > 3 && { name: 'x', container: { a: 1 } }) }
    return ['tools', [...BASE.tools, hosted], IGNORED, `tools[1]:${type}`]
  }),
  ['tools', [{ type: 'web_search' }], asks({ tools: undefined }), 'tools[0]:web_search'],
  ['tools[0].type', 5, '"function", not 5'],
  [
    'tools',
    [namespaceOf({ ...named, description: 'F' }, { ...custom, name: 'c' })],
    tools({
      tools: [
        { name: 'ns__f', description: 'F' },
        { ...customTool(), name: 'ns__c' },
      ],
    }),
  ],
  ['tools', [{ ...namespaceOf(named), name: 'a__' }], tools({ tools: [{ name: 'a__f' }] })],
  ['tools', [...BASE.tools, namespaceOf({ type: 'mcp' })], IGNORED, 'tools[1].tools[0]:mcp'],
  ['tools', [namespaceOf({ type: 'function' })], REQUIRED, 'tools[0].tools[0].name'],
  ['tools', [{ type: 'namespace', name: 'ns' }], REQUIRED, 'tools[0].tools'],
  [
    '',
    { tools: [namespaceOf(named)], tool_choice: { ...named, namespace: 'ns' } },
    tools({ choice: 'required', only: ['ns__f'] }),
  ],
  [
    '',
    {
      tools: [...BASE.tools, namespaceOf(named, custom)],
      tool_choice: {
        type: 'allowed_tools',
        mode: 'auto',
        tools: [
          { type: 'namespace', name: 'ns' },
          { type: 'mcp', server_label: 'x' },
        ],
      },
    },
    tools({ choice: 'auto', only: ['ns__f', 'ns__f'] }),
    'tool_choice.tools[1]:mcp',
  ],
  ['tool_choice', named, tools({ choice: 'required', only: ['f'] })],
  [
    'tool_choice',
    { type: 'allowed_tools', mode: 'auto', tools: [named] },
    tools({ choice: 'auto', only: ['f'] }),
  ],
  ['tool_choice', custom, tools({ choice: 'required', only: ['f'] })],
  [
    'tool_choice',
    { type: 'allowed_tools', mode: 'required', tools: [custom] },
    tools({ choice: 'required', only: ['f'] }),
  ],
  ['tool_choice.type', 'web_search', `${CHOICES} "web_search"`],
  ['parallel_tool_calls', false, tools({ parallel: false })],
  ['text.format', { ...jsonSchema, name: 'x', strict: true }, asksStrict],
  ['text.format', { ...jsonSchema, name: 'x' }, asksSchema],
  [
    'text.format',
    { type: 'grammar', grammar: 'start: "a"', syntax: 'lark' },
    asks({ format: { type: 'grammar', grammar: 'start: "a"', syntax: 'lark' } }),
  ],
  [
    'text.format',
    { type: 'regex', pattern: 'a*' },
    asks({ format: { type: 'regex', pattern: 'a*' } }),
  ],
  ['text.format', { type: 'json_object' }, asksJson],
  ['text', { format: { type: 'text' }, verbosity: 'medium' }, SAME],
  ['text.verbosity', 'low', IGNORED],
  ['context_management', [], SAME],
  ['context_management', { edits: [] }, SAME],
  ['context_management', [{ type: 'compaction', compact_threshold: 1000 }], IGNORED],
  ['max_tool_calls', 3, IGNORED],
  ['max_tool_calls', 0, 'an integer of at least 1, not 0'],
  ['text.format', { ...jsonSchema, schema: 1 }, 'an object, not 1', 'text.format.schema'],
  ...effortRows('reasoning.effort'),
  ['reasoning', null, SAME],
  ['reasoning.mode', 'pro', UNSUPPORTED],
  ['reasoning.context', 'all_turns', IGNORED],
  ['reasoning.context', 'auto', SAME],
  [
    'reasoning',
    { effort: 'low', summary: 'auto' },
    { answers: /"summary_text"/, script: THINKING },
  ],
  ['include', ['message.output_text.logprobs'], asks({ logprobs: 0 })],
  ['include', ['reasoning.encrypted_content'], SAME],
  ['include', ['reasoning.encrypted_content', 'web_search_call.action.sources'], IGNORED],
  ['top_logprobs', 2, asks({ logprobs: 2 })],
  ['top_logprobs', 0, SAME],
  ['top_logprobs', 21, 'at most 20, not 21'],
  ['previous_response_id', '', NOT_EMPTY],
  [
    'conversation',
    'conv_1',
    'unsupported; send previous_response_id, or the whole conversation as input',
  ],
  ['prompt', { id: 'p' }, UNSUPPORTED],
  ['background', true, { answers: /"background":true/ }],
  ['background', false, SAME],
  ['truncation', 'auto', 'unsupported; shorten the input'],
  ['truncation', 'disabled', SAME],
  ['metadata', { a: 'b' }, { answers: /"metadata":\{"a":"b"\}/ }],
  ['store', true, SAME],
  ['store', false, { answers: /"store":false/ }],
  ['store', 'yes', 'true or false, not "yes"'],
  ['messages', [{ role: 'user', content: 'Hi' }], 'unsupported; send input instead'],
  ['system', 'S', 'unsupported; send instructions instead'],
  ['max_tokens', 5, 'unsupported; send max_output_tokens instead'],
  ['max_completion_tokens', 5, 'unsupported; send max_output_tokens instead'],
  ['stop', 'END', 'unsupported; use /v1/chat/completions'],
  ['stop_sequences', ['END'], 'unsupported; use /v1/chat/completions'],
  ['response_format', { type: 'json_object' }, 'unsupported; send text.format instead'],
  ['output_format', jsonSchema, 'unsupported; send text.format instead'],
  ...NO_CHAT,
]
describe('the fields of a response', () => {
  testFields(PATH, BASE, ROWS)
  testCoverage(
    ROWS,
    fieldsOf('openai/resources/responses/responses.d.ts', 'ResponseCreateParamsBase'),
  )
})
