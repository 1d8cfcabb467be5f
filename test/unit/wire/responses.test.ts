/** Stored and background responses over HTTP: later requests that refer to them, and their paths. */
import OpenAI from 'openai'
import { describe, expect, it, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { Host } from '../../../src/types/index.ts'
import { createChance } from '../../support/random.ts'
import { checkResponse, checkResponseStream } from '../../support/responses-grammar.ts'
import { runs } from '../../support/runs.ts'
import { parseFrames } from '../../support/sse-grammar.ts'
import { BODIES, VALUES } from './fuzz-values.ts'
import { mutate } from './mutate.ts'
import { errorOf, fetchOf, HELLO, scriptedHost, send, TINY, USAGE } from './scripted-host.ts'
import type { HostOptions, Script, ScriptedHost } from './scripted-host.ts'

const PATH = '/v1/responses'
const bodyOf = (fields: object = {}) => ({ model: TINY.tag, input: 'Hi', ...fields })
const START = { type: 'start', promptTokens: 12, cachedTokens: 0 } as const

/** Thinks, says something and calls. */
const CALLS: Script = [
  START,
  { type: 'reasoning', text: 'Hm.' },
  { type: 'text', text: 'Let me look.' },
  { type: 'tool_call', index: 0, id: 'call_1', name: 'weather' },
  { type: 'tool_arguments', index: 0, text: '{"city":"Oslo"}' },
  { type: 'finish', reason: 'tool_calls', stopSequence: null, usage: USAGE },
]
const open = (options: HostOptions = {}) => scriptedHost({ script: CALLS, ...options })

interface Answered {
  id: string
  status: string
  store: boolean
  created_at: number
  previous_response_id: string | null
  output: Array<{ id: string; type: string }>
}

const create = (host: ScriptedHost, fields: object = {}, headers = {}) =>
  send(host, PATH, { body: bodyOf(fields), headers })
const get = async (host: ScriptedHost, path: string) => (await send(host, `${PATH}/${path}`)).json()

async function ask(host: ScriptedHost, fields: object = {}): Promise<Answered> {
  const response = await create(host, { reasoning: { effort: 'low' }, ...fields })
  if (!('stream' in fields)) return response.json()
  return checkResponseStream(await response.text()).response as unknown as Answered
}
const refusalOf = async (host: ScriptedHost, fields: object, status = 400) =>
  errorOf(await create(host, fields), status)

const referTo = (item: { id: string } | undefined) => ({ type: 'item_reference', id: item?.id })
const RESULT = { type: 'function_call_output', call_id: 'call_1', output: '5 degrees' }
const TURNS = [
  { role: 'user', content: 'Hi' },
  {
    role: 'assistant',
    content: 'Let me look.',
    reasoning: 'Hm.',
    toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' }],
  },
  { role: 'tool', toolCallId: 'call_1', name: 'weather', content: '5 degrees' },
]

describe.each([
  ['one body', {}],
  ['a stream', { stream: true }],
])('a response in %s', (_, way) => {
  it('can be referred to item by item', async () => {
    const host = open()
    const { output } = await ask(host, way)
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call'])
    const references = output.map(referTo)
    await ask(host, { ...way, input: [{ role: 'user', content: 'Hi' }, ...references, RESULT] })
    expect(host.requests.at(-1)?.messages).toEqual(TURNS)
  })

  it('can be continued as a whole, turn after turn, without its instructions', async () => {
    const host = open()
    const first = await ask(host, { ...way, instructions: 'Of the first alone.' })
    const second = await ask(host, { ...way, input: [RESULT], previous_response_id: first.id })
    expect(second.previous_response_id).toBe(first.id)
    expect(host.requests.at(-1)?.messages).toEqual(TURNS)
    await ask(host, { ...way, input: 'And?', previous_response_id: second.id })
    const next = { role: 'user', content: 'And?' }
    expect(host.requests.at(-1)?.messages).toEqual([...TURNS, TURNS[1], next])
  })

  it('is stored unless the request forbids it', async () => {
    const host = open()
    expect((await ask(host, way)).store).toBe(true)
    const { id, store, output } = await ask(host, { ...way, store: false })
    expect(store).toBe(false)
    const { message } = await errorOf(await send(host, `${PATH}/${id}`), 404)
    expect(message).toMatch(/reports store: false is not stored: .* the response is too large\.$/)
    await refusalOf(host, { input: [referTo(output[0])] }, 404)
  })
})

it.each<[string, Host['storeResponse']]>([
  ['fails', () => Promise.reject(new Error('Full.'))],
  [
    'hangs',
    (_, { signal }) =>
      new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  ],
  ['has no room', async () => false],
])('a response reports that it is not stored if the store %s', async (_case, storeResponse) => {
  const ways = [{}, { stream: true }]
  const host = () => open({ overrides: { storeResponse } })
  for (const { output, store } of await Promise.all(ways.map((way) => ask(host(), way))))
    expect([output.length, store]).toEqual([3, false])
})

describe('an input', () => {
  it('has at most 20,000 items, and each reference once', async () => {
    const host = open()
    const items = (count: number) =>
      Array.from({ length: count }, () => ({ role: 'user', content: '' }))
    expect((await create(host, { input: items(20_000) })).status).toBe(200)
    expect((await refusalOf(host, { input: items(20_001) })).message).toBe(
      '`input` must be an array of at most 20000 items, not an array of 20001.',
    )
    const reference = referTo((await ask(host)).output[0])
    const error = await refusalOf(host, { input: [reference, reference] })
    expect(error).toMatchObject({ code: 'duplicate_item', param: 'input[1].id' })
  })

  it('of any form that is accepted can be continued', async () => {
    const host = open()
    const chance = createChance(7)
    const { input, ...rest } = BODIES[PATH] as { input: object[] }
    let accepted = 0
    for (let round = 0; round < runs(40, 150); round += 1) {
      const items = input
        .filter(() => chance.often(0.5))
        .map((item) => mutate(item, VALUES, chance, chance.below(2)))
      const response = await send(host, PATH, { body: { ...rest, input: items } })
      if (response.status !== 200) continue
      accepted += 1
      const { id, output } = (await response.json()) as Answered
      const more = [referTo(output[0]), { role: 'user', content: 'And?' }]
      const next = await create(host, { input: more, previous_response_id: id })
      expect(next.status, `${JSON.stringify(items)} ${await next.text()}`).toBe(200)
      expect((await get(host, `${id}/input_items`)).data).toHaveLength(items.length)
    }
    expect(accepted).toBeGreaterThan(runs(3, 10))
  })

  it('is counted before it is answered', async () => {
    const host = open()
    const response = await send(host, `${PATH}/input_tokens`, { body: bodyOf() })
    expect(await response.json()).toMatchObject({ input_tokens: 42 })
    expect(host.requests.at(-1)?.messages).toEqual([{ role: 'user', content: 'Hi' }])
  })
})

describe('a response that ends early', () => {
  it('can be continued after what its client received', async () => {
    const host = open()
    const response = await create(host, { stream: true })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let raw = ''
    while (!raw.includes('"delta":"Let me look."')) raw += (await reader.read()).value
    await reader.cancel()
    const { items } = checkResponseStream(raw, { cut: true })
    await ask(host, { input: [referTo(items[0]), { role: 'user', content: 'Well?' }] })
    expect(host.requests.at(-1)?.messages).toEqual([
      { role: 'assistant', content: 'Let me look.' },
      { role: 'user', content: 'Well?' },
    ])
  })

  it('keeps the arguments of a call that was cut off', async () => {
    const script: Script = [
      START,
      { type: 'tool_call', index: 0, id: 'call_1', name: 'weather' },
      { type: 'tool_arguments', index: 0, text: '{"ci' },
      { type: 'finish', reason: 'length', stopSequence: null, usage: USAGE },
    ]
    const host = open({ script })
    await ask(host, { input: 'And?', previous_response_id: (await ask(host)).id })
    expect(host.requests.at(-1)?.messages[1]).toEqual({
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"ci' }],
    })
  })

  it('is not stored if it failed before its client knew its id', async () => {
    const storeResponse = vi.fn<Host['storeResponse']>(async () => true)
    const script = [{ type: 'heartbeat' }, new Error('The tab was closed.')] as const
    const host = open({ script, overrides: { storeResponse } })
    expect(await (await create(host, { stream: true })).text()).toContain('event: error')
    expect(storeResponse).not.toHaveBeenCalled()
  })
})

describe('an unknown id', () => {
  it.each([
    [
      'of an item',
      {
        input: [
          { role: 'user', content: 'Hi' },
          { type: 'item_reference', id: 'fc_1' },
        ],
      },
      404,
      { param: 'input[1].id', code: 'item_not_found' },
      "Item with id 'fc_1' not found.",
    ],
    [
      'of a response',
      { previous_response_id: 'resp_1' },
      400,
      { param: 'previous_response_id', code: 'previous_response_not_found' },
      "Previous response with id 'resp_1' not found.",
    ],
  ])('%s is refused with advice', async (_, fields, status, error, start) => {
    const refusal = await refusalOf(open(), fields, status)
    expect(refusal).toMatchObject(error)
    expect(refusal.message.startsWith(`${start} Responses are stored in memory, `)).toBe(true)
    expect(refusal.message).toMatch(/Send the items themselves, as clients do with store: false\.$/)
  })

  it('is repeated in part', async () => {
    const named = async (id: string) => {
      const { message } = await refusalOf(open(), { previous_response_id: id })
      return /'(.*?)'/.exec(message)?.[1]
    }
    const id = 'x'.repeat(100)
    expect([await named(id), await named(`${id}x`)]).toEqual([id, `${id}...`])
  })

  it('is also one of another API key', async () => {
    const host = open()
    const own = { authorization: 'Bearer ann' }
    const other = { 'x-api-key': 'bea' }
    const { id, output } = (await (await create(host, {}, own)).json()) as Answered
    const statusOf = async (response: Promise<Response>) => (await response).status
    const path = `${PATH}/${id}`
    expect(await statusOf(send(host, path, { headers: other }))).toBe(404)
    expect(await statusOf(send(host, path, { headers: other, method: 'DELETE' }))).toBe(404)
    expect(await statusOf(create(host, { input: [referTo(output[0])] }, other))).toBe(404)
    expect(await statusOf(create(host, { previous_response_id: id }, other))).toBe(400)
    expect(await statusOf(send(host, path, { headers: own }))).toBe(200)
  })
})

describe('the input items of a response', () => {
  it('are listed by the official client, page by page', async () => {
    const fetch = fetchOf(open())
    const { responses } = new OpenAI({ baseURL: 'http://localhost/v1', apiKey: 'k', fetch })
    const first = await responses.create(bodyOf({ input: 'One' }))
    const input = [
      { role: 'user' as const, content: 'Two' },
      { type: 'message' as const, role: 'user' as const, content: 'Three' },
    ]
    const { id } = await responses.create({ ...bodyOf(), input, previous_response_id: first.id })
    const items = []
    for await (const item of responses.inputItems.list(id, { order: 'asc', limit: 2 }))
      items.push(item)
    const types = ['message', 'message', 'function_call', 'message', 'message']
    expect(items.map(({ type }) => type)).toEqual(types)
    expect(items[3]).toMatchObject({ role: 'user', content: [{ type: 'input_text', text: 'Two' }] })
    const { data } = await responses.inputItems.list(id)
    expect(data).toEqual(items.toReversed())
    expect((await responses.inputItems.list(id, { after: 'msg_other' })).data).toEqual([])
  })

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['order=up', 'order'],
  ])('are refused for %s', async (query, param) => {
    const host = open()
    const { id } = await ask(host)
    const error = await errorOf(await send(host, `${PATH}/${id}/input_items?${query}`), 400)
    expect(error).toMatchObject({ param, code: 'invalid_value' })
  })
})

describe('a background response', () => {
  const script: Script = HELLO.filter(
    (event) => event instanceof Error || event.type !== 'progress',
  )
  const openHello = () => open({ script })
  const start = async (host: ScriptedHost, fields: object = {}): Promise<Answered> =>
    (await create(host, { background: true, ...fields })).json()

  interface Frame {
    type: string
    sequence_number: number
    response?: Answered
  }
  const framesOf = async (response: Response): Promise<Frame[]> =>
    parseFrames(await response.text()).map(({ data }) => JSON.parse(data) as Frame)
  const follow = async (host: ScriptedHost, id: string, after?: number) =>
    framesOf(
      await send(
        host,
        `${PATH}/${id}?stream=true${after === undefined ? '' : `&starting_after=${after}`}`,
      ),
    )

  it('has the same numbered events for each reader, after any number', async () => {
    const host = openHello()
    const frames = await framesOf(await create(host, { background: true, stream: true }))
    expect(frames.map(({ type }) => type.replace('response.', ''))).toEqual([
      'created',
      'queued',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    expect(frames.map(({ sequence_number }) => sequence_number)).toEqual([...frames.keys()])
    const { id } = frames[0]!.response!
    for (const after of [0, 4, 9, 10, 99])
      expect(await follow(host, id, after)).toEqual(frames.slice(after + 1))
    expect(await follow(host, id)).toEqual(frames)
    const wrong = await send(host, `${PATH}/${id}?stream=true&starting_after=-1`)
    const error = { code: 'invalid_value', param: 'starting_after' }
    expect(await errorOf(wrong, 400)).toMatchObject(error)
  })

  it('is queued, then whole, and can be referred to', async () => {
    const host = openHello()
    const created = await start(host)
    expect(created).toMatchObject({ status: 'queued', background: true, output: [], usage: null })
    await follow(host, created.id)
    const got = await get(host, created.id)
    expect(got).toMatchObject({ status: 'completed', created_at: created.created_at })
    checkResponse(got)
    await ask(host, { input: [referTo(got.output[0])] })
    await ask(host, { input: 'And?', previous_response_id: created.id })
    const answer = { role: 'assistant', content: 'Hello there' }
    expect(host.requests.slice(1).map(({ messages }) => messages)).toEqual([
      [answer],
      [{ role: 'user', content: 'Hi' }, answer, { role: 'user', content: 'And?' }],
    ])
  })

  it('reports its failure', async () => {
    const failing = open({ script: [START, new InoriginError('unavailable', 'No memory.')] })
    const frames = await framesOf(await create(failing, { background: true, stream: true }))
    expect(frames.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'server_error', message: 'No memory.' } },
    })
  })

  it('is canceled once, and cannot be continued while it is in progress', async () => {
    // The script ends without `finish`.
    const host = open({ script: [START, { type: 'text', text: 'Hello' }] })
    const { id } = await start(host)
    await vi.waitFor(async () => expect((await get(host, id)).status).toBe('in_progress'), 20_000)
    expect(await refusalOf(host, { previous_response_id: id })).toMatchObject({
      code: 'response_not_finished',
    })
    const following = follow(host, id)
    const cancel = async () =>
      (await send(host, `${PATH}/${id}/cancel`, { method: 'POST' })).json() as Promise<Answered>
    expect(await cancel()).toMatchObject({ status: 'cancelled', usage: null })
    expect(await cancel()).toMatchObject({ status: 'cancelled' })
    const last = { type: 'response.incomplete', response: { status: 'cancelled' } }
    expect((await following).at(-1)).toMatchObject(last)
    expect((await follow(host, id)).at(-1)).toMatchObject(last)
  })

  it('must be stored, and is gone when it is deleted', async () => {
    const host = openHello()
    expect(await refusalOf(host, { background: true, store: false })).toMatchObject({
      param: 'store',
    })
    const { id } = await start(host)
    const deleted = await send(host, `${PATH}/${id}`, { method: 'DELETE' })
    expect(await deleted.json()).toEqual({ id, object: 'response', deleted: true })
    for (const path of [`${PATH}/${id}`, `${PATH}/${id}?stream=true`])
      expect((await send(host, path)).status).toBe(404)
  })

  it('alone can be canceled, or streamed again', async () => {
    const host = openHello()
    const { id } = await ask(host)
    const cancel = (of: string) => send(host, `${PATH}/${of}/cancel`, { method: 'POST' })
    expect(await errorOf(await cancel(id), 400)).toMatchObject({ code: 'not_in_background' })
    expect(await errorOf(await cancel('resp_x'), 404)).toMatchObject({ code: 'response_not_found' })
    const error = { param: 'stream', code: 'unsupported_parameter' }
    expect(await errorOf(await send(host, `${PATH}/${id}?stream=true`), 400)).toMatchObject(error)
  })
})
