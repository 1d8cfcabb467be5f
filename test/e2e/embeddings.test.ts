/** Embeddings of the embedded model through the service worker. `conformance.test.ts` has the clients. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { fetchIn, GUIDE } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

const model = '@inorigin/embed'
const KEY = { authorization: 'Bearer right' }

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  await serveIn(page, { apiKeys: ['right'] })
})

afterAll(() => site?.close())

const post = async (path: string, body: object, headers = KEY) => {
  const { status, text } = await fetchIn(page, path, body, headers)
  return { status, body: JSON.parse(text) }
}

test('it is one of the models', async () => {
  const { text } = await fetchIn(page, `/v1/models/${model}`, undefined, KEY)
  expect(JSON.parse(text)).toMatchObject({
    id: model,
    display_name: 'Embed',
    max_input_tokens: 8192,
    max_tokens: null,
    capabilities: { embeddings: { supported: true, dimensions: 128 } },
  })
})

/** Numbers of a vector in base64. */
const decode = (base64: string): number[] => {
  const bytes = Uint8Array.from(Buffer.from(base64, 'base64'))
  return [...new Float32Array(bytes.buffer)]
}

test('vectors are those of the predictor, as base64 and as floats, in the order of the texts', async () => {
  const words = ['dog', 'invoice', 'The soup needs more salt', '😀', 'x', ' ', '日本語']
  // More than a batch holds, of mixed lengths.
  const input = Array.from({ length: 120 }, (_unused, at) =>
    Array.from({ length: 1 + ((at * 37) % 90) }, (_none, word) => words[(at + word) % 7]).join(' '),
  )
  const plain = await post('/v1/embeddings', { model, input, user: 'someone' })
  const coded = await post('/v1/embeddings', { model, input, encoding_format: 'base64' })
  const vectorsOf = <Vector>(data: { index: number; embedding: Vector }[]): Vector[] => {
    expect(data.map(({ index }) => index)).toEqual([...input.keys()])
    return data.map(({ embedding }) => embedding)
  }
  const vectors = vectorsOf<number[]>(plain.body.data)
  const decoded = vectorsOf<string>(coded.body.data).map(decode)
  const [computed, tokens] = await page.evaluate(async (text) => {
    const { server } = globalThis as unknown as { server: Server }
    const { outputs } = await server.predict('@inorigin/embed', { text })
    const values = (name: string) => [...(outputs[name] as { data: Float32Array }).data]
    return [values('vector'), values('tokens')] as const
  }, input)
  expect(vectors.map(({ length }) => length)).toEqual(input.map(() => 128))
  const off = (numbers: number[]) =>
    Math.max(...numbers.map((number, at) => Math.abs(number - computed[at]!)))
  expect(off(vectors.flat())).toBeLessThan(1e-5)
  expect(off(decoded.flat())).toBeLessThan(1e-5)
  const count = tokens.reduce((sum, number) => sum + number, 0)
  const usage = { prompt_tokens: count, total_tokens: count }
  expect([plain.body.usage, coded.body.usage]).toEqual([usage, usage])
})

test('like texts are near each other', async () => {
  const input = ['I forgot my password', 'reset login credentials', 'banana bread']
  const { status, body } = await post('/v1/embeddings', { model, input })
  expect(status).toBe(200)
  const [one, near, far] = body.data.map(({ embedding }: { embedding: number[] }) => embedding)
  const dot = (a: number[], b: number[]) =>
    a.reduce((sum, number, at) => sum + number * (b[at] ?? NaN), 0)
  expect(dot(one, one)).toBeCloseTo(1, 4)
  expect(dot(one, near)).toBeGreaterThan(dot(one, far) + 0.2)
})

test.each<[object, number, string, RegExp]>([
  [
    { input: ['a', 'b', 'c', 'word '.repeat(9000)] },
    400,
    'input[3]',
    /^input\[3\] is too long: 9001 tokens > 8192/,
  ],
  [
    { input: 'word '.repeat(200_000) },
    400,
    'input',
    /^input is too long: more than \d+ tokens > 8192/,
  ],
  [{ input: 'a', dimensions: 64 }, 400, 'dimensions', /^dimensions must be 128, not 64/],
  [{ input: ['a', ''] }, 400, 'input[1]', /not empty/],
  [{ input: [[1, 2]] }, 400, 'input', /send the text itself/],
  [
    { input: 'a', model: GUIDE },
    400,
    'model',
    /generates text and does not embed texts; @inorigin\/embed does/,
  ],
  [{ input: 'a', model: '@inorigin/digits' }, 404, 'model', /predictor that does not embed/],
  [{ input: 'a', model: 'text-embedding-3-small' }, 404, 'model', /Available: @inorigin\/embed\.$/],
])('%#: refused by name', async (fields, status, param, message) => {
  const sent = await post('/v1/embeddings', { model, ...fields })
  expect([sent.status, sent.body.error.param]).toEqual([status, param])
  expect(sent.body.error.message).toMatch(message)
})

test('it does not chat, and says so in every style', async () => {
  const messages = [{ role: 'user', content: 'Hi' }]
  const answers = [
    await post('/v1/chat/completions', { model, messages }),
    await post('/v1/messages', { model, messages, max_tokens: 5 }),
    await post('/v1/messages/count_tokens', { model, messages }),
    await post('/v1/responses', { model, input: 'Hi' }),
  ]
  for (const { status, body } of answers) {
    expect([status, body.error.param]).toEqual([400, 'model'])
    expect(body.error.message).toBe(`${model} embeds texts and does not chat; use /v1/embeddings.`)
  }
})

test('a wrong key is 401', async () => {
  const wrong = { authorization: 'Bearer wrong' }
  expect((await post('/v1/embeddings', { model, input: 'a' }, wrong)).status).toBe(401)
})

test(
  'what is given up leaves room for the next, and a burst gets turns or is told to come again',
  SLOW,
  async () => {
    const seen = await page.evaluate(async () => {
      const ask = (input: unknown, signal?: AbortSignal) =>
        fetch('/v1/embeddings', {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: 'Bearer right' },
          body: JSON.stringify({ model: '@inorigin/embed', input }),
          signal,
        })
      const long = Array<string>(40).fill('word '.repeat(7000))
      const given = []
      for (const wait of [50, 400, 1_000]) {
        const aborting = new AbortController()
        const sent = ask(long, aborting.signal).then((response) => response.text())
        setTimeout(() => aborting.abort(), wait)
        given.push(
          await sent.then(
            () => 'answered',
            (error: Error) => error.name,
          ),
        )
      }
      const next = (await ask('a')).status
      const burst = await Promise.all(Array.from({ length: 24 }, () => ask(long.slice(0, 2))))
      await Promise.all(burst.map((response) => response.arrayBuffer()))
      const statuses = burst.map(({ status }) => status)
      const told = burst.find(({ status }) => status === 429)?.headers.get('retry-after')
      return { given, next, statuses, told, after: (await ask('a')).status }
    })
    expect(seen).toMatchObject({
      given: Array(3).fill('AbortError'),
      next: 200,
      after: 200,
      told: '2',
    })
    // All of one tab, which may have 16; a worker hears late of a request given up before its headers.
    expect(seen.statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(13)
    expect(new Set(seen.statuses)).toEqual(new Set([200, 429]))
  },
)
