/**
 * The contract of an engine through both wire styles. It checks the form of answers alone, so it holds
 * for every model.
 */
import { expect, test } from 'vitest'
import { checkMessageStream } from './anthropic-grammar.ts'
import { checkChatStream } from './openai-grammar.ts'

export const CHAT = '/v1/chat/completions'
export const MESSAGES = '/v1/messages'

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

type Case = readonly [path: string, body: Body, check: (json: Answered) => void]

/** A server that has the model. */
export interface Endpoint {
  post(path: string, body: Body): Promise<{ status: number; ignored: string | null; text: string }>
}

export interface Traits {
  model: string
  /** Tokens of prompt and answer together. */
  contextWindow: number
  reasons: boolean
  /** The prompt of a first turn is the beginning of a second's. */
  goesOn: boolean
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

const CASES: Readonly<Record<string, Case>> = {
  'a text of its length': [
    CHAT,
    chat({}),
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
    chat({ temperature: 1.4, top_p: 0.9, seed: 11, frequency_penalty: 0.5, presence_penalty: 0.3 }),
    ({ choices: [choice] }) => expect(choice.message.content).not.toBe(''),
  ],
  'sampled from the most probable': [
    MESSAGES,
    chat({ temperature: 1, top_k: 1 }),
    ({ content: [block] }) => expect(block.text).not.toBe(''),
  ],
  biased: [
    CHAT,
    chat({ max_tokens: 3, reasoning_effort: 'none', logit_bias: { 100: 100 } }),
    ({
      choices: [
        {
          message: { content },
        },
      ],
    }) => expect(content).toBe(content.slice(0, content.length / 3).repeat(3)),
  ],
  'with probabilities': [
    CHAT,
    chat({ max_tokens: 6, logprobs: true, top_logprobs: 3 }),
    ({ choices: [choice] }) => {
      const { content } = choice.logprobs
      expect(content.length).toBeGreaterThan(0)
      for (const { logprob, top_logprobs: top } of content) {
        expect(top).toHaveLength(3)
        expect(top[0]?.logprob).toBeCloseTo(logprob, 4)
      }
    },
  ],
  'JSON by a schema': [
    CHAT,
    chat({
      max_tokens: 100,
      reasoning_effort: 'none',
      response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } },
    }),
    ({ choices: [choice] }) => {
      expect(choice.finish_reason).toBe('stop')
      expect(JSON.parse(choice.message.content)).toEqual({
        ok: expect.any(Boolean),
        n: expect.any(Number),
      })
    },
  ],
  'a call that is required': [
    CHAT,
    chat({
      max_tokens: 100,
      reasoning_effort: 'none',
      tools,
      tool_choice: 'required',
      parallel_tool_calls: false,
    }),
    ({ choices: [choice] }) => {
      expect(choice.finish_reason).toBe('tool_calls')
      const [call] = choice.message.tool_calls ?? []
      expect(call?.function.name).toBe('weather')
      expect(call?.function.arguments).toMatch(/^\{"city": "(Rome|Oslo)"\}$/)
    },
  ],
  'a call of a tool that is named': [
    MESSAGES,
    chat({
      max_tokens: 100,
      thinking: { type: 'disabled' },
      tools: [{ name: 'weather', input_schema: weather.parameters }],
      tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
    }),
    ({ content, stop_reason: reason }) => {
      expect(reason).toBe('tool_use')
      expect(content.at(-1)).toMatchObject({
        type: 'tool_use',
        name: 'weather',
        input: { city: expect.any(String) },
      })
    },
  ],
  'text where calls may not be': [
    CHAT,
    chat({ tools, tool_choice: 'none' }),
    ({ choices: [choice] }) => expect(choice.message.tool_calls).toBeUndefined(),
  ],
  'thoughts, and no more than their budget': [
    CHAT,
    chat({ max_tokens: 120, reasoning_effort: 'minimal' }),
    ({ choices: [choice], usage }) => {
      expect(choice.message.reasoning_content).not.toBe('')
      expect(choice.message.content).not.toContain('think>')
      expect(usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(0)
      expect(usage.completion_tokens_details.reasoning_tokens).toBeLessThan(80)
    },
  ],
  'no thoughts where there are to be none': [
    CHAT,
    chat({ reasoning_effort: 'none' }),
    ({ choices: [choice] }) => expect(choice.message.reasoning_content).toBeUndefined(),
  ],
  'developers and systems wherever they stand': [
    CHAT,
    chat({
      messages: [
        { role: 'developer', content: 'be brief' },
        user,
        { role: 'system', content: 'now' },
        user,
      ],
    }),
    ({ usage }) => expect(usage.prompt_tokens).toBeGreaterThan(20),
  ],
  'calls without a text, and what came of them': [
    CHAT,
    chat({
      tools,
      messages: [
        user,
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'weather', arguments: '{"city":"Oslo"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
      ],
    }),
    ({ choices: [choice] }) => expect(choice.finish_reason).toMatch(/length|stop|tool_calls/),
  ],
  'an answer that has begun': [
    MESSAGES,
    chat({ messages: [user, { role: 'assistant', content: 'so it' }] }),
    ({ content: [block] }) => expect(block.text.startsWith('so it')).toBe(false),
  ],
}

const REASONING = new Set(['thoughts, and no more than their budget'])

/**
 * Registers the tests. `seen` is told of each answer, for who compares. Traits are read when a test
 * runs, after whatever finds them out.
 */
export function holdToContract(
  endpoint: () => Endpoint,
  traits: () => Traits,
  seen: (name: string, json: unknown) => void = () => undefined,
): void {
  const post = (path: string, body: Body) =>
    endpoint().post(path, { model: traits().model, ...body })
  const ask = async (path: string, body: Body): Promise<Answered> => {
    const { status, text } = await post(path, body)
    expect(status, text).toBe(200)
    return JSON.parse(text) as Answered
  }

  test.each(Object.entries(CASES))('%s', async (name, [path, body, check]) => {
    if (REASONING.has(name) && !traits().reasons) return
    const { status, ignored, text } = await post(path, body)
    expect(status, text).toBe(200)
    if (traits().reasons) expect(ignored).toBeNull()
    const json = JSON.parse(text) as Answered
    check(json)
    seen(name, json)
  })

  test.each<[name: string, more: () => Body, error: Body]>([
    [
      'what does not fit',
      () => ({ messages: [{ ...user, content: 'cat '.repeat(traits().contextWindow) }] }),
      { code: 'context_length_exceeded' },
    ],
    [
      'images',
      () => ({
        messages: [
          {
            ...user,
            content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }],
          },
        ],
      }),
      { type: 'invalid_request_error' },
    ],
    [
      'a schema that cannot be kept',
      () => ({
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'a', schema: { type: 'array', uniqueItems: true } },
        },
      }),
      { message: expect.stringContaining('uniqueItems') },
    ],
  ])('refuses %s', async (name, more, error) => {
    const { status, text } = await post(CHAT, chat(more()))
    expect(status, text).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ error })
    seen(name, JSON.parse(text))
  })

  test('streams what it would answer at once, with the usage of both', async () => {
    const {
      choices: [choice],
      usage,
    } = await ask(CHAT, chat({}))
    const asked = chat({ stream: true, stream_options: { include_usage: true } })
    const streamed = checkChatStream((await post(CHAT, asked)).text, { includeUsage: true })
    expect(streamed.content).toBe(choice.message.content)
    const { prompt_tokens, completion_tokens } = usage
    expect(streamed.usage).toMatchObject({ prompt_tokens, completion_tokens })
    const message = checkMessageStream((await post(MESSAGES, chat({ stream: true }))).text)
    expect(message.blocks.map(({ text }) => text).join('')).toContain(choice.message.content)
  })

  test('stops at a text, of which nothing is seen', async () => {
    const asked = { reasoning_effort: 'none' }
    const whole = (await ask(CHAT, chat(asked))).choices[0].message.content
    const stop = whole.slice(5, 8)
    const thinking = { type: 'disabled' }
    const { stop_reason, stop_sequence, content } = await ask(
      MESSAGES,
      chat({ thinking, stop_sequences: ['never at all', stop] }),
    )
    expect({ stop_reason, stop_sequence }).toEqual({
      stop_reason: 'stop_sequence',
      stop_sequence: stop,
    })
    expect(content[0].text).toBe(whole.slice(0, whole.indexOf(stop)))
  })

  test('gives the same for the same seed, and another for another', async () => {
    const sampled = async (seed: number): Promise<string> =>
      (await ask(CHAT, chat({ temperature: 1.5, seed, reasoning_effort: 'none' }))).choices[0]
        .message.content
    const first = await sampled(5)
    expect(await sampled(5)).toBe(first)
    expect(await sampled(6)).not.toBe(first)
  })

  test('counts what it had not to compute again', async () => {
    const usageOf = async (messages: Body[]): Promise<Answered['usage']> =>
      (await ask(CHAT, chat({ max_tokens: 1, messages }))).usage
    const first = await usageOf([user])
    const second = await usageOf([user, { role: 'assistant', content: 'yes' }, user])
    const { cached_tokens: cached } = second.prompt_tokens_details
    expect(cached).toBeLessThan(second.prompt_tokens)
    if (traits().goesOn) expect(cached).toBe(first.prompt_tokens)
  })
}
