import { describe, expect, it } from 'vitest'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

const bodyOf = (path: string, fields: object) =>
  path === CHAT ? chatOf(fields) : messageOf(fields)

async function refusalOf(path: string, fields: object) {
  const host = scriptedHost()
  const error = await errorOf(await send(host, path, { body: bodyOf(path, fields) }), 400)
  expect(error.code).toBe('unsupported_parameter')
  expect(host.requests).toEqual([])
  return error
}

async function ignoredOf(path: string, fields: object) {
  const response = await send(scriptedHost(), path, { body: bodyOf(path, fields) })
  expect(response.status, await response.text()).toBe(200)
  return response.headers.get('x-inorigin-ignored')
}

describe.each([CHAT, MESSAGES])('%s', (path) => {
  it.each([
    ['n', { n: 2 }],
    ['best_of', { best_of: 2 }],
    ['guided_json', { guided_json: { type: 'object' } }],
    ['guided_regex', { guided_regex: 'a*' }],
    ['guided_grammar', { guided_grammar: 'root ::= "a"' }],
    ['guided_choice', { guided_choice: ['a', 'b'] }],
    ['modalities', { modalities: ['audio'] }],
    ['thinking', { thinking: { type: 'between_tools' } }],
    ['verbosity', { verbosity: 'high' }],
    ['mcp_servers', { mcp_servers: [{ type: 'url' }] }],
    ['thread', { thread: { type: 'create' } }],
    ['container', { container: 'c' }],
    [
      'context_management',
      { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } },
    ],
    ['context_management', { context_management: [{ type: 'compaction' }] }],
    ['fallbacks', { fallbacks: [{ model: 'x' }] }],
    ['moderation', { moderation: { model: 'x' } }],
    ['structured_outputs', { structured_outputs: { regex: 'a*' } }],
    ['grammar', { grammar: 'root ::= "a"' }],
    ['json_schema', { json_schema: {} }],
    ['chat_template_kwargs', { chat_template_kwargs: { enable_thinking: false } }],
    ['enable_thinking', { enable_thinking: false }],
    ['min_tokens', { min_tokens: 5 }],
    ['ignore_eos', { ignore_eos: true }],
    ['echo', { echo: true }],
    ['suffix', { suffix: 'x' }],
    ['typical_p', { typical_p: 0.9 }],
    ['mirostat', { mirostat: 2 }],
    ['compaction', { compaction: {} }],
  ])('refuses what changes an answer, of whichever style: %s', async (param, fields) => {
    const error = await refusalOf(path, fields)
    expect(error.param).toBe(param)
    expect(error.message).toMatch(new RegExp(`^\`${param}\`.* is not supported by this server; `))
  })

  it.each([
    { n: 1, best_of: 1 },
    { frequency_penalty: 0, presence_penalty: 0, min_p: 0, repetition_penalty: 1 },
    { logprobs: false, top_logprobs: 0, logit_bias: {} },
    { functions: [], function_call: 'none', mcp_servers: [] },
    { response_format: { type: 'text' }, modalities: ['text'] },
    { min_tokens: 0, ignore_eos: false, echo: false, suffix: '', typical_p: 1, mirostat: 0 },
    { chat_template_kwargs: {}, fallbacks: [], context_management: {} },
    { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } },
    { reasoning_effort: 'none', thinking: { type: 'disabled' }, output_config: {} },
  ])('takes what is so anyway: %j', async (fields) =>
    expect(await ignoredOf(path, fields)).toBeNull(),
  )

  it('takes null as not given', async () => {
    const names = ['n', 'best_of', 'min_p', 'repetition_penalty', 'guided_json', 'thinking']
    names.push('output_config', 'mcp_servers', 'system', 'stop', 'stop_sequences', 'functions')
    names.push('max_completion_tokens', 'response_format', 'reasoning_effort', 'logprobs')
    const nothing = Object.fromEntries(names.map((name) => [name, null]))
    expect(await ignoredOf(path, nothing)).toBeNull()
  })

  it('lists what it does not know', async () => {
    const fields = { user: 'u', verbose: true, frequency: 1 }
    expect(await ignoredOf(path, fields)).toBe('user, verbose, frequency')
  })
})

describe('what has another name in this style', () => {
  it.each([
    [MESSAGES, { stop: 'END' }, '= "END"', 'stop_sequences'],
    [MESSAGES, { stop: ['END'] }, '', 'stop_sequences'],
    [MESSAGES, { max_completion_tokens: 5 }, '= 5', 'max_tokens'],
    [
      MESSAGES,
      { response_format: { type: 'json_object' } },
      'with type "json_object"',
      'output_config.format',
    ],
    [MESSAGES, { functions: [{ name: 'f' }] }, '', 'tools'],
    [MESSAGES, { function_call: { name: 'f' } }, '', 'tool_choice'],
    [
      CHAT,
      { output_format: { type: 'json_schema', schema: {} } },
      'with type "json_schema"',
      'response_format',
    ],
    [CHAT, { stop_sequences: ['END'] }, '', 'stop'],
    [CHAT, { system: 'S' }, '= "S"', 'a message of role system'],
    [CHAT, { system: [{ type: 'text', text: 'S' }] }, '', 'a message of role system'],
  ])('%s refuses %j with that name', async (path, fields, value, name) => {
    const param = Object.keys(fields)[0]
    const error = await refusalOf(path, fields)
    expect(error.param).toBe(param)
    const subject = value === '' ? `\`${param}\`` : `\`${param}\` ${value}`
    expect(error.message).toBe(`${subject} is not supported by this server; send ${name} instead.`)
  })

  it('is said before the field that is missing', async () => {
    const body = { model: '@acme/tiny', max_completion_tokens: 5, messages: [] }
    const error = await errorOf(await send(scriptedHost(), MESSAGES, { body }), 400)
    expect(error.param).toBe('max_completion_tokens')
  })

  it('may be empty', async () => {
    expect(await ignoredOf(MESSAGES, { stop: [] })).toBeNull()
    expect(await ignoredOf(CHAT, { stop_sequences: [], system: '' })).toBeNull()
  })
})
