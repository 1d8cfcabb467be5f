/** The wire of the playground: what its three styles send and read, and what the inspector makes of it. */
import Anthropic from '@anthropic-ai/sdk'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { streamText } from 'ai'
import { execFileSync } from 'node:child_process'
import OpenAI from 'openai'
import * as v from 'valibot'
import { describe, expect, test, vi } from 'vitest'
import { PARAMETERS } from '../../../demo/chat/parameters.ts'
import { findSchemaProblem } from '../../../demo/chat/schema-check.ts'
import { CODE_KINDS } from '../../../demo/inspector/code.ts'
import { diffLines } from '../../../demo/inspector/diff.ts'
import { inStyle, STYLES, type StylePath } from '../../../demo/inspector/styles.ts'
import { timelineReader } from '../../../demo/inspector/timeline.ts'
import { usageReader } from '../../../demo/inspector/usage.ts'
import { toFetchCode, toPredictCode } from '../../../demo/predictors/code.ts'
import type { FieldValue } from '../../../demo/predictors/field.ts'
import { receive, type Answer } from '../../../demo/wire/answer.ts'
import type { Question, WireRequest } from '../../../demo/wire/style.ts'
import { summary } from '../../../demo/wire/summary.ts'
import type { ScriptedAnswer } from '../../../src/extras/testing/server.ts'
import { createTestServer } from '../../../src/extras/testing/server.ts'
import { InoriginError } from '../../../src/error.ts'
import { chatBodySchema } from '../../../src/wire/chat.ts'
import { messagesBodySchema } from '../../../src/wire/messages.ts'
import { responsesBodySchema } from '../../../src/wire/responses.ts'

const MODEL = '@a/b'
const PATHS = Object.keys(STYLES) as StylePath[]
const FIELDS = {
  'chat/completions': chatBodySchema,
  messages: messagesBodySchema,
  responses: responsesBodySchema,
}

const question: Question = {
  model: MODEL,
  history: [{ question: 'Hi', answer: 'Hello' }],
  question: 'Who?',
  images: ['data:image/png;base64,AA=='],
  settings: {
    system: 'Be brief.',
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    minP: 0.1,
    frequencyPenalty: 1,
    presencePenalty: -1,
    repetitionPenalty: 1.1,
    logitBias: { 5: -100 },
    maxTokens: 7,
    seed: 1,
    effort: 'low',
    schema: { type: 'object' },
  },
}

/** Returns the body as the server receives it. */
function bodyOf(path: StylePath, given: Question): Record<string, unknown> {
  return JSON.parse(JSON.stringify(STYLES[path].request(given).body)) as Record<string, unknown>
}

const issuesOf = (path: StylePath, body: unknown) => v.safeParse(FIELDS[path], body).issues ?? []

const serverWith = (...answers: ScriptedAnswer[]) =>
  createTestServer({ models: [{ tag: MODEL, answers }] })

const URL_OF = (path: string) => `http://localhost/v1/${path}`

/** Returns an answer that nothing has arrived of. */
const answerOf = (path: StylePath, given = question): Answer => {
  const request = STYLES[path].request(given)
  return { style: STYLES[path], url: URL_OF(path), request, question: given, raw: '', text: '' }
}

const { signal } = new AbortController()

describe.each(PATHS)('/v1/%s', (path) => {
  test('sends a body that the server accepts, with all sampling fields', () => {
    const body = bodyOf(path, question)
    expect(issuesOf(path, body)).toEqual([])
    expect(body).toMatchObject({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.1,
      frequency_penalty: 1,
      presence_penalty: -1,
      repetition_penalty: 1.1,
      logit_bias: { 5: -100 },
      seed: 1,
    })
    expect(JSON.stringify(body)).toContain('{"type":"object"}')
  })

  test('sends a body that the server accepts for each effort it has, and without settings', () => {
    for (const effort of [undefined, ...STYLES[path].efforts]) {
      expect(issuesOf(path, bodyOf(path, { ...question, settings: { effort } }))).toEqual([])
    }
  })

  test('reads text, reasoning, usage and a cut of the answer', async () => {
    const server = serverWith({ reasoning: 'Let me see.', text: 'One two three four' })
    const answer = answerOf(path, { ...question, settings: { effort: 'low', maxTokens: 2 } })
    await receive(answer, server.fetch, signal, () => {})
    expect(answer).toMatchObject({ reasoning: 'Let me see.', text: 'One two', completionTokens: 5 })
    expect(answer.promptTokens).toBeGreaterThan(0)
    expect(answer.end).toBeGreaterThanOrEqual(answer.firstText ?? NaN)
    vi.stubGlobal('location', { href: 'http://localhost/' })
    expect(summary({ ...answer, cachedTokens: 3 })).toMatch(
      new RegExp(`^5 tokens .*prompt of \\d+ tokens?, 3 cached · cut at the token limit$`),
    )
  })

  test('rejects with the message of a refusal, and of an answer that fails in its middle', async () => {
    const error = new InoriginError('unavailable', 'No hub.', { code: 'hub_unreachable' })
    const server = serverWith({ text: 'Half', error })
    const answer = answerOf(path)
    await expect(receive(answer, server.fetch, signal, () => {})).rejects.toThrow('No hub.')
    expect(answer.text).toBe('Half')
    const refused = answerOf(path, { ...question, model: '@a/unknown' })
    await expect(receive(refused, server.fetch, signal, () => {})).rejects.toMatchObject({
      message: expect.stringContaining('There is no model or predictor @a/unknown'),
      status: 404,
    })
  })

  test('rejects an answer that breaks off before its end', async () => {
    const whole = await serverWith('Half an answer').fetch(URL_OF(path), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(bodyOf(path, question)),
    })
    const text = await whole.text()
    const half = text.slice(0, text.indexOf('Half') + 20)
    const work = receive(
      answerOf(path),
      async () => new Response(half),
      signal,
      () => {},
    )
    await expect(work).rejects.toThrow('The answer broke off before its end.')
  })
})

test.each(['chat/completions', 'messages'] as const)('/v1/%s continues an answer', (path) => {
  const body = bodyOf(path, { ...question, prefill: 'I am' })
  expect(issuesOf(path, body)).toEqual([])
  expect((body['messages'] as unknown[]).at(-1)).toEqual({ role: 'assistant', content: 'I am' })
  expect(JSON.stringify(body)).not.toContain('json_schema')
  expect(body).not.toHaveProperty('thinking')
})

test('stop sequences have the name of each style', () => {
  const given = { ...question, settings: { stop: ['END'] } }
  expect(bodyOf('chat/completions', given)['stop']).toEqual(['END'])
  expect(bodyOf('messages', given)['stop_sequences']).toEqual(['END'])
  expect(Object.keys(STYLES.responses.unsupported)).toEqual(['stop'])
})

test.each([
  ['an error', { type: 'error', message: 'no' }, { error: 'no' }],
  [
    'a failure',
    { type: 'response.failed', response: { error: { message: 'no' } } },
    { error: 'no' },
  ],
  [
    'cached tokens',
    {
      type: 'response.incomplete',
      response: {
        incomplete_details: { reason: 'max_output_tokens' },
        usage: { input_tokens: 5, input_tokens_details: { cached_tokens: 2 } },
      },
    },
    { done: true, finish: 'max_output_tokens', promptTokens: 5, cachedTokens: 2 },
  ],
])('a response has %s', (_what, event, piece) => {
  const data = JSON.stringify(event)
  expect(STYLES.responses.read({ event: event.type, data })).toMatchObject(piece)
})

const parse = (name: string, text: string) =>
  PARAMETERS.find((parameter) => parameter.name === name)?.parse(text)

test.each([
  ['temperature', '9', 'Temperature must be a number between 0 and 2, got "9".'],
  ['temperature', 'hot', 'Temperature must be a number between 0 and 2, got "hot".'],
  ['maxTokens', '0', 'Max tokens must be a whole number of at least 1, got "0".'],
  ['maxTokens', '1.5', 'Max tokens must be a whole number of at least 1, got "1.5".'],
  ['seed', '1e99', 'Seed must be a whole number, got "1e99".'],
  ['logitBias', '{"a":1}', 'Logit bias must map token ids'],
  ['logitBias', '[1]', 'Logit bias must map token ids'],
  ['schema', '{', 'The schema is not JSON'],
  ['schema', '[]', '$ must be an object that is a JSON schema.'],
  ['stop', 'a\n'.repeat(65), 'At most 64 stop sequences are possible, got 65.'],
])('%s cannot be %j', (name, text, says) => {
  expect(() => parse(name, text)).toThrow(says)
})

test.each([
  ['temperature', '0,7', 0.7],
  ['seed', '-3', -3],
  ['stop', 'a\n\n\\n\\n', ['a', '\n\n']],
  ['logitBias', '{"7":-100}', { 7: -100 }],
])('%s can be %j', (name, text, value) => {
  expect(parse(name, text)).toEqual(value)
})

test.each([
  [{ type: 'text' }, '$.type must be one of'],
  [{ properties: { a: { enum: [] } } }, '$.properties.a.enum must be an array'],
  [{ required: 'a' }, '$.required must be an array of names.'],
  [{ items: { anyOf: [{ type: 'string' }, 7] } }, '$.items.anyOf[1] must be an object'],
  [{ properties: [] }, '$.properties must be an object of schemas.'],
])('%j is no schema', (given, says) => {
  expect(findSchemaProblem(given)).toContain(says)
})

test('a schema may have booleans, definitions and lists of types', () => {
  const given = {
    $defs: { a: { type: ['string', 'null'] } },
    type: 'object',
    properties: { b: { $ref: '#/$defs/a' }, c: true },
    additionalProperties: false,
    required: ['b'],
  }
  expect(findSchemaProblem(given)).toBeUndefined()
})

/** Runs code as the body of an async function, with these variables. */
async function run(code: string, variables: Record<string, unknown>): Promise<void> {
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  await new AsyncFunction(...Object.keys(variables), code)(...Object.values(variables))
}

describe('the code of a request', () => {
  const kinds = Object.fromEntries(CODE_KINDS.map((kind) => [kind.label, kind]))
  // The AI SDK has no schema and no top k.
  const settings = { ...question.settings, schema: undefined, topK: undefined }
  const given = { ...question, images: [], settings }

  test.each(
    PATHS.flatMap((path) =>
      ['fetch', 'OpenAI SDK', 'Anthropic SDK', 'AI SDK'].map((label) => ({ path, label })),
    ),
  )('for $label sends what the chat sends to /v1/$path', async ({ path, label }) => {
    const server = serverWith('Forty two.', 'Forty two.')
    vi.stubGlobal('fetch', (input: string, init: RequestInit) => server.fetch(input, init))
    const sent = answerOf(path, given)
    await receive(sent, server.fetch, signal, () => {})
    const kind = kinds[label]
    const spoken = inStyle(kind?.path ?? path, sent.request, given) as WireRequest
    const code = kind?.write(URL_OF(spoken.path), spoken).replaceAll(/^import .*$/gm, '')
    const said: string[] = []
    const console = { log: (text: string) => said.push(text) }
    await run(code ?? '', { OpenAI, Anthropic, createOpenAICompatible, streamText, console })
    const text = label === 'fetch' ? /Forty.* two\./s : /^Forty two\.$/
    expect(said.join('')).toMatch(text)
    const [chat, client] = server.requests
    expect(client?.messages).toEqual(chat?.messages)
    const { temperature, topP, seed } = chat?.sampling ?? {}
    expect(client?.sampling).toMatchObject({ temperature, topP, seed })
    expect(client?.maxTokens).toBe(chat?.maxTokens)
  })

  test('for curl has the request, whatever it contains', () => {
    const asked = `It's "quoted" $HOME \`id\` \\n`
    const { request } = answerOf('chat/completions', { ...given, question: asked })
    const code = kinds['curl']?.write(URL_OF('chat/completions'), request)
    const command = `curl() { for each; do printf '%s\\0' "$each"; done; }\n${code}`
    const words = execFileSync('sh', ['-c', command], { encoding: 'utf8' }).split('\0')
    expect(words.slice(0, 4)).toEqual([
      '--no-buffer',
      'http://127.0.0.1:11435/v1/chat/completions',
      '-H',
      'content-type: application/json',
    ])
    const body = JSON.parse(words[words.indexOf('-d') + 1] ?? '')
    expect(body).toEqual(JSON.parse(JSON.stringify(request.body)))
    expect(body.messages.at(-1)).toEqual({ role: 'user', content: asked })
  })

  test('shows no megabytes of an image', () => {
    const images = [`data:image/png;base64,${'A'.repeat(1_000)}`]
    const { request } = answerOf('chat/completions', { ...given, images })
    const code = kinds['fetch']?.write(URL_OF('chat/completions'), request)
    expect(code).toContain('data:image/png;base64,AAA')
    expect(code?.length).toBeLessThan(1_500)
  })
})

describe('the time line', () => {
  const frame = (type: string, rest: object = {}) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
  const pieces = [
    { at: 10, text: `${frame('ping')}: load 3 of 8 MB\n\nevent: content` },
    {
      at: 250,
      text: `_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}\n\n`,
    },
    { at: 251, text: `${frame('message_stop')}data: {not json\n\n` },
  ]

  test('gives each event the time of the piece that completed it, whatever is read at once', () => {
    const answer: Answer = { ...answerOf('messages'), arrivals: [] }
    const whole = timelineReader(answer)
    const early = timelineReader(answer)
    const seen = []
    for (const { at, text } of pieces) {
      answer.raw += text
      answer.arrivals?.push({ at, length: answer.raw.length })
      seen.push(...early())
    }
    expect(seen).toEqual([
      { at: 10, gap: 10, kind: 'heartbeat', text: 'ping' },
      { at: 10, gap: 0, kind: 'heartbeat', text: 'load 3 of 8 MB' },
      { at: 250, gap: 240, kind: 'token', text: 'Hi' },
      { at: 251, gap: 1, kind: 'event', text: 'message_stop' },
      { at: 251, gap: 0, kind: 'event', text: '{not json' },
    ])
    expect(whole()).toEqual(seen)
    expect(whole()).toEqual([])
  })
})

test('usage is collected from all events, by the names of its style', () => {
  const read = usageReader()
  const start = { message: { usage: { input_tokens: 7, output_tokens: 1 } } }
  const end = { usage: { output_tokens: 9, details: { cached: 3 }, service_tier: null } }
  read(`data: ${JSON.stringify(start)}\n\ndata: {"usage": bro`)
  expect([...read(`ken\n\ndata: ${JSON.stringify(end)}\n\n`)]).toEqual([
    ['input_tokens', 7],
    ['output_tokens', 9],
    ['details.cached', 3],
  ])
})

test.each([
  ['a\nb\nc\nd', 'b\nx\nd\ne', ['ra', 'sb', 'rc', 'ax', 'sd', 'ae']],
  ['a\nb', 'a\nb', ['sa', 'sb']],
  ['a', 'b', ['ra', 'ab']],
])('the difference of %j and %j keeps the longest common lines', (before, after, marked) => {
  expect(diffLines(before, after).map(({ kind, text }) => kind.slice(0, 1) + text)).toEqual(marked)
})

describe('the code of a prediction', () => {
  const FILE = "document.querySelector('#file').files[0]"
  const VALUES = new Map<string, FieldValue>([
    ['text', { value: 'it\'s "so"', code: JSON.stringify('it\'s "so"') }],
    ['count', { value: 7n, code: '7n', remote: '7' }],
    [
      'my input',
      { value: null, code: FILE, remote: `{ data: await toDataURL(${FILE}), dtype: 'binary' }` },
    ],
  ])
  const document = { querySelector: () => ({ files: ['chosen'] }) }

  test('passes the values to server.predict', async () => {
    const calls: unknown[] = []
    const predict = async (...given: unknown[]) => {
      calls.push(given)
      return { outputs: { y: 1 } }
    }
    const logged: unknown[] = []
    const console = { log: (...values: unknown[]) => logged.push(...values) }
    await run(toPredictCode('@a/b', VALUES), { inorigin: { predict }, document, console })
    expect(calls).toEqual([['@a/b', { text: 'it\'s "so"', count: 7n, 'my input': 'chosen' }]])
    expect(logged[0]).toEqual({ y: 1 })
  })

  test('sends the values, and files as data URLs', async () => {
    const requests: { url: string; body: unknown }[] = []
    const fetch = async (url: string, { body }: { body: string }) => {
      requests.push({ url, body: JSON.parse(body) })
      return { json: async () => ({ results: [] }) }
    }
    class FileReader {
      result = ''
      onload = (): void => {}
      readAsDataURL(file: string): void {
        this.result = `data:,${file}`
        this.onload()
      }
    }
    const code = toFetchCode('@a/b', VALUES, 'https://site.example/app/v1')
    await run(code, { fetch, FileReader, document, console: { log: () => {} } })
    const inputs = {
      text: 'it\'s "so"',
      count: 7,
      'my input': { data: 'data:,chosen', dtype: 'binary' },
    }
    const url = '/app/v1/predictions/remote'
    expect(requests).toEqual([{ url, body: { tag: '@a/b', inputs } }])
  })
})
