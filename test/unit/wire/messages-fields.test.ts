/** Every field of a message, and of a request that counts tokens. */
import { describe, expect, it } from 'vitest'
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
import { messageOf, scriptedHost, send } from './scripted-host.ts'
import { THINKING, WEATHER_SCHEMA } from './scripts.ts'
import {
  asksSchema,
  asksStrict,
  CUT_ARGUMENTS,
  adaptive,
  BUDGET,
  limitRows,
  stopRows,
  NO_ARRAY,
  NO_CHAT,
  NOT_EMPTY,
  NOT_HERE,
  SHARED,
  jsonSchema,
  texts,
  tools,
  toolWith,
} from './shared-fields.ts'

const PATH = '/v1/messages'
const COUNT_PATH = '/v1/messages/count_tokens'
const EAGER = [{ name: 'f', input_schema: { type: 'object' } }]
const BASE = messageOf({
  max_tokens: 9999,
  messages: [
    {
      role: 'user',
      content: [
        ...texts('Hi'),
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
  tools: EAGER,
  tool_choice: { type: 'auto' },
})
const inMessages = (index: number, part: object) => messageAt(index, part, 3)
const withSystem = (content: string) =>
  asks({ messages: [{ role: 'system', content }, {}, {}, {}] })
const billing = { type: 'text', text: 'x-anthropic-billing-header: cch=12' }
const NO_DOCUMENT = 'unsupported; no model here reads documents; send their text'
const USER_BLOCKS =
  'one of text, image, tool_result, document, search_result, server_tool_use, ' +
  'web_search_tool_result, web_fetch_tool_result, code_execution_tool_result, ' +
  'bash_code_execution_tool_result, text_editor_code_execution_tool_result, ' +
  'tool_search_tool_result, mcp_tool_use, mcp_tool_result, container_upload, compaction, not'
const WAITING = { name: 'late', input_schema: { type: 'object' }, defer_loading: true }
const EXAMPLE = 'Examples of its arguments:\n{"a":1}'
const SECOND = 'messages[0].content[1]'
const THOUGHT = 'messages[1].content[0]'
const CALL = 'messages[1].content[2]'
const RESULT = 'messages[2].content[0]'

/** Fields of a message, answered or only counted. */
const COUNT_ROWS: Row[] = [
  ...SHARED,
  ['messages', undefined, REQUIRED],
  ['messages', [], 'an array with at least one message, not an array of 0'],
  ['messages', [{ role: 'user', content: 'X' }], asks({ messages: [{ content: 'X' }] })],
  ['messages[0]', [{ role: 'user' }], 'an object, not an array of 1'],
  ['messages[0].role', 'robot', 'one of user, assistant, system, not "robot"'],
  ['messages[0].role', 'developer', 'one of user, assistant, system, not "developer"'],
  ['messages[1].content', null, 'a string or an array of parts, not null'],
  ['messages[0].content[0].text', 'T', inMessages(0, { content: 'T' })],
  ['messages[0].content[0].type', 'search_result', UNSUPPORTED, 'messages[0].content[0]'],
  ['messages[0].content[0].cache_control', { type: 'ephemeral' }, IGNORED],
  ['messages[0].content[0].citations', [], IGNORED],
  [
    `${SECOND}.source`,
    { type: 'url', url: 'https://example.com/a.gif' },
    inMessages(0, { images: [{ url: 'https://example.com/a.gif' }] }),
  ],
  [`${SECOND}.type`, 'thinking', `${USER_BLOCKS} "thinking"`],
  [SECOND, { type: 'document', source: {} }, NO_DOCUMENT],
  [SECOND, { type: 'server_tool_use', id: 'a', name: 'b', input: {} }, UNSUPPORTED],
  [`${SECOND}.cache_control`, { type: 'ephemeral' }, IGNORED],
  [`${SECOND}.transformations`, [], IGNORED],
  [`${THOUGHT}.thinking`, 'Ha.', inMessages(1, { reasoning: 'Ha.' })],
  [`${THOUGHT}.thinking`, 1, 'a string, not 1'],
  [`${THOUGHT}.signature`, 't', SAME],
  [`${THOUGHT}.type`, 'server_tool_use', UNSUPPORTED, THOUGHT],
  ['messages[1].content[1].data', 'e', SAME],
  ['messages[1].content[1].type', 'image', NOT_HERE, 'messages[1].content[1]'],
  [`${CALL}.id`, 'toolu_2', inMessages(1, { toolCalls: [{ id: 'call_2' }] })],
  [`${CALL}.id`, '', NOT_EMPTY],
  [`${CALL}.name`, 'g', inMessages(1, { toolCalls: [{ name: 'g' }] })],
  [`${CALL}.input`, { a: 1 }, inMessages(1, { toolCalls: [{ arguments: '{"a":1}' }] })],
  [`${CALL}.input`, '{}', 'an object, not "{}"'],
  ...CUT_ARGUMENTS.map((text): Row => [
    `${CALL}.partial_json`,
    text,
    inMessages(1, { toolCalls: [{ arguments: text }] }),
  ]),
  [`${CALL}.partial_json`, '', SAME],
  [`${CALL}.partial_json`, {}, 'a string, not an object'],
  [`${CALL}.type`, 'mcp_tool_use', UNSUPPORTED, CALL],
  [`${CALL}.cache_control`, { type: 'ephemeral' }, IGNORED],
  [`${CALL}.caller`, { type: 'direct' }, IGNORED],
  [`${CALL}.toolset_name`, 't', IGNORED],
  [`${RESULT}.tool_use_id`, 'toolu_2', inMessages(2, { toolCallId: 'call_2' })],
  [`${RESULT}.tool_use_id`, '', NOT_EMPTY],
  [`${RESULT}.content`, texts('a', 'b'), inMessages(2, { content: 'a\nb' })],
  [`${RESULT}.content`, null, inMessages(2, { content: '' })],
  [`${RESULT}.content`, undefined, inMessages(2, { content: '' })],
  [`${RESULT}.content`, 5, 'a string or an array of parts, not 5'],
  [`${RESULT}.content`, [...texts('1'), { type: 'document' }], NO_DOCUMENT, `${RESULT}.content[1]`],
  [`${RESULT}.is_error`, true, inMessages(2, { isError: true })],
  [`${RESULT}.is_error`, false, SAME],
  [`${RESULT}.is_error`, 1, 'true or false, not 1'],
  [`${RESULT}.type`, 'web_search_tool_result', UNSUPPORTED, RESULT],
  [`${RESULT}.cache_control`, { type: 'ephemeral' }, IGNORED],
  [`${RESULT}.toolset_name`, 't', IGNORED],
  ['system', 'S', withSystem('S')],
  ['system', texts('S', 'T'), withSystem('ST')],
  // The billing header of a coding client changes with every request. A plain text is kept.
  ['system', [billing, ...texts('S', 'T')], withSystem('ST')],
  ['system', [billing], SAME],
  ['system', billing.text, withSystem(billing.text)],
  ['system', '', SAME],
  ['system', [], SAME],
  ['system', 5, 'a string or an array of parts, not 5'],
  ['system', [{ type: 'image' }], '"text", not "image"', 'system[0].type'],
  ['tools[0]', null, 'an object, not null'],
  ['tools[0].name', 'g', toolWith({ name: 'g' })],
  ['tools[0].name', 5, 'a string, not 5'],
  ['tools[0].description', 'F', toolWith({ description: 'F' })],
  ['tools[0].input_schema', WEATHER_SCHEMA, toolWith({ parameters: WEATHER_SCHEMA })],
  ['tools[0].input_schema', undefined, REQUIRED],
  ['tools[0].input_schema', [], NO_ARRAY],
  ['tools[0].input_examples', [{ a: 1 }], toolWith({ description: EXAMPLE })],
  ['tools[0].type', 'custom', SAME],
  ['tools[0].type', 'web_search_20260101', UNSUPPORTED, 'tools[0]'],
  ['tools[0].strict', true, toolWith({ strict: true })],
  ['tools[0].strict', false, SAME],
  ['tools[0].allowed_callers', ['direct'], SAME],
  ['tools[0].allowed_callers', ['code_execution_20260101'], UNSUPPORTED],
  ['tools[0].cache_control', { type: 'ephemeral' }, IGNORED],
  ['tools[0].defer_loading', false, SAME],
  // A client would have no tool otherwise.
  ['tools[0].defer_loading', true, SAME],
  [
    'tools',
    [...EAGER, { ...WAITING, input_schema: 5 }],
    'an object, not 5',
    'tools[1].input_schema',
  ],
  ['tools', [...EAGER, WAITING], SAME],
  [
    '',
    { tools: [...EAGER, WAITING], tool_choice: { type: 'tool', name: 'late' } },
    tools({ tools: [{ name: 'f' }, { name: 'late' }], only: ['late'] }),
  ],
  [
    `${RESULT}.content`,
    [{ type: 'tool_reference', tool_name: 'late' }, ...texts('b')],
    inMessages(2, { content: 'The tool late is available now.\nb' }),
  ],
  [
    '',
    {
      messages: [
        ...BASE.messages.slice(0, 2),
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [{ type: 'tool_reference', tool_name: 'late' }],
            },
          ],
        },
      ],
      tools: [WAITING, ...EAGER, { ...WAITING, name: 'later' }],
    },
    tools({ tools: [{ name: 'late' }, { name: 'f' }] }),
  ],
  [`${RESULT}.content`, [{ type: 'tool_reference' }], REQUIRED, `${RESULT}.content[0].tool_name`],
  ['tools[0].eager_input_streaming', true, IGNORED],
  ['tool_choice', { type: 'any' }, tools({ choice: 'required' })],
  ['tool_choice', { type: 'none' }, tools({ choice: 'none' })],
  ['tool_choice', { type: 'tool', name: 'f' }, tools({ choice: 'required', only: ['f'] })],
  ['tool_choice', { type: 'tool', name: '' }, NOT_EMPTY, 'tool_choice.name'],
  ['tool_choice.type', 'auto', SAME],
  ['tool_choice.name', 'f', IGNORED],
  ['tool_choice.disable_parallel_tool_use', true, tools({ choice: 'auto', parallel: false })],
  ['tool_choice.disable_parallel_tool_use', false, SAME],
  ...[{ type: 'any' }, { type: 'tool', name: 'f' }].map((choice): Row => [
    'tool_choice',
    { ...choice, disable_parallel_tool_use: true },
    tools({ choice: 'required', parallel: false }),
  ]),
  ['output_config', { format: jsonSchema }, asksSchema],
  ['output_config', { format: { ...jsonSchema, strict: true } }, asksStrict],
  ['output_config.format.type', 'text', '"json_schema", not "text"'],
  [
    'output_config.format',
    { ...jsonSchema, schema: 'x' },
    'an object, not "x"',
    'output_config.format.schema',
  ],
  ['output_config.task_budget', { type: 'tokens', total: 1 }, UNSUPPORTED],
  ['output_format', jsonSchema, asksSchema],
  [
    '',
    { output_config: { format: jsonSchema }, output_format: { ...jsonSchema, schema: {} } },
    asksSchema,
    'output_format',
  ],
  ['response_format', { type: 'json_object' }, 'unsupported; send output_config.format instead'],
  ...stopRows('stop_sequences'),
  ['stop', 'END', 'unsupported; send stop_sequences instead'],
  ['stop', [], SAME],
  ['top_p', -1, SAME],
  ['top_k', -1, SAME],
  ['logprobs', true, UNSUPPORTED],
  ['logprobs', false, SAME],
  ['top_logprobs', 2, UNSUPPORTED],
  ['top_logprobs', 0, SAME],
  ...NO_CHAT,
  ['max_tokens', 0, `${BUDGET} 0`],
  ['cache_control', { type: 'ephemeral' }, IGNORED],
  ['speed', 'fast', IGNORED],
  ['user_profile_id', 'u', IGNORED],
  ['workspace_id', 'w', IGNORED],
  ['billing_policy', {}, IGNORED],
  ['betas', [], IGNORED],
  ['metadata', { user_id: 'u' }, IGNORED],
]

const ROWS: Row[] = [
  ...COUNT_ROWS,
  ...limitRows('max_tokens'),
  ['max_tokens', undefined, REQUIRED],
  ['max_tokens', null, `${BUDGET} null`],
  ['max_completion_tokens', 5, 'unsupported; send max_tokens instead'],
  // The other name of a field is reported before the field that is missing.
  [
    '',
    { max_completion_tokens: 5, max_tokens: undefined, messages: [] },
    UNSUPPORTED,
    'max_completion_tokens',
  ],
  // A thread is reported before anything else.
  ['', { thread: { type: 'create' }, tools: [{ type: 'x' }], messages: [] }, UNSUPPORTED, 'thread'],
  ['stream', true, { answers: /event: message_stop/ }],
  ['thinking', adaptive, { answers: /"thinking":"Two cities\./, script: THINKING }],
  ['inference_geo', 'eu', IGNORED],
  ['diagnostics', {}, IGNORED],
  ['fallback_credit_token', 't', IGNORED],
]

const TYPES = '@anthropic-ai/sdk/resources/messages/messages.d.ts'
const BETA = '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts'
const BLOCKS = ['Text', 'Image', 'Thinking', 'RedactedThinking', 'ToolUse', 'ToolResult']

describe('the fields of a message', () => {
  testFields(PATH, BASE, ROWS)
  testCoverage(ROWS, [
    ...fieldsOf(TYPES, 'MessageCreateParamsBase'),
    ...fieldsOf(BETA, 'MessageCreateParamsBase'),
    ...BLOCKS.flatMap((kind) => fieldsOf(TYPES, `${kind}BlockParam`, 'messages[].content[].')),
    ...fieldsOf(TYPES, 'Tool', 'tools[].'),
    ...fieldsOf(TYPES, 'ToolChoiceTool', 'tool_choice.'),
  ])
})

describe('the fields of a request that counts tokens', () => {
  testFields(COUNT_PATH, BASE, COUNT_ROWS)
  testCoverage(COUNT_ROWS, [
    ...fieldsOf(TYPES, 'MessageCountTokensParams'),
    ...fieldsOf(BETA, 'MessageCountTokensParams'),
  ])
})

describe('counted tokens', () => {
  it.each([
    ['all fields', {}],
    ['no limit', { max_tokens: null }],
    ['reasoning', { thinking: { type: 'enabled', budget_tokens: 50 } }],
    ['an empty message', { messages: [{ role: 'user', content: '' }] }],
  ])('are those of the same request with %s', async (_, fields) => {
    const host = scriptedHost()
    const body = { ...BASE, ...fields }
    const response = await send(host, COUNT_PATH, { body })
    expect(await response.json()).toEqual({ input_tokens: 42 })
    await send(host, PATH, { body: { ...body, max_tokens: 9999 } })
    const [counted, answered] = host.requests
    expect(answered).toEqual({ ...counted, maxTokens: 9999 })
  })
})
