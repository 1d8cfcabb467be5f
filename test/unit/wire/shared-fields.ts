/** Fields that all wire styles share, with their values and effects. */
import { asks, IGNORED, REQUIRED, SAME, UNSUPPORTED } from './field-table.ts'
import type { Row } from './field-table.ts'
import { nulls } from './mutate.ts'

export const tools = (part: object) => asks({ tools: part })
export const toolWith = (part: object) => tools({ tools: [part] })
const sampling = (part: object) => asks({ sampling: part })
export const budget = (reasoningBudget: number) => asks({ reasoningBudget })
export const texts = (...list: unknown[]) => list.map((text) => ({ type: 'text', text }))

const schema = { type: 'string' }
export const jsonSchema = { type: 'json_schema', schema }
export const asksSchema = asks({ format: jsonSchema })
export const asksStrict = asks({ format: { ...jsonSchema, strict: true } })
export const asksJson = asks({ format: { type: 'json_object' } })
export const pngUrl = 'data:image/png;base64,AA=='

export const NOT_EMPTY = 'a string that is not empty, not ""'
export const NO_ARRAY = 'an object, not an array of 0'
export const NOT_HERE = 'unsupported; put images into a message of role user'
const EFFORTS = {
  none: 0,
  minimal: 64,
  low: 256,
  medium: 1024,
  high: 4096,
  xhigh: Infinity,
  max: Infinity,
}
const EFFORT = 'one of none, minimal, low, medium, high, xhigh, max, not'
const OUTPUT_EFFORT = 'one of low, medium, high, xhigh, max, not'
export const BUDGET = 'an integer of at least 1, not'

const SAMPLING: Row[] = [
  ['temperature', 0, sampling({ temperature: 0 })],
  ['temperature', 2, sampling({ temperature: 2 })],
  ['temperature', 2.1, 'a number from 0 to 2, not 2.1'],
  ['temperature', -1, 'a number from 0 to 2, not -1'],
  ['temperature', '1', 'a number from 0 to 2, not "1"'],
  ['top_p', 1, sampling({ topP: 1 })],
  ['top_p', 1e-9, sampling({ topP: 1e-9 })],
  ['top_p', 0, sampling({ topP: undefined, topK: 1 })],
  ['', { top_p: 0, top_k: 40 }, sampling({ topP: undefined, topK: 1 })],
  ['top_p', 1.5, 'a number from 0 to 1, not 1.5'],
  ['top_p', -0.5, 'a number from 0 to 1, not -0.5'],
  ['top_k', 0, sampling({ topK: 0 })],
  ['top_k', 40, sampling({ topK: 40 })],
  ['top_k', 1.5, 'an integer of at least 0, not 1.5'],
  ['top_k', -2, 'an integer of at least 0, not -2'],
  ['seed', -7, sampling({ seed: -7 })],
  ['seed', 2 ** 63, sampling({ seed: 2 ** 63 })],
  ['seed', 1.5, 'an integer, not 1.5'],
  ['min_p', 0.1, sampling({ minP: 0.1 })],
  ['min_p', 2, 'a number from 0 to 1, not 2'],
  ['frequency_penalty', 1, sampling({ frequencyPenalty: 1 })],
  ['frequency_penalty', 3, 'a number from -2 to 2, not 3'],
  ['presence_penalty', -1, sampling({ presencePenalty: -1 })],
  ['presence_penalty', '1', 'a number from -2 to 2, not "1"'],
  ['repetition_penalty', 1.1, sampling({ repetitionPenalty: 1.1 })],
  ['repetition_penalty', 0, 'a number from 0.01 to 100, not 0'],
  ['logit_bias', { 5: -100 }, sampling({ logitBias: { 5: -100 } })],
  ['logit_bias', 3, 'an object that maps token ids to biases, not 3'],
  ['logit_bias', [], 'an object that maps token ids to biases, not an array of 0'],
  ['logit_bias', { 5: 1, a: 1 }, 'an object whose keys are token ids, not "a"'],
  ['logit_bias', { '-1': 3 }, 'an object whose keys are token ids, not "-1"'],
  ['logit_bias.5', 101, 'a number from -100 to 100, not 101'],
]

export const enabled = (budget_tokens: unknown) => ({ type: 'enabled', budget_tokens })
export const adaptive = { type: 'adaptive' }

const highOutput = { output_config: { effort: 'high' } }

export const effortRows = (field: string): Row[] => [
  ...Object.entries(EFFORTS).map(([level, count]): Row => [field, level, budget(count)]),
  [field, 'banana', `${EFFORT} "banana"`],
]

const DISPLAY = 'one of summarized, omitted, not'

const REASONING: Row[] = [
  ...effortRows('reasoning_effort'),
  ['output_config', { effort: 'low' }, budget(256)],
  ['output_config', { effort: 'max' }, budget(Infinity)],
  ['output_config', { effort: null, format: null }, SAME],
  ['output_config', [], NO_ARRAY],
  ['output_config.effort', 'banana', `${OUTPUT_EFFORT} "banana"`],
  ['output_config.effort', 'minimal', `${OUTPUT_EFFORT} "minimal"`],
  ['output_config.effort', 'none', `${OUTPUT_EFFORT} "none"`],
  ['thinking', { type: 'disabled' }, budget(0)],
  ['thinking', enabled(99), budget(99)],
  ['thinking', adaptive, budget(1024)],
  ['thinking', { type: 'adaptive', display: 'omitted' }, budget(1024)],
  ['thinking', { type: 'between_tools' }, 'unsupported; leave it out'],
  ['thinking', 'enabled', 'an object, not "enabled"'],
  ['thinking', [], NO_ARRAY],
  ['thinking', {}, REQUIRED, 'thinking.type'],
  ['thinking.type', 'x', 'one of disabled, enabled, adaptive, between_tools, not "x"'],
  ['thinking', { type: 'enabled' }, REQUIRED, 'thinking.budget_tokens'],
  ['thinking', enabled(0), `${BUDGET} 0`, 'thinking.budget_tokens'],
  ['thinking', enabled(null), `${BUDGET} null`, 'thinking.budget_tokens'],
  ['thinking', { ...adaptive, display: 'x' }, `${DISPLAY} "x"`, 'thinking.display'],
  ['', { thinking: adaptive, ...highOutput }, budget(4096)],
  ['', { thinking: enabled(256), output_config: { effort: 'low' } }, budget(256)],
  ['', { thinking: { type: 'disabled' }, reasoning_effort: 'none' }, budget(0)],
  // An effort that disagrees has no effect.
  ['', { thinking: enabled(9), reasoning_effort: 'high' }, budget(9), 'reasoning_effort'],
  ['', { thinking: { type: 'disabled' }, ...highOutput }, budget(0), 'output_config.effort'],
  ['', { reasoning_effort: 'low', ...highOutput }, budget(256), 'output_config.effort'],
]

const clearing = (keep: unknown) => ({ edits: [{ type: 'clear_thinking_20251015', keep }] })

/** Fields of any style that change the answer of another server. */
const UNSUPPORTED_FIELDS: Row[] = [
  ['n', 1, SAME],
  ['n', 2, 'unsupported; send one request for each answer'],
  ['n', 0, 'an integer of at least 1, not 0'],
  ['best_of', 1, SAME],
  ['best_of', 2, UNSUPPORTED],
  ['chat_template_kwargs', {}, SAME],
  ['chat_template_kwargs', { a: 1, b: null }, asks({ templateVariables: { a: 1 } })],
  ['chat_template_kwargs', { enable_thinking: false }, budget(0)],
  ['chat_template_kwargs', { thinking: true }, budget(Infinity)],
  ['chat_template_kwargs', { thinking: true, thinking_budget: 512 }, budget(512)],
  ['chat_template_kwargs', { reasoning_effort: 'low' }, budget(256)],
  [
    'chat_template_kwargs',
    { tools: [] },
    'an object without messages, tools, add_generation_prompt, continue_final_message and tokens, not an object',
  ],
  ['enable_thinking', false, 'unsupported; send chat_template_kwargs instead'],
  ['min_tokens', 0, SAME],
  ['min_tokens', 5, UNSUPPORTED],
  ['ignore_eos', false, SAME],
  ['ignore_eos', true, UNSUPPORTED],
  ['echo', false, SAME],
  ['echo', true, UNSUPPORTED],
  ['suffix', '', SAME],
  ['suffix', 'x', UNSUPPORTED],
  ['typical_p', 1, SAME],
  ['typical_p', 0.9, UNSUPPORTED],
  ['mirostat', 0, SAME],
  ['mirostat', 2, UNSUPPORTED],
  ['verbosity', 'medium', SAME],
  ['verbosity', 'low', IGNORED],
  ['verbosity', 'x', 'one of low, medium, high, not "x"'],
  ['modalities', ['text'], SAME],
  ['modalities', ['text', 'audio'], 'unsupported; models output text'],
  ['audio', { voice: 'x' }, UNSUPPORTED],
  ['prediction', { type: 'content', content: 'x' }, IGNORED],
  ['web_search_options', {}, UNSUPPORTED],
  ['moderation', { model: 'x' }, UNSUPPORTED],
  ['mcp_servers', [], SAME],
  ['mcp_servers', [{ type: 'url' }], UNSUPPORTED],
  ['fallbacks', [], SAME],
  ['fallbacks', [{ model: 'x' }], UNSUPPORTED],
  ['thread', { type: 'create' }, UNSUPPORTED],
  ['container', 'c', UNSUPPORTED],
  ['compaction', {}, UNSUPPORTED],
  ['context_management', {}, SAME],
  ['context_management', { edits: [] }, SAME],
  ['context_management', clearing('all'), SAME],
  ['context_management', { edits: [{ type: 'clear_tool_uses_20250919' }] }, UNSUPPORTED],
  ['context_management', [{ type: 'compaction' }], UNSUPPORTED],
  ['response_format', { type: 'text' }, SAME],
  ['functions', [], SAME],
  ['function_call', 'none', SAME],
  ['parallel_tool_calls', 'no', 'true or false, not "no"'],
]

export const SHARED: Row[] = [
  ['model', undefined, REQUIRED],
  ['model', 5, 'a string, not 5'],
  ['model', null, 'a string, not null'],
  ['model', '', NOT_EMPTY],
  ['stream', 'true', 'true or false, not "true"'],
  ...SAMPLING,
  ...REASONING,
  ...UNSUPPORTED_FIELDS,
  ['tools', [], asks({ tools: undefined })],
  ['tools', null, asks({ tools: undefined })],
  ['tools', {}, 'an array, not an object'],
  ['tool_choice', 'none', tools({ choice: 'none' })],
  ['tool_choice', 'required', tools({ choice: 'required' })],
  ['tool_choice', 'banana', 'one of auto, none, required, not "banana"'],
  ['', { tools: [], tool_choice: 'none' }, asks({ tools: undefined })],
  ['', { tools: [], tool_choice: 'required' }, tools({ tools: [], choice: 'required' })],
  [
    '',
    nulls(
      'stream temperature top_p top_k seed min_p repetition_penalty stop stop_sequences tool_choice ' +
        'functions function_call parallel_tool_calls response_format output_format output_config ' +
        'reasoning_effort thinking logprobs top_logprobs logit_bias frequency_penalty n best_of ' +
        'presence_penalty system modalities audio prediction web_search_options guided_json thread ' +
        'mcp_servers container context_management user metadata store service_tier ' +
        'max_completion_tokens stream_options',
    ),
    SAME,
  ],
  ['prompt_cache_key', 'k', IGNORED],
  ['prompt_cache_options', {}, IGNORED],
  ['prompt_cache_retention', '24h', IGNORED],
  ['safety_identifier', 's', IGNORED],
  ['service_tier', 'auto', IGNORED],
  ['user', 'u', IGNORED],
  ['something_new', { a: 1 }, IGNORED],
]

const LESS = 'less than the limit of output tokens'

export const limitRows = (limit: string): Row[] => [
  [limit, 7, asks({ maxTokens: 7 })],
  [limit, 1e9, asks({ maxTokens: 1e9 })],
  [limit, 0, `${BUDGET} 0`],
  [limit, 1.5, `${BUDGET} 1.5`],
  ['', { thinking: enabled(99), [limit]: 100 }, budget(99)],
  ['', { thinking: enabled(100), [limit]: 100 }, `${LESS}, 100, not 100`, 'thinking.budget_tokens'],
]

export const stopRows = (field: string): Row[] => [
  [field, ['x', 'y'], asks({ stop: ['x', 'y'] })],
  [field, Array(64).fill('x'), asks({ stop: Array(64).fill('x') })],
  [field, Array(65).fill('x'), 'an array of at most 64 strings, not an array of 65'],
  [field, [], SAME],
  [field, 5, 'an array, not 5'],
  [field, ['x', ''], NOT_EMPTY, `${field}[1]`],
]

/** Arguments of earlier calls that are no JSON object, as limits and other programs leave them. */
export const CUT_ARGUMENTS = [
  '{"to": "Ada", "text": "Hel',
  '{"list": [1, 2,',
  'call the office',
  '{to: "Ada"}',
  '{"a": Infinity}',
  'true',
  '["Ada"]',
]

/** The tool that a custom tool becomes. */
export const customTool = (grammar?: { syntax: string; definition: string }) => ({
  name: 'f',
  parameters: true,
  input: grammar ? { type: 'grammar', ...grammar } : { type: 'text' },
})

/** Fields that only chat completions have, in the other styles. */
export const NO_CHAT: Row[] = [
  ['functions', [{ name: 'f' }], 'unsupported; send tools instead'],
  ['function_call', { name: 'f' }, 'unsupported; send tool_choice instead'],
  ['function_call', 'required', 'unsupported; send tool_choice instead'],
  ['guided_json', { type: 'object' }, UNSUPPORTED],
  ['guided_regex', 'a*', UNSUPPORTED],
  ['guided_grammar', 'root ::= "a"', UNSUPPORTED],
  ['guided_choice', ['a', 'b'], UNSUPPORTED],
  ['structured_outputs', { regex: 'a*' }, UNSUPPORTED],
  ['grammar', 'root ::= "a"', UNSUPPORTED],
  ['json_schema', {}, UNSUPPORTED],
  ['continue_final_message', false, SAME],
  ['continue_final_message', true, UNSUPPORTED],
  ['add_generation_prompt', true, SAME],
  ['add_generation_prompt', false, UNSUPPORTED],
]
