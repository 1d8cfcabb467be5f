/** The checkers of streams that were given up, and of errors: what is right passes, what is not is noticed. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { errorResponse } from '../../../src/wire/errors.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkErrorBody } from '../../support/error-body.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { checkResponseStream } from '../../support/responses-grammar.ts'

const CHUNK = '"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m"'
const ROLE = `data: {${CHUNK},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n`
const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

describe('streams that were given up', () => {
  it.each([
    ['chat', checkChatStream, ROLE],
    ['messages', checkMessageStream, PING],
    ['responses', checkResponseStream, ': wait\n\n'],
  ] as const)('%s: may end anywhere, and only there', (_, check, raw) => {
    expect(() => check(`${raw}data: {"to`, { cut: true })).not.toThrow()
    expect(() => check(raw, { cut: true })).not.toThrow()
    expect(() => check(raw)).toThrow('the stream ended')
    expect(() => check(`${raw}data: {"to`)).toThrow('not ended by an empty line')
    expect(() => check(`data: {"to\n\n${raw}`, { cut: true })).toThrow('off grammar')
  })
})

describe('checkErrorBody', () => {
  const HEADERS = { 'request-id': 'req_1', 'x-should-retry': 'false' }
  const body = {
    type: 'error',
    error: { message: 'No.', type: 'not_found_error', param: null, code: null, details: {} },
    request_id: 'req_1',
    errors: [{ message: 'No.' }],
  }
  const check =
    (changed: object, headers: Record<string, string> = HEADERS) =>
    () =>
      checkErrorBody(JSON.stringify({ ...body, ...changed }), headers)

  it('takes what the server says', async () => {
    const response = errorResponse(new InoriginError('not_found', 'No.'), 'req_1')
    const headers = { ...Object.fromEntries(response.headers), 'request-id': 'req_1' }
    const text = await response.text()
    expect(() => checkErrorBody(text, headers)).not.toThrow()
  })

  it.each([
    ['another id', { request_id: 'req_2' }, HEADERS],
    ['no message', { error: { ...body.error, message: '' } }, HEADERS],
    ['a type nobody knows', { error: { ...body.error, type: 'bad' } }, HEADERS],
    ['a key too many', { more: 1 }, HEADERS],
    ['a text for an error', { error: 'No.' }, HEADERS],
    ['another message', { errors: [{ message: 'Yes.' }] }, HEADERS],
    ['no errors', { errors: [] }, HEADERS],
    ['no word on trying again', {}, { 'request-id': 'req_1' }],
  ])('refuses %s', (_, changed, headers) => {
    expect(check({})).not.toThrow()
    expect(check(changed, headers)).toThrow('off grammar')
  })
})
