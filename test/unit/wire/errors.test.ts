import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { ErrorKind } from '../../../src/error.ts'
import { chatOf, errorOf, scriptedHost, send } from './scripted-host.ts'

describe('errors of the host', () => {
  const refused = (error: unknown) =>
    send(
      scriptedHost({ overrides: { generate: () => Promise.reject(error) } }),
      '/v1/chat/completions',
      { body: chatOf() },
    )

  it.each([
    ['invalid_request', 400, 'invalid_request_error', 'false'],
    ['authentication', 401, 'authentication_error', 'false'],
    ['permission', 403, 'permission_error', 'false'],
    ['not_found', 404, 'not_found_error', 'false'],
    ['method_not_allowed', 405, 'invalid_request_error', 'false'],
    ['too_large', 413, 'request_too_large', 'false'],
    ['rate_limit', 429, 'rate_limit_error', null],
    ['aborted', 499, 'api_error', 'false'],
    ['internal', 500, 'api_error', null],
    ['unavailable', 503, 'overloaded_error', 'false'],
  ] as const)('of the kind %s: %i', async (kind: ErrorKind, status, type, retry) => {
    const response = await refused(
      new InoriginError(kind, 'So it is.', {
        code: 'invalid_value',
        param: 'p',
        details: { a: 1 },
      }),
    )
    expect(response.headers.get('x-should-retry')).toBe(retry)
    expect(await errorOf(response, status)).toEqual({
      message: 'So it is.',
      type,
      param: 'p',
      code: 'invalid_value',
      details: { a: 1 },
    })
  })

  it.each([
    ['rate_limit', 429],
    ['unavailable', 503],
  ] as const)('%s tell when to come again', async (kind, status) => {
    const response = await refused(new InoriginError(kind, 'Busy.', { retryAfter: 1.25 }))
    expect(response.headers.get('retry-after')).toBe('2')
    expect(response.headers.get('retry-after-ms')).toBe('1250')
    expect(response.headers.has('x-should-retry')).toBe(false)
    await errorOf(response, status)
  })

  it('of another server that cannot be reached is no overload', async () => {
    const error = new InoriginError('unavailable', 'No answer.', { code: 'hub_unreachable' })
    expect(await errorOf(await refused(error), 503)).toMatchObject({ type: 'api_error' })
  })

  it('that is full says a second when it says nothing', async () => {
    expect(
      (await refused(new InoriginError('rate_limit', 'Full.'))).headers.get('retry-after'),
    ).toBe('1')
  })

  it('that were never meant are ours', async () => {
    expect((await errorOf(await refused(new TypeError('x is not a function')), 500)).message).toBe(
      'x is not a function',
    )
    expect((await errorOf(await refused('a string'), 500)).message).toBe('a string')
  })

  it('keep the words by which clients know that a prompt is too long', async () => {
    const message = 'prompt is too long: 3000 tokens > 2048 maximum'
    const error = await errorOf(
      await refused(
        new InoriginError('invalid_request', message, { code: 'context_length_exceeded' }),
      ),
      400,
    )
    expect(error).toMatchObject({ message, code: 'context_length_exceeded' })
  })
})
