/** Every field of a chat completion. */
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
import { chatOf } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { LONG_USAGE, THINKING, tokenOf, WEATHER_SCHEMA } from './scripts.ts'
import {
  asksJson,
  asksSchema,
  budget,
  enabled,
  BUDGET,
  limitRows,
  stopRows,
  NO_ARRAY,
  NO_JSON,
  NOT_EMPTY,
  NOT_HERE,
  pngUrl,
  SHARED,
  jsonSchema,
  texts,
  tools,
  toolWith,
} from './shared-fields.ts'

const PATH = '/v1/chat/completions'
const tool = { type: 'function', function: { name: 'f' } }
const BASE = chatOf({
  messages: [
    { role: 'system', content: 'S' },
    { role: 'developer', content: 'D' },
    { role: 'user', content: texts('Hi') },
    {
      role: 'assistant',
      tool_calls: [{ id: 'a', ...tool, function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: '1' },
  ],
  tools: [tool],
})
const LIKELY: Script = [
  { type: 'start', promptTokens: 1, cachedTokens: 0 },
  { type: 'text', text: 'Hi', logprobs: [tokenOf('Hi')] },
  { type: 'finish', reason: 'stop', stopSequence: null, usage: LONG_USAGE },
]
const inChat = (index: number, part: object) => messageAt(index, part, 5)
const image = { type: 'image_url', image_url: { url: pngUrl } }
const ROLES = 'one of system, developer, user, assistant, tool, function, not'
const PARTS = 'one of text, image_url, input_audio, file, refusal, not'
const CHOICES = 'one of auto, none, any, tool, function, allowed_tools, custom, not'
const FORMATS = 'one of text, grammar, json_object, json_schema, not'
const ARGUMENTS = 'messages[3].tool_calls[0].function.arguments'
const JSON_SCHEMA = 'response_format.json_schema'
const inChatFormat = (json_schema: unknown) => ({ type: 'json_schema', json_schema })
const grammar = { type: 'grammar', grammar: 'root ::= "a"' }
const CALL = 'messages[3].function_call'
const NO_FUNCTIONS = 'auto, none or left out unless functions is sent'
const WITH_FUNCTIONS = 'left out when functions is sent; send function_call instead'
const ALLOWED = 'tool_choice.allowed_tools'
const allowed = (mode: string, ...list: object[]) => ({
  type: 'allowed_tools',
  allowed_tools: { mode, tools: list },
})
const functionTool = (fields: object) => ({ type: 'function', function: fields })
const oneCall = tools({ parallel: false })
const onlyFunctions = (more: object) => ({ tools: undefined, functions: [{ name: 'f' }], ...more })

const ROWS: Row[] = [
  ...SHARED,
  ['messages', undefined, REQUIRED],
  ['messages', 'Hi', 'an array, not "Hi"'],
  ['messages', [], 'an array with at least one message, not an array of 0'],
  ['messages', [{ role: 'user', content: 'X' }], asks({ messages: [{ content: 'X' }] })],
  ['messages', [{ role: 'function', content: '1' }], REQUIRED, 'messages[0].name'],
  ['messages[0]', 'Hi', 'an object, not "Hi"'],
  ['messages[0]', [], NO_ARRAY],
  ['messages[0].role', 'user', inChat(0, { role: 'user' })],
  ['messages[0].role', undefined, REQUIRED],
  ['messages[0].role', 'robot', `${ROLES} "robot"`],
  ['messages[0].role', 'constructor', `${ROLES} "constructor"`],
  ['messages[0].content', 'T', inChat(0, { content: 'T' })],
  ['messages[0].content', [...texts('What?'), image], NOT_HERE, 'messages[0].content[1]'],
  ['messages[0].name', 'n', IGNORED],
  ['messages[1].content', 'T', inChat(1, { role: 'system', content: 'T' })],
  ['messages[2].content', texts('a', 'b'), inChat(2, { content: 'ab' })],
  ['messages[2].content', [image], inChat(2, { images: [{ mediaType: 'image/png' }] })],
  ['messages[2].content', false, 'a string or an array of parts, not false'],
  ['messages[2].content', { type: 'text' }, 'a string or an array of parts, not an object'],
  ['messages[2].content[0]', 'Hi', 'an object, not "Hi"'],
  ['messages[2].content[0]', ['text'], 'an object, not an array of 1'],
  ['messages[2].content[0]', { type: 'input_audio' }, UNSUPPORTED],
  ['messages[2].content[0]', { type: 'file', file: {} }, UNSUPPORTED],
  ['messages[2].content[0].type', undefined, REQUIRED],
  ['messages[2].content[0].type', 'banana', `${PARTS} "banana"`],
  ['messages[2].content[0].text', 1, 'a string, not 1'],
  ['messages[2].name', 'n', IGNORED],
  ['messages[3].content', 'T', inChat(3, { content: 'T' })],
  ['messages[3].refusal', 'No.', inChat(3, { content: 'No.' })],
  ['messages[3].reasoning_content', 'R', inChat(3, { reasoning: 'R' })],
  ['messages[3].reasoning_content', ['R'], 'a string, not an array of 1'],
  ['messages[3].reasoning', 'R', inChat(3, { reasoning: 'R' })],
  ['messages[3].tool_calls', {}, 'an array, not an object'],
  [
    'messages[3].tool_calls',
    [{ id: 'c', function: { name: 'h', arguments: '' } }],
    inChat(3, { toolCalls: [{ id: 'c', name: 'h', arguments: '{}' }] }),
  ],
  ['messages[3].tool_calls[0].id', 'toolu_b', inChat(3, { toolCalls: [{ id: 'call_b' }] })],
  ['messages[3].tool_calls[0].type', 'custom', '"function", not "custom"'],
  [
    'messages[3].tool_calls[0].function',
    { name: 'g', arguments: '{"a":1}' },
    inChat(3, { toolCalls: [{ name: 'g', arguments: '{"a":1}' }] }),
  ],
  [ARGUMENTS, {}, `${NO_JSON} an object`],
  [ARGUMENTS, '{"a":', `${NO_JSON} "{\\"a\\":"`],
  [ARGUMENTS, '[]', `${NO_JSON} "[]"`],
  [
    'messages[3].function_call',
    { name: 'h', arguments: '{}' },
    inChat(3, { toolCalls: [{ name: 'f' }, { name: 'h', arguments: '{}' }] }),
  ],
  [
    'messages[3].function_call',
    { name: 'h', arguments: '[' },
    `${NO_JSON} "["`,
    `${CALL}.arguments`,
  ],
  ['messages[3].audio', { id: 'a' }, UNSUPPORTED],
  ['messages[3].name', 'n', IGNORED],
  ['messages[4].content', 'T', inChat(4, { content: 'T' })],
  ['messages[4].content', [image], NOT_HERE, 'messages[4].content[0]'],
  ['messages[4].tool_call_id', 'b', inChat(4, { toolCallId: 'b', name: '' })],
  ['messages[4].tool_call_id', 5, 'a string, not 5'],
  ['stream', true, { answers: /\[DONE\]/ }],
  ['stream_options', {}, SAME],
  ['stream_options', true, 'an object, not true'],
  ['stream_options', [], NO_ARRAY],
  ['stream_options.include_usage', true, { answers: /"usage":\{/, stream: true }],
  ['stream_options.include_usage', 1, 'true or false, not 1'],
  ['stream_options.include_obfuscation', true, IGNORED],
  ['tools', [tool, functionTool({ name: 'g' })], tools({ tools: [{ name: 'f' }, { name: 'g' }] })],
  ['tools[0]', 'f', 'an object, not "f"'],
  ['tools[0]', { name: 'f' }, REQUIRED, 'tools[0].type'],
  ['tools[0]', { type: 'custom', custom: { name: 'f' } }, 'unsupported; leave it out'],
  ['tools[0].type', 'web_search', 'one of function, custom, not "web_search"'],
  ['tools[0].function', undefined, REQUIRED],
  ['tools[0].function', 'f', 'an object, not "f"'],
  ['tools[0].function.name', 'g', toolWith({ name: 'g' })],
  ['tools[0].function.name', '', NOT_EMPTY],
  ['tools[0].function.description', 'F', toolWith({ description: 'F' })],
  ['tools[0].function.description', null, SAME],
  ['tools[0].function.parameters', WEATHER_SCHEMA, toolWith({ parameters: WEATHER_SCHEMA })],
  ['tools[0].function.parameters', { type: 'object', properties: {} }, SAME],
  ['tools[0].function.parameters', null, SAME],
  ['tools[0].function.parameters', [], NO_ARRAY],
  ['tools[0].function.strict', true, SAME],
  ['tool_choice', 'auto', SAME],
  ['tool_choice', { type: 'auto' }, SAME],
  ['tool_choice', { type: 'none' }, tools({ choice: 'none' })],
  ['tool_choice', tool, tools({ choice: 'required', only: ['f'] })],
  ['tool_choice', allowed('required', tool), tools({ choice: 'required', only: ['f'] })],
  ['tool_choice', allowed('auto', tool), tools({ choice: 'auto', only: ['f'] })],
  ['tool_choice', { type: 'custom', custom: { name: 'f' } }, 'unsupported; leave it out'],
  ['tool_choice', ['auto'], 'an object, not an array of 1'],
  ['tool_choice', { type: 'function' }, REQUIRED, 'tool_choice.function'],
  ['tool_choice', functionTool({ name: '' }), NOT_EMPTY, 'tool_choice.function.name'],
  ['tool_choice.type', 'x', `${CHOICES} "x"`],
  ['tool_choice', allowed('none'), 'one of auto, required, not "none"', `${ALLOWED}.mode`],
  ['parallel_tool_calls', false, tools({ parallel: false })],
  ['parallel_tool_calls', true, SAME],
  ['functions', [{ name: 'f' }], 'left out when tools is sent, not an array of 1'],
  ['function_call', { name: 'f' }, `${NO_FUNCTIONS}, not an object`],
  ['', onlyFunctions({}), tools({ tools: [{ name: 'f' }], choice: 'auto', parallel: false })],
  ['', onlyFunctions({ function_call: 'auto', tools: [], tool_choice: 'auto' }), oneCall],
  ['', onlyFunctions({ function_call: 'none' }), tools({ choice: 'none' })],
  ['', onlyFunctions({ tool_choice: 'none' }), tools({ choice: 'none', parallel: false })],
  ['', onlyFunctions({ function_call: { name: 'f' } }), tools({ choice: 'required', only: ['f'] })],
  ['', onlyFunctions({ parallel_tool_calls: true }), oneCall, 'parallel_tool_calls'],
  ['function_call', 'required', 'one of auto, none, not "required"'],
  ['functions', [{ name: 'f', parameters: 'x' }], 'an object, not "x"', 'functions[0].parameters'],
  [
    '',
    onlyFunctions({ tool_choice: 'required' }),
    `${WITH_FUNCTIONS}, not "required"`,
    'tool_choice',
  ],
  [
    '',
    onlyFunctions({ function_call: { name: 'f' }, tool_choice: 'none' }),
    `${WITH_FUNCTIONS}, not "none"`,
    'tool_choice',
  ],
  ['response_format', { type: 'json_object' }, asksJson],
  ['response_format', { ...jsonSchema, type: 'json_object' }, asksSchema],
  ['response_format', inChatFormat({ schema: jsonSchema.schema, strict: true }), asksSchema],
  ['response_format', inChatFormat({ name: 'x' }), asks({ format: { ...jsonSchema, schema: {} } })],
  ['response_format', grammar, asks({ format: grammar })],
  ['response_format', 'json', 'an object, not "json"'],
  ['response_format', [], NO_ARRAY],
  ['response_format', inChatFormat(undefined), REQUIRED, JSON_SCHEMA],
  ['response_format', inChatFormat(1), 'an object, not 1', JSON_SCHEMA],
  ['response_format', inChatFormat({ schema: 'y' }), 'an object, not "y"', `${JSON_SCHEMA}.schema`],
  ['response_format.type', 'xml', `${FORMATS} "xml"`],
  ['output_format', jsonSchema, 'unsupported; send response_format instead'],
  ['output_config.format', jsonSchema, 'unsupported; send response_format instead'],
  ...limitRows('max_completion_tokens'),
  ['max_tokens', 7, asks({ maxTokens: 7 })],
  ['max_tokens', 0, `${BUDGET} 0`],
  ['', { max_tokens: 9, max_completion_tokens: null }, asks({ maxTokens: 9 })],
  ['', { max_tokens: 9, max_completion_tokens: 7 }, asks({ maxTokens: 7 }), 'max_tokens'],
  ['thinking', enabled(1e6), budget(1e6)],
  ...stopRows('stop'),
  ['stop', 'x', asks({ stop: ['x'] })],
  ['stop', '', NOT_EMPTY],
  ['stop_sequences', ['END'], 'unsupported; send stop instead'],
  ['stop_sequences', [], SAME],
  ['system', 'S', 'unsupported; send a message of role system instead'],
  ['system', texts('S'), 'unsupported; send a message of role system instead'],
  ['system', '', SAME],
  ['top_p', -1, 'a number from 0 to 1, not -1'],
  ['top_k', -1, 'an integer of at least 0, not -1'],
  ['logprobs', true, { answers: /"logprob":-0\.25/, script: LIKELY }],
  ['logprobs', true, asks({ logprobs: 0 })],
  ['logprobs', false, SAME],
  ['logprobs', 1, 'true or false, not 1'],
  ['', { logprobs: true, top_logprobs: null }, asks({ logprobs: 0 })],
  ['', { logprobs: true, top_logprobs: 20 }, asks({ logprobs: 20 })],
  ['', { logprobs: true, top_logprobs: 21 }, 'at most 20, not 21', 'top_logprobs'],
  ['', { logprobs: true, top_logprobs: -1 }, 'an integer of at least 0, not -1', 'top_logprobs'],
  ['top_logprobs', 0, SAME],
  ['top_logprobs', 3, '0 or left out unless logprobs is true, not 3'],
  ['reasoning_effort', 'high', { answers: /"reasoning_content":"Two cities\."/, script: THINKING }],
  ['metadata', { a: 'b' }, IGNORED],
  ['store', true, IGNORED],
]

const TYPES = 'openai/resources/chat/completions/completions.d.ts'

describe('the fields of a chat completion', () => {
  testFields(PATH, BASE, ROWS)
  testCoverage(ROWS, [
    ...fieldsOf(TYPES, 'ChatCompletionCreateParamsBase'),
    ...fieldsOf(TYPES, 'ChatCompletionStreamOptions', 'stream_options.'),
    ...fieldsOf(TYPES, 'ChatCompletionUserMessageParam', 'messages[].'),
    ...fieldsOf(TYPES, 'ChatCompletionAssistantMessageParam', 'messages[].'),
    ...fieldsOf(TYPES, 'ChatCompletionToolMessageParam', 'messages[].'),
    ...fieldsOf(TYPES, 'ChatCompletionMessageFunctionToolCall', 'messages[].tool_calls[].'),
    ...fieldsOf('openai/resources/shared.d.ts', 'FunctionDefinition', 'tools[].function.'),
  ])
})
