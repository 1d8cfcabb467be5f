/** Calls that are forced, answers of a schema and counted tokens, from the page to the model. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { fetchIn } from '../support/answers.ts'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { checkResponseStream } from '../support/responses-grammar.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  await serveIn(page)
})

afterAll(() => site?.close())

const ask = (path: string, body: unknown) => fetchIn(page, path, body)
const model = '@inorigin/guide'
const messages = [{ role: 'user', content: 'What time is it?' }]
const parameters = {
  type: 'object',
  properties: { zone: { type: 'string', enum: ['utc', 'local'] } },
  required: ['zone'],
  additionalProperties: false,
}
const ZONES = [{ zone: 'utc' }, { zone: 'local' }]

test('a prompt is counted exactly, and without the weights', async () => {
  const body = { model, system: 'Be brief.', messages, tools: [{ name: 'now', input_schema: parameters }] }
  const counted = await ask('/v1/messages/count_tokens', body)
  expect(counted.status).toBe(200)
  expect(site.requests.filter((request) => request.includes('.onnx'))).toEqual([])
  const { usage } = JSON.parse((await ask('/v1/messages', { ...body, max_tokens: 3 })).text)
  const { input_tokens } = JSON.parse(counted.text)
  expect(usage.input_tokens + usage.cache_read_input_tokens).toBe(input_tokens)
  // What does not fit is counted too, for clients that then shorten it; with an end.
  const long = (words: number) => ({ ...body, messages: [{ role: 'user', content: 'word '.repeat(words) }] })
  const [one, many] = [await ask('/v1/messages/count_tokens', long(1000)), await ask('/v1/messages/count_tokens', long(4000))]
  expect(JSON.parse(many.text).input_tokens - JSON.parse(one.text).input_tokens).toBe(3000)
  const endless = await ask('/v1/messages/count_tokens', long(100_000))
  expect([endless.status, JSON.parse(endless.text).error.message]).toEqual([
    400, expect.stringMatching(/^prompt is too long: \d+ tokens > 2047 maximum/),
  ])
})

test('a tool that must be called is called as its schema says, in every style', async () => {
  const common = { model, stream: true, temperature: 0 }
  const chat = await ask('/v1/chat/completions', {
    ...common, messages, tool_choice: { type: 'function', function: { name: 'now' } },
    tools: [
      { type: 'function', function: { name: 'now', parameters } },
      { type: 'function', function: { name: 'then', parameters } },
    ],
    parallel_tool_calls: false,
  })
  const { toolCalls, finishReason } = checkChatStream(chat.text)
  expect([toolCalls.length, toolCalls[0]?.name, finishReason]).toEqual([1, 'now', 'tool_calls'])
  expect(ZONES).toContainEqual(JSON.parse(toolCalls[0]?.arguments ?? ''))

  const message = await ask('/v1/messages', {
    ...common, messages, max_tokens: 100, tools: [{ name: 'now', input_schema: parameters }],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
  })
  const { blocks, stopReason } = checkMessageStream(message.text)
  const used = blocks.find(({ type }) => type === 'tool_use')
  expect([used?.name, stopReason]).toEqual(['now', 'tool_use'])
  expect(ZONES).toContainEqual(JSON.parse(used?.text ?? ''))

  const response = await ask('/v1/responses', {
    ...common, input: 'What time is it?', tool_choice: 'required', parallel_tool_calls: false,
    tools: [{ type: 'function', name: 'now', parameters }],
  })
  const item = checkResponseStream(response.text).items.find(({ type }) => type === 'function_call')
  expect(ZONES).toContainEqual(JSON.parse(item?.text ?? ''))
})

test('an answer of a schema is one, in both styles', async () => {
  const common = { model, messages, temperature: 0, max_tokens: 60 }
  const chat = await ask('/v1/chat/completions', {
    ...common, response_format: { type: 'json_schema', json_schema: { name: 'zone', strict: true, schema: parameters } },
  })
  expect(ZONES).toContainEqual(JSON.parse(JSON.parse(chat.text).choices[0].message.content))
  const message = await ask('/v1/messages', {
    ...common, output_config: { format: { type: 'json_schema', schema: parameters } },
  })
  expect(ZONES).toContainEqual(JSON.parse(JSON.parse(message.text).content[0].text))
})

test('a schema that cannot be kept is refused by its place in the body', async () => {
  const schema = { type: 'object', properties: { x: { type: 'array', uniqueItems: true } } }
  const chat = await ask('/v1/chat/completions', {
    model, messages, tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
  })
  const message = await ask('/v1/messages', {
    model, messages, max_tokens: 5, tools: [{ name: 'f', input_schema: schema }],
  })
  expect([chat.status, JSON.parse(chat.text).error.param]).toEqual([
    400, 'tools[0].function.parameters.properties.x.uniqueItems',
  ])
  expect([message.status, JSON.parse(message.text).error.param]).toEqual([
    400, 'tools[0].input_schema.properties.x.uniqueItems',
  ])
})
