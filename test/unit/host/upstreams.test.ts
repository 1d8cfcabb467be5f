/** Where a request is answered: the conditions of the catalog, and the header of the request. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Condition, Upstream } from '../../../src/catalog/upstream-schema.ts'
import { InoriginError, type ErrorKind } from '../../../src/error.ts'
import type { ErrorCode } from '../../../src/error-codes.ts'
import {
  chatOf,
  DEVICE_LOST,
  embedder,
  openHost,
  startFarServer,
  type Fault,
} from '../../support/routed-host.ts'
import type { UpstreamServer } from '../../support/upstream-server.ts'
import { model } from '../catalog/entries.ts'

const failure = (kind: ErrorKind, code: ErrorCode) =>
  new InoriginError(kind, `It: ${code}.`, { code })
const NO_IMPLEMENTATION = failure('unavailable', 'no_implementation')

let server: UpstreamServer
beforeAll(async () => {
  server = await startFarServer()
})
afterAll(() => server?.close())

const upstreamOf = (changes: Partial<Upstream> = {}): Upstream => ({
  id: 'server',
  url: server.url,
  model: 'big',
  when: ['unavailable'],
  forwardAuthorization: false,
  continues: false,
  unsupported: [],
  refusal: null,
  ...changes,
})

type Opened = Pick<ReturnType<typeof openHost>, 'post'>

const ask = ({ post }: Opened, route?: string) =>
  post('chat/completions', { ...chatOf('@acme/tiny'), stream: true }, route)

describe('a condition', () => {
  const tooLong: Fault = {
    phase: 'accept',
    error: failure('invalid_request', 'context_length_exceeded'),
  }
  const full: Fault = { phase: 'accept', error: failure('rate_limit', 'queue_full') }
  const unfit: Fault = { phase: 'select', error: NO_IMPLEMENTATION }
  const lost: Fault = { phase: 'load', error: DEVICE_LOST }
  const lostLater: Fault = { phase: 'acquire', error: DEVICE_LOST }
  const cases: [Condition, Fault | null, boolean][] = [
    ['always', null, true],
    ['unavailable', unfit, true],
    ['unavailable', lost, true],
    ['unavailable', lostLater, true],
    ['not-loaded', null, false],
    ['busy', full, true],
    ['too-long', tooLong, true],
  ]
  test.each(cases)('%s has the server answer', async (condition, fault, isReady) => {
    const entry = model({ upstreams: [upstreamOf({ when: [condition] })] })
    const opened = openHost(entry, fault, isReady)
    const { status, served, text } = await ask(opened)
    expect([status, served, text.includes('"content":"far"')]).toEqual([200, 'upstream', true])
    expect(text).toContain(': served by upstream')
    // Any other condition leaves it to this device.
    const others = cases.map(([one]) => one).filter((one) => one !== condition)
    const left = model({ upstreams: [upstreamOf({ when: ['never'] })] })
    const before = server.counts()
    expect((await ask(openHost(left, fault, isReady))).served).not.toBe('upstream')
    for (const when of others.filter((one) => one !== 'always' && one !== 'not-loaded')) {
      const entryOfOther = model({ upstreams: [upstreamOf({ when: [when] })] })
      const answered = await ask(openHost(entryOfOther, fault, true))
      expect(answered.served).not.toBe('upstream')
    }
    expect(server.counts()).toEqual(before)
  })

  test('not-loaded loads the local model meanwhile', async () => {
    const entry = model({ upstreams: [upstreamOf({ when: ['not-loaded'] })] })
    const opened = openHost(entry, null, false)
    expect((await ask(opened)).served).toBe('upstream')
    expect(opened.seen).toMatchObject({ loads: 1, released: 1 })
    expect((await ask(openHost(entry))).served).toBe('local')
  })

  test('holds for embeddings and for both other styles', async () => {
    const upstreams = [upstreamOf()]
    const body = { model: '@acme/embed', input: 'Hi' }
    const embedded = await openHost(embedder(upstreams), unfit).post('embeddings', body)
    expect(JSON.parse(embedded.text)).toMatchObject({ data: [{ embedding: [1, 2] }] })
    expect(embedded.served).toBe('upstream')
    const { post } = openHost(model({ upstreams }), unfit)
    const message = await post('messages', { ...chatOf('@acme/tiny'), max_tokens: 9 })
    expect(JSON.parse(message.text)).toMatchObject({ content: [{ type: 'text', text: 'far' }] })
    const response = await post('responses', { model: '@acme/tiny', input: 'Hi' })
    expect(response).toMatchObject({ status: 200, served: 'upstream' })
  })
})

describe('an answer that this device cannot finish', () => {
  const lost: Fault = { phase: 'middle', error: DEVICE_LOST }
  const entryOf = (when: Condition[]) =>
    model({ upstreams: [upstreamOf({ when, continues: true })] })

  test('is continued by the server if the catalog entry says so', async () => {
    const opened = openHost(entryOf(['interrupted']), lost)
    const { status, served, text } = await ask(opened)
    expect([status, served]).toEqual([200, 'local'])
    const parts = ['"content":"near"', ': continued by upstream', '"content":"far"', '[DONE]']
    const places = parts.map((part) => text.indexOf(part))
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    expect(places[0]).toBeGreaterThan(0)
    expect(server.received.at(-1)?.body).toMatchObject({
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'near' },
      ],
      max_tokens: entryOf([]).maxOutputTokens - 1,
      continue_final_message: true,
    })
    const message = { ...chatOf('@acme/tiny'), max_tokens: 9 }
    const whole = await opened.post('messages', message)
    expect(JSON.parse(whole.text)).toMatchObject({ content: [{ type: 'text', text: 'nearfar' }] })
  })

  test.each([
    ['the entry does not say so', ['unavailable', 'busy'], {}, undefined],
    ['the request is local', ['interrupted'], {}, 'local'],
    ['it has a format', ['interrupted'], { response_format: { type: 'json_object' } }, undefined],
  ] as const)('fails here if %s', async (_why, when, changes, route) => {
    const { post } = openHost(entryOf([...when]), lost)
    const before = server.counts()
    const body = { ...chatOf('@acme/tiny'), stream: true, ...changes }
    const { text } = await post('chat/completions', body, route)
    expect(text).toContain('device_lost')
    expect(server.counts()).toEqual(before)
  })

  test('is not continued for a request that says so by itself', async () => {
    const entry = entryOf(['unavailable', 'busy'])
    const { upstreams } = openHost(entry)
    const before = server.counts()
    const request = { model: entry.tag, messages: [], sampling: {}, stop: [] }
    const caller = { key: null, signal: new AbortController().signal }
    const begun = { text: 'near', tokens: 1 }
    await expect(upstreams.continueAnswer(entry, request, begun, caller)).rejects.toMatchObject({
      code: 'upstream_not_allowed',
    })
    expect(server.counts()).toEqual(before)
  })
})

describe('the header x-inorigin-route', () => {
  test('narrows to upstream, and never widens', async () => {
    const always = model({ upstreams: [upstreamOf({ when: ['always'] })] })
    expect((await ask(openHost(always), 'upstream')).served).toBe('upstream')
    expect((await ask(openHost(always), 'local')).served).toBe('local')
    for (const when of [['unavailable'], ['busy'], ['too-long'], ['never']] as Condition[][]) {
      const opened = openHost(model({ upstreams: [upstreamOf({ when })] }))
      const { status, text } = await ask(opened, 'upstream')
      const { loads } = opened.seen
      expect([status, text.includes('upstream_not_allowed'), loads]).toEqual([403, true, 0])
    }
    expect((await ask(openHost(model()), 'upstream')).status).toBe(403)
  })

  test('must be one of two words', async () => {
    const always = model({ upstreams: [upstreamOf({ when: ['always'] })] })
    const before = server.counts()
    for (const route of ['Local', 'none', ''])
      expect((await ask(openHost(always), route)).status).toBe(400)
    expect(server.counts()).toEqual(before)
  })
})

describe('the header x-inorigin-served-by', () => {
  const entry = () => model({ upstreams: [upstreamOf()] })

  test('is missing while the weights may fail to load, and the stream says it then', async () => {
    const failed = await ask(openHost(entry(), { phase: 'load-late', error: DEVICE_LOST }, false))
    expect([failed.status, failed.served]).toEqual([200, null])
    expect(failed.text).toContain(': served by upstream')
    expect(failed.text).toContain('"content":"far"')
    const loaded = await ask(openHost(entry(), null, false))
    expect(loaded.served).toBe(null)
    expect(loaded.text).toContain(': served by local')
  })

  test.each([
    ['the model is loaded', true, ['unavailable']],
    ['no server may answer', false, ['interrupted']],
  ] as const)('is local if %s', async (_why, isReady, when) => {
    const upstreams = [upstreamOf({ when: [...when], continues: true })]
    const { served, text } = await ask(openHost(model({ upstreams }), null, isReady))
    expect([served, text.includes(': served by')]).toEqual(['local', false])
  })

  test('is missing if an embedding takes long, and true otherwise', async () => {
    const body = { model: '@acme/embed', input: 'Hi' }
    const embed = (fault: Fault | null) =>
      openHost(embedder([upstreamOf()]), fault).post('embeddings', body)
    expect((await embed(null)).served).toBe('local')
    expect((await embed({ phase: 'middle', error: DEVICE_LOST })).served).toBe('upstream')
    const late = await embed({ phase: 'acquire-late', error: DEVICE_LOST })
    expect([late.served, JSON.parse(late.text).data[0].embedding]).toEqual([null, [1, 2]])
  })
})
