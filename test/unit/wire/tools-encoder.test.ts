/** Answers that think and call, in both styles, to the letter. */
import { describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { chatOf, HELLO, messageOf, scriptedHost, send } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { CALLING, CUT, LONG_USAGE, THINKING, tokenOf } from './scripts.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

const answer = (path: string, body: object, script: Script) =>
  send(scriptedHost({ script }), path, { body })
const chatStream = async (fields: object, script: Script = CALLING) =>
  (await answer(CHAT, chatOf({ stream: true, ...fields }), script)).text()
const messageStream = async (fields: object, script: Script = CALLING) =>
  (await answer(MESSAGES, messageOf({ stream: true, ...fields }), script)).text()
const chatJson = async (fields: object, script: Script = CALLING) =>
  (await answer(CHAT, chatOf(fields), script)).json() as Promise<Record<string, unknown>>
const messageJson = async (fields: object, script: Script = CALLING) =>
  (await answer(MESSAGES, messageOf(fields), script)).json() as Promise<Record<string, unknown>>

const settled = (raw: string) =>
  raw
    .replaceAll(/"(?:chatcmpl-|msg_)[0-9a-f]{24}"/g, '"ID"')
    .replaceAll(/"created":\d{10},/g, '"created":0,')
    .replaceAll(/"sig_[0-9a-f]{24}"/g, '"SIGNATURE"')

const chunk = (delta: string, reason = 'null') =>
  'data: {"id":"ID","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[{"index":0,' +
  `"delta":${delta},"finish_reason":${reason},"logprobs":null}]}\n\n`
const event = (name: string, fields: string) =>
  `event: ${name}\ndata: {"type":"${name}",${fields}}\n\n`

describe('a chat completion that thinks and calls', () => {
  it('streams what the book says, to the letter', async () => {
    expect(settled(await chatStream({ reasoning_effort: 'low' }))).toBe(
      chunk('{"role":"assistant","content":""}') +
        chunk('{"reasoning_content":"Two"}') +
        chunk('{"reasoning_content":" cities."}') +
        chunk('{"content":"Let me"}') +
        chunk('{"content":" look."}') +
        chunk(
          '{"tool_calls":[{"index":0,"id":"call_A1","type":"function","function":{"name":"weather","arguments":""}}]}',
        ) +
        chunk('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":"}}]}') +
        ': heartbeat\n\n' +
        chunk('{"tool_calls":[{"index":0,"function":{"arguments":" \\"Oslo\\"}"}}]}') +
        chunk(
          '{"tool_calls":[{"index":1,"id":"call_B2","type":"function","function":{"name":"now","arguments":""}}]}',
        ) +
        chunk('{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}') +
        chunk('{}', '"tool_calls"') +
        'data: [DONE]\n\n',
    )
  })

  it('is on grammar, and counts its thoughts', async () => {
    const fields = { reasoning_effort: 'high', stream_options: { include_usage: true } }
    expect(checkChatStream(await chatStream(fields), { includeUsage: true })).toMatchObject({
      reasoning: 'Two cities.',
      content: 'Let me look.',
      toolCalls: [
        { id: 'call_A1', name: 'weather', arguments: '{"city": "Oslo"}' },
        { id: 'call_B2', name: 'now', arguments: '{}' },
      ],
      finishReason: 'tool_calls',
      usage: { completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 4 } },
    })
  })

  it('tells at once what it streams', async () => {
    const { choices, usage } = await chatJson({ reasoning_effort: 'high' })
    expect(choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Let me look.',
          reasoning_content: 'Two cities.',
          refusal: null,
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
        logprobs: null,
      },
    ])
    expect(usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 4 } })
  })

  it.each([
    {},
    { reasoning_effort: 'none' },
    { thinking: { type: 'adaptive', display: 'omitted' } },
  ])('keeps its thoughts to itself with %j', async (fields) => {
    expect(checkChatStream(await chatStream(fields)).reasoning).toBe('')
    const { choices } = (await chatJson(fields)) as { choices: Array<{ message: object }> }
    expect(choices[0]?.message).not.toHaveProperty('reasoning_content')
  })

  it('has no content where it only calls', async () => {
    const script = CALLING.filter((told) => told instanceof Error || told.type !== 'text')
    const { choices } = (await chatJson({}, script)) as { choices: Array<{ message: object }> }
    expect(choices[0]?.message).toMatchObject({ content: null })
  })

  it('that is cut off says so, and has what there is', async () => {
    expect(checkChatStream(await chatStream({}, CUT))).toMatchObject({
      finishReason: 'length',
      toolCalls: [{ arguments: '{"city":' }],
    })
    expect(await chatJson({}, CUT)).toMatchObject({
      choices: [
        {
          finish_reason: 'length',
          message: { tool_calls: [{ function: { arguments: '{"city":' } }] },
        },
      ],
    })
  })
})

describe('the probabilities of a chat completion', () => {
  const script: Script = [
    { type: 'start', promptTokens: 1, cachedTokens: 0 },
    { type: 'text', text: 'Hi ', logprobs: [tokenOf('H'), tokenOf('i ')] },
    { type: 'text', text: 'é', logprobs: [tokenOf('é')] },
    { type: 'finish', reason: 'stop', stopSequence: null, usage: LONG_USAGE },
  ]
  const told = (token: string, bytes: number[]) => ({
    token,
    bytes,
    logprob: -0.25,
    top_logprobs: [
      { token, bytes, logprob: -0.25 },
      { token: '', bytes: [], logprob: -9999 },
    ],
  })
  const all = [told('H', [72]), told('i ', [105, 32]), told('é', [195, 169])]

  it('stream beside their text', async () => {
    const raw = await chatStream({ logprobs: true, top_logprobs: 2 }, script)
    expect(checkChatStream(raw, { logprobs: true })).toMatchObject({
      content: 'Hi é',
      logprobs: all,
    })
  })

  it('are told at once', async () => {
    const { choices } = (await chatJson({ logprobs: true, top_logprobs: 2 }, script)) as {
      choices: unknown[]
    }
    expect(choices[0]).toMatchObject({ logprobs: { content: all, refusal: null } })
  })

  it('are not told where they were not asked for', async () => {
    expect(checkChatStream(await chatStream({}, script)).content).toBe('Hi é')
  })
})

describe('a message that thinks and calls', () => {
  const thinking = { type: 'enabled', budget_tokens: 50 }

  it('streams what the book says, to the letter', async () => {
    const usage = '"input_tokens":7,"output_tokens":'
    const cache = '"cache_creation_input_tokens":0,"cache_read_input_tokens":5'
    expect(settled(await messageStream({ thinking }))).toBe(
      event(
        'message_start',
        '"message":{"id":"ID","type":"message","role":"assistant","model":"@acme/tiny","content":[],' +
          `"stop_reason":null,"stop_sequence":null,"usage":{${usage}0,${cache}}}`,
      ) +
        event(
          'content_block_start',
          '"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}',
        ) +
        event(
          'content_block_delta',
          '"index":0,"delta":{"type":"thinking_delta","thinking":"Two"}',
        ) +
        event(
          'content_block_delta',
          '"index":0,"delta":{"type":"thinking_delta","thinking":" cities."}',
        ) +
        event(
          'content_block_delta',
          '"index":0,"delta":{"type":"signature_delta","signature":"SIGNATURE"}',
        ) +
        event('content_block_stop', '"index":0') +
        event('content_block_start', '"index":1,"content_block":{"type":"text","text":""}') +
        event('content_block_delta', '"index":1,"delta":{"type":"text_delta","text":"Let me"}') +
        event('content_block_delta', '"index":1,"delta":{"type":"text_delta","text":" look."}') +
        event('content_block_stop', '"index":1') +
        event(
          'content_block_start',
          '"index":2,"content_block":{"type":"tool_use","id":"toolu_A1","name":"weather","input":{}}',
        ) +
        event(
          'content_block_delta',
          '"index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"city\\":"}',
        ) +
        'event: ping\ndata: {"type":"ping"}\n\n' +
        event(
          'content_block_delta',
          '"index":2,"delta":{"type":"input_json_delta","partial_json":" \\"Oslo\\"}"}',
        ) +
        event('content_block_stop', '"index":2') +
        event(
          'content_block_start',
          '"index":3,"content_block":{"type":"tool_use","id":"toolu_B2","name":"now","input":{}}',
        ) +
        event(
          'content_block_delta',
          '"index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}',
        ) +
        event('content_block_stop', '"index":3') +
        event(
          'message_delta',
          `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{${usage}30,${cache},` +
            '"output_tokens_details":{"thinking_tokens":4}}',
        ) +
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    )
  })

  it('is on grammar', async () => {
    expect(checkMessageStream(await messageStream({ thinking }))).toMatchObject({
      blocks: [
        { type: 'thinking', text: 'Two cities.' },
        { type: 'text', text: 'Let me look.' },
        { type: 'tool_use', id: 'toolu_A1', name: 'weather', text: '{"city": "Oslo"}' },
        { type: 'tool_use', name: 'now', text: '{}' },
      ],
      stopReason: 'tool_use',
    })
  })

  it('tells at once what it streams', async () => {
    expect(await messageJson({ thinking })).toMatchObject({
      content: [
        { type: 'thinking', thinking: 'Two cities.', signature: expect.stringMatching(/^sig_/) },
        { type: 'text', text: 'Let me look.' },
        { type: 'tool_use', id: 'toolu_A1', name: 'weather', input: { city: 'Oslo' } },
        { type: 'tool_use', id: 'toolu_B2', name: 'now', input: {} },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { output_tokens: 30, output_tokens_details: { thinking_tokens: 4 } },
    })
  })

  it.each([
    {},
    { thinking: { type: 'disabled' } },
    { thinking: { ...thinking, display: 'omitted' } },
  ])('keeps its thoughts to itself with %j', async (fields) => {
    const { blocks } = checkMessageStream(await messageStream(fields))
    expect(blocks.map(({ type }) => type)).toEqual(['text', 'tool_use', 'tool_use'])
    const { content } = (await messageJson(fields)) as { content: Array<{ type: string }> }
    expect(content.map(({ type }) => type)).toEqual(['text', 'tool_use', 'tool_use'])
  })

  it('of thoughts that no one asked for has one empty text block', async () => {
    const script = THINKING.filter((told) => told instanceof Error || told.type !== 'text')
    expect(checkMessageStream(await messageStream({}, script)).blocks).toMatchObject([
      { type: 'text', text: '' },
    ])
    expect(await messageJson({}, script)).toMatchObject({ content: [{ type: 'text', text: '' }] })
    expect(await messageJson({ thinking }, script)).toMatchObject({
      content: [{ type: 'thinking' }],
    })
  })

  it('that is cut off says so', async () => {
    expect(checkMessageStream(await messageStream({}, CUT))).toMatchObject({
      stopReason: 'max_tokens',
      blocks: [{ type: 'text' }, { type: 'tool_use', text: '{"city":' }],
    })
    expect(await messageJson({}, CUT)).toMatchObject({
      stop_reason: 'max_tokens',
      content: [{ type: 'text' }, { type: 'tool_use', name: 'weather', input: {} }],
    })
  })

  it('that was stopped by a text behind its call was stopped by the call', async () => {
    const finish = {
      type: 'finish',
      reason: 'tool_calls',
      stopSequence: 'END',
      usage: LONG_USAGE,
    } as const
    const raw = await messageStream({}, [...CALLING.slice(0, -1), finish])
    expect(checkMessageStream(raw)).toMatchObject({ stopReason: 'tool_use', stopSequence: null })
  })

  it('goes back to text behind a call', async () => {
    const script: Script = [...CALLING.slice(0, -1), ...HELLO.slice(3, 4), ...CALLING.slice(-1)]
    const { blocks } = checkMessageStream(await messageStream({}, script))
    expect(blocks.at(-1)).toMatchObject({ type: 'text', text: 'Hello' })
  })
})
