/** Every field of a chat completion. */
import { describe } from 'vitest'
import { shorten } from '../../../src/values/text.ts'
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
  asksStrict,
  budget,
  enabled,
  BUDGET,
  limitRows,
  stopRows,
  NO_ARRAY,
  CUT_ARGUMENTS,
  customTool,
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
const FORMATS = 'one of text, grammar, regex, json_object, json_schema, not'
const ARGUMENTS = 'messages[3].tool_calls[0].function.arguments'
const JSON_SCHEMA = 'response_format.json_schema'
const inChatFormat = (json_schema: unknown) => ({ type: 'json_schema', json_schema })
const EBNF = 'root ::= "a"'
const LARK = 'start: "a"'
const grammar = (syntax: string, text = EBNF) => ({ type: 'grammar', grammar: text, syntax })
const asksGrammar = (syntax: string, text = EBNF) => asks({ format: grammar(syntax, text) })
const regex = { type: 'regex', pattern: 'a*' }
const asksRegex = asks({ format: regex })
const asksChoice = asks({ format: { type: 'choice', choices: ['a', 'b'] } })
const asksObject = asks({ format: { type: 'json_schema', schema: { type: 'object' } } })
const NO_CHOICE = 'an array with at least one string, not an array of 0'
const custom = (fields: object) => ({ type: 'custom', custom: { name: 'f', ...fields } })
const inGrammar = (syntax: string, definition: string) =>
  custom({ format: { type: 'grammar', grammar: { syntax, definition } } })
const DEFINITION = 'tools[0].custom.format.grammar'
const only = { choice: 'required', only: ['f'] }
const DEEP = '['.repeat(200) + ']'.repeat(200)
const TOO_DEEP = 'nested no deeper than 100 levels, not'
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
  ['messages[3].tool_calls[0].type', 'x', 'one of function, custom, not "x"'],
  ['messages[3].tool_calls[0].type', 'custom', REQUIRED, 'messages[3].tool_calls[0].custom'],
  [
    'messages[3].tool_calls[0]',
    { id: 'c', ...custom({ input: 'a "b"\n' }) },
    inChat(3, { toolCalls: [{ id: 'c', name: 'f', arguments: '{"input": "a \\"b\\"\\n"}' }] }),
  ],
  [
    'messages[3].tool_calls[0].function',
    { name: 'g', arguments: '{"a":1}' },
    inChat(3, { toolCalls: [{ name: 'g', arguments: '{"a":1}' }] }),
  ],
  [ARGUMENTS, {}, 'a string, not an object'],
  ...CUT_ARGUMENTS.map((text): Row => [
    ARGUMENTS,
    text,
    inChat(3, { toolCalls: [{ arguments: text }] }),
  ]),
  [ARGUMENTS, `{"a":${DEEP}}`, `${TOO_DEEP} ${shorten(JSON.stringify(`{"a":${DEEP}}`), 60)}`],
  [
    'messages[3].function_call',
    { name: 'h', arguments: '{}' },
    inChat(3, { toolCalls: [{ name: 'f' }, { name: 'h', arguments: '{}' }] }),
  ],
  ...CUT_ARGUMENTS.map((text): Row => [
    'messages[3].function_call',
    { name: 'h', arguments: text },
    inChat(3, { toolCalls: [{ name: 'f' }, { name: 'h', arguments: text }] }),
  ]),
  ['messages[3].audio', { id: 'a' }, UNSUPPORTED],
  ['messages[3].name', 'n', IGNORED],
  ['messages[4].content', 'T', inChat(4, { content: 'T' })],
  ['messages[4].content', [image], NOT_HERE, 'messages[4].content[0]'],
  ['messages[4].tool_call_id', 'b', inChat(4, { toolCallId: 'b', name: '' })],
  ['messages[4].tool_call_id', 5, 'a string, not 5'],
  ['', { 'speculative.n_max': 0 }, asks({ maxDraftTokens: 0 })],
  ['', { 'speculative.n_max': null }, SAME],
  ['', { 'speculative.n_max': -1 }, 'an integer of at least 0, not -1', 'speculative.n_max'],
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
  ['tools[0]', custom({}), toolWith(customTool())],
  ['tools[0]', custom({ format: { type: 'text' } }), toolWith(customTool())],
  ['tools[0]', custom({ description: 'F' }), toolWith({ ...customTool(), description: 'F' })],
  [
    'tools[0]',
    inGrammar('regex', 'a|b'),
    toolWith(customTool({ syntax: 'regex', definition: 'a|b' })),
  ],
  ['tools[0]', inGrammar('lark', LARK), toolWith(customTool({ syntax: 'lark', definition: LARK }))],
  ['tools[0]', inGrammar('ebnf', EBNF), 'one of lark, regex, not "ebnf"', `${DEFINITION}.syntax`],
  ['tools[0]', inGrammar('lark', ''), NOT_EMPTY, `${DEFINITION}.definition`],
  ['tools[0]', { type: 'custom' }, REQUIRED, 'tools[0].custom'],
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
  ['tools[0].function.strict', true, toolWith({ strict: true })],
  ['tools[0].function.strict', false, SAME],
  ['tool_choice', 'auto', SAME],
  ['tool_choice', { type: 'auto' }, SAME],
  ['tool_choice', { type: 'none' }, tools({ choice: 'none' })],
  ['tool_choice', tool, tools(only)],
  ['tool_choice', allowed('required', tool), tools(only)],
  ['tool_choice', allowed('auto', tool), tools({ choice: 'auto', only: ['f'] })],
  ['tool_choice', custom({}), tools(only)],
  ['tool_choice', allowed('required', custom({})), tools(only)],
  ['tool_choice', { type: 'custom' }, REQUIRED, 'tool_choice.custom'],
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
  ['response_format', inChatFormat({ schema: jsonSchema.schema, strict: true }), asksStrict],
  ['response_format', inChatFormat({ schema: jsonSchema.schema, strict: false }), asksSchema],
  ['response_format', inChatFormat({ name: 'x' }), asks({ format: { ...jsonSchema, schema: {} } })],
  ['response_format', { type: 'grammar', grammar: EBNF }, asksGrammar('ebnf')],
  ['response_format', grammar('gbnf'), asksGrammar('gbnf')],
  ['response_format', grammar('lark', LARK), asksGrammar('lark', LARK)],
  ['response_format', grammar('x'), 'one of ebnf, gbnf, lark, not "x"', 'response_format.syntax'],
  ['response_format', regex, asksRegex],
  ['response_format', { ...regex, flags: 'is' }, asks({ format: { ...regex, flags: 'is' } })],
  ['response_format', { type: 'regex' }, REQUIRED, 'response_format.pattern'],
  ['guided_json', { type: 'object' }, asksObject],
  ['guided_json', '{}', 'an object, not "{}"'],
  ['guided_regex', 'a*', asksRegex],
  ['guided_regex', '', NOT_EMPTY],
  ['guided_choice', ['a', 'b'], asksChoice],
  ['guided_choice', [], NO_CHOICE],
  ['guided_choice', [1], 'a string, not 1', 'guided_choice[0]'],
  ['guided_grammar', EBNF, asksGrammar('ebnf')],
  ['guided_grammar', LARK, asksGrammar('lark', LARK)],
  ['guided_grammar', 'start: "::="', asksGrammar('lark', 'start: "::="')],
  ['structured_outputs', { json: { type: 'object' } }, asksObject],
  ['structured_outputs', { json_object: true }, asksJson],
  ['structured_outputs', { json_object: false }, SAME],
  ['structured_outputs', { regex: 'a*' }, asksRegex],
  ['structured_outputs', { choice: ['a', 'b'] }, asksChoice],
  ['structured_outputs', { grammar: LARK }, asksGrammar('lark', LARK)],
  ['structured_outputs', {}, SAME],
  ['structured_outputs', { choice: [] }, NO_CHOICE, 'structured_outputs.choice'],
  [
    'structured_outputs',
    { structural_tag: '{}' },
    UNSUPPORTED,
    'structured_outputs.structural_tag',
  ],
  ['json_schema', { type: 'object' }, asksObject],
  ['json_schema', 'x', 'an object, not "x"'],
  ['grammar', EBNF, asksGrammar('gbnf')],
  ['grammar', `%llguidance {}\n${LARK}`, asksGrammar('lark', `%llguidance {}\n${LARK}`)],
  ['grammar', '', SAME],
  [
    '',
    { guided_regex: 'a*', guided_json: { type: 'object' } },
    'left out when guided_json is sent, not "a*"',
    'guided_regex',
  ],
  [
    '',
    { response_format: { type: 'json_object' }, structured_outputs: { choice: ['a'] } },
    'left out when response_format is sent, not an array of 1',
    'structured_outputs.choice',
  ],
  [
    '',
    { json_schema: {}, grammar: EBNF },
    'left out when json_schema is sent, not "root ::= \\"a\\""',
    'grammar',
  ],
  ['', { response_format: { type: 'text' }, guided_regex: 'a*' }, asksRegex],
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
    ...fieldsOf(TYPES, 'ChatCompletionCustomTool', 'tools[].').filter(
      (name) => !name.endsWith('custom'),
    ),
    ...fieldsOf('openai/resources/shared.d.ts', 'FunctionDefinition', 'tools[].function.'),
  ])
})
