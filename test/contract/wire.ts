/**
 * The contract of the endpoints by plain requests: that of an engine, of a host and of what stands in
 * front of it. It checks the form of answers alone, so it holds for every model.
 */
import { expect, test } from 'vitest'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { checkErrorBody } from '../support/error-body.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { CHAT, MESSAGES } from '../support/requests.ts'
import { checkResponseStream } from '../support/responses-grammar.ts'

const RESPONSES = '/v1/responses'

export type Body = Record<string, unknown>

/** The fields of both wire styles that the contract looks at. */
export interface Answered {
  choices: [
    {
      finish_reason: string
      message: {
        content: string
        reasoning_content?: string
        tool_calls?: { function: { name: string; arguments: string } }[]
      }
      logprobs: { content: { logprob: number; top_logprobs: { logprob: number }[] }[] }
    },
  ]
  content: [{ text: string }]
  stop_reason: string
  stop_sequence: string | null
  usage: {
    prompt_tokens: number
    completion_tokens: number
    prompt_tokens_details: { cached_tokens: number }
    completion_tokens_details: { reasoning_tokens: number }
  }
}

/** The path, what the body has besides {@link chat}, and the expectations. */
type Case = readonly [path: string, more: Body, check: (json: Answered) => void]

/** A server that has the model. */
export interface Endpoint {
  /** Sends a request to a path such as `/v1/models`. */
  fetch(path: string, init?: RequestInit): Promise<Response>
}

export interface Traits {
  model: string
  /** Tokens of prompt and answer together. */
  contextWindow: number
  reasons: boolean
  /** The prompt of a first turn is the beginning of a second's. */
  goesOn: boolean
  /** Names of tests that do not hold for the server. Default: all hold. */
  lacks?: readonly string[]
}

/** Sends a body as JSON. */
export async function postTo(endpoint: Endpoint, path: string, body: Body) {
  const headers = { 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await endpoint.fetch(path, init)
  const ignored = response.headers.get('x-inorigin-ignored')
  return { status: response.status, ignored, text: await response.text() }
}

export const user = { role: 'user', content: 'hello world' }
/** Without the model's name. */
export const chat = (more: Body): Body => ({
  max_tokens: 24,
  temperature: 0,
  messages: [user],
  ...more,
})
const weather = {
  name: 'weather',
  parameters: {
    type: 'object',
    properties: { city: { enum: ['Rome', 'Oslo'] } },
    required: ['city'],
    additionalProperties: false,
  },
}
const tools = [{ type: 'function', function: weather }]
const schema = {
  type: 'object',
  properties: { ok: { type: 'boolean' }, n: { enum: [1, 2] } },
  required: ['ok', 'n'],
  additionalProperties: false,
}

const UNIQUE = { type: 'object', properties: { x: { type: 'array', uniqueItems: true } } }

const weatherCall = {
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: '{"city":"Oslo"}' },
}
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }

/** Forbids thoughts, in the two wire styles. */
const plain = { reasoning_effort: 'none' }
const plainMessage = { thinking: { type: 'disabled' } }

const CASES: Readonly<Record<string, Case>> = {
  'a text of its length': [
    CHAT,
    {},
    ({ choices: [choice], usage }) => {
      expect(choice).toMatchObject({
        finish_reason: expect.stringMatching(/^(length|stop)$/),
        message: { role: 'assistant' },
      })
      expect(usage.completion_tokens).toBeLessThanOrEqual(24)
      expect(usage).toMatchObject({ total_tokens: usage.prompt_tokens + usage.completion_tokens })
    },
  ],
  'sampled by a seed': [
    CHAT,
    { temperature: 1.4, top_p: 0.9, seed: 11, frequency_penalty: 0.5, presence_penalty: 0.3 },
    ({ choices: [{ message }] }) => expect(message.content).not.toBe(''),
  ],
  'sampled from the most probable': [
    MESSAGES,
    { temperature: 1, top_k: 1 },
    ({ content: [block] }) => expect(block.text).not.toBe(''),
  ],
  biased: [
    CHAT,
    { max_tokens: 3, ...plain, logit_bias: { 100: 100 } },
    ({ choices: [{ message }] }) => {
      const { content } = message
      expect(content).toBe(content.slice(0, content.length / 3).repeat(3))
    },
  ],
  'with probabilities': [
    CHAT,
    { max_tokens: 6, logprobs: true, top_logprobs: 3 },
    ({ choices: [{ logprobs }] }) => {
      expect(logprobs.content.length).toBeGreaterThan(0)
      for (const { logprob, top_logprobs: top } of logprobs.content) {
        expect(top).toHaveLength(3)
        expect(top[0]?.logprob).toBeCloseTo(logprob, 4)
      }
    },
  ],
  'JSON by a schema': [
    CHAT,
    {
      max_tokens: 100,
      ...plain,
      response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } },
    },
    ({ choices: [choice] }) => {
      expect(choice.finish_reason).toBe('stop')
      const value = { ok: expect.any(Boolean), n: expect.any(Number) }
      expect(JSON.parse(choice.message.content)).toEqual(value)
    },
  ],
  'a call that is required': [
    CHAT,
    { max_tokens: 100, ...plain, tools, tool_choice: 'required', parallel_tool_calls: false },
    ({ choices: [choice] }) => {
      expect(choice.finish_reason).toBe('tool_calls')
      const [call] = choice.message.tool_calls ?? []
      expect(call?.function.name).toBe('weather')
      expect(call?.function.arguments).toMatch(/^\{"city": ?"(Rome|Oslo)"\}$/)
    },
  ],
  'a call that is cut off': [
    CHAT,
    { max_tokens: 4, ...plain, tools, tool_choice: 'required' },
    ({ choices: [choice] }) => expect(choice.finish_reason).toMatch(/length|tool_calls/),
  ],
  'a call of a tool that is named': [
    MESSAGES,
    {
      max_tokens: 100,
      ...plainMessage,
      tools: [{ name: 'weather', input_schema: weather.parameters }],
      tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
    },
    ({ content, stop_reason: reason }) => {
      expect(reason).toBe('tool_use')
      const input = { city: expect.any(String) }
      expect(content.at(-1)).toMatchObject({ type: 'tool_use', name: 'weather', input })
    },
  ],
  'text where calls may not be': [
    CHAT,
    { tools, tool_choice: 'none' },
    ({ choices: [{ message }] }) => expect(message.tool_calls).toBeUndefined(),
  ],
  'thoughts, and no more than their budget': [
    CHAT,
    { max_tokens: 120, reasoning_effort: 'minimal' },
    ({ choices: [{ message }], usage }) => {
      expect(message.reasoning_content).not.toBe('')
      expect(message.content).not.toContain('think>')
      const { reasoning_tokens: tokens } = usage.completion_tokens_details
      expect(tokens).toBeGreaterThan(0)
      expect(tokens).toBeLessThan(80)
    },
  ],
  'no thoughts where there are to be none': [
    CHAT,
    plain,
    ({ choices: [{ message }] }) => expect(message.reasoning_content).toBeUndefined(),
  ],
  'developers and systems wherever they stand': [
    CHAT,
    {
      messages: [
        { role: 'developer', content: 'be brief' },
        user,
        { role: 'system', content: 'now' },
        user,
      ],
    },
    ({ usage }) => expect(usage.prompt_tokens).toBeGreaterThan(20),
  ],
  'calls without a text, and what came of them': [
    CHAT,
    {
      tools,
      messages: [
        user,
        { role: 'assistant', content: null, tool_calls: [weatherCall] },
        { role: 'tool', tool_call_id: weatherCall.id, content: 'rain' },
      ],
    },
    ({ choices: [choice] }) => expect(choice.finish_reason).toMatch(/length|stop|tool_calls/),
  ],
  'a call that was cut off, and what came of it': [
    CHAT,
    {
      tools,
      messages: [
        user,
        {
          role: 'assistant',
          tool_calls: [
            { ...weatherCall, function: { name: 'weather', arguments: '{"city": "Os' } },
          ],
        },
        { role: 'tool', tool_call_id: weatherCall.id, content: 'no such city' },
      ],
    },
    ({ choices: [choice] }) => expect(choice.finish_reason).toMatch(/length|stop|tool_calls/),
  ],
  'an answer that has begun': [
    MESSAGES,
    { messages: [user, { role: 'assistant', content: 'so it' }] },
    ({ content: [block] }) => expect(block.text.startsWith('so it')).toBe(false),
  ],
}

/** Requests that are rejected, and their errors. */
const REJECTED: Readonly<Record<string, [more: (traits: Traits) => Body, error: Body]>> = {
  'what does not fit': [
    ({ contextWindow }) => ({ messages: [{ ...user, content: 'cat '.repeat(contextWindow) }] }),
    { code: 'context_length_exceeded' },
  ],
  images: [
    () => ({ messages: [{ ...user, content: [image] }] }),
    { type: 'invalid_request_error' },
  ],
  'a schema that cannot be kept': [
    () => ({
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'a', strict: true, schema: { type: 'array', uniqueItems: true } },
      },
    }),
    { message: expect.stringContaining('uniqueItems') },
  ],
  'arguments that cannot be kept': [
    () => ({
      tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: UNIQUE } }],
    }),
    { param: expect.stringContaining('tools[0].function.parameters.properties.x') },
  ],
}

const streaming = (more: Body): Body =>
  chat({ ...more, stream: true, stream_options: { include_usage: true } })

/** Expects that a stream has what one body of the same request has. */
function expectStreamed({ choices: [choice], usage }: Answered, text: string): void {
  const { message, logprobs, finish_reason } = choice
  const seen = checkChatStream(text, { includeUsage: true, logprobs: Boolean(logprobs) })
  // How much of the prompt was cached, and how many drafts were accepted, is another matter.
  const { prompt_tokens, completion_tokens } = usage
  const { reasoning_tokens } = usage.completion_tokens_details
  expect(seen).toMatchObject({
    content: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    finishReason: finish_reason,
    usage: { prompt_tokens, completion_tokens, completion_tokens_details: { reasoning_tokens } },
  })
  expect(seen.logprobs.length).toBe(logprobs?.content.length ?? 0)
  const calls = (message.tool_calls ?? []).map((call) => call.function)
  expect(seen.toolCalls.map(({ name, arguments: given }) => ({ name, arguments: given }))).toEqual(
    calls,
  )
}

const THOUGHTS = 'thoughts, and no more than their budget'

/** Requests to any server with the model that fail, with their status and error. */
const FAILURES: Readonly<
  Record<string, [path: string, body: Body | null, status: number, error: Body]>
> = {
  'a value out of its range': [
    CHAT,
    chat({ temperature: 9 }),
    400,
    { type: 'invalid_request_error', param: 'temperature' },
  ],
  'a field that cannot be honored': [CHAT, chat({ n: 2 }), 400, { param: 'n' }],
  'a message without a limit': [MESSAGES, { messages: [user] }, 400, { param: 'max_tokens' }],
  'an unknown model': [
    CHAT,
    chat({ model: '@nobody/nothing' }),
    404,
    { code: 'model_not_found', message: expect.stringContaining('@nobody/nothing') },
  ],
  'an unknown model for messages': [
    MESSAGES,
    chat({ model: 'gpt-4' }),
    404,
    { type: 'not_found_error' },
  ],
  'an unknown path': ['/v1/nothing', null, 404, { type: 'not_found_error' }],
  'a wrong method': ['/v1/models', {}, 405, { message: expect.stringContaining('Use GET, HEAD') }],
}

/**
 * Registers the tests of generation. `onAnswer` gets each answer, for engines that are compared. Traits
 * are read when a test runs, after whatever finds them out.
 */
export function checkGeneration(
  endpoint: () => Endpoint,
  traits: () => Traits,
  onAnswer: (name: string, json: unknown) => void = () => undefined,
): void {
  const isLacked = (name: string): boolean => traits().lacks?.includes(name) ?? false
  const post = (path: string, body: Body) =>
    postTo(endpoint(), path, { model: traits().model, ...body })
  const ask = async (path: string, body: Body): Promise<Answered> => {
    const { status, text } = await post(path, body)
    expect(status, text).toBe(200)
    return JSON.parse(text) as Answered
  }

  test.for(Object.entries(CASES))('%s', async ([name, [path, more, check]], { skip }) => {
    const { reasons } = traits()
    skip((name === THOUGHTS && !reasons) || isLacked(name))
    const { status, ignored, text } = await post(path, chat(more))
    expect(status, text).toBe(200)
    if (reasons) expect(ignored).toBeNull()
    const json = JSON.parse(text) as Answered
    check(json)
    onAnswer(name, json)
    if (path === CHAT) expectStreamed(json, (await post(path, streaming(more))).text)
  })

  test.for(Object.entries(REJECTED))('rejects %s', async ([name, [more, error]], { skip }) => {
    skip(isLacked(name))
    const { status, text } = await post(CHAT, chat(more(traits())))
    expect(status, text).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ error })
    onAnswer(name, JSON.parse(text))
  })

  test('streams the same text in the other styles', async () => {
    const [{ message: whole }] = (await ask(CHAT, chat({}))).choices
    const message = checkMessageStream((await post(MESSAGES, chat({ stream: true }))).text)
    expect(message.blocks.map(({ text }) => text).join('')).toContain(whole.content)
    const response = { input: [user], temperature: 0, max_output_tokens: 24, stream: true }
    const { items } = checkResponseStream((await post(RESPONSES, response)).text)
    expect(items.map(({ text }) => text).join('')).toContain(whole.content)
  })

  test('ends at a stop sequence across tokens, of which nothing is seen', async ({
    skip,
    task,
  }) => {
    skip(isLacked(task.name))
    const whole = (await ask(CHAT, chat(plain))).choices[0].message.content
    const stop = whole.slice(5, 11)
    const stopped = chat({ ...plainMessage, stop_sequences: ['never at all', stop] })
    const answer = await ask(MESSAGES, stopped)
    expect(answer).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: stop })
    expect(answer.content[0].text).toBe(whole.slice(0, whole.indexOf(stop)))
    const streamed = (await post(CHAT, chat({ ...plain, stop, stream: true }))).text
    expect(checkChatStream(streamed).content).toBe(answer.content[0].text)
  })

  test('samples the same for the same seed, and something else for another', async ({
    skip,
    task,
  }) => {
    skip(isLacked(task.name))
    const sample = async (seed: number): Promise<string> =>
      (await ask(CHAT, chat({ temperature: 1.5, seed, ...plain }))).choices[0].message.content
    const first = await sample(5)
    expect(await sample(5)).toBe(first)
    expect(await sample(6)).not.toBe(first)
  })

  test('counts the tokens of the prefix cache', async ({ skip, task }) => {
    skip(isLacked(task.name))
    const usageOf = async (messages: Body[]): Promise<Answered['usage']> =>
      (await ask(CHAT, chat({ max_tokens: 1, messages }))).usage
    const first = await usageOf([user])
    const second = await usageOf([user, { role: 'assistant', content: 'yes' }, user])
    const { cached_tokens: cached } = second.prompt_tokens_details
    expect(cached).toBeLessThan(second.prompt_tokens)
    if (traits().goesOn) expect(cached).toBe(first.prompt_tokens)
  })
}

/** Registers the tests of all endpoints of language models, with those of generation. */
export function checkEndpoints(endpoint: () => Endpoint, traits: () => Traits): void {
  checkGeneration(endpoint, traits)

  test('lists the models in one body for both styles', async () => {
    const response = await endpoint().fetch('/v1/models')
    expect(response.headers.get('request-id')).toMatch(/^req_/)
    const list = await response.json()
    const ids = list.data.map(({ id }: { id: string }) => id)
    expect(list).toMatchObject({ object: 'list', has_more: false })
    expect([list.first_id, list.last_id]).toEqual([ids[0], ids.at(-1)])
    const model = list.data.find(({ id }: { id: string }) => id === traits().model)
    expect(model).toMatchObject({ type: 'model', object: 'model' })
    expect(Date.parse(model.created_at)).toBe(model.created * 1000)
    expect(model.max_input_tokens).toBe(traits().contextWindow)
  })

  test.each(['raw', 'encoded'])('finds a model with its slash %s', async (form) => {
    const { model } = traits()
    const path = form === 'raw' ? model : model.replace('/', '%2F')
    const found = await endpoint().fetch(`/v1/models/${path}`)
    expect(await found.json()).toMatchObject({ id: model })
  })

  test('counts a prompt as an answer does', async () => {
    const { model } = traits()
    const offered = [{ name: 'weather', input_schema: weather.parameters }]
    const body = { model, system: 'Be brief.', messages: [user], tools: offered }
    const counted = await postTo(endpoint(), `${MESSAGES}/count_tokens`, body)
    const { usage } = JSON.parse(
      (await postTo(endpoint(), MESSAGES, { ...body, max_tokens: 3 })).text,
    )
    const { input_tokens } = JSON.parse(counted.text)
    expect(usage.input_tokens + usage.cache_read_input_tokens).toBe(input_tokens)
  })

  test.each(Object.entries(FAILURES))(
    'rejects %s in the body that every client parses',
    async (_name, [path, body, status, error]) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
      const json = body && JSON.stringify({ model: traits().model, ...body })
      const response = await endpoint().fetch(path, json === null ? {} : { ...init, body: json })
      const text = await response.text()
      expect(response.status, text).toBe(status)
      checkErrorBody(text, Object.fromEntries(response.headers))
      expect(JSON.parse(text)).toMatchObject({ error })
      expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null)
    },
  )
}
