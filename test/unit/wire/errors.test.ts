/** Errors of a request, the fields that they name, and the fields that a response lists as ignored. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { ErrorKind } from '../../../src/error.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { bodyOf } from './field-table.ts'
import { chatOf, errorOf, scriptedHost, send } from './scripted-host.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const COUNT = '/v1/messages/count_tokens'
const RESPONSES = '/v1/responses'

const failing = (error: unknown) =>
  scriptedHost({
    overrides: { generate: () => Promise.reject(error), countTokens: () => Promise.reject(error) },
  })
const refusalOf = async (path: string, fields: object) =>
  errorOf(await send(scriptedHost(), path, { body: bodyOf(path, fields) }), 400)

describe('an error of the host', () => {
  const refused = (error: unknown, fields: object = {}) =>
    send(failing(error), CHAT, { body: chatOf(fields) })

  it.each([
    ['invalid_request', 400, 'invalid_request_error', 'false'],
    ['authentication', 401, 'authentication_error', 'false'],
    ['permission', 403, 'permission_error', 'false'],
    ['not_found', 404, 'not_found_error', 'false'],
    ['method_not_allowed', 405, 'invalid_request_error', 'false'],
    ['too_large', 413, 'request_too_large', 'false'],
    ['unsupported_media_type', 415, 'invalid_request_error', 'false'],
    ['rate_limit', 429, 'rate_limit_error', null],
    ['aborted', 499, 'api_error', 'false'],
    ['internal', 500, 'api_error', null],
    ['unavailable', 503, 'overloaded_error', 'false'],
  ] as const)('of the kind %s has the status %i', async (kind: ErrorKind, status, type, retry) => {
    const fields = { code: 'invalid_value', param: 'p', details: { a: 1 } } as const
    const response = await refused(new InoriginError(kind, 'So it is.', fields))
    expect(response.headers.get('x-should-retry')).toBe(retry)
    expect(await errorOf(response, status)).toEqual({ message: 'So it is.', type, ...fields })
  })

  it.each([
    ['rate_limit', 429],
    ['unavailable', 503],
  ] as const)('of the kind %s says when to retry', async (kind, status) => {
    const response = await refused(new InoriginError(kind, 'Busy.', { retryAfter: 1.25 }))
    expect(response.headers.get('retry-after')).toBe('2')
    expect(response.headers.get('retry-after-ms')).toBe('1250')
    expect(response.headers.has('x-should-retry')).toBe(false)
    await errorOf(response, status)
  })

  it('of a rate limit says to retry after a second if the host names no time', async () => {
    const response = await refused(new InoriginError('rate_limit', 'Full.'))
    expect(response.headers.get('retry-after')).toBe('1')
  })

  it('is no overload if another server cannot be reached', async () => {
    const error = new InoriginError('unavailable', 'No answer.', { code: 'hub_unreachable' })
    expect(await errorOf(await refused(error), 503)).toMatchObject({ type: 'api_error' })
  })

  it.each([
    [new TypeError('x is not a function'), 'x is not a function'],
    ['a string', 'a string'],
  ])('that is no error of inorigin is internal', async (thrown, message) => {
    const nothing = { param: null, code: null, details: {} }
    const expected = { message, type: 'api_error', ...nothing }
    expect(await errorOf(await refused(thrown), 500)).toEqual(expected)
  })

  it.each([false, true])('keeps the words for a long prompt, stream: %s', async (stream) => {
    const message = 'prompt is too long: 3000 tokens > 2048 maximum'
    const code = 'context_length_exceeded'
    const tooLong = new InoriginError('invalid_request', message, { code, param: 'messages' })
    const error = await errorOf(await refused(tooLong, { stream }), 400)
    expect(error).toMatchObject({ message, code, type: 'invalid_request_error' })
  })
})

const schema = { type: 'object' }
const inChat = { type: 'json_schema', json_schema: { name: 'x', schema } }
const functions = { functions: [{ name: 'f' }] }
const jsonSchema = { type: 'json_schema', schema }
const regex = { syntax: 'regex', definition: '(' }
const CUSTOM = {
  tools: [
    { type: 'custom', custom: { name: 'f', format: { type: 'grammar', grammar: regex } } },
    { type: 'function', function: { name: 'g' } },
  ],
}
const CUSTOM_RESPONSE = {
  tools: [{ type: 'custom', name: 'f', format: { type: 'grammar', ...regex } }],
}

describe('an error of the host names the field of the body', () => {
  it.each<[path: string, param: string, named: string, fields?: object]>([
    [CHAT, 'messages', 'messages'],
    [CHAT, 'model', 'model'],
    [CHAT, 'tool_choice', 'tool_choice'],
    [CHAT, 'tools[1].name', 'tools[1].function.name'],
    [CHAT, 'tools[12].parameters.properties.x', 'tools[12].function.parameters.properties.x'],
    [CHAT, 'tools[1].name', 'functions[1].name', functions],
    [CHAT, 'tools[0].parameters.not', 'functions[0].parameters.not', functions],
    [CHAT, 'tool_choice', 'function_call', functions],
    [CHAT, 'format', 'response_format'],
    [
      CHAT,
      'format.schema.properties.format',
      'response_format.json_schema.schema.properties.format',
      { response_format: inChat },
    ],
    [
      CHAT,
      'format.schema.not',
      'response_format.schema.not',
      { response_format: { type: 'json_object', schema } },
    ],
    ...[MESSAGES, COUNT].flatMap((path): Array<[string, string, string, object?]> => [
      [path, 'messages', 'messages'],
      [path, 'tools[0].name', 'tools[0].name'],
      [path, 'tools[0].parameters.not', 'tools[0].input_schema.not'],
      [
        path,
        'format.schema.not',
        'output_config.format.schema.not',
        { output_config: { format: jsonSchema } },
      ],
      [path, 'format.schema.not', 'output_format.schema.not', { output_format: jsonSchema }],
    ]),
    [
      CHAT,
      'format.grammar',
      'response_format.grammar',
      { response_format: { type: 'grammar', grammar: 'a' } },
    ],
    [
      CHAT,
      'format.pattern',
      'response_format.pattern',
      { response_format: { type: 'regex', pattern: 'a' } },
    ],
    [CHAT, 'format.schema.not', 'guided_json.not', { guided_json: schema }],
    [CHAT, 'format.schema.not', 'json_schema.not', { json_schema: schema }],
    ...['format', 'format.pattern'].flatMap((name): Array<[string, string, string, object?]> => [
      [CHAT, name, 'guided_regex', { guided_regex: '(' }],
      [CHAT, name, 'structured_outputs.regex', { structured_outputs: { regex: '(' } }],
    ]),
    ...['format', 'format.grammar'].flatMap((name): Array<[string, string, string, object?]> => [
      [CHAT, name, 'guided_grammar', { guided_grammar: '(' }],
      [CHAT, name, 'grammar', { grammar: '(' }],
    ]),
    [CHAT, 'format.choices', 'guided_choice', { guided_choice: ['a'] }],
    [CHAT, 'tools[0].name', 'tools[0].custom.name', CUSTOM],
    [CHAT, 'tools[0].input.definition', 'tools[0].custom.format.grammar.definition', CUSTOM],
    [CHAT, 'tools[1].name', 'tools[1].function.name', CUSTOM],
    [RESPONSES, 'tools[0].input.definition', 'tools[0].format.definition', CUSTOM_RESPONSE],
    [RESPONSES, 'tools[0].name', 'tools[0].name', CUSTOM_RESPONSE],
    [RESPONSES, 'format.schema.not', 'text.format.schema.not'],
    [RESPONSES, 'tools[0].parameters.not', 'tools[0].parameters.not'],
    [RESPONSES, 'messages', 'input'],
  ])('%s: %s is %s', async (path, param, named, fields) => {
    const details = { param, code: 'unsupported_schema', details: { a: 1 } } as const
    const host = failing(new InoriginError('invalid_request', `${param} is wrong.`, details))
    const error = await errorOf(await send(host, path, { body: bodyOf(path, fields) }), 400)
    expect(error).toMatchObject({ ...details, param: named, message: `${named} is wrong.` })
  })

  it('in the path of its details', async () => {
    const param = 'tools[1].parameters.properties.a'
    const details = { param, details: { path: param, keyword: 'not' } }
    const host = failing(new InoriginError('invalid_request', `${param} is wrong.`, details))
    const error = await errorOf(await send(host, CHAT, { body: bodyOf(CHAT) }), 400)
    const path = 'tools[1].function.parameters.properties.a'
    expect(error).toMatchObject({ param: path, details: { path, keyword: 'not' } })
  })

  it('in a stream', async () => {
    const param = 'tools[0].parameters.not'
    const error = new InoriginError('invalid_request', `${param} is wrong.`, { param })
    const textOf = async (path: string) => {
      const body = bodyOf(path, { stream: true })
      return (await send(scriptedHost({ script: [error] }), path, { body })).text()
    }
    expect(checkChatStream(await textOf(CHAT)).error).toMatchObject({
      param: 'tools[0].function.parameters.not',
      message: 'tools[0].function.parameters.not is wrong.',
    })
    expect(checkMessageStream(await textOf(MESSAGES)).error).toMatchObject({
      message: 'tools[0].input_schema.not is wrong.',
    })
  })
})

describe('the message about a field', () => {
  const HERE = 'is not supported by this server;'
  const image = { type: 'image_url', image_url: { url: 'data:,' } }

  it.each<[path: string, message: string, fields: object]>([
    [CHAT, `\`n\` = 2 ${HERE} send one request for each answer.`, { n: 2 }],
    [MESSAGES, `\`stop\` = "END" ${HERE} send stop_sequences instead.`, { stop: 'END' }],
    [MESSAGES, `\`stop\` ${HERE} send stop_sequences instead.`, { stop: ['END'] }],
    [
      CHAT,
      `\`messages[0].content[0]\` with type "file" ${HERE} leave it out.`,
      { messages: [{ role: 'user', content: [{ type: 'file', file: {} }] }] },
    ],
    [
      CHAT,
      `\`messages[0].content[0]\` with type "image_url" ${HERE} put images into a message of role user.`,
      { messages: [{ role: 'tool', content: [image] }] },
    ],
  ])('of %s is: %s', async (path, message, fields) => {
    expect((await refusalOf(path, fields)).message).toBe(message)
  })

  it.each([
    ['1e400', 'Infinity'],
    ['-1e400', '-Infinity'],
    ['null', 'null'],
  ])('shows %s as %s', async (sent, shown) => {
    const body = JSON.stringify(chatOf({ messages: 0 })).replace(
      '"messages":0',
      `"messages":${sent}`,
    )
    const { message } = await errorOf(await send(scriptedHost(), CHAT, { body }), 400)
    expect(message).toBe(`\`messages\` must be an array, not ${shown}.`)
  })

  it('shows only the beginning of a long value', async () => {
    expect((await refusalOf(CHAT, { stream: 'x'.repeat(1e6) })).message.length).toBeLessThan(150)
  })

  it('names a thread in the way that makes a client do without', async () => {
    expect((await refusalOf(MESSAGES, { thread: { type: 'create' } })).details).toEqual({
      error_code: 'thread_unsupported_request',
      unsupported: ['thread'],
    })
  })
})

describe('ignored fields', () => {
  const ignoredOf = async (path: string, fields: object, ignored: string[] = [], headers = {}) => {
    const response = await send(scriptedHost({ ignored }), path, {
      body: bodyOf(path, fields),
      headers,
    })
    expect(response.status, await response.text()).toBe(200)
    return response.headers.get('x-inorigin-ignored')
  }

  it('are listed once, in the order of the body', async () => {
    const cached = { cache_control: { type: 'ephemeral' } }
    const fields = {
      user: 'u',
      parallel_tool_calls: false,
      ünknown: 1,
      __proto__x: {},
      messages: [
        { role: 'user', name: 'Al', content: [{ type: 'text', text: 'Hi', ...cached }] },
        { role: 'assistant', content: 'Ho', reasoning_content: 'Hm.' },
        { role: 'user', name: 'Al', content: 'Hi' },
      ],
    }
    expect(await ignoredOf(CHAT, fields)).toBe(
      'messages[].name, messages[].content[].cache_control, user, ?nknown, __proto__x',
    )
  })

  it('include the header of beta features, but no version', async () => {
    const headers = { 'anthropic-beta': 'a-2026-01-01,b', 'anthropic-version': '1999-01-01' }
    expect(await ignoredOf(MESSAGES, { x: 1 }, [], headers)).toBe('x, anthropic-beta')
  })

  it('are listed up to a length that a header can have', async () => {
    const names = Array.from({ length: 2000 }, (_, index) => [`${index}${'x'.repeat(500)}`, 1])
    expect((await ignoredOf(CHAT, Object.fromEntries(names)))?.length).toBeLessThan(5000)
  })

  it.each([CHAT, MESSAGES, RESPONSES])(
    'include the keywords of schemas that are not kept, streamed or not: %s',
    async (path) => {
      const keywords = ['x-unit', 'uniqueItems', 'format:phone', '$comment', 'x-unit', 'x-é, y']
      const listed = 'x-unit, uniqueItems, format:phone, $comment, x-???y'
      for (const stream of [false, true]) {
        expect(await ignoredOf(path, { stream }, keywords)).toBe(listed)
        if (path === RESPONSES)
          expect(await ignoredOf(path, { stream, background: true }, keywords)).toBe(listed)
      }
      const many = Array.from({ length: 70 }, (_, index) => `x-${index}`)
      expect(await ignoredOf(path, {}, many)).toMatch(/^x-0, .*, x-49, and 20 more$/)
    },
  )

  it.each([
    [CHAT, {}, 'user, top_k'],
    [CHAT, { reasoning_effort: 'high' }, 'user, top_k, reasoning_effort'],
    [MESSAGES, { thinking: { type: 'adaptive' } }, 'user, top_k, thinking'],
    [
      MESSAGES,
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      'user, top_k, thinking, output_config.effort',
    ],
    [RESPONSES, { reasoning: { effort: 'low' } }, 'user, top_k, reasoning.effort'],
  ])('include those of the host: %s %j', async (path, fields, listed) => {
    expect(
      await ignoredOf(path, { ...fields, user: 'u' }, ['top_k', 'reasoningBudget', 'user']),
    ).toBe(listed)
  })
})
