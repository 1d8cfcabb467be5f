/**
 * Whatever a page sends, the real model behind the service worker answers whole or refuses in form.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { type Answer, CHAT, GUIDE, MESSAGES } from '../support/requests.ts'
import { checkErrorBody } from '../support/error-body.ts'
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

const model = GUIDE

/** Sends them one after the other; one that is not over in a minute rejects. */
const sendAll = (path: string, bodies: readonly string[]): Promise<Answer[]> =>
  page.evaluate(
    async ([url, texts]) => {
      const seen = []
      for (const body of texts) {
        const headers = { 'content-type': 'application/json' }
        const signal = AbortSignal.timeout(60_000)
        const response = await fetch(url, { method: 'POST', headers, body, signal })
        seen.push({
          status: response.status,
          headers: Object.fromEntries(response.headers),
          text: await response.text(),
        })
      }
      return seen
    },
    [path, bodies] as const,
  )

function check({ status, headers, text }: Answer, body: string): void {
  const about = `${body.slice(0, 1000)} gave ${status} ${text.slice(0, 500)}`
  expect(headers['request-id'], about).toMatch(/^req_/)
  expect(headers['x-request-id'], about).toBe(headers['request-id'])
  if (status === 200 && headers['content-type'] === 'application/json') {
    JSON.parse(text)
    return
  }
  const end =
    /(?:data: \[DONE\]|"type":"(?:message_stop|response\.(?:completed|incomplete))".*)\n\n$/
  if (status === 200) return expect(text, about).toMatch(end)
  expect(status >= 400 && status < 500, about).toBe(true)
  expect(headers['x-should-retry'], about).toBe('false')
  checkErrorBody(text, headers)
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
