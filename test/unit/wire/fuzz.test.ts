/**
 * Whatever a body has in its fields, and whatever text is sent instead of a body: the answer is whole
 * and on grammar, or one well-formed 4xx. Never a 500, and never a thread that is blocked for long.
 */
import { readFile } from 'node:fs/promises'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { ChatMessage, GenerationRequest } from '../../../src/types/index.ts'
import { MAX_STOP_SEQUENCES } from '../../../src/wire/fields.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { createChance } from '../../support/random.ts'
import { checkResponseStream } from '../../support/responses-grammar.ts'
import { runs } from '../../support/runs.ts'
import { scripted } from '../generation/scripted.ts'
import { BODIES, VALUES } from './fuzz-values.ts'
import { mutate, pathsOf, put, withoutImages } from './mutate.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import type { ScriptedHost } from './scripted-host.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const PLANNED = [CHAT, MESSAGES, '/v1/messages/count_tokens', '/v1/responses']

/** Milliseconds for which a request may keep a thread, on a machine that has other work. */
const MAX_BLOCKED_MS = 15_000

let engine: Engine
beforeAll(async () => {
  const folder = new URL('../../../demo/models/guide/', import.meta.url)
  const texts = new Map<string, Blob>()
  for (const name of [
    'config.json',
    'generation_config.json',
    'tokenizer.json',
    'tokenizer_config.json',
  ]) {
    texts.set(name, new Blob([await readFile(new URL(name, folder))]))
  }
  engine = await openOnnx({
    device: 'wasm',
    runtime: 'http://localhost/',
    constraints: 'http://localhost/',
    texts,
    maxInputTokens: 4096,
  })
})

// The engine of constraints is fetched once, by the first of them.
beforeEach(() =>
  vi.stubGlobal('fetch', async () => {
    const module = new URL('../../../src/constraint/llguidance.wasm', import.meta.url)
    return new Response(await readFile(module))
  }),
)

/** A host that plans with the texts of the embedded model. The completion is a script. */
function planningHost(): ScriptedHost {
  const writer = scripted(['Hello', ' there'])
  const host = scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        host.requests.push(request)
        const planned = await planGeneration(engine, structuredClone(request))
        const limits = { maxOutputTokens: 100, plan: planned }
        return { events: runGeneration(writer, request, limits, signal) }
      },
      async countTokens(request) {
        host.requests.push(request)
        return (await planGeneration(engine, structuredClone(request))).prompt.tokens.length
      },
    },
  })
  return host
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown) => typeof value === 'string'

function soundMessage(message: ChatMessage): boolean {
  if (typeof message.content !== 'string') return false
  switch (message.role) {
    case 'system':
    case 'user':
      return true
    case 'assistant':
      return (
        (message.reasoning === undefined || isText(message.reasoning)) &&
        (message.toolCalls ?? []).every(
          ({ id, name, arguments: text }) =>
            isText(id) && isText(name) && name !== '' && isText(text) && text !== '',
        )
      )
    case 'tool':
      return isText(message.toolCallId) && isText(message.name)
  }
}

function soundRequest(request: GenerationRequest): boolean {
  const { model, messages, maxTokens, sampling, stop, tools, format } = request
  const number = (value: unknown, ok: (value: number) => boolean) =>
    value === undefined || (typeof value === 'number' && ok(value))
  return (
    typeof model === 'string' &&
    model !== '' &&
    messages.length > 0 &&
    messages.every(soundMessage) &&
    (tools === undefined ||
      (['auto', 'none', 'required'].includes(tools.choice) &&
        typeof tools.parallel === 'boolean' &&
        (tools.only ?? []).every(isText) &&
        tools.tools.every(
          ({ name, parameters, input }) =>
            isText(name) && (input ? parameters === true : isObject(parameters)),
        ))) &&
    (format === undefined || format.type !== 'json_schema' || isObject(format.schema)) &&
    number(request.reasoningBudget, (value) => value >= 0) &&
    number(request.logprobs, (value) => Number.isInteger(value) && value >= 0 && value <= 20) &&
    number(sampling.minP, (value) => value >= 0 && value <= 1) &&
    number(sampling.frequencyPenalty, (value) => Math.abs(value) <= 2) &&
    number(sampling.presencePenalty, (value) => Math.abs(value) <= 2) &&
    number(sampling.repetitionPenalty, (value) => value > 0 && Number.isFinite(value)) &&
    Object.entries(sampling.logitBias ?? {}).every(
      ([id, bias]) => Number.isInteger(Number(id)) && Math.abs(bias) <= 100,
    ) &&
    number(maxTokens, (value) => Number.isInteger(value) && value >= 1) &&
    number(sampling.temperature, (value) => value >= 0 && value <= 2) &&
    number(sampling.topP, (value) => value > 0 && value <= 1) &&
    number(sampling.topK, (value) => Number.isInteger(value) && value >= 0) &&
    number(sampling.seed, Number.isInteger) &&
    Array.isArray(stop) &&
    stop.length <= MAX_STOP_SEQUENCES &&
    stop.every((text) => typeof text === 'string' && text !== '')
  )
}

interface Outcome {
  status: number
  param: string | null
}

/** Returns how a text is answered, after checking the answer and what the host received. */
async function outcomeOf(host: ScriptedHost, path: string, body: string): Promise<Outcome> {
  host.requests.length = 0
  host.predictions.length = 0
  host.embedded.length = 0
  const begun = performance.now()
  const response = await send(host, path, { body })
  const { status } = response
  const about = `${status} for ${path} ${body.slice(0, 2000)}`
  if (status !== 200) {
    if (status < 400 || status > 499) throw new Error(`${about}: ${await response.text()}`)
    const { param } = await errorOf(response, status)
    expect(performance.now() - begun, about).toBeLessThan(MAX_BLOCKED_MS)
    return { status, param }
  }
  for (const request of host.requests) {
    if (!soundRequest(request)) throw new Error(`${about}: ${JSON.stringify(request)}`)
  }
  const text = await response.text()
  const streamed = response.headers.get('content-type') !== 'application/json'
  if (!streamed) JSON.parse(text)
  else if (path === MESSAGES) checkMessageStream(text)
  else if (path === '/v1/responses') checkResponseStream(text)
  else {
    const { stream_options, logprobs } = JSON.parse(body) as Record<string, unknown>
    const includeUsage = isObject(stream_options) && stream_options['include_usage'] === true
    checkChatStream(text, { includeUsage, logprobs: logprobs === true })
  }
  expect(performance.now() - begun, about).toBeLessThan(MAX_BLOCKED_MS)
  return { status, param: null }
}

/** Refusals of bodies with few fields. */
const LEAST: Record<string, number> = { '/v1/predictions': 100, '/v1/embeddings': 300 }

describe.each(Object.keys(BODIES))('%s', { timeout: 300_000 }, (path) => {
  const body = BODIES[path]

  it('takes the body that has everything', async () => {
    const whole = { status: 200, param: null }
    expect(await outcomeOf(scriptedHost(), path, JSON.stringify(body))).toEqual(whole)
  })

  it('answers any value in one field, and blames that field', async () => {
    const host = scriptedHost()
    const values = [undefined, ...VALUES]
    // Each field gets another part of the values.
    const stride = runs(60, 8)
    let refused = 0
    for (const [index, at] of pathsOf(body).entries()) {
      for (const value of values.filter((_, number) => (number + index) % stride === 0)) {
        const raw = JSON.stringify(put(body, at, value))
        const { status, param } = await outcomeOf(host, path, raw)
        if (status === 404 && at.join() === 'model') continue
        if (status === 200) continue
        const received = [...host.requests, ...host.predictions, ...host.embedded]
        expect([status, received], raw).toEqual([400, []])
        refused++
        const named = at
          .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
          .join('')
          .slice(1)
        const parent = named.replace(/\.?[^.[]+\]?$/, '')
        // One taken out of a list moves the others up; what is wrong with an object may be its kind.
        expect(
          param?.startsWith(named) || named.startsWith(param ?? '-') || param?.startsWith(parent),
          `${param} for ${named}`,
        ).toBe(true)
      }
    }
    expect(refused).toBeGreaterThan((LEAST[path] ?? 1000) / stride)
  })

  it('answers bodies that are wrong in a few places', async () => {
    const isPlanned = PLANNED.includes(path)
    const host = isPlanned ? planningHost() : scriptedHost()
    const chance = createChance(path.length)
    const outcomes = new Map<number, number>()
    for (let round = 0; round < runs(12, isPlanned ? 120 : 300); round += 1) {
      const stream = isPlanned && chance.often(0.25) && !path.endsWith('tokens')
      const whole = {
        ...(isPlanned ? (withoutImages(body) as object) : body),
        ...(stream && { stream }),
      }
      const mutant = mutate(whole, VALUES, chance, chance.below(4))
      const { status } = await outcomeOf(host, path, JSON.stringify(mutant))
      outcomes.set(status, (outcomes.get(status) ?? 0) + 1)
    }
    // Neither answer may have become impossible.
    expect(outcomes.get(200)).toBeGreaterThan(runs(0, 20))
    expect(outcomes.get(400)).toBeGreaterThan(runs(0, 40))
  })

  it('answers texts that are hardly bodies', async () => {
    const host = PLANNED.includes(path) ? planningHost() : scriptedHost()
    const chance = createChance(path.length + 1)
    const whole = JSON.stringify(body)
    const texts = [
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
    for (let round = 0; round < runs(10, 200); round += 1) {
      const at = chance.below(whole.length)
      const text = whole.slice(0, at) + chance.pick(texts) + whole.slice(at + chance.below(3))
      expect([200, 400, 404]).toContain((await outcomeOf(host, path, text)).status)
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
/** The largest number of pairs of tools and choices that a body may have. */
const MANY = 19_000
const many = <T>(value: T): T[] => times(MANY, () => value)
const tools = times(MANY, (index) => functionOf(`f${index}`))
const deep = (body: object, ...brackets: [string?, string?, string?]) =>
  JSON.stringify(body).replace('"X"', nested(10_000, ...brackets))
const empty = { role: 'user', content: '' }
const longId = { type: 'tool_result', tool_use_id: 'y'.repeat(1_000_000) }
const deepGrammar = `root ::= ${nested(MANY, '(', ')', '"a"')}`

const ANSWERED: Record<string, object | string> = {
  'lone surrogates': chatOf({ messages: [{ role: 'user', content: 'a\ud800b\udc00' }] }),
  'a name twice': '{"model":5,"model":"@acme/tiny","messages":[{"role":"user","content":"x"}]}',
  'names that all objects have':
    '{"__proto__":{"model":"x"},"model":"@acme/tiny","messages":[{"role":"user","content":"x","__proto__":{"content":1}}],' +
    '"tools":[{"type":"function","function":{"name":"constructor","parameters":{"type":"object","properties":' +
    '{"__proto__":{"type":"string"},"toString":{"type":"string"}},"required":["__proto__","toString"]}}}]}',
  'many empty parts': messageOf({
    messages: [{ role: 'user', content: many({ type: 'text', text: '' }) }],
  }),
  'many unknown fields': { ...named(MANY), ...chatOf() },
  'many biases': chatOf({ logit_bias: Object.fromEntries(times(MANY, (index) => [index, 1])) }),
  'a long stop sequence': chatOf({ stop: 'y'.repeat(10_000_000) }),
  'a long id': messageOf({ messages: [{ role: 'user', content: [longId] }] }),
  'the largest numbers': schemaOf({ type: 'integer', minimum: 1e308, maximum: 1.7e308 }),
  'a schema that contains only itself': schemaOf({ $ref: '#' }),
  'many values of an enum': schemaOf({ enum: times(runs(5_000, 100_000), String) }),
  'many properties': schemaOf({ type: 'object', properties: named(runs(1_000, MANY)) }),
  'many required names': schemaOf({ type: 'object', required: times(runs(1_000, MANY), String) }),
  'a billion items': schemaOf({ type: 'array', items: {}, minItems: 1e9 }),
}

const REFUSED: Record<string, object | string> = {
  '10,000 levels in an unknown field': deep(chatOf({ x: 'X' })),
  '10,000 levels of a schema': deep(schemaOf('X'), '{"items":', '}', '{}'),
  'a million levels': nested(1_000_000, '{"a":', '}', '1'),
  'brackets that never close': '['.repeat(1_000_000),
  'many messages': chatOf({ messages: many(empty) }),
  'many system messages': messageOf({ messages: many({ role: 'system', content: 'x' }) }),
  'many results': chatOf({ messages: many({ role: 'tool', content: '' }) }),
  'many calls': chatOf({ messages: [empty, called(MANY)] }),
  'many tools': chatOf({ tools }),
  'many tools of one name': chatOf({ tools: many(functionOf('f')) }),
  'many tools and choices': chatOf({
    tools,
    tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } },
  }),
  'many stop sequences': chatOf({ stop: times(MANY, String) }),
  'a long text': chatOf({ messages: [{ role: 'user', content: ' '.repeat(10_000_000) }] }),
  'a deep grammar': chatOf({ response_format: { type: 'grammar', grammar: deepGrammar } }),
}

describe('an extreme body', { timeout: 300_000 }, () => {
  const statusOf = async (body: object | string) => {
    const path = typeof body === 'object' && 'max_tokens' in body ? MESSAGES : CHAT
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return (await outcomeOf(planningHost(), path, text)).status
  }

  it.each(Object.keys(ANSWERED))('is answered: %s', async (name) =>
    expect(await statusOf(ANSWERED[name] ?? '')).toBe(200),
  )
  it.each(Object.keys(REFUSED))('is refused: %s', async (name) =>
    expect(await statusOf(REFUSED[name] ?? '')).toBe(400),
  )
})

describe('an odd path', () => {
  const withTitles = (list: readonly string[]) => list.map((each) => [each.slice(0, 40), each])

  it.each(
    withTitles([
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
    ]),
  )('is not found, or the list: %s', async (_, path = '') => {
    const response = await send(scriptedHost(), path)
    expect([200, 404]).toContain(response.status)
    if (response.status === 404) await errorOf(response, 404)
  })

  it.each(
    withTitles([
      'limit=-1',
      'limit=x',
      'after_id=%FF',
      'before_id=',
      'after_id=nope&after_id=x',
      '%',
      '&&=',
      `limit=${'9'.repeat(400)}`,
    ]),
  )('with the query %s is the list of models', async (_, query) => {
    const body = await (await send(scriptedHost(), `/v1/models?${query}`)).json()
    expect(body).toMatchObject({ object: 'list', has_more: false, data: [{}, {}] })
  })
})
