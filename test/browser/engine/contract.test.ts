/**
 * What every engine is held to, through both wire styles: the one for ONNX with a real model, the one
 * for models that MLC compiled over the stand-in for WebLLM. Both compute the same scores, so each has
 * to answer as the other does, word by word.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { generate } from '../../../src/generation/generate.ts'
import { plan } from '../../../src/generation/plan.ts'
import type { Host } from '../../../src/types/index.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { TAGGED } from '../../support/templates.ts'
import { scriptedHost, send, TINY } from '../../unit/wire/scripted-host.ts'
import { load, short, run as runEngine, GREEDY, textOf } from './run-engine.ts'
import { loadStandIn } from './webllm-standin.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
/** Begins to reason where it is to. */
const TEMPLATE = `${TAGGED}{%- if add_generation_prompt and enable_thinking %}{{- '<think>\\n' }}{%- endif %}`
const texts = { 'chat_template.jinja': new Blob([TEMPLATE]) }
const options = { maxInputTokens: 512, texts }

const ENGINES: readonly (readonly [name: string, load: () => Promise<Engine>])[] = [
  ['the engine for ONNX', () => load(options)],
  ['the engine for MLC, over the stand-in', async () => (await loadStandIn(options)).engine],
]

type Body = Record<string, unknown>

/** Of both wire styles, what is looked at. */
interface Answered {
  choices: [{
    finish_reason: string
    message: {
      content: string
      reasoning_content?: string
      tool_calls?: { function: { name: string; arguments: string } }[]
    }
    logprobs: { content: { logprob: number; top_logprobs: { logprob: number }[] }[] }
  }]
  content: [{ text: string }]
  stop_reason: string
  usage: {
    prompt_tokens: number
    completion_tokens: number
    prompt_tokens_details: { cached_tokens: number }
    completion_tokens_details: { reasoning_tokens: number }
  }
}

/** Accepts as the real one does; answers of one test alone share what is cached. */
const hostOf = (engine: Engine): Host =>
  scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        const planned = await plan(engine, request)
        const partition = expect.getState().currentTestName ?? ''
        const limits = { maxOutputTokens: 160, plan: planned, partition }
        return { ignored: [], events: generate(engine, request, limits, signal) }
      },
      countTokens: async (request) => (await plan(engine, request)).prompt.tokens.length,
    },
  })

const user = { role: 'user', content: 'hello world' }
const chat = (more: Body): Body => ({ model: TINY.tag, max_tokens: 24, temperature: 0, messages: [user], ...more })
const weather = {
  name: 'weather',
  parameters: { type: 'object', properties: { city: { enum: ['Rome', 'Oslo'] } }, required: ['city'], additionalProperties: false },
}
const tools = [{ type: 'function', function: weather }]
const schema = {
  type: 'object', properties: { ok: { type: 'boolean' }, n: { enum: [1, 2] } }, required: ['ok', 'n'], additionalProperties: false,
}

/** What each case was answered by the engine before, without what differs each time. */
const answers = new Map<string, unknown>()

function sameAsBefore(name: string, answer: unknown): void {
  const told = JSON.stringify(answer).replace(/"(id|request_id|created)":("[^"]*"|\d+),?/g, '')
  // Of the last digits of a probability, the order of additions decides.
  const known = told.replace(/-?\d+\.\d{4,}(e-\d+)?/g, (number) => Number(number).toFixed(2))
  expect(known).toBe(answers.get(name) ?? known)
  answers.set(name, known)
}

describe.each(ENGINES)('%s', (_, open) => {
  let engine: Engine
  let host: Host
  beforeAll(async () => {
    engine = await open()
    host = hostOf(engine)
  }, 120_000)
  afterAll(() => engine.close())

  const ask = async (path: string, body: Body): Promise<{ status: number; headers: Headers; json: Answered }> => {
    const response = await send(host, path, { body })
    return { status: response.status, headers: response.headers, json: await response.json() }
  }
  const contentOf = async (more: Body): Promise<string> =>
    (await ask(CHAT, chat(more))).json.choices[0].message.content

  const CASES: Readonly<Record<string, readonly [path: string, body: Body, check: (json: Answered) => void]>> = {
    'a text of its length': [CHAT, chat({}), ({ choices: [choice], usage }) => {
      expect(choice).toMatchObject({ finish_reason: 'length', message: { role: 'assistant' } })
      expect(usage).toMatchObject({ completion_tokens: 24, total_tokens: usage.prompt_tokens + 24 })
    }],
    'sampled by a seed': [
      CHAT, chat({ temperature: 1.4, top_p: 0.9, seed: 11, frequency_penalty: 0.5, presence_penalty: 0.3 }),
      ({ choices: [choice] }) => expect(choice.message.content).not.toBe(''),
    ],
    'sampled from the most probable': [MESSAGES, chat({ temperature: 1, top_k: 1 }), ({ content: [block] }) =>
      expect(block.text).not.toBe('')],
    'biased': [CHAT, chat({ max_tokens: 3, logit_bias: { 100: 100 } }), ({ choices: [choice] }) =>
      expect(new Set(choice.message.content).size).toBeLessThan(3)],
    'with probabilities': [CHAT, chat({ max_tokens: 6, logprobs: true, top_logprobs: 3 }), ({ choices: [choice] }) => {
      const { content } = choice.logprobs
      expect(content.length).toBeGreaterThan(0)
      for (const { logprob, top_logprobs: top } of content) {
        expect(top).toHaveLength(3)
        expect(top[0]?.logprob).toBeCloseTo(logprob, 4)
      }
    }],
    'JSON by a schema': [
      CHAT, chat({ max_tokens: 100, reasoning_effort: 'none', response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } } }),
      ({ choices: [choice] }) => {
        expect(choice.finish_reason).toBe('stop')
        expect(JSON.parse(choice.message.content)).toEqual({ ok: expect.any(Boolean), n: expect.any(Number) })
      },
    ],
    'a call that is required': [CHAT, chat({ max_tokens: 100, reasoning_effort: 'none', tools, tool_choice: 'required', parallel_tool_calls: false }), ({ choices: [choice] }) => {
      expect(choice.finish_reason).toBe('tool_calls')
      const [call] = choice.message.tool_calls ?? []
      expect(call?.function.name).toBe('weather')
      expect(call?.function.arguments).toMatch(/^\{"city": "(Rome|Oslo)"\}$/)
    }],
    'a call of a tool that is named': [
      MESSAGES,
      chat({ max_tokens: 100, thinking: { type: 'disabled' }, tools: [{ name: 'weather', input_schema: weather.parameters }], tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true } }),
      ({ content, stop_reason: reason }) => {
        expect(reason).toBe('tool_use')
        expect(content.at(-1)).toMatchObject({ type: 'tool_use', name: 'weather', input: { city: expect.any(String) } })
      },
    ],
    'text where calls may not be': [CHAT, chat({ tools, tool_choice: 'none' }), ({ choices: [choice] }) =>
      expect(choice.message.tool_calls).toBeUndefined()],
    'thoughts, and no more than their budget': [CHAT, chat({ max_tokens: 120, reasoning_effort: 'minimal' }), ({ choices: [choice], usage }) => {
      expect(choice.message.reasoning_content).not.toBe('')
      expect(choice.message.content).not.toContain('think>')
      expect(usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(0)
      expect(usage.completion_tokens_details.reasoning_tokens).toBeLessThan(80)
    }],
    'no thoughts where there are to be none': [CHAT, chat({ reasoning_effort: 'none' }), ({ choices: [choice] }) =>
      expect(choice.message.reasoning_content).toBeUndefined()],
    'developers and systems wherever they stand': [
      CHAT, chat({ messages: [{ role: 'developer', content: 'be brief' }, user, { role: 'system', content: 'now' }, user] }),
      ({ usage }) => expect(usage.prompt_tokens).toBeGreaterThan(20),
    ],
    'calls without a text, and what came of them': [
      CHAT,
      chat({
        tools,
        messages: [
          user,
          { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }] },
          { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
        ],
      }),
      ({ choices: [choice] }) => expect(choice.finish_reason).toMatch(/length|stop|tool_calls/),
    ],
    'an answer that has begun': [MESSAGES, chat({ messages: [user, { role: 'assistant', content: 'so it' }] }), ({ content: [block] }) =>
      expect(block.text.startsWith('so it')).toBe(false)],
  }

  test.each(Object.entries(CASES))('%s', async (name, [path, body, check]) => {
    const { status, headers, json } = await ask(path, body)
    expect(status, JSON.stringify(json)).toBe(200)
    expect(headers.get('x-inorigin-ignored')).toBeNull()
    check(json)
    sameAsBefore(name, json)
  })

  test.each<[name: string, body: Body, error: Body]>([
    ['what does not fit', { messages: [{ role: 'user', content: 'cat '.repeat(400) }] }, { code: 'context_length_exceeded' }],
    ['images', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] }] }, { type: 'invalid_request_error' }],
    ['a schema that cannot be kept', { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'array', uniqueItems: true } } } }, { message: expect.stringContaining('uniqueItems') }],
  ])('refuses %s', async (name, more, error) => {
    const { status, json } = await ask(CHAT, chat(more))
    expect({ status, json }).toMatchObject({ status: 400, json: { error } })
    sameAsBefore(name, json)
  })

  test('streams what it would answer at once, with the usage of both', async () => {
    const whole = await ask(CHAT, chat({}))
    const body = chat({ stream: true, stream_options: { include_usage: true } })
    const seen = checkChatStream(await (await send(host, CHAT, { body })).text(), { includeUsage: true })
    expect(seen.content).toBe(whole.json.choices[0].message.content)
    expect(seen.usage).toMatchObject({ prompt_tokens: whole.json.usage.prompt_tokens, completion_tokens: 24 })
    const message = checkMessageStream(await (await send(host, MESSAGES, { body: chat({ stream: true }) })).text())
    expect(message.blocks[0]?.text).toBe(seen.content)
  })

  test('stops at a text, of which nothing is seen', async () => {
    const whole = await contentOf({})
    const stop = whole.slice(5, 8)
    const { json } = await ask(MESSAGES, chat({ stop_sequences: ['never', stop] }))
    expect(json).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: stop })
    expect(json.content[0].text).toBe(whole.slice(0, whole.indexOf(stop)))
  })

  test('an abort ends one answer and leaves the other as it is', async () => {
    const other = { messages: [{ role: 'user', content: 'another one' }], max_tokens: 40 }
    const alone = await contentOf(other)
    const giving = new AbortController()
    const body = chat({ stream: true, max_tokens: 160 })
    const given = await send(host, CHAT, { body, signal: giving.signal })
    const reader = given.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    await reader.read()
    const together = contentOf(other)
    await reader.read()
    await reader.cancel()
    giving.abort()
    expect(await together).toBe(alone)
  })

  test('one that is not read on does not keep another waiting', async () => {
    const idle = engine.generate(short.prompt, { ...GREEDY, partition: 'idle', maxTokens: 8 })
    const first = await idle.next()
    const { pieces } = await runEngine(engine, short.prompt, { ...GREEDY, partition: 'busy', maxTokens: 8 })
    let rest = first.done ? '' : first.value.text
    for await (const { text } of idle) rest += text
    expect(rest).toBe(textOf(pieces))
  })

  test('counts what it had not to compute again, for the same key alone', async () => {
    const usageOf = async (messages: Body[]): Promise<Answered['usage']> =>
      (await ask(CHAT, chat({ max_tokens: 1, messages }))).json.usage
    const first = await usageOf([user])
    const second = await usageOf([user, { role: 'assistant', content: 'yes' }, user])
    expect(second.prompt_tokens_details.cached_tokens).toBe(first.prompt_tokens)
    expect(second.prompt_tokens).toBeGreaterThan(first.prompt_tokens)
  })
})
