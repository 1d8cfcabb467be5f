/**
 * Behaviour of chat completions that other servers of the style (Ollama, llama.cpp, vLLM) pin by their
 * tests, each with a case of our own here or where named:
 *
 * - efforts of reasoning, none to max: `reasoning.test.ts`; images: `images.test.ts`
 * - penalties, `logit_bias`, `seed`: `sampling.test.ts`; formats and schemas: `format.test.ts`
 * - calls that must, may or must not be: `tools.test.ts`, `planned.test.ts`
 * - keys in either header, listing of models, paths: `paths.test.ts`, `models.test.ts`
 *
 * Where they disagree: reasoning is `reasoning_content`; the first chunk has an empty content, not
 * null; usage is streamed only where asked for; a limit outweighs a call; several choices and `echo` are
 * refused; a last message of the assistant is a past turn unless `continue_final_message` says that it
 * begins the answer (`prefilled.test.ts`); models are listed only to who has a key; no CORS.
 */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { chatOf, errorOf, HELLO, scriptedHost, send, USAGE } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { askedOf, CALLING, CUT, THINKING, tokenOf } from './scripts.ts'

const PATH = '/v1/chat/completions'

const answerOf = async (script: Script, fields: object = {}) =>
  (await send(scriptedHost({ script }), PATH, { body: chatOf(fields) })).json()

interface Chunk {
  id: string
  created: number
  model: string
  choices: Array<{
    delta: Record<string, unknown>
    finish_reason: string | null
    logprobs: unknown
  }>
  usage?: object
}
const chunksOf = async (script: Script, fields: object = {}): Promise<Chunk[]> => {
  const body = chatOf({ ...fields, stream: true })
  const text = await (await send(scriptedHost({ script }), PATH, { body })).text()
  checkChatStream(text, {
    includeUsage: 'stream_options' in fields,
    logprobs: 'logprobs' in fields,
  })
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Chunk)
}
const deltasOf = async (script: Script, fields: object = {}) =>
  (await chunksOf(script, fields)).flatMap(({ choices }) => choices.map(({ delta }) => delta))

const start = { type: 'start', promptTokens: 12, cachedTokens: 5 } as const
const finish = (reason: 'stop' | 'length' | 'stop_sequence' | 'tool_calls') =>
  ({ type: 'finish', reason, stopSequence: null, usage: USAGE }) as const
const thinking = { reasoning_effort: 'low' }

describe('a completion', () => {
  it('has all that clients read', async () => {
    const body = await answerOf(HELLO)
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: '@acme/tiny',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello there', refusal: null },
          finish_reason: 'stop',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: 12,
        completion_tokens: 3,
        total_tokens: 15,
        prompt_tokens_details: { cached_tokens: 5 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    })
    expect((await answerOf(HELLO)).id).not.toBe(body.id)
  })

  it('has reasoning beside the text, and calls with their ids', async () => {
    const { choices } = await answerOf(CALLING, thinking)
    expect(choices[0]).toMatchObject({
      message: {
        content: 'Let me look.',
        reasoning_content: 'Two cities.',
        tool_calls: [
          {
            id: 'call_A1',
            type: 'function',
            function: { name: 'weather', arguments: '{"city": "Oslo"}' },
          },
          { id: 'call_B2', type: 'function', function: { name: 'now', arguments: '{}' } },
        ],
      },
      finish_reason: 'tool_calls',
    })
  })

  it('has null for content where there are only calls, an empty text where there is nothing', async () => {
    expect((await answerOf([start, ...CALLING.slice(5)])).choices[0].message.content).toBeNull()
    const { message, finish_reason } = (await answerOf([start, finish('stop')])).choices[0]
    expect([message.content, 'tool_calls' in message, finish_reason]).toEqual(['', false, 'stop'])
  })

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['stop_sequence', 'stop'],
    ['tool_calls', 'tool_calls'],
  ] as const)('that ended by %s says %s', async (reason, said) => {
    const script = reason === 'tool_calls' ? CALLING : [start, finish(reason)]
    expect((await answerOf(script)).choices[0].finish_reason).toBe(said)
    expect((await chunksOf(script)).at(-1)?.choices[0]?.finish_reason).toBe(said)
  })

  it('that a limit cut in a call says length', async () => {
    expect((await answerOf(CUT)).choices[0].finish_reason).toBe('length')
    expect((await chunksOf(CUT)).at(-1)?.choices[0]?.finish_reason).toBe('length')
  })
})

describe('a stream', () => {
  it('has the role in its first chunk alone, and no content in its last', async () => {
    const deltas = await deltasOf(HELLO)
    expect(deltas).toEqual([
      { role: 'assistant', content: '' },
      { content: 'Hello' },
      { content: ' there' },
      {},
    ])
  })

  it('has the role though there is nothing to say', async () => {
    expect(await deltasOf([start, finish('stop')])).toEqual([
      { role: 'assistant', content: '' },
      {},
    ])
    expect(await deltasOf([start, { type: 'text', text: '' }, finish('stop')])).toHaveLength(2)
  })

  it('has one id, time and model', async () => {
    const chunks = await chunksOf(CALLING, { ...thinking, stream_options: { include_usage: true } })
    expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(
      1,
    )
  })

  it('keeps reasoning, content and calls in chunks of their own', async () => {
    const kinds = (await deltasOf(CALLING, thinking)).map((delta) => Object.keys(delta).join())
    expect(kinds).toEqual([
      'role,content',
      'reasoning_content',
      'reasoning_content',
      'content',
      'content',
      'tool_calls',
      'tool_calls',
      'tool_calls',
      'tool_calls',
      'tool_calls',
      '',
    ])
    const thought = (await deltasOf(THINKING, thinking)).map((delta) => Object.keys(delta).join())
    expect(thought.slice(1, 4)).toEqual(['reasoning_content', 'reasoning_content', 'content'])
  })

  it('leaves reasoning out where nobody asked for any', async () => {
    expect(JSON.stringify(await deltasOf(THINKING))).not.toContain('reasoning')
  })

  it('names a call once, and then tells its arguments', async () => {
    const calls = (await deltasOf(CALLING)).flatMap((delta) => delta['tool_calls'] ?? [])
    expect(calls).toEqual([
      { index: 0, id: 'call_A1', type: 'function', function: { name: 'weather', arguments: '' } },
      { index: 0, function: { arguments: '{"city":' } },
      { index: 0, function: { arguments: ' "Oslo"}' } },
      { index: 1, id: 'call_B2', type: 'function', function: { name: 'now', arguments: '' } },
      { index: 1, function: { arguments: '{}' } },
    ])
  })

  it('tells usage in a chunk without choices, and only where asked', async () => {
    const asked = await chunksOf(HELLO, { stream_options: { include_usage: true } })
    expect(asked.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 15 } })
    expect((await chunksOf(HELLO)).some((chunk) => chunk.usage)).toBe(false)
  })

  it('tells how probable tokens were with the text they are of', async () => {
    const script: Script = [
      start,
      { type: 'text', text: 'a', logprobs: [tokenOf('a')] },
      { type: 'text', text: 'bc', logprobs: [tokenOf('b'), tokenOf('c')] },
      finish('stop'),
    ]
    const chunks = await chunksOf(script, { logprobs: true, top_logprobs: 2 })
    const told = chunks.map(
      ({ choices }) => (choices[0]?.logprobs as { content: object[] } | null)?.content.length,
    )
    expect(told).toEqual([undefined, 1, 2, undefined])
    const { logprobs } = (await answerOf(script, { logprobs: true, top_logprobs: 2 })).choices[0]
    expect(logprobs.content.map(({ token }: { token: string }) => token)).toEqual(['a', 'b', 'c'])
    expect(logprobs.content[0]).toMatchObject({
      logprob: -0.25,
      bytes: [97],
      top_logprobs: [{ token: 'a' }, { token: '', logprob: -9999 }],
    })
  })

  it('that cannot be is a status, not a stream', async () => {
    const tooLong = new InoriginError(
      'invalid_request',
      'prompt is too long: 9 tokens > 5 maximum',
      {
        code: 'context_length_exceeded',
        param: 'messages',
      },
    )
    const host = scriptedHost({ overrides: { generate: () => Promise.reject(tooLong) } })
    for (const stream of [false, true]) {
      const error = await errorOf(await send(host, PATH, { body: chatOf({ stream }) }), 400)
      expect(error).toMatchObject({
        code: 'context_length_exceeded',
        type: 'invalid_request_error',
      })
    }
  })
})

describe('a request', () => {
  it.each([
    [{ messages: 'Hi' }, 'messages'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
    [{ messages: [{ content: 'Hi' }] }, 'messages[0].role'],
    [{ messages: [5] }, 'messages[0]'],
    [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [
      { response_format: { type: 'json_schema', json_schema: { schema: 5 } } },
      'response_format.json_schema.schema',
    ],
    [{ response_format: { type: 'no' } }, 'response_format.type'],
    [{ response_format: 'json' }, 'response_format'],
    [{ n: 2 }, 'n'],
    [{ echo: true }, 'echo'],
    [{ continue_final_message: true }, 'continue_final_message'],
    [{ add_generation_prompt: false }, 'add_generation_prompt'],
    [{ top_logprobs: 21, logprobs: true }, 'top_logprobs'],
    [{ top_logprobs: -1, logprobs: true }, 'top_logprobs'],
    [{ top_logprobs: 1 }, 'top_logprobs'],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: [] } }] },
      'tools[0].function.parameters',
    ],
  ])('of %j is refused', async (fields, param) => {
    expect(
      (await errorOf(await send(scriptedHost(), PATH, { body: chatOf(fields) }), 400)).param,
    ).toBe(param)
  })

  it('may have probabilities without any beside them', async () => {
    expect((await askedOf(PATH, chatOf({ logprobs: true }))).request.logprobs).toBe(0)
    expect(
      (await askedOf(PATH, chatOf({ logprobs: false, top_logprobs: 0 }))).request.logprobs,
    ).toBeUndefined()
  })

  it('with no tools, or told to call none, makes no calls possible', async () => {
    expect((await askedOf(PATH, chatOf({ tools: [] }))).request.tools).toBeUndefined()
    const tools = [{ type: 'function', function: { name: 'f' } }]
    expect(
      (await askedOf(PATH, chatOf({ tools, tool_choice: 'none' }))).request.tools?.choice,
    ).toBe('none')
  })

  it('keeps the ids of calls, and names results by them', async () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_x', type: 'function', function: { name: 'sum', arguments: '' } }],
      },
      { role: 'tool', tool_call_id: 'call_x', content: [{ type: 'text', text: '3' }] },
    ]
    expect((await askedOf(PATH, chatOf({ messages }))).request.messages).toEqual([
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'call_x', name: 'sum', arguments: '{}' }],
      },
      { role: 'tool', toolCallId: 'call_x', name: 'sum', content: '3' },
    ])
  })
})
