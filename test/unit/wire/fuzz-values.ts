/** Bodies with every documented field, each with a valid value, and values for any place in them. */
import { nulls } from './mutate.ts'

const SAMPLING = {
  temperature: 1,
  top_p: 1,
  top_k: 1,
  seed: 1,
  min_p: 0.1,
  repetition_penalty: 1.1,
}
const BIASES = { frequency_penalty: 0.5, logit_bias: { 5: -1 } }
/** Fields that change nothing with these values. */
const DEFAULTS = { stream: false, n: 1, functions: [], function_call: 'none', mcp_servers: [] }
const HINTS = { user: 'u', metadata: {}, store: false, service_tier: 'auto' }
const thinking = { type: 'enabled', budget_tokens: 4, display: 'summarized' }
const definition = { name: 'f', description: 'F', parameters: { type: 'object' }, strict: true }
const format = { type: 'json_schema', schema: { type: 'object' } }

export const BODIES: Record<string, object> = {
  '/v1/chat/completions': {
    model: '@acme/tiny',
    messages: [
      { role: 'system', content: 'S' },
      { role: 'developer', content: 'D' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a' } },
          { id: 'call_2', type: 'custom', custom: { name: 'g', input: 'x' } },
        ],
        refusal: null,
        reasoning_content: 'Hm.',
        name: 'x',
        tool_call_id: null,
      },
      { role: 'tool', tool_call_id: 'call_1', name: 'f', content: [{ type: 'text', text: '1' }] },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: '1' },
    ],
    ...SAMPLING,
    ...BIASES,
    ...DEFAULTS,
    ...HINTS,
    stream_options: { include_usage: true },
    tools: [
      { type: 'function', function: definition },
      { type: 'custom', custom: { name: 'g', description: 'G', format: { type: 'text' } } },
      {
        type: 'custom',
        custom: {
          name: 'h',
          format: { type: 'grammar', grammar: { syntax: 'regex', definition: 'a|b' } },
        },
      },
    ],
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: {
        mode: 'auto',
        tools: [
          { type: 'function', function: { name: 'f' } },
          { type: 'custom', custom: { name: 'g' } },
        ],
      },
    },
    parallel_tool_calls: true,
    reasoning_effort: 'high',
    thinking,
    output_config: { effort: 'max', format: null },
    max_completion_tokens: 5,
    max_tokens: 5,
    presence_penalty: -0.5,
    stop: ['x'],
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'x', description: 'X', strict: true, schema: { type: 'object' } },
    },
    logprobs: true,
    top_logprobs: 2,
    modalities: ['text'],
    verbosity: 'medium',
    stop_sequences: [],
    system: '',
    best_of: 1,
    chat_template_kwargs: {},
    min_tokens: 0,
    prompt_cache_key: 'k',
    safety_identifier: 's',
    structured_outputs: { ...nulls('json regex choice grammar'), json_object: false },
    grammar: '',
    ...nulls('audio prediction web_search_options output_format guided_json moderation'),
    ...nulls('guided_regex guided_choice guided_grammar json_schema'),
  },
  '/v1/messages': {
    model: '@acme/tiny',
    max_tokens: 5,
    messages: [
      {
        role: 'user',
        content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }],
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 's' },
          { type: 'redacted_thinking', data: 'd' },
          { type: 'text', text: 'A' },
          { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
          { type: 'tool_use', id: 'toolu_2', name: 'f', input: {}, partial_json: '{"a' },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [{ type: 'text', text: '1' }],
            is_error: false,
          },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
        ],
      },
      { role: 'system', content: 'S' },
    ],
    ...SAMPLING,
    ...BIASES,
    ...DEFAULTS,
    system: [{ type: 'text', text: 'S' }],
    tools: [
      {
        type: 'custom',
        name: 'f',
        description: 'F',
        input_schema: { type: 'object' },
        strict: true,
      },
    ],
    tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    parallel_tool_calls: true,
    thinking,
    output_config: { effort: 'low', format: { ...format, strict: false } },
    stop_sequences: ['x'],
    metadata: { user_id: 'u' },
    service_tier: 'auto',
    stop: [],
    response_format: { type: 'text' },
    reasoning_effort: 'none',
    logprobs: false,
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    fallbacks: [],
    cache_control: { type: 'ephemeral' },
    inference_geo: 'eu',
    speed: 'fast',
    ...nulls('output_format thread max_completion_tokens container'),
  },
  '/v1/responses': {
    model: '@acme/tiny',
    input: [
      { role: 'developer', content: 'D' },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' },
        ],
      },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: '1' },
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_2', name: 'g', input: 'x' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: '1' },
    ],
    ...HINTS,
    instructions: 'S',
    stream: false,
    max_output_tokens: 5,
    temperature: 1,
    top_p: 1,
    seed: 1,
    tools: [
      { type: 'function', ...definition },
      { type: 'custom', name: 'g', description: 'G', format: { type: 'text' } },
      {
        type: 'custom',
        name: 'h',
        format: { type: 'grammar', syntax: 'regex', definition: 'a|b' },
      },
    ],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
    parallel_tool_calls: true,
    text: { format: { ...format, name: 'x', strict: true }, verbosity: 'medium' },
    reasoning: { effort: 'low', summary: 'auto' },
    include: ['message.output_text.logprobs'],
    top_logprobs: 2,
    background: false,
    truncation: 'disabled',
    store: true,
    ...nulls('previous_response_id conversation prompt'),
  },
  '/v1/predictions': {
    tag: '@yusuf/area',
    clientId: 'node',
    configurationId: 'c',
    deviceId: 'd',
    predictionId: 'p',
  },
  '/v1/embeddings': {
    model: '@acme/embed',
    input: ['one', 'two'],
    encoding_format: 'base64',
    dimensions: 2,
    user: 'u',
    messages: [],
    prompt: '',
    stream: false,
    truncate: 'NONE',
    truncation: false,
    late_chunking: false,
    add_special_tokens: true,
    normalize: true,
    normalized: true,
    output_dimension: '',
    output_dtype: 'float',
    embedding_type: 'float',
    ...nulls('input_type task prompt_name truncate_prompt_tokens embedding_types'),
  },
}

BODIES['/v1/messages/count_tokens'] = { ...BODIES['/v1/messages'], max_tokens: null }

/** Lists within lists. */
const DEEP = JSON.parse('['.repeat(200) + ']'.repeat(200)) as unknown

const NUMBERS = [0, -0, 1, -1, 0.5, 2, 1e308, -1e308, 2 ** 53 - 1, 2 ** 63, -(2 ** 63), 5e-324]
const WORDS = ['', ' ', 'x', '0', 'true', 'null', 'none', 'auto', 'text', 'high', 'user']
const ODD_TEXTS = ['__proto__', 'constructor', 'toString', '\ud800', '\u0000\r\n', 'é\u2028😀']
const LISTS = [[], [null], [0], [''], ['x'], [[]], [{}], Array(100).fill('x'), DEEP]

/** Values that a client could put anywhere. */
export const VALUES: unknown[] = [
  null,
  true,
  false,
  ...NUMBERS,
  ...WORDS,
  ...ODD_TEXTS,
  'y'.repeat(10_000),
  ...LISTS,
  {},
  { type: 'text' },
  { type: 'text', text: 'x' },
  { type: 'text', text: null },
  { type: 'image', source: {} },
  { type: 'function', function: { name: 'f' } },
  { type: 'tool', name: 'f' },
  { type: 'json_object' },
  { type: 'json_schema', schema: {} },
  { role: 'tool', content: 'x' },
  { role: 'assistant', tool_calls: [null] },
  { type: 5 },
  { type: null },
  { type: 'constructor' },
  { type: 'enabled' },
  { type: 'auto' },
  { role: 'user', content: 'x' },
  { role: 'robot' },
  { '': '' },
  JSON.parse('{"__proto__":{"role":"user"},"constructor":1,"prototype":{}}'),
  { length: 3 },
  { include_usage: 'x' },
  { effort: 'x' },
]
