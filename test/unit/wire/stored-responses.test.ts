/** Responses that refer to what was answered before, and the paths that tell of it. */
import OpenAI, { NotFoundError } from 'openai'
import { describe, expect, it, vi } from 'vitest'
import type { Caller, Host } from '../../../src/types/index.ts'
import { createChance } from '../../support/random.ts'
import { checkResponse, checkResponseStream } from '../../support/responses-grammar.ts'
import { BODIES, VALUES } from './fuzz-values.ts'
import { mutate } from './mutate.ts'
import { errorOf, fetchOf, scriptedHost, send, USAGE } from './scripted-host.ts'
import type { HostOptions, Script, ScriptedHost } from './scripted-host.ts'

const PATH = '/v1/responses'
const bodyOf = (fields: object = {}) => ({ model: '@acme/tiny', input: 'Hi', ...fields })
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
const OPTIONS: HostOptions = { script: CALLS }

interface Answered {
  id: string
  store: boolean
  previous_response_id: string | null
  output: Array<{ id: string; type: string }>
}

async function ask(host: ScriptedHost, fields: object = {}): Promise<Answered> {
  const response = await send(host, PATH, {
    body: bodyOf({ reasoning: { effort: 'low' }, ...fields }),
  })
  if (!('stream' in fields)) return (await response.json()) as Answered
  return checkResponseStream(await response.text()).response as unknown as Answered
}

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

it('cannot be referred to twice in one input', async () => {
  const host = scriptedHost(OPTIONS)
  const [item] = (await ask(host)).output
  const reference = { type: 'item_reference', id: item?.id }
  const error = await errorOf(
    await send(host, PATH, { body: bodyOf({ input: [reference, reference] }) }),
    400,
  )
  expect(error).toMatchObject({ code: 'duplicate_item', param: 'input[1].id' })
})

it('has as many items in one input as are taken', async () => {
  const items = (count: number) =>
    bodyOf({ input: Array.from({ length: count }, () => ({ role: 'user', content: '' })) })
  expect((await send(scriptedHost(), PATH, { body: items(20_000) })).status).toBe(200)
  const error = await errorOf(await send(scriptedHost(), PATH, { body: items(20_001) }), 400)
  expect(error.message).toBe(
    '`input` must be an array of at most 20000 items, not an array of 20001.',
  )
})

describe.each([
  ['a body', {}],
  ['a stream', { stream: true }],
])('what %s answered', (_, way) => {
  it('can be referred to item by item', async () => {
    const host = scriptedHost(OPTIONS)
    const { output } = await ask(host, way)
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call'])
    const references = output.map(({ id }) => ({ type: 'item_reference', id }))
    await ask(host, { ...way, input: [{ role: 'user', content: 'Hi' }, ...references, RESULT] })
    expect(host.requests.at(-1)?.messages).toEqual(TURNS)
  })

  it('can be gone on from as a whole, turn after turn', async () => {
    const host = scriptedHost(OPTIONS)
    const first = await ask(host, { ...way, instructions: 'Of the first alone.' })
    const second = await ask(host, { ...way, input: [RESULT], previous_response_id: first.id })
    expect(second.previous_response_id).toBe(first.id)
    expect(host.requests.at(-1)?.messages).toEqual(TURNS)
    await ask(host, { ...way, input: 'And?', previous_response_id: second.id })
    expect(host.requests.at(-1)?.messages).toEqual([
      ...TURNS,
      TURNS[1],
      { role: 'user', content: 'And?' },
    ])
  })

  it('is not kept where it is not to be', async () => {
    const host = scriptedHost(OPTIONS)
    expect((await ask(host, way)).store).toBe(true)
    const { id, store, output } = await ask(host, { ...way, store: false })
    expect(store).toBe(false)
    const { message } = await errorOf(await send(host, `${PATH}/${id}`), 404)
    expect(message).toMatch(/reports store: false is not stored: .* the response is too large\.$/)
    const input = [{ type: 'item_reference', id: output[0]?.id }]
    await errorOf(await send(host, PATH, { body: bodyOf({ input }) }), 404)
  })
})

it('a stream that is cut can be gone on from as far as it was told', async () => {
  const host = scriptedHost(OPTIONS)
  const response = await send(host, PATH, { body: bodyOf({ stream: true }) })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let told = ''
  while (!told.includes('"delta":"Let me look."')) told += (await reader.read()).value
  await reader.cancel()
  const { items } = checkResponseStream(told, { cut: true })
  const input = [
    { type: 'item_reference', id: items[0]?.id },
    { role: 'user', content: 'Well?' },
  ]
  await ask(host, { input })
  expect(host.requests.at(-1)?.messages).toEqual([
    { role: 'assistant', content: 'Let me look.' },
    { role: 'user', content: 'Well?' },
  ])
})

it('a call that was cut has no arguments', async () => {
  const cut: Script = [
    START,
    { type: 'tool_call', index: 0, id: 'call_1', name: 'weather' },
    { type: 'tool_arguments', index: 0, text: '{"ci' },
    { type: 'finish', reason: 'length', stopSequence: null, usage: USAGE },
  ]
  const host = scriptedHost({ script: cut })
  const { id } = await ask(host)
  await ask(host, { input: 'And?', previous_response_id: id })
  expect(host.requests.at(-1)?.messages[1]).toEqual({
    role: 'assistant',
    content: '',
    toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{}' }],
  })
})

it('can be gone on from whatever was taken', async () => {
  const host = scriptedHost(OPTIONS)
  const chance = createChance(7)
  const { input, ...rest } = BODIES[PATH] as { input: object[] }
  let taken = 0
  for (let round = 0; round < 150; round += 1) {
    const items = input
      .filter(() => chance.often(0.7))
      .map((item) => mutate(item, VALUES, chance, chance.below(2)))
    const response = await send(host, PATH, { body: { ...rest, input: items } })
    if (response.status !== 200) continue
    taken += 1
    const { id, output } = (await response.json()) as Answered
    const more = [
      { type: 'item_reference', id: output[0]?.id },
      { role: 'user', content: 'And?' },
    ]
    const next = await send(host, PATH, { body: bodyOf({ input: more, previous_response_id: id }) })
    expect(next.status, `${JSON.stringify(items)} ${await next.text()}`).toBe(200)
    const { data } = (await (await send(host, `${PATH}/${id}/input_items`)).json()) as {
      data: object[]
    }
    expect(data).toHaveLength(items.length)
  }
  expect(taken).toBeGreaterThan(10)
})

it('an answer does not wait for ever, nor fail, where it cannot be kept, but says so', async () => {
  const fails = () => Promise.reject(new Error('Full.'))
  const hangs = (_: unknown, { signal }: Caller) =>
    new Promise<never>((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    )
  const tooLarge = async () => false
  for (const storeResponse of [fails, hangs, tooLarge]) {
    const host = scriptedHost({ ...OPTIONS, overrides: { storeResponse } })
    for (const way of [{}, { stream: true }]) {
      const { output, store } = await ask(host, way)
      expect([output.length, store]).toEqual([3, false])
    }
  }
})

it('what failed before anybody was told of it is not kept', async () => {
  const storeResponse = vi.fn<Host['storeResponse']>(async () => true)
  const script = [{ type: 'heartbeat' }, new Error('The tab was closed.')] as const
  const host = scriptedHost({ script, overrides: { storeResponse } })
  expect(await (await send(host, PATH, { body: bodyOf({ stream: true }) })).text()).toContain(
    'event: error',
  )
  expect(storeResponse).not.toHaveBeenCalled()
})

describe('what is not kept', () => {
  const KEPT =
    /Responses are stored in memory, .* Send the items themselves, as clients do with store: false\.$/

  it('is said of an item as clients know it: 404', async () => {
    const input = [
      { role: 'user', content: 'Hi' },
      { type: 'item_reference', id: 'fc_1' },
    ]
    const error = await errorOf(await send(scriptedHost(), PATH, { body: bodyOf({ input }) }), 404)
    expect(error).toMatchObject({ param: 'input[1].id', code: 'item_not_found' })
    expect(error.message).toMatch(/^Item with id 'fc_1' not found\. /)
    expect(error.message).toMatch(KEPT)
  })

  it('is said of a response as clients know it: 400', async () => {
    const body = bodyOf({ previous_response_id: 'resp_1' })
    const error = await errorOf(await send(scriptedHost(), PATH, { body }), 400)
    expect(error).toMatchObject({
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    })
    expect(error.message).toMatch(/^Previous response with id 'resp_1' not found\. /)
    expect(error.message).toMatch(KEPT)
  })

  it('is named by no more than the beginning of what was sent for an id', async () => {
    const [id, longer] = ['x'.repeat(100), 'x'.repeat(101)]
    const named = async (sent: string) => {
      const body = bodyOf({ previous_response_id: sent })
      const { message } = await errorOf(await send(scriptedHost(), PATH, { body }), 400)
      return /'(.*?)'/.exec(message)?.[1]
    }
    expect([await named(id), await named(longer)]).toEqual([id, `${id}...`])
  })

  it('is what another key was answered', async () => {
    const host = scriptedHost(OPTIONS)
    const asked = { body: bodyOf(), headers: { authorization: 'Bearer ann' } }
    const { id, output } = (await (await send(host, PATH, asked)).json()) as Answered
    const other = { headers: { 'x-api-key': 'bea' } }
    await errorOf(await send(host, `${PATH}/${id}`, other), 404)
    await errorOf(await send(host, `${PATH}/${id}`, { ...other, method: 'DELETE' }), 404)
    const input = [{ type: 'item_reference', id: output[0]?.id }]
    await errorOf(await send(host, PATH, { ...other, body: bodyOf({ input }) }), 404)
    const body = bodyOf({ previous_response_id: id })
    await errorOf(await send(host, PATH, { ...other, body }), 400)
    expect((await send(host, `${PATH}/${id}`, { headers: asked.headers })).status).toBe(200)
  })
})

describe('with the official client, a response', () => {
  const clientOf = (host: ScriptedHost) =>
    new OpenAI({ baseURL: 'http://localhost/v1', apiKey: 'k', fetch: fetchOf(host), maxRetries: 0 })

  it('is read, and forgotten', async () => {
    const client = clientOf(scriptedHost(OPTIONS))
    const { id, output_text } = await client.responses.create({ ...bodyOf(), store: true })
    const { output_text: text, ...again } = await client.responses.retrieve(id)
    checkResponse(again)
    expect(text).toBe(output_text)
    await client.responses.delete(id)
    await expect(client.responses.retrieve(id)).rejects.toThrow(NotFoundError)
    await expect(client.responses.delete(id)).rejects.toThrow(NotFoundError)
  })

  it('tells what was asked, page by page', async () => {
    const client = clientOf(scriptedHost(OPTIONS))
    const first = await client.responses.create({ ...bodyOf({ input: 'One' }) })
    const input = [
      { role: 'user' as const, content: 'Two' },
      { type: 'message' as const, role: 'user' as const, content: 'Three' },
    ]
    const { id } = await client.responses.create({
      ...bodyOf(),
      input,
      previous_response_id: first.id,
    })
    const told = []
    for await (const item of client.responses.inputItems.list(id, { order: 'asc', limit: 2 }))
      told.push(item)
    expect(told.map(({ type }) => type)).toEqual([
      'message',
      'message',
      'function_call',
      'message',
      'message',
    ])
    expect(told[3]).toMatchObject({ role: 'user', content: [{ type: 'input_text', text: 'Two' }] })
    const { data } = await client.responses.inputItems.list(id)
    expect(data.map((item) => item.id)).toEqual(told.map((item) => item.id).toReversed())
    expect((await client.responses.inputItems.list(id, { after: 'msg_other' })).data).toEqual([])
  })

  it('is paged as asked, or not at all', async () => {
    const host = scriptedHost(OPTIONS)
    const { id } = await ask(host)
    const { data } = (await (await send(host, `${PATH}/${id}/input_items?limit=1`)).json()) as {
      data: object[]
    }
    expect(data).toHaveLength(1)
    for (const [query, param] of [
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['limit=x', 'limit'],
      ['order=up', 'order'],
    ]) {
      const error = await errorOf(await send(host, `${PATH}/${id}/input_items?${query}`), 400)
      expect([error.param, error.code]).toEqual([param, 'invalid_value'])
    }
  })

  it('is counted before it is made', async () => {
    const host = scriptedHost(OPTIONS)
    const { input_tokens } = await clientOf(host).responses.inputTokens.count(bodyOf())
    expect(input_tokens).toBe(42)
    expect(host.requests.at(-1)?.messages).toEqual([{ role: 'user', content: 'Hi' }])
  })

  it('cannot be streamed again', async () => {
    const client = clientOf(scriptedHost(OPTIONS))
    const { id } = await client.responses.create(bodyOf())
    await expect(client.responses.retrieve(id, { stream: true })).rejects.toMatchObject({
      status: 400,
      param: 'stream',
      code: 'unsupported_parameter',
    })
  })
})
