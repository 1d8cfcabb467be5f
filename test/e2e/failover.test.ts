/** Answers that go on, token for token, when the tab that computes them dies. */
import { afterEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { crash, threadsOf } from '../support/dying.ts'
import { openSite, serveIn, type Site, type SiteOptions } from '../support/site.ts'
import { toTranscript, type Transcript } from '../support/transcript.ts'

/** Forbids the guide's end token, so that an answer is as long as its limit. */
const NO_END = { 2034: -100 }
const PROMPT = [{ role: 'user', content: 'Tell me all about inorigin.' }]

let site: Site
/** Tabs that can host, in the order of their election. */
let hosts: Page[]
/** A tab that asks and never hosts. */
let asker: Page

/** Opens the tabs. `ends` are the ways in which the hosts die. Default: all are closed. */
async function openTabs(
  options?: SiteOptions,
  ends: ((page: Page) => Promise<void>)[] = [],
): Promise<void> {
  site = await openSite(options)
  hosts = []
  for (let count = 0; count < 3; count += 1) {
    const host = await site.open()
    await serveIn(host, { device: 'wasm' })
    hosts.push(host)
  }
  asker = await site.open()
  await asker.exposeFunction('closeHost', () => {
    const host = hosts.shift()!
    const end = ends.shift()
    return end ? end(host) : host.close()
  })
}

afterEach(() => site?.close())

/** Streams an answer in the asking tab; closes the host after each of these numbers of frames. */
function stream(path: string, body: object, closings: readonly number[] = []): Promise<string> {
  return asker.evaluate(
    async ([url, fields, counts]) => {
      const { closeHost } = globalThis as unknown as { closeHost(): Promise<void> }
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: '@inorigin/guide', stream: true, ...fields }),
      })
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      const left = [...counts]
      let text = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return text
        text += value
        while (left.length > 0 && text.split('\n\n').length > left[0]!) {
          left.shift()
          await closeHost()
        }
      }
    },
    [path, body, closings] as const,
  )
}

interface ResponseEvent {
  type: string
  sequence_number: number
  item_id?: string
  delta?: string
  response?: { output: { content: { text: string }[] }[] }
}

/** What a client of the chat style puts together. Fails if the stream ended with an error. */
function chatOf(text: string): Transcript {
  const transcript = toTranscript('chat', text, { stream: true })
  expect(transcript.error).toBeNull()
  return transcript
}

const chat = (fields: object) => ({
  messages: PROMPT,
  stream_options: { include_usage: true },
  ...fields,
})

const NUMBERS = { type: 'array', items: { type: 'integer' }, minItems: 120, maxItems: 120 }
const ANIMALS = { type: 'string', pattern: '^[🦊🐻😀é]{150}$' }
const LIST_TOOL = {
  type: 'function',
  function: {
    name: 'list',
    parameters: { type: 'object', properties: { numbers: NUMBERS }, required: ['numbers'] },
  },
}
const schema = (value: object) => ({
  type: 'json_schema',
  json_schema: { name: 'answer', schema: value, strict: true },
})

test.each([
  ['sampled text', { seed: 7, temperature: 1, max_tokens: 600, logit_bias: NO_END }],
  ['JSON', { temperature: 0, max_tokens: 1500, response_format: schema(NUMBERS) }],
  [
    'characters of several bytes',
    { seed: 3, temperature: 2, max_tokens: 1500, response_format: schema(ANIMALS) },
  ],
  [
    'arguments of a call',
    { seed: 3, temperature: 1, max_tokens: 1500, tools: [LIST_TOOL], tool_choice: 'required' },
  ],
])(
  'a stream of %s is the same when its host is closed twice',
  { tags: ['slow'] },
  async (_what, fields) => {
    await openTabs()
    const whole = chatOf(await stream('/v1/chat/completions', chat(fields)))
    const text = await stream('/v1/chat/completions', chat(fields), [3, 40])
    // The third host computed a part, so the first two had not finished.
    expect(hosts.map(threadsOf)).toEqual([expect.arrayContaining(['/inorigin/model-worker.js'])])
    expect(chatOf(text)).toEqual(whole)
  },
)

test('a stream goes on when the renderer of its host crashes', { tags: ['slow'] }, async () => {
  // The service worker runs in the renderer of the first tab, and a stream ends with it.
  await openTabs({ ownBrowser: true }, [(first) => first.close(), crash])
  const fields = chat({ seed: 7, temperature: 1, max_tokens: 600, logit_bias: NO_END })
  const whole = chatOf(await stream('/v1/chat/completions', fields))
  const text = await stream('/v1/chat/completions', fields, [10, 40])
  expect(threadsOf(hosts[0]!)).toContain('/inorigin/model-worker.js')
  expect(chatOf(text)).toEqual(whole)
})

test(
  'a crash does not reach a service worker whose script has a COEP header',
  {
    tags: ['slow'],
  },
  async () => {
    const headers = (path: string): Record<string, string> =>
      path === '/sw.js' ? { 'cross-origin-embedder-policy': 'require-corp' } : {}
    // The first tab registers the service worker, which would otherwise run in its renderer.
    await openTabs({ ownBrowser: true, headers }, [crash])
    const fields = chat({ seed: 7, temperature: 1, max_tokens: 600, logit_bias: NO_END })
    const whole = chatOf(await stream('/v1/chat/completions', fields))
    expect(chatOf(await stream('/v1/chat/completions', fields, [10]))).toEqual(whole)
  },
)

test('events of a response keep their numbers and ids', { tags: ['slow'] }, async () => {
  await openTabs()
  const fields = {
    input: PROMPT,
    text: { format: { type: 'json_schema', name: 'a', schema: NUMBERS } },
  }
  const eventsOf = (text: string) =>
    [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as ResponseEvent)
  const textIn = (events: ResponseEvent[]) => events.at(-1)?.response?.output[0]?.content[0]?.text
  const whole = eventsOf(await stream('/v1/responses', { temperature: 0, ...fields }))
  const events = eventsOf(await stream('/v1/responses', { temperature: 0, ...fields }, [20]))
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()])
  expect(events.at(-1)?.type).toBe(whole.at(-1)?.type)
  expect(new Set(events.flatMap(({ item_id }) => item_id ?? [])).size).toBe(1)
  const deltas = events.filter(({ type }) => type === 'response.output_text.delta')
  expect(deltas.map(({ delta }) => delta).join('')).toBe(textIn(events))
  expect(textIn(events)).toBe(textIn(whole))
})

test('the host is closed while it loads the model for a stream', async () => {
  await openTabs({ slow: { '/inorigin/models/guide/onnx/model.onnx': 5_000 } })
  const fields = { max_tokens: 20, messages: PROMPT }
  const text = await stream('/v1/messages', fields, [1])
  expect(text).toContain('event: ping')
  expect(text.match(/^event: message_start$/gm)).toHaveLength(1)
  expect(text.trimEnd().split('\n\n').at(-1)).toMatch(/^event: message_stop\n/)
})

test('an answer without a stream is whole when its host is closed', async () => {
  await openTabs()
  const body = {
    model: '@inorigin/guide',
    messages: PROMPT,
    seed: 7,
    temperature: 1,
    max_tokens: 600,
    logit_bias: NO_END,
  }
  const read = () =>
    asker.evaluate(async (fields) => {
      const response = await fetch('/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(fields),
      })
      Object.assign(globalThis, { accepted: true })
      const { choices, usage } = await response.json()
      return { status: response.status, choices, tokens: usage.completion_tokens as number }
    }, body)
  const whole = await read()
  expect(whole).toMatchObject({ status: 200, tokens: 600 })
  await asker.evaluate(() => Object.assign(globalThis, { accepted: false }))
  const answer = read()
  await asker.waitForFunction(() => (globalThis as unknown as { accepted: boolean }).accepted)
  await hosts.shift()!.close()
  expect(await answer).toEqual(whole)
  expect(threadsOf(hosts[0]!)).toContain('/inorigin/model-worker.js')
})
