/** Background responses over HTTP: statuses, numbers of events, and what is refused. */
import { expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { checkResponse } from '../../support/responses-grammar.ts'
import { errorOf, scriptedHost, send, USAGE, type Script } from './scripted-host.ts'

const PATH = '/v1/responses'
const bodyOf = (fields: object = {}) => ({
  model: '@acme/tiny',
  input: 'Hi',
  background: true,
  ...fields,
})

const SCRIPT: Script = [
  { type: 'start', promptTokens: 12, cachedTokens: 5 },
  { type: 'text', text: 'Hello' },
  { type: 'text', text: ' there' },
  { type: 'finish', reason: 'stop', stopSequence: null, usage: USAGE },
]

interface Frame {
  type: string
  sequence_number: number
  response?: { id: string; status: string; error: { message: string } | null }
}

async function framesOf(response: Response): Promise<Frame[]> {
  const text = await response.text()
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Frame)
}

const jsonOf = async (response: Response) =>
  (await response.json()) as Record<string, unknown> & { id: string; output: { id: string }[] }

test('a stream begins with queued, and each reader gets the same events after any number', async () => {
  const host = scriptedHost({ script: SCRIPT })
  const frames = await framesOf(await send(host, PATH, { body: bodyOf({ stream: true }) }))
  expect(frames.map(({ type }) => type)).toEqual([
    'response.created',
    'response.queued',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  expect(frames.map(({ sequence_number }) => sequence_number)).toEqual([...frames.keys()])
  const id = frames[0]!.response!.id
  for (const after of [0, 4, 9, 10, 99]) {
    const path = `${PATH}/${id}?stream=true&starting_after=${after}`
    expect(await framesOf(await send(host, path))).toEqual(frames.slice(after + 1))
  }
  expect(await framesOf(await send(host, `${PATH}/${id}?stream=true`))).toEqual(frames)
  const error = await errorOf(await send(host, `${PATH}/${id}?stream=true&starting_after=-1`), 400)
  expect(error).toMatchObject({ code: 'invalid_value', param: 'starting_after' })
})

test('a response is queued, then whole, and can be referred to', async () => {
  const host = scriptedHost({ script: SCRIPT })
  const created = await jsonOf(await send(host, PATH, { body: bodyOf() }))
  expect(created).toMatchObject({ status: 'queued', background: true, output: [], usage: null })
  const got = await jsonOf(await send(host, `${PATH}/${created.id}`))
  expect(got).toMatchObject({ status: 'completed', created_at: created['created_at'] })
  checkResponse(got)
  const reference = { type: 'item_reference', id: got.output[0]!.id }
  await send(host, PATH, { body: { model: '@acme/tiny', input: [reference] } })
  await send(host, PATH, {
    body: { model: '@acme/tiny', input: 'And?', previous_response_id: created.id },
  })
  expect(host.requests.slice(1).map(({ messages }) => messages)).toEqual([
    [{ role: 'assistant', content: 'Hello there' }],
    [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello there' },
      { role: 'user', content: 'And?' },
    ],
  ])
})

test("a response that fails says so, in the client's form", async () => {
  const script: Script = [SCRIPT[0]!, SCRIPT[1]!, new InoriginError('unavailable', 'No memory.')]
  const host = scriptedHost({ script })
  const frames = await framesOf(await send(host, PATH, { body: bodyOf({ stream: true }) }))
  expect(frames.at(-1)).toMatchObject({
    type: 'response.failed',
    response: { status: 'failed', error: { code: 'server_error', message: 'No memory.' } },
  })
})

test('a response is canceled once, unless it is finished or not in the background', async () => {
  const open = scriptedHost({ script: SCRIPT.slice(0, 2) })
  // The script ends without `finish`, so the response is in progress.
  const { id } = await jsonOf(await send(open, PATH, { body: bodyOf() }))
  expect(await jsonOf(await send(open, `${PATH}/${id}`))).toMatchObject({ status: 'in_progress' })
  const next = { body: bodyOf({ previous_response_id: id }) }
  expect(await errorOf(await send(open, PATH, next), 400)).toMatchObject({
    code: 'response_not_finished',
  })
  const cancel = () => send(open, `${PATH}/${id}/cancel`, { method: 'POST' })
  expect(await jsonOf(await cancel())).toMatchObject({ status: 'cancelled', usage: null })
  expect(await jsonOf(await cancel())).toMatchObject({ status: 'cancelled' })
  expect((await framesOf(await send(open, `${PATH}/${id}?stream=true`))).at(-1)).toMatchObject({
    type: 'response.incomplete',
    response: { status: 'cancelled' },
  })
  const host = scriptedHost({ script: SCRIPT })
  const plain = await jsonOf(await send(host, PATH, { body: bodyOf({ background: false }) }))
  const refused = await send(host, `${PATH}/${plain.id}/cancel`, { method: 'POST' })
  expect(await errorOf(refused, 400)).toMatchObject({ code: 'not_in_background' })
  expect(await errorOf(await send(host, `${PATH}/${plain.id}?stream=true`), 400)).toMatchObject({
    param: 'stream',
  })
  expect(
    await errorOf(await send(host, `${PATH}/resp_x/cancel`, { method: 'POST' }), 404),
  ).toMatchObject({ code: 'response_not_found' })
})

test('a response that may not be stored is refused, and a deleted one is gone', async () => {
  const host = scriptedHost({ script: SCRIPT })
  const error = await errorOf(await send(host, PATH, { body: bodyOf({ store: false }) }), 400)
  expect(error).toMatchObject({ param: 'store' })
  const { id } = await jsonOf(await send(host, PATH, { body: bodyOf() }))
  const deleted = await send(host, `${PATH}/${id}`, { method: 'DELETE' })
  expect(await jsonOf(deleted)).toEqual({ id, object: 'response', deleted: true })
  expect((await send(host, `${PATH}/${id}`)).status).toBe(404)
  expect((await send(host, `${PATH}/${id}?stream=true`)).status).toBe(404)
})
