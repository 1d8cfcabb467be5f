/**
 * The same as `fuzz.test.ts`, but what the wire lets through is planned as in earnest: template,
 * tokenizer, schemas and grammars are those of the embedded model. And what no body of fields is: huge,
 * deep, broken.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { createChance } from '../../support/random.ts'
import { BODIES, VALUES } from './fuzz-values.ts'
import { openGuide, planningHost } from './guide-host.ts'
import { mutate, withoutImages } from './mutate.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'

/** Milliseconds that a request may keep a thread for, on a machine that has other things to do. */
const MOST = 15_000

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

let engine: Engine
beforeAll(async () => {
  engine = await openGuide()
})

/** The status of an answer that is whole, or of an error in the body that all errors have. */
async function statusOf(path: string, body: string): Promise<number> {
  const begun = performance.now()
  const response = await send(planningHost(engine), path, { body })
  if (response.status === 200) {
    const text = await response.text()
    const streamed = response.headers.get('content-type') !== 'application/json'
    if (streamed)
      expect(text).toMatch(/(?:data: \[DONE\]|"type":"(?:message_stop|response\.\w+)".*)\n\n$/)
    else JSON.parse(text)
  } else {
    expect(response.status, body.slice(0, 2000)).toBeGreaterThanOrEqual(400)
    expect(response.status, `${body.slice(0, 2000)} ${await response.clone().text()}`).toBeLessThan(
      500,
    )
    await errorOf(response, response.status)
  }
  expect(performance.now() - begun, `${path} ${body.slice(0, 300)}`).toBeLessThan(MOST)
  return response.status
}

const PATHS = [CHAT, MESSAGES, '/v1/messages/count_tokens', '/v1/responses']

describe.each(PATHS)('%s', { timeout: 300_000 }, (path) => {
  it('answers bodies that are wrong in a few places', async () => {
    const chance = createChance(path.length)
    const seen = new Map<number, number>()
    for (let round = 0; round < 120; round += 1) {
      const stream = chance.often(0.25) && !path.endsWith('tokens')
      const mutant = mutate(
        { ...(withoutImages(BODIES[path]) as object), ...(stream && { stream }) },
        VALUES,
        chance,
        chance.below(3),
      )
      const status = await statusOf(path, JSON.stringify(mutant))
      seen.set(status, (seen.get(status) ?? 0) + 1)
    }
    // Neither may have become impossible.
    expect(seen.get(200)).toBeGreaterThan(15)
    expect(seen.get(400)).toBeGreaterThan(15)
  })

  it('answers texts that are hardly bodies', async () => {
    const chance = createChance(path.length + 1)
    const whole = JSON.stringify(BODIES[path])
    for (let round = 0; round < 80; round += 1) {
      const at = chance.below(whole.length)
      const signs = [
        '',
        '"',
        '{',
        '}',
        ']',
        ',',
        '\\',
        '\\ud800',
        '\u0000',
        '1e999',
        'null',
        '\ufeff',
      ]
      const text = whole.slice(0, at) + chance.pick(signs) + whole.slice(at + chance.below(3))
      expect([200, 400, 404]).toContain(await statusOf(path, text))
    }
  })
})

const times = <T>(count: number, of: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => of(index))
const nested = (levels: number, open = '[', close = ']', inner = '') =>
  open.repeat(levels) + inner + close.repeat(levels)
const functionOf = (name: string, parameters?: unknown) => ({
  type: 'function',
  function: { name, parameters },
})
const named = (count: number) => Object.fromEntries(times(count, (index) => [`p${index}`, {}]))
const schemaOf = (schema: unknown) =>
  chatOf({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } })
const called = (count: number) => ({
  role: 'assistant',
  tool_calls: times(count, (index) => ({
    id: `c${index}`,
    type: 'function',
    function: { name: 'f', arguments: '{}' },
  })),
})
/** As many as a body may have of what takes the most values here: pairs of tools and choices. */
const MANY = 19_000

/** A body, or its text; and the statuses that it may have. */
const EXTREMES: ReadonlyArray<
  readonly [what: string, path: string, body: object | string, status: number]
> = [
  [
    'lone surrogates',
    CHAT,
    chatOf({ messages: [{ role: 'user', content: 'a\ud800b\udc00' }] }),
    200,
  ],
  [
    'names that come twice',
    CHAT,
    '{"model":5,"model":"@acme/tiny","messages":[{"role":"user","content":"x"}]}',
    200,
  ],
  [
    'names that objects have by nature',
    CHAT,
    '{"__proto__":{"model":"x"},"model":"@acme/tiny","messages":[{"role":"user","content":"x","__proto__":{"content":1}}],' +
      '"tools":[{"type":"function","function":{"name":"constructor","parameters":{"type":"object","properties":' +
      '{"__proto__":{"type":"string"},"toString":{"type":"string"}},"required":["__proto__","toString"]}}}]}',
    200,
  ],
  [
    '10,000 levels that nobody reads',
    CHAT,
    JSON.stringify(chatOf({ x: 'X' })).replace('"X"', nested(10_000)),
    400,
  ],
  [
    '10,000 levels of a schema',
    CHAT,
    JSON.stringify(schemaOf('X')).replace('"X"', nested(10_000, '{"items":', '}', '{}')),
    400,
  ],
  ['a million levels', MESSAGES, nested(1_000_000, '{"a":', '}', '1'), 400],
  ['brackets that never close', MESSAGES, '['.repeat(1_000_000), 400],
  [
    'many messages',
    CHAT,
    chatOf({ messages: times(MANY, () => ({ role: 'user', content: '' })) }),
    400,
  ],
  [
    'many system messages',
    MESSAGES,
    messageOf({ messages: times(MANY, () => ({ role: 'system', content: 'x' })) }),
    400,
  ],
  [
    'many results',
    CHAT,
    chatOf({ messages: times(MANY, () => ({ role: 'tool', content: '' })) }),
    400,
  ],
  ['many calls', CHAT, chatOf({ messages: [{ role: 'user', content: 'x' }, called(MANY)] }), 400],
  [
    'many empty parts',
    MESSAGES,
    messageOf({
      messages: [{ role: 'user', content: times(MANY, () => ({ type: 'text', text: '' })) }],
    }),
    200,
  ],
  ['many tools', CHAT, chatOf({ tools: times(MANY, (index) => functionOf(`f${index}`)) }), 400],
  ['many tools of one name', CHAT, chatOf({ tools: times(MANY, () => functionOf('f')) }), 400],
  [
    'many tools and choices',
    CHAT,
    chatOf({
      tools: times(MANY, (index) => functionOf(`f${index}`)),
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: times(MANY, (index) => functionOf(`f${index}`)) },
      },
    }),
    400,
  ],
  ['many values of an enum', CHAT, schemaOf({ enum: times(100_000, String) }), 400],
  ['many properties', CHAT, schemaOf({ type: 'object', properties: named(MANY) }), 400],
  ['many required names', CHAT, schemaOf({ type: 'object', required: times(MANY, String) }), 400],
  ['many unknown fields', CHAT, { ...named(MANY), ...chatOf() }, 200],
  [
    'many biases',
    CHAT,
    chatOf({ logit_bias: Object.fromEntries(times(MANY, (index) => [index, 1])) }),
    200,
  ],
  ['many stops', CHAT, chatOf({ stop: times(MANY, String) }), 400],
  [
    'a long text',
    CHAT,
    chatOf({ messages: [{ role: 'user', content: ' '.repeat(10_000_000) }] }),
    400,
  ],
  ['a long stop', CHAT, chatOf({ stop: 'y'.repeat(10_000_000) }), 200],
  [
    'a long id',
    MESSAGES,
    messageOf({
      messages: [
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'y'.repeat(1_000_000) }] },
      ],
    }),
    200,
  ],
  [
    'a deep grammar',
    CHAT,
    chatOf({
      response_format: { type: 'grammar', grammar: `root ::= ${nested(MANY, '(', ')', '"a"')}` },
    }),
    400,
  ],
  [
    'numbers at the end of all numbers',
    CHAT,
    schemaOf({ type: 'integer', minimum: 1e308, maximum: 1.7e308 }),
    200,
  ],
  ['a billion items', CHAT, schemaOf({ type: 'array', items: {}, minItems: 1e9 }), 400],
  ['a schema of nothing but itself', CHAT, schemaOf({ $ref: '#' }), 200],
]

describe('extremes', { timeout: 300_000 }, () => {
  it.each(EXTREMES)('%s', async (_what, path, body, status) => {
    expect(await statusOf(path, typeof body === 'string' ? body : JSON.stringify(body))).toBe(
      status,
    )
  })
})

describe('paths', () => {
  it.each([
    '/v1/models/%',
    '/v1/models/%FF',
    '/v1/models/%00',
    '/v1/models/..%2f..%2fetc',
    `/v1/models/${'y'.repeat(10_000)}`,
    '/v1/models/__proto__',
    '/v1/predictors/%E0%A4%A',
    '/v1/predictors/__proto__',
    '/v1/resources/%',
    '/v1/%',
    '/v1//models',
    '/v1/models//',
    '/v1/messages/../models/x',
    '/v1/chat/completions/x',
  ])('%s is not found, or the list', async (path) => {
    const response = await send(scriptedHost(), path)
    expect([200, 404]).toContain(response.status)
    if (response.status === 404) await errorOf(response, 404)
  })

  it.each([
    'limit=-1',
    'limit=x',
    'after_id=%FF',
    'before_id=',
    'after_id=nope&after_id=x',
    '%',
    '&&=',
    `limit=${'9'.repeat(400)}`,
  ])('/v1/models?%s is the list', async (query) => {
    const body = await (await send(scriptedHost(), `/v1/models?${query}`)).json()
    expect(body).toMatchObject({ object: 'list', has_more: false, data: [{}, {}] })
  })
})
