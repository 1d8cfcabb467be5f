import { describe, expect, it, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { RemotePredictionEvent } from '../../../src/types/index.ts'
import { PATH, plain, remoteHost, tag } from './remote-fixtures.ts'
import { errorOf, KEY, scriptedHost, send } from './scripted-host.ts'

describe('the answer', () => {
  test('is a prediction', async () => {
    const response = await send(remoteHost({ string: 'a' }), PATH, {
      body: { tag, inputs: {}, acceleration: 'remote_auto', clientId: 'node', extra: 1 },
    })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-inorigin-ignored')).toBe('clientId, extra')
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^pred_[0-9a-f]{24}$/),
      tag,
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      results: [{ data: plain('a'), dtype: 'string' }],
      latency: 12.5,
      error: null,
      logs: null,
    })
  })

  const progress = {
    tag,
    phase: 'download',
    loadedBytes: 1,
    totalBytes: 2,
    bytesPerSecond: 0,
    remainingSeconds: null,
  } as const

  test('keeps the line alive while it is awaited, as JSON', async () => {
    const host = remoteHost({ string: 'a' }, [
      { type: 'progress', progress },
      { type: 'heartbeat' },
    ])
    const text = await (await send(host, PATH, { body: { tag } })).text()
    expect(text.slice(0, 3)).toBe('  {')
    expect(JSON.parse(text)).toMatchObject({ error: null })
  })

  test('is one event when it is streamed, and ends without a word', async () => {
    const host = remoteHost({ string: 'a' }, [
      { type: 'progress', progress },
      { type: 'heartbeat' },
    ])
    const response = await send(host, PATH, { body: { tag, stream: true } })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const [first, second, event, ...rest] = (await response.text()).split('\n\n')
    expect([first, second]).toEqual([`: downloading ${tag} 50%`, ': heartbeat'])
    const [head, data] = event?.split('\ndata: ') ?? []
    expect(head).toBe('event: prediction')
    expect(JSON.parse(data ?? '')).toMatchObject({ results: [{ dtype: 'string' }], error: null })
    expect(rest).toEqual([''])
  })

  test.each([false, true])('says what failed late, stream %s', async (stream) => {
    const late = new InoriginError('unavailable', 'The device gave out.')
    const host = remoteHost({ string: 'a' }, [{ type: 'heartbeat' }, late])
    const response = await send(host, PATH, { body: { tag, stream } })
    const text = (await response.text()).replace(/^[^{]*/, '')
    expect(JSON.parse(text)).toMatchObject({
      results: null,
      latency: null,
      error: 'The device gave out.',
    })
  })

  test('of what fails at once is a status', async () => {
    const createRemotePrediction = async () => {
      throw new InoriginError('invalid_request', 'inputs.radius: is required.', {
        param: 'inputs.radius',
      })
    }
    const host = scriptedHost({ overrides: { createRemotePrediction } })
    for (const stream of [false, true]) {
      const error = await errorOf(await send(host, PATH, { body: { tag, stream } }), 400)
      expect(error).toMatchObject({
        param: 'inputs.radius',
        message: 'inputs.radius: is required.',
      })
    }
  })

  it.each([
    [404, null, { tag: '@yusuf/none' }],
    [400, 'tag', { inputs: {} }],
    [400, 'inputs', { tag, inputs: [1] }],
    [400, 'stream', { tag, stream: 'yes' }],
    [400, 'acceleration', { tag, acceleration: 5 }],
  ])('is %i for %s %o', async (status, param, body) => {
    const error = await errorOf(await send(remoteHost(), PATH, { body }), status)
    expect(error.param).toBe(param)
  })

  test("a device of the asker's choice has no effect, and that is said", async () => {
    const response = await send(remoteHost(), PATH, { body: { tag, acceleration: 'remote_a100' } })
    expect(response.headers.get('x-inorigin-ignored')).toBe('acceleration')
  })

  test('needs a key where there are keys', async () => {
    const host = scriptedHost({ keyed: true })
    const body = { tag, inputs: { a: 1 } }
    expect((await send(host, PATH, { body })).status).toBe(401)
    const headers = { authorization: `Bearer ${KEY}` }
    const error = await errorOf(await send(host, PATH, { headers, body }), 500)
    expect(error.message).toContain('This host runs no predictor.')
  })

  test('leaving it ends the work', async () => {
    const host = remoteHost()
    let seen: AbortSignal | undefined
    host.createRemotePrediction = async (_request, { signal }) => {
      seen = signal
      async function* events(): AsyncGenerator<RemotePredictionEvent> {
        yield { type: 'heartbeat' }
        await new Promise(() => {})
      }
      return { tag, events: events() }
    }
    const response = await send(host, PATH, { body: { tag, stream: true } })
    const reader = response.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    expect(seen?.aborted).toBe(true)
  })
})
