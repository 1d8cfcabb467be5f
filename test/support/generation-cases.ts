/** Requests whose answers are long enough to be interrupted, in each of the three wire styles. */

export type Style = 'chat' | 'messages' | 'responses'

export const STYLES: readonly Style[] = ['chat', 'messages', 'responses']

export const PATHS: Readonly<Record<Style, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
}

/** Contents of an answer. */
export type Case = 'greedy' | 'sampled' | 'json' | 'characters' | 'call' | 'reasoning'

export const CASES: readonly Case[] = [
  'greedy',
  'sampled',
  'json',
  'characters',
  'call',
  'reasoning',
]

/** Forbids the guide's end token, so that a text is as long as its limit. */
const NO_END = { logit_bias: { 2034: -100 } }
const PROMPT = [{ role: 'user', content: 'Tell me all about inorigin.' }]
const NUMBERS = { type: 'array', items: { type: 'integer' }, minItems: 400, maxItems: 400 }
const ANIMALS = { type: 'string', pattern: '^[🦊🐻😀é]{400}$' }
const ARGUMENTS = { type: 'object', properties: { numbers: NUMBERS }, required: ['numbers'] }

const limits: Readonly<Record<Style, string>> = {
  chat: 'max_completion_tokens',
  messages: 'max_tokens',
  responses: 'max_output_tokens',
}

/** Returns the body of a request without `stream`. Its answer has `tokens` tokens. */
export function bodyOf(style: Style, content: Case, tokens: number, seed: number): object {
  const sampling = content === 'greedy' ? { temperature: 0 } : { temperature: 1, seed }
  return {
    model: '@inorigin/guide',
    [style === 'responses' ? 'input' : 'messages']: PROMPT,
    [limits[style]]: tokens,
    ...sampling,
    ...fieldsOf(style, content, tokens),
  }
}

function fieldsOf(style: Style, content: Case, tokens: number): object {
  switch (content) {
    case 'json':
      return schemaFields(style, NUMBERS)
    case 'characters':
      return schemaFields(style, ANIMALS)
    case 'call':
      return toolFields(style)
    case 'reasoning':
      return { ...NO_END, ...reasoningFields(style, tokens) }
    default:
      return NO_END
  }
}

function schemaFields(style: Style, schema: object): object {
  const named = { type: 'json_schema', name: 'answer', schema, strict: true }
  if (style === 'responses') return { text: { format: named } }
  if (style === 'messages') return { output_config: { format: { type: 'json_schema', schema } } }
  return {
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'answer', schema, strict: true },
    },
  }
}

function toolFields(style: Style): object {
  const tool = { name: 'list', parameters: ARGUMENTS }
  if (style === 'messages')
    return { tools: [{ name: 'list', input_schema: ARGUMENTS }], tool_choice: { type: 'any' } }
  const tools =
    style === 'chat' ? [{ type: 'function', function: tool }] : [{ type: 'function', ...tool }]
  return { tools, tool_choice: 'required' }
}

function reasoningFields(style: Style, tokens: number): object {
  if (style === 'chat') return { reasoning_effort: 'high' }
  if (style === 'responses') return { reasoning: { effort: 'high', summary: 'auto' } }
  return { thinking: { type: 'enabled', budget_tokens: Math.max(1, tokens - 1) } }
}
