/**
 * Whatever a page sends, the real model behind the service worker answers whole or refuses in form.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { fetchIn } from '../support/answers.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { createChance } from '../support/random.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { BODIES, VALUES } from '../unit/wire/fuzz-values.ts'
import { mutate, withoutImages } from '../unit/wire/mutate.ts'

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  await serveIn(page)
})

afterAll(() => site?.close())

const model = '@inorigin/guide'
const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

interface Seen {
  status: number
  type: string | null
  ids: readonly [string | null, string | null]
  retry: string | null
  text: string
}

/** Sends them one after the other; one that is not over in a minute rejects. */
const sendAll = (path: string, bodies: readonly string[]): Promise<Seen[]> =>
  page.evaluate(
    async ([url, texts]) => {
      const seen = []
      for (const body of texts) {
        const headers = { 'content-type': 'application/json' }
        const response = await fetch(url, {
          method: 'POST',
          headers,
          body,
          signal: AbortSignal.timeout(60_000),
        })
        const header = (name: string) => response.headers.get(name)
        seen.push({
          status: response.status,
          type: header('content-type'),
          ids: [header('request-id'), header('x-request-id')] as const,
          retry: header('x-should-retry'),
          text: await response.text(),
        })
      }
      return seen
    },
    [path, bodies] as const,
  )

function check({ status, type, ids, retry, text }: Seen, body: string): void {
  const about = `${body.slice(0, 1000)} gave ${status} ${text.slice(0, 500)}`
  expect(ids[0], about).toMatch(/^req_/)
  expect(ids[1], about).toBe(ids[0])
  if (status === 200) {
    if (type === 'application/json') JSON.parse(text)
    else
      expect(text, about).toMatch(
        /(?:data: \[DONE\]|"type":"(?:message_stop|response\.(?:completed|incomplete))".*)\n\n$/,
      )
    return
  }
  expect(status >= 400 && status < 500, about).toBe(true)
  expect(retry, about).toBe('false')
  expect(JSON.parse(text), about).toMatchObject({
    type: 'error',
    error: { type: expect.any(String), message: expect.stringMatching(/./) },
    request_id: ids[0],
    errors: [{ message: expect.any(String) }],
  })
}

const REMOTE = '/v1/predictions/remote'
const BASES: Record<string, object> = {
  ...BODIES,
  [REMOTE]: {
    tag: '@inorigin/embed',
    inputs: { text: { data: 'data:text/plain;base64,SGVsbG8=', dtype: 'string' } },
    clientId: 'test',
    acceleration: 'auto',
    stream: false,
  },
}

describe('bodies that are wrong in a few places', () => {
  test.each([
    [
      CHAT,
      { model, max_completion_tokens: 3, logit_bias: null, thinking: null, response_format: null },
    ],
    [MESSAGES, { model, max_tokens: 3, thinking: null, output_config: null, logit_bias: null }],
    ['/v1/messages/count_tokens', { model }],
    ['/v1/responses', { model, max_output_tokens: 3 }],
    ['/v1/predictions', { tag: '@inorigin/digits', configurationId: null, predictionId: null }],
    [REMOTE, { tag: '@inorigin/embed', stream: false }],
  ])('%s', async (path, fixed) => {
    const chance = createChance(path.length)
    const bodies = Array.from({ length: 30 }, () => {
      const stream = chance.often(0.3) && !path.includes('predictions') && !path.endsWith('tokens')
      const mutant = mutate(
        { ...(withoutImages(BASES[path]) as object), ...fixed, ...(stream && { stream }) },
        VALUES,
        chance,
        chance.below(3),
      )
      return JSON.stringify({ ...(mutant as object), ...(chance.often(0.8) && fixed) })
    })
    const seen = await sendAll(path, bodies)
    seen.forEach((one, index) => check(one, bodies[index] ?? ''))
    expect(new Set(seen.map(({ status }) => status)).size).toBeGreaterThan(1)
  })
})

const zone = {
  type: 'object',
  properties: { zone: { enum: ['utc', 'local'] } },
  required: ['zone'],
  additionalProperties: false,
}
const functions = [{ name: 'now', parameters: zone }, { name: 'then' }]
const tools = functions.map((told) => ({ type: 'function', function: told }))
const history = [
  { role: 'user', content: 'What time is it?' },
  {
    role: 'assistant',
    content: null,
    function_call: { name: 'now', arguments: '{"zone": "utc"}' },
  },
  { role: 'function', name: 'now', content: '12:00' },
]

test.each([
  ['a question', {}],
  ['one token, and all beside it', { max_tokens: 1, logprobs: true, top_logprobs: 20 }],
  ['an answer that is stopped', { stop: ['e', ' i'], logprobs: true }],
  ['a thought', { reasoning_effort: 'minimal', frequency_penalty: 1, presence_penalty: 0.5 }],
  ['calls behind a thought', { tools, tool_choice: 'required', reasoning_effort: 'low' }],
  [
    'a call that is cut',
    { tools, tool_choice: { type: 'function', function: { name: 'now' } }, max_tokens: 4 },
  ],
  ['a function', { functions, function_call: { name: 'now' } }],
  ['a function that is cut', { functions, function_call: { name: 'now' }, max_tokens: 4 }],
  ['no function', { messages: history, functions, function_call: 'none' }],
  [
    'a list of a schema',
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { type: 'array', items: zone, maxItems: 2 } },
      },
    },
  ],
  [
    'the rest of an answer',
    { messages: [...history, { role: 'assistant', content: 'It' }], continue_final_message: true },
  ],
])('%s: a stream tells what one body does', async (_what, fields) => {
  const body = { model, messages: history.slice(0, 1), temperature: 0, max_tokens: 60, ...fields }
  const { text } = await fetchIn(page, CHAT, body)
  const {
    choices: [{ message, finish_reason, logprobs }],
    usage,
  } = JSON.parse(text)
  const stream = { stream: true, stream_options: { include_usage: true } }
  const streamed = (await fetchIn(page, CHAT, { ...body, ...stream })).text
  const seen = checkChatStream(streamed, { includeUsage: true, logprobs: 'logprobs' in fields })
  expect(seen).toMatchObject({
    content: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    functionCall: message.function_call ?? null,
    finishReason: finish_reason,
    logprobs: logprobs?.content ?? [],
    // How much of the prompt was cached is another matter.
    usage: {
      prompt_tokens: usage.prompt_tokens,
      completion_tokens: usage.completion_tokens,
      completion_tokens_details: usage.completion_tokens_details,
    },
  })
  const called = (message.tool_calls ?? []).map((call: { function: object }) => call.function)
  expect(seen.toolCalls.map(({ name, arguments: given }) => ({ name, arguments: given }))).toEqual(
    called,
  )
  const forced =
    'functions' in fields && fields.function_call !== 'none' && finish_reason !== 'length'
  if (forced) expect([seen.functionCall?.name, finish_reason]).toEqual(['now', 'function_call'])
})

test('extremes are answered or refused, and the model goes on', async () => {
  const messages = [{ role: 'user', content: 'Hi' }]
  const common = { model, messages, max_tokens: 1 }
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const parameters = (inner: object) => ({
    tools: [{ type: 'function', function: { name: 'f', parameters: inner } }],
  })
  const names = Array.from({ length: 100_000 }, (_, index) => `p${index}`)
  const expected: Array<[body: string, status: number]> = [
    [JSON.stringify({ ...common, messages: [{ role: 'user', content: '\ud800 \udc00' }] }), 200],
    [JSON.stringify({ ...common, x: 'X' }).replace('"X"', deep(10_000)), 400],
    [JSON.stringify({ ...common, ...parameters({ enum: 'X' }) }).replace('"X"', deep(10_000)), 400],
    [JSON.stringify({ ...common, ...parameters({ type: 'object', required: names }) }), 400],
    [
      JSON.stringify({ ...common, messages: names.map((content) => ({ role: 'user', content })) }),
      413,
    ],
    [
      JSON.stringify({
        ...common,
        tools: names.map((name) => ({ type: 'function', function: { name } })),
      }),
      413,
    ],
    [
      JSON.stringify({ ...common, messages: [{ role: 'user', content: 'y'.repeat(1_000_000) }] }),
      400,
    ],
    ['{"model":', 400],
    ['', 400],
    [JSON.stringify({ ...common, temperature: 1e308 }), 400],
    [JSON.stringify({ ...common, temperature: -0, seed: -0, top_p: 1e-300 }), 200],
    [JSON.stringify({ ...common, ['__proto__']: { model: 'x' }, constructor: 1 }), 200],
    [JSON.stringify(common), 200],
  ]
  const bodies = expected.map(([body]) => body)
  const seen = await sendAll(CHAT, bodies)
  seen.forEach((one, index) => check(one, bodies[index] ?? ''))
  expect(seen.map(({ status }) => status)).toEqual(expected.map(([, status]) => status))
  expect(JSON.parse(seen[7]?.text ?? '').error.message).toContain('it ends at position 9')
})

test('a body that is too large is refused by its size', async () => {
  const { status, text } = await page.evaluate(async () => {
    const headers = { 'content-type': 'application/json' }
    const body = ' '.repeat(32 * 1024 * 1024 + 1)
    const response = await fetch('/v1/messages', { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  })
  expect([status, JSON.parse(text).error.type]).toEqual([413, 'request_too_large'])
})

test('an image is refused by its place, by what the model can do', async () => {
  const url = 'data:image/png;base64,AA=='
  const block = { type: 'image', source: { type: 'url', url } }
  const listed = JSON.parse((await fetchIn(page, `/v1/models/${model}`)).text)
  expect(listed.capabilities.image_input.supported).toBe(false)
  for (const [path, body, param] of [
    [
      CHAT,
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
      'messages[0].content[0]',
    ],
    [
      MESSAGES,
      { max_tokens: 1, messages: [{ role: 'user', content: [block] }] },
      'messages[0].content[0]',
    ],
    [
      `${MESSAGES}/count_tokens`,
      { messages: [{ role: 'user', content: [block] }] },
      'messages[0].content[0]',
    ],
    [
      '/v1/responses',
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
      'input[0].content[0]',
    ],
  ] as const) {
    const { status, text } = await fetchIn(page, path, { model, ...body })
    expect([status, JSON.parse(text).error.param]).toEqual([400, param])
    expect(text).toContain('is an image, but @inorigin/guide does not accept images')
  }
})
