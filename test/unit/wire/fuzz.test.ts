/**
 * Every documented field with everything a client could put into it: the answer is either whole and
 * on grammar, or one well-formed 4xx that the host never saw. Never a 500.
 */
import { describe, expect, it } from 'vitest'
import type { ChatMessage, GenerationRequest } from '../../../src/types/index.ts'
import { MAX_STOP_SEQUENCES } from '../../../src/wire/fields.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { createChance } from '../../support/random.ts'
import { checkResponseStream } from '../../support/responses-grammar.ts'
import { BODIES, VALUES } from './fuzz-values.ts'
import { mutate, pathsOf, put } from './mutate.ts'
import { errorOf, scriptedHost, send } from './scripted-host.ts'
import type { ScriptedHost } from './scripted-host.ts'

const isObject = (value: unknown) =>
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
            isText(id) && isText(name) && name !== '' && isObject(JSON.parse(text)),
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
        tools.tools.every(({ name, parameters }) => isText(name) && isObject(parameters)))) &&
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

async function outcomeOf(host: ScriptedHost, path: string, body: unknown): Promise<Outcome> {
  host.requests.length = 0
  host.predictions.length = 0
  host.embedded.length = 0
  const raw = JSON.stringify(body)
  const response = await send(host, path, { body: raw })
  const { status } = response
  if (status !== 200) {
    if (status < 400 || status > 499)
      throw new Error(`${status} for ${raw.slice(0, 500)}: ${await response.text()}`)
    const { param } = await errorOf(response, status)
    if (host.requests.length + host.predictions.length + host.embedded.length > 0)
      throw new Error(`the host was asked: ${raw}`)
    return { status, param }
  }
  for (const request of host.requests) {
    if (!soundRequest(request)) throw new Error(`${JSON.stringify(request)} came of ${raw}`)
  }
  const text = await response.text()
  const streamed = response.headers.get('content-type') !== 'application/json'
  if (!streamed) JSON.parse(text)
  else if (path === '/v1/messages') checkMessageStream(text)
  else if (path === '/v1/responses') checkResponseStream(text)
  else
    checkChatStream(text, {
      includeUsage:
        (body as { stream_options?: { include_usage?: boolean } }).stream_options?.include_usage ??
        false,
      logprobs: (body as { logprobs?: boolean }).logprobs ?? false,
    })
  return { status, param: null }
}

/** Refusals of bodies with few fields. */
const LEAST: Record<string, number> = { '/v1/predictions': 100, '/v1/embeddings': 300 }

describe.each(Object.keys(BODIES))('%s', { timeout: 300_000 }, (path) => {
  const body = BODIES[path]

  it('takes the body that has everything', async () => {
    expect(await outcomeOf(scriptedHost(), path, body)).toEqual({ status: 200, param: null })
  })

  // The other paths share the fields of these two.
  const tags = ['/v1/chat/completions', '/v1/messages'].includes(path) ? [] : ['slow']
  it('answers whatever is in one field, and blames that field', { tags }, async () => {
    const host = scriptedHost()
    let refused = 0
    for (const at of pathsOf(body)) {
      for (const value of [undefined, ...VALUES]) {
        const { status, param } = await outcomeOf(host, path, put(body, at, value))
        if (status === 404 && at.join() === 'model') continue
        if (status === 200) continue
        expect(status).toBe(400)
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
    expect(refused).toBeGreaterThan(LEAST[path] ?? 1000)
  })

  it('answers bodies that are wrong in several places', { tags: ['slow'] }, async () => {
    const host = scriptedHost()
    const chance = createChance(path.length)
    const outcomes = new Map<number, number>()
    for (let round = 0; round < 1000; round++) {
      const whole = chance.often(0.25) ? { ...body, stream: true } : body
      const mutant = mutate(whole, VALUES, chance, 1 + chance.below(4))
      const { status } = await outcomeOf(host, path, mutant)
      outcomes.set(status, (outcomes.get(status) ?? 0) + 1)
    }
    // Neither answer may have become impossible.
    expect(outcomes.get(200)).toBeGreaterThan(20)
    expect(outcomes.get(400)).toBeGreaterThan(40)
  })
})
