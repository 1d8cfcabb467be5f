/**
 * Behaviour of the messages style that other servers of it (Ollama, llama.cpp, vLLM) pin by their
 * tests, each with a case of our own here or where named:
 *
 * - images, base64 and URL, in messages and results: `images.test.ts`
 * - budgets of thought, disabled, adaptive, effort: `reasoning.test.ts`
 * - options of sampling, `top_p` of -1, temperature 0: `sampling.test.ts`
 * - what blocks must have, tool schemas: `messages-refusals.test.ts`
 * - errors by type and status, keys: `errors.test.ts`, `paths.test.ts`
 *
 * Where they disagree: blocks of `system` are joined with nothing between, texts of a result with a
 * line break; results come before what is said beside them; a failed result says so to the model; a
 * call that a limit cut off has an empty input; a call that ended the answer outweighs a stop text; a
 * limit outweighs a call; there is a signature; `max_tokens` and at least one message are required; a
 * last message of the assistant begins the answer (`prefilled.test.ts`); xhigh is no bound.
 */
import { describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { errorOf, HELLO, messageOf, scriptedHost, send, USAGE } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { askedOf, CALLING, CUT, THINKING } from './scripts.ts'

const PATH = '/v1/messages'

const messagesOf = async (...messages: object[]) =>
  (
    await askedOf(PATH, messageOf({ messages: [...messages, { role: 'user', content: 'Go on' }] }))
  ).request.messages.slice(0, -1)

const answerOf = async (script: Script, fields: object = {}) => {
  const response = await send(scriptedHost({ script }), PATH, { body: messageOf(fields) })
  return { response, body: await response.json() }
}
const streamOf = async (script: Script, fields: object = {}) => {
  const response = await send(scriptedHost({ script }), PATH, {
    body: messageOf({ ...fields, stream: true }),
  })
  return { response, text: await response.text() }
}

const thinking = { type: 'enabled', budget_tokens: 50 }
const start = { type: 'start', promptTokens: 12, cachedTokens: 5 } as const
const finish = (
  reason: 'stop' | 'length' | 'stop_sequence' | 'tool_calls',
  stopSequence: string | null = null,
) => ({ type: 'finish', reason, stopSequence, usage: USAGE }) as const
const result = (content?: unknown, rest: object = {}) => ({
  type: 'tool_result',
  tool_use_id: 'toolu_1',
  content,
  ...rest,
})

describe('a conversation', () => {
  it('has the blocks of a text in one', async () => {
    const content = [
      { type: 'text', text: 'What is ' },
      { type: 'text', text: 'this?' },
    ]
    expect(await messagesOf({ role: 'user', content })).toEqual([
      { role: 'user', content: 'What is this?' },
    ])
  })

  it('has its system text first, blocks joined, without the note that changes with every request', async () => {
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cch=12' },
      { type: 'text', text: 'You are brief.' },
      { type: 'text', text: ' And kind.' },
    ]
    const { request } = await askedOf(PATH, messageOf({ system }))
    expect(request.messages[0]).toEqual({ role: 'system', content: 'You are brief. And kind.' })
    const bare = await askedOf(PATH, messageOf({ system: system.slice(0, 1) }))
    expect(bare.request.messages[0]?.role).toBe('user')
    const text = await askedOf(
      PATH,
      messageOf({ system: 'x-anthropic-billing-header is a header' }),
    )
    expect(text.request.messages[0]?.role).toBe('system')
  })

  it('keeps a system text where it stands', async () => {
    const late = [
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Be brief.' },
    ]
    expect(await messagesOf(...late)).toEqual(late)
  })

  it('keeps calls with ids, names and arguments beside their text', async () => {
    const content = [
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } },
      { type: 'tool_use', id: 'call_2', name: 'now', input: {} },
    ]
    expect(await messagesOf({ role: 'assistant', content })).toEqual([
      {
        role: 'assistant',
        content: 'Let me look.',
        toolCalls: [
          { id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
          { id: 'call_2', name: 'now', arguments: '{}' },
        ],
      },
    ])
  })

  it.each([
    ['a text', '21', '21'],
    [
      'texts',
      [
        { type: 'text', text: '21' },
        { type: 'text', text: 'C' },
      ],
      '21\nC',
    ],
    ['nothing', undefined, ''],
    ['null', null, ''],
    ['no blocks', [], ''],
  ])('takes a result of %s', async (_, content, told) => {
    const call = {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }],
    }
    const [, told_] = await messagesOf(call, { role: 'user', content: [result(content)] })
    expect(told_).toEqual({ role: 'tool', toolCallId: 'call_1', name: 'f', content: told })
  })

  it('has results before what is said beside them, in either order', async () => {
    const said = { type: 'text', text: 'And now?' }
    for (const content of [
      [result('1'), said],
      [said, result('1')],
    ]) {
      expect((await messagesOf({ role: 'user', content })).map(({ role }) => role)).toEqual([
        'tool',
        'user',
      ])
    }
    expect(await messagesOf({ role: 'user', content: [result('1')] })).toHaveLength(1)
  })

  it('says of a result that it is an error', async () => {
    const [message] = await messagesOf({
      role: 'user',
      content: [result('No such city', { is_error: true })],
    })
    expect(message).toMatchObject({ role: 'tool', content: 'No such city', isError: true })
  })

  it.each([
    [
      'beside a text',
      [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'text', text: 'A' },
      ],
      { content: 'A', reasoning: 'Hm.' },
    ],
    [
      'alone',
      [{ type: 'thinking', thinking: 'Hm.', signature: '' }],
      { content: '', reasoning: 'Hm.' },
    ],
    [
      'several times',
      [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'thinking', thinking: ' So.' },
      ],
      { content: '', reasoning: 'Hm. So.' },
    ],
    ['only where nobody can read it', [{ type: 'redacted_thinking', data: 'x' }], { content: '' }],
    [
      'before a call',
      [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'tool_use', id: 'call_1', name: 'f', input: {} },
      ],
      { content: '', reasoning: 'Hm.', toolCalls: [{ id: 'call_1', name: 'f', arguments: '{}' }] },
    ],
  ])('keeps what was thought %s', async (_, content, kept) => {
    expect(await messagesOf({ role: 'assistant', content })).toEqual([
      { role: 'assistant', ...kept },
    ])
  })

  it.each([
    ['messages', { messages: [] }],
    ['messages', { messages: undefined }],
    ['max_tokens', { max_tokens: undefined }],
    ['max_tokens', { max_tokens: 0 }],
  ])('without %s is refused: %j', async (param, fields) => {
    const error = await errorOf(await send(scriptedHost(), PATH, { body: messageOf(fields) }), 400)
    expect([error.type, error.param]).toEqual(['invalid_request_error', param])
  })

  it('may ask for more tokens than there can be: the model has its own limit', async () => {
    expect(
      (await askedOf(PATH, messageOf({ max_tokens: 1e9, temperature: 0 }))).request,
    ).toMatchObject({
      maxTokens: 1e9,
      sampling: { temperature: 0 },
    })
  })
})

describe('an answer', () => {
  it('has all that clients read, and nulls where there is nothing', async () => {
    const { body, response } = await answerOf(HELLO)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(body).toEqual({
      id: expect.stringMatching(/^msg_[0-9a-f]{24}$/),
      type: 'message',
      role: 'assistant',
      model: '@acme/tiny',
      content: [{ type: 'text', text: 'Hello there' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: 7,
        output_tokens: 3,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 5,
      },
    })
    expect((await answerOf(HELLO)).body.id).not.toBe(body.id)
  })

  it('has thoughts, text and calls in their order', async () => {
    const { body } = await answerOf(CALLING, { thinking })
    expect(body.content).toEqual([
      { type: 'thinking', thinking: 'Two cities.', signature: expect.stringMatching(/./) },
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_use', id: 'toolu_A1', name: 'weather', input: { city: 'Oslo' } },
      { type: 'tool_use', id: 'toolu_B2', name: 'now', input: {} },
    ])
    expect(body.stop_reason).toBe('tool_use')
  })

  it.each([
    ['stop', null, 'end_turn'],
    ['length', null, 'max_tokens'],
    ['tool_calls', null, 'tool_use'],
    ['stop_sequence', 'END', 'stop_sequence'],
    // What ended an answer with calls is the calls, whatever was found in them.
    ['tool_calls', 'END', 'tool_use'],
  ] as const)('that ended by %s (%s) says %s', async (reason, found, stop_reason) => {
    const stop_sequence = reason === 'stop_sequence' ? found : null
    const script = [start, { type: 'text', text: 'a' } as const, finish(reason, found)]
    expect((await answerOf(script)).body).toMatchObject({ stop_reason, stop_sequence })
  })

  it('that a limit cut in a call says so, and has a call without input', async () => {
    const { body } = await answerOf(CUT)
    expect(body).toMatchObject({ stop_reason: 'max_tokens' })
    expect(body.content.at(-1)).toMatchObject({ type: 'tool_use', name: 'weather', input: {} })
  })

  it('of nothing has one empty text block, in a stream too', async () => {
    const script = [start, finish('stop')]
    expect((await answerOf(script)).body.content).toEqual([{ type: 'text', text: '' }])
    expect(checkMessageStream((await streamOf(script)).text).blocks).toMatchObject([
      { type: 'text', text: '' },
    ])
  })

  it('has the same text in either style, each in its shape', async () => {
    const chat = await (
      await send(scriptedHost(), '/v1/chat/completions', { body: messageOf() })
    ).json()
    const { body } = await answerOf(HELLO)
    expect(chat.choices[0].message.content).toBe(body.content[0].text)
    expect([chat.object, body.type]).toEqual(['chat.completion', 'message'])
    expect([chat.content, body.choices]).toEqual([undefined, undefined])
  })
})

interface Event {
  type: string
  index?: number
  delta?: { type: string; partial_json?: string }
  content_block?: object
}

describe('a stream', () => {
  const eventsIn = (text: string) =>
    [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Event)

  it('begins with a message of nothing and true input, and ends with true output', async () => {
    const { text, response } = await streamOf(HELLO)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const events = eventsIn(text).filter(({ type }) => type !== 'ping')
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(events[0]).toMatchObject({
      message: {
        type: 'message',
        role: 'assistant',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 7, cache_read_input_tokens: 5, output_tokens: 0 },
      },
    })
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 3, input_tokens: 7, cache_read_input_tokens: 5 },
    })
  })

  it.each([
    ['thoughts before a text', THINKING, ['thinking', 'text']],
    [
      'thoughts right before a call',
      [...CALLING.slice(0, 3), ...CALLING.slice(5)],
      ['thinking', 'tool_use', 'tool_use'],
    ],
    [
      'a text before thoughts',
      [start, { type: 'text', text: 'a' }, { type: 'reasoning', text: 'b' }, finish('stop')],
      ['text', 'thinking'],
    ],
    ['calls alone', [start, ...CALLING.slice(5)], ['tool_use', 'tool_use']],
  ] as const)('has blocks one after the other: %s', async (_, script, types) => {
    const { text } = await streamOf(script, { thinking })
    expect(checkMessageStream(text).blocks.map(({ type }) => type)).toEqual(types)
    const open = eventsIn(text).flatMap(({ type, index }) =>
      type === 'content_block_start'
        ? [index]
        : type === 'content_block_stop'
          ? [-1 - Number(index)]
          : [],
    )
    expect(open).toEqual(types.flatMap((_type, index) => [index, -1 - index]))
  })

  it('begins blocks empty, with the fields of their type and no others', async () => {
    const starts = eventsIn((await streamOf(CALLING, { thinking })).text).flatMap(
      ({ content_block }) => content_block ?? [],
    )
    expect(starts).toEqual([
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'text', text: '' },
      { type: 'tool_use', id: 'toolu_A1', name: 'weather', input: {} },
      { type: 'tool_use', id: 'toolu_B2', name: 'now', input: {} },
    ])
  })

  it('signs thoughts once, at their end', async () => {
    const deltas = eventsIn((await streamOf(THINKING, { thinking })).text).flatMap(
      ({ delta }) => delta?.type ?? [],
    )
    expect(deltas).toEqual([
      'thinking_delta',
      'thinking_delta',
      'signature_delta',
      'text_delta',
      'text_delta',
    ])
  })

  it('tells the arguments of calls piece by piece', async () => {
    const pieces = eventsIn((await streamOf(CALLING)).text).flatMap(
      ({ delta }) => delta?.partial_json ?? [],
    )
    expect(pieces).toEqual(['{"city":', ' "Oslo"}', '{}'])
  })

  it('that fails has an error for its last event', async () => {
    const { text } = await streamOf([
      start,
      { type: 'text', text: 'a' },
      new Error('The device is gone.'),
    ])
    const events = eventsIn(text)
    expect(events.at(-1)).toEqual({
      type: 'error',
      error: { type: 'api_error', message: 'The device is gone.' },
    })
    expect(events.some(({ type }) => type === 'message_stop')).toBe(false)
  })
})
