/** Answers of the three styles to the same events of a generation, streamed and in one body. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { FinishReason, GenerationEvent } from '../../../src/types/index.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { PATHS, STYLES, type Style } from '../../support/generation-cases.ts'
import { checkChatStream, checkChatUsage } from '../../support/openai-grammar.ts'
import { checkResponse, checkResponseStream } from '../../support/responses-grammar.ts'
import { toTranscript } from '../../support/transcript.ts'
import { bodyOf } from './field-table.ts'
import { HELLO, messageOf, scriptedHost, send, USAGE } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'
import { askedOf, CALLING, CUT, LONG_USAGE, THINKING, tokenOf } from './scripts.ts'

const REASONING = {
  chat: { reasoning_effort: 'low' },
  messages: { thinking: { type: 'enabled', budget_tokens: 50 } },
  responses: { reasoning: { effort: 'high', summary: 'auto' } },
}
const USAGE_TOO = { chat: { stream_options: { include_usage: true } }, messages: {}, responses: {} }
const START = { type: 'start', promptTokens: 12, cachedTokens: 5 } as const
const finish = (reason: FinishReason, stopSequence: string | null = null) =>
  ({ type: 'finish', reason, stopSequence, usage: USAGE }) as const
const without = (type: GenerationEvent['type'], script: Script) =>
  script.filter((event) => event instanceof Error || event.type !== type)

const ask = (style: Style, fields: object, script: Script = HELLO) =>
  send(scriptedHost({ script }), PATHS[style], { body: bodyOf(PATHS[style], fields) })

async function textOf(style: Style, fields: object, script?: Script): Promise<string> {
  const response = await ask(style, fields, script)
  expect(response.status).toBe(200)
  const isStream = 'stream' in fields && fields.stream === true
  const type = isStream ? 'text/event-stream; charset=utf-8' : 'application/json'
  expect(response.headers.get('content-type')).toBe(type)
  expect(response.headers.get('cache-control')).toBe('no-cache')
  return response.text()
}
const streamOf = (style: Style, fields: object = {}, script?: Script) =>
  textOf(style, { stream: true, ...fields }, script)
const bodyOfAnswer = async (style: Style, fields: object = {}, script?: Script) =>
  JSON.parse(await textOf(style, fields, script))

/** Expects a response with these fields, streamed and in one body. */
async function expectBoth(fields: object, script: Script, expected: object): Promise<void> {
  const { response } = checkResponseStream(await streamOf('responses', fields, script))
  expect(response).toMatchObject(expected)
  expect(await bodyOfAnswer('responses', fields, script)).toMatchObject(expected)
}

/** Replaces what differs from run to run. */
const settled = (raw: string) =>
  raw
    .replaceAll(/"(chatcmpl-|msg|resp|fc|rs|sig)_?[0-9a-f]{24}"/g, '"$1"')
    .replaceAll(/"(created(?:_at)?|completed_at)":\d{10},/g, '"$1":0,')

const FINISH: Readonly<Record<Style, Readonly<Record<FinishReason, string>>>> = {
  chat: { stop: 'stop', length: 'length', stop_sequence: 'stop', tool_calls: 'tool_calls' },
  messages: {
    stop: 'end_turn',
    length: 'max_tokens',
    stop_sequence: 'stop_sequence',
    tool_calls: 'tool_use',
  },
  responses: {
    stop: 'completed',
    length: 'incomplete',
    stop_sequence: 'completed',
    tool_calls: 'completed',
  },
}

const ODD = 'line\nline\r\n\n"quoted" \u2028 data: [DONE]\n\n \ud83d\ude00'
const CALLS = [
  { name: 'weather', arguments: '{"city": "Oslo"}' },
  { name: 'now', arguments: '{}' },
]
const CUT_CALL = [{ name: 'weather', arguments: '{"city":' }]
const BOTH = { text: 'Let me look.', calls: CALLS }
const THOUGHT = 'Two cities.'

type Row = [name: string, script: Script, parts: object, reasons?: boolean]

const ROWS: Row[] = [
  ['a text', HELLO, { text: 'Hello there' }],
  ['any characters', [START, { type: 'text', text: ODD }, finish('stop')], { text: ODD }],
  ['empty pieces', [...HELLO.slice(0, -1), { type: 'text', text: '' }, finish('stop')], {}],
  ['nothing', without('text', HELLO), { text: '' }],
  ['a limit', [...HELLO.slice(0, -1), finish('length')], {}],
  ['a stop sequence', [...HELLO.slice(0, -1), finish('stop_sequence', 'END')], {}],
  ['thoughts and calls', CALLING, { ...BOTH, reasoning: THOUGHT }, true],
  ['thoughts that were not requested', CALLING, { ...BOTH, reasoning: '' }],
  ['thoughts alone that were not requested', without('text', THINKING), { text: '' }],
  ['a call that is cut off', CUT, { text: 'Let me look.', calls: CUT_CALL }],
  [
    'a stop sequence after a call',
    [...CALLING.slice(0, -1), { ...finish('tool_calls', 'END'), usage: LONG_USAGE }],
    BOTH,
  ],
]

/** The arguments in one message are an object, which is empty if they are cut off. */
function parseInput(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return '{}'
  }
}

const WAYS = STYLES.flatMap((style) => [true, false].map((stream) => ({ style, stream })))

describe.each(WAYS)('$style, stream: $stream:', ({ style, stream }) => {
  it.each(ROWS)('has %s', async (_, script, parts, reasons = false) => {
    const fields = { stream, ...(reasons && REASONING[style]), ...(stream && USAGE_TOO[style]) }
    const raw = await textOf(style, fields, script)
    if (!stream && style === 'chat') checkChatUsage(JSON.parse(raw).usage)
    if (!stream && style === 'responses') checkResponse(JSON.parse(raw))
    const { calls, ...seen } = toTranscript(style, raw, { stream })
    const last = script.at(-1) as GenerationEvent & { type: 'finish' }
    const expected = { reasoning: '', text: 'Hello there', calls: [], error: null, ...parts }
    const { promptTokens, completionTokens } = last.usage
    expect(seen).toMatchObject({
      reasoning: expected.reasoning,
      text: expected.text,
      finish: FINISH[style][last.reason],
      tokens: [promptTokens, completionTokens],
      error: null,
    })
    const isParsed = style === 'messages' && !stream
    const read = ({ name, arguments: text }: (typeof CALLS)[number]) => ({
      name,
      arguments: isParsed ? parseInput(text) : text,
    })
    expect(calls).toEqual(expected.calls.map(read))
  })
})

const MESSAGE = 'The tab that computed was closed.'
const FAILURE = new InoriginError('unavailable', MESSAGE, { code: 'host_gone' })
/** Fields of the one body of a failed answer, by which clients tell it from an answer. */
const FAILED_BODY = {
  chat: { type: 'error' },
  messages: { type: 'error' },
  responses: { object: 'response', status: 'failed', store: false, usage: null },
}
const WIRE_ERROR = { message: MESSAGE, type: 'overloaded_error', param: null, code: 'host_gone' }
const ERRORS: Readonly<Record<Style, object>> = {
  chat: WIRE_ERROR,
  messages: { type: 'overloaded_error', message: MESSAGE },
  responses: {
    type: 'error',
    sequence_number: expect.any(Number),
    message: MESSAGE,
    code: 'host_gone',
    param: null,
    error: WIRE_ERROR,
  },
}

describe.each(STYLES)('an answer of %s', (style) => {
  it.each([
    ['in its middle', HELLO.slice(0, 4), 'Hello'],
    ['before its start', HELLO.slice(0, 2), ''],
  ])('ends with an error in the stream if it fails %s', async (_, begun, text) => {
    const raw = await streamOf(style, USAGE_TOO[style], [...begun, FAILURE])
    const seen = toTranscript(style, raw, { stream: true })
    expect(seen).toMatchObject({ text, finish: null })
    expect(seen.error).toEqual(ERRORS[style])
  })

  it('is an error if its events end too soon', async () => {
    const raw = await streamOf(style, USAGE_TOO[style], HELLO.slice(0, 4))
    const { error } = toTranscript(style, raw, { stream: true })
    expect(JSON.stringify(error)).toContain('"api_error"')
  })

  it('ends its one body with the error if it fails late, after the spaces', async () => {
    const response = await ask(style, {}, [...HELLO.slice(0, 4), FAILURE])
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(text).toMatch(/^ {2}\{/)
    expect(JSON.parse(text)).toMatchObject({ error: WIRE_ERROR, ...FAILED_BODY[style] })
  })

  it('has spaces before its one body while it is computed', async () => {
    expect(await textOf(style, {})).toMatch(/^ {3}\{/)
  })
})

describe('a chat completion', () => {
  const chunk = (delta: string, reason = 'null') =>
    'data: {"id":"chatcmpl-","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[{"index":0,' +
    `"delta":${delta},"finish_reason":${reason},"logprobs":null}],"usage":null}\n\n`
  const usage =
    '"usage":{"prompt_tokens":12,"completion_tokens":30,"total_tokens":42,"prompt_tokens_details":{"cached_tokens":5},' +
    '"completion_tokens_details":{"reasoning_tokens":4}}'
  const script = [...HELLO.slice(0, 2), ...CALLING]

  it('streams these bytes', async () => {
    const fields = { ...REASONING.chat, stream_options: { include_usage: true } }
    expect(settled(await streamOf('chat', fields, script))).toBe(
      ': downloading @acme/tiny 45% 3.1 MB/s\n\n: heartbeat\n\n' +
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
        'data: {"id":"chatcmpl-","object":"chat.completion.chunk","created":0,"model":"@acme/tiny","choices":[],' +
        `${usage}}\n\ndata: [DONE]\n\n`,
    )
  })

  it('is this one body', async () => {
    const raw = await textOf('chat', REASONING.chat, CALLING)
    const call = (id: string, name: string, text: string) =>
      `{"id":"${id}","type":"function","function":{"name":"${name}","arguments":"${text}"}}`
    expect(settled(raw.trim())).toBe(
      '{"id":"chatcmpl-","object":"chat.completion","created":0,"model":"@acme/tiny","choices":[{"index":0,"message":' +
        '{"role":"assistant","content":"Let me look.","reasoning_content":"Two cities.","refusal":null,"tool_calls":[' +
        `${call('call_A1', 'weather', '{\\"city\\": \\"Oslo\\"}')},${call('call_B2', 'now', '{}')}]},` +
        `"finish_reason":"tool_calls","logprobs":null}],${usage}}`,
    )
    expect(Math.abs(JSON.parse(raw).created - Date.now() / 1000)).toBeLessThan(5)
  })

  it.each([
    ['download', 0, 0, 0, 'downloading @acme/tiny'],
    ['download', 999, 1000, 0, 'downloading @acme/tiny 99%'],
    ['download', 0, 1000, 49_000, 'downloading @acme/tiny 0% 0.0 MB/s'],
    ['compile', 5, 5, 0, 'compiling @acme/tiny 100%'],
    ['ready', 0, 0, 0, 'ready @acme/tiny'],
  ] as const)('has a comment about %s of %i/%i at %i', async (phase, loaded, total, rate, said) => {
    const amounts = { loadedBytes: loaded, totalBytes: total, bytesPerSecond: rate }
    const progress = { tag: '@acme/tiny', phase, ...amounts, remainingSeconds: null }
    const raw = await streamOf('chat', {}, [{ type: 'progress', progress }, ...HELLO])
    expect(raw.startsWith(`: ${said}\n\n`)).toBe(true)
  })

  it.each([null, {}, { include_usage: null }, { include_usage: false }])(
    'has no usage with the stream options %o',
    async (stream_options) => {
      expect(checkChatStream(await streamOf('chat', { stream_options })).usage).toBeNull()
    },
  )

  it.each([{ reasoning_effort: 'none' }, { thinking: { type: 'adaptive', display: 'omitted' } }])(
    'has no thoughts with %j',
    async (fields) => {
      expect(checkChatStream(await streamOf('chat', fields, CALLING)).reasoning).toBe('')
      const { choices } = await bodyOfAnswer('chat', fields, CALLING)
      expect(choices[0].message).not.toHaveProperty('reasoning_content')
    },
  )

  it('has no content if it only calls', async () => {
    const { choices } = await bodyOfAnswer('chat', {}, without('text', CALLING))
    expect(choices[0].message).toMatchObject({ content: null })
  })

  it('counts draft tokens if it could have some', async () => {
    const drafts = { accepted: 0, rejected: 7 }
    const drafted: Script = [
      ...HELLO.slice(0, -1),
      { type: 'finish', reason: 'stop', stopSequence: null, usage: { ...LONG_USAGE, drafts } },
    ]
    const { usage: counted } = await bodyOfAnswer('chat', {}, drafted)
    expect(counted.completion_tokens_details).toEqual({
      reasoning_tokens: 4,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 7,
    })
    const fields = { stream_options: { include_usage: true } }
    const streamed = await streamOf('chat', fields, drafted)
    expect(checkChatStream(streamed, { includeUsage: true }).usage).toEqual(counted)
  })

  it('has another id every time', async () => {
    const [first, second] = [await bodyOfAnswer('chat'), await bodyOfAnswer('chat')]
    expect(first.id).not.toBe(second.id)
  })
})

describe('a call of a custom tool', () => {
  const INPUT = 'say "hi"\n'
  const TOOLS = [
    { type: 'custom', name: 'run' },
    { type: 'function', name: 'now' },
  ]
  const calling = (reason: FinishReason, ...pieces: string[]): Script => [
    START,
    { type: 'tool_call', index: 0, id: 'call_A1', name: 'run', isCustom: true },
    ...pieces.map((piece) => ({ type: 'tool_arguments', index: 0, text: piece }) as const),
    ...(reason === 'tool_calls' ? CALLING.slice(9, 11) : []),
    finish(reason),
  ]
  const item = { type: 'custom_tool_call', call_id: 'call_A1', name: 'run' }

  it('has a text, beside the arguments of functions', async () => {
    const script = calling('tool_calls', 'say ', '', '"hi"\n')
    expect(checkChatStream(await streamOf('chat', {}, script)).toolCalls).toEqual([
      { id: 'call_A1', name: 'run', arguments: INPUT, isCustom: true },
      { id: 'call_B2', name: 'now', arguments: '{}' },
    ])
    const { choices } = await bodyOfAnswer('chat', {}, script)
    expect(choices[0].message.tool_calls).toEqual([
      { id: 'call_A1', type: 'custom', custom: { name: 'run', input: INPUT } },
      { id: 'call_B2', type: 'function', function: { name: 'now', arguments: '{}' } },
    ])
    const output = [
      { ...item, input: INPUT },
      { type: 'function_call', name: 'now', arguments: '{}' },
    ]
    await expectBoth({}, script, { output })
  })

  it.each([[[]], [['Os']]])('has the text so far if it is cut off: %j', async (pieces) => {
    const script = calling('length', ...pieces)
    const input = pieces.join('')
    const [call] = checkChatStream(await streamOf('chat', {}, script)).toolCalls
    expect(call?.arguments).toBe(input)
    await expectBoth({}, script, { output: [{ ...item, input, status: 'incomplete' }] })
  })

  it('is repeated with its tool by a response, and can be referred to', async () => {
    const script = calling('tool_calls', INPUT)
    const { tools, output } = await bodyOfAnswer('responses', { tools: TOOLS }, script)
    expect(tools).toEqual([
      { type: 'custom', name: 'run', format: { type: 'text' } },
      { type: 'function', name: 'now', description: null, strict: false, parameters: {} },
    ])
    const result = { type: 'custom_tool_call_output', call_id: 'call_A1', output: 'done' }
    const body = { model: '@acme/tiny', input: [output[0], result] }
    const { request, ignored } = await askedOf(PATHS.responses, body)
    expect(request.messages).toMatchObject([
      { toolCalls: [{ name: 'run', arguments: `{"input": ${JSON.stringify(INPUT)}}` }] },
      { role: 'tool', name: 'run', content: 'done' },
    ])
    expect(ignored).toBeNull()
  })
})

describe('log probabilities', () => {
  const { top, ...rest } = tokenOf('<|im_start|>')
  const special = { ...rest, bytes: [], top: top.map((each) => ({ ...each, bytes: [] })) }
  const script: Script = [
    { type: 'start', promptTokens: 1, cachedTokens: 0 },
    { type: 'text', text: 'Hi ', logprobs: [tokenOf('H'), tokenOf('i ')] },
    // A special token has a name and no text.
    { type: 'text', text: '', logprobs: [special] },
    { type: 'text', text: 'é', logprobs: [tokenOf('é')] },
    finish('stop'),
  ]
  /** All entries. `none` stands for the bytes of a token that adds none to the text. */
  const allWith = (none: null | []) =>
    [
      { token: 'H', bytes: [72] },
      { token: 'i ', bytes: [105, 32] },
      { token: '<|im_start|>', bytes: none },
      { token: 'é', bytes: [195, 169] },
    ].map((entry) => ({
      ...entry,
      logprob: -0.25,
      top_logprobs: [
        { ...entry, logprob: -0.25 },
        { token: '', bytes: none, logprob: -9999 },
      ],
    }))

  it('are in a chat completion if it asks for them', async () => {
    const fields = { logprobs: true, top_logprobs: 2 }
    const seen = checkChatStream(await streamOf('chat', fields, script), { logprobs: true })
    expect(seen).toMatchObject({ content: 'Hi é', logprobs: allWith(null) })
    const { choices } = await bodyOfAnswer('chat', fields, script)
    expect(choices[0].logprobs).toEqual({ content: allWith(null), refusal: null })
    const hidden = [...script.slice(0, 2), finish('stop')]
    expect(checkChatStream(await streamOf('chat', {}, hidden)).content).toBe('Hi ')
  })

  it('are in a response if it asks for them', async () => {
    const output = [{ content: [{ text: 'Hi é', logprobs: allWith([]) }] }]
    await expectBoth({ top_logprobs: 2 }, script, { output })
  })
})

describe('a message', () => {
  const event = (name: string, fields: string) =>
    `event: ${name}\ndata: {"type":"${name}",${fields}}\n\n`
  const start = (index: number, block: string) =>
    event('content_block_start', `"index":${index},"content_block":${block}`)
  const delta = (index: number, type: string, fields: string) =>
    event('content_block_delta', `"index":${index},"delta":{"type":"${type}_delta",${fields}}`)
  const stop = (index: number) => event('content_block_stop', `"index":${index}`)
  const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
  const cache = '"cache_creation_input_tokens":0,"cache_read_input_tokens":5'
  const usage = (output: number) => `"input_tokens":7,"output_tokens":${output},${cache}`
  const thoughts = '"output_tokens_details":{"thinking_tokens":4}'
  const toolUse = (id: string, name: string, input: string) =>
    `{"type":"tool_use","id":"${id}","name":"${name}","input":${input}}`

  it('streams these bytes', async () => {
    const script = [...HELLO.slice(0, 2), ...CALLING]
    expect(settled(await streamOf('messages', REASONING.messages, script))).toBe(
      `: downloading @acme/tiny 45% 3.1 MB/s\n\n${PING}${PING}` +
        event(
          'message_start',
          '"message":{"id":"msg","type":"message","role":"assistant","model":"@acme/tiny","content":[],' +
            `"stop_reason":null,"stop_sequence":null,"usage":{${usage(0)}}}`,
        ) +
        start(0, '{"type":"thinking","thinking":"","signature":""}') +
        delta(0, 'thinking', '"thinking":"Two"') +
        delta(0, 'thinking', '"thinking":" cities."') +
        delta(0, 'signature', '"signature":"sig"') +
        stop(0) +
        start(1, '{"type":"text","text":""}') +
        delta(1, 'text', '"text":"Let me"') +
        delta(1, 'text', '"text":" look."') +
        stop(1) +
        start(2, toolUse('toolu_A1', 'weather', '{}')) +
        delta(2, 'input_json', '"partial_json":"{\\"city\\":"') +
        PING +
        delta(2, 'input_json', '"partial_json":" \\"Oslo\\"}"') +
        stop(2) +
        start(3, toolUse('toolu_B2', 'now', '{}')) +
        delta(3, 'input_json', '"partial_json":"{}"') +
        stop(3) +
        event(
          'message_delta',
          `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{${usage(30)},${thoughts}}`,
        ) +
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    )
  })

  it('is this one body', async () => {
    const raw = await textOf('messages', REASONING.messages, CALLING)
    expect(settled(raw.trim())).toBe(
      '{"id":"msg","type":"message","role":"assistant","model":"@acme/tiny","content":[' +
        '{"type":"thinking","thinking":"Two cities.","signature":"sig"},{"type":"text","text":"Let me look."},' +
        `${toolUse('toolu_A1', 'weather', '{"city":"Oslo"}')},${toolUse('toolu_B2', 'now', '{}')}],` +
        `"stop_reason":"tool_use","stop_sequence":null,"usage":{${usage(30)},${thoughts}}}`,
    )
    const plain = await bodyOfAnswer('messages')
    expect(plain.usage).not.toHaveProperty('output_tokens_details')
  })

  it.each([
    { thinking: { type: 'disabled' } },
    { thinking: { ...REASONING.messages.thinking, display: 'omitted' } },
  ])('has no thoughts with %j', async (fields) => {
    const { blocks } = checkMessageStream(await streamOf('messages', fields, CALLING))
    const { content } = await bodyOfAnswer('messages', fields, CALLING)
    for (const seen of [blocks, content])
      expect(seen).toMatchObject([{ type: 'text' }, { type: 'tool_use' }, { type: 'tool_use' }])
  })

  it('has one block, which is empty if the model writes nothing', async () => {
    const [nothing, thought] = [HELLO, THINKING].map((script) => without('text', script))
    const empty = [{ type: 'text', text: '' }]
    expect((await bodyOfAnswer('messages', {}, nothing)).content).toEqual(empty)
    expect((await bodyOfAnswer('messages', {}, thought)).content).toEqual(empty)
    const reasoned = await bodyOfAnswer('messages', REASONING.messages, thought)
    expect(reasoned.content).toMatchObject([{ type: 'thinking' }])
    const { blocks } = checkMessageStream(await streamOf('messages', {}, nothing))
    expect(blocks).toMatchObject(empty)
  })

  it('names the stop sequence, unless a call comes before it', async () => {
    const stopped = [...HELLO.slice(0, -1), finish('stop_sequence', 'END')]
    const called = [...CALLING.slice(0, -1), finish('tool_calls', 'END')]
    for (const [script, sequence] of [
      [stopped, 'END'],
      [called, null],
    ] as const) {
      const body = await bodyOfAnswer('messages', {}, script)
      expect(body.stop_sequence).toBe(sequence)
      const seen = checkMessageStream(await streamOf('messages', {}, script))
      expect(seen.stopSequence).toBe(sequence)
    }
  })

  it('tells the text of a call that is cut off beside its empty input', async () => {
    const { content } = await bodyOfAnswer('messages', {}, CUT)
    const head = { type: 'tool_use', id: 'toolu_A1', name: 'weather' }
    expect(content[1]).toEqual({ ...head, input: {}, partial_json: '{"city":' })
    const messages = [
      { role: 'user', content: 'Oslo?' },
      { role: 'assistant', content },
      { role: 'user', content: 'Go on.' },
    ]
    const { request, ignored } = await askedOf(PATHS.messages, messageOf({ messages }))
    expect(request.messages[1]).toMatchObject({ toolCalls: [{ arguments: '{"city":' }] })
    expect(ignored).toBeNull()
    // There is no text to tell of a call that is cut off before its arguments.
    const early = await bodyOfAnswer('messages', {}, without('tool_arguments', CUT))
    expect(early.content[1]).toEqual({ ...head, input: {} })
  })

  it('has another block for text after a call', async () => {
    const script: Script = [...CALLING.slice(0, -1), ...HELLO.slice(3, 4), ...CALLING.slice(-1)]
    const { blocks } = checkMessageStream(await streamOf('messages', {}, script))
    expect(blocks.at(-1)).toMatchObject({ type: 'text', text: 'Hello' })
  })
})

describe('a response', () => {
  it('streams these bytes', async () => {
    const rest =
      '"background":false,"error":null,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,' +
      '"max_tool_calls":null,"metadata":{},"model":"@acme/tiny","parallel_tool_calls":true,"presence_penalty":0,' +
      '"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},' +
      '"safety_identifier":null,"service_tier":"default","store":true,"temperature":1,' +
      '"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,' +
      '"top_p":1,"truncation":"disabled","incomplete_details":null'
    const head = (status: string, end: string) =>
      `{"id":"resp","object":"response","created_at":0,"completed_at":${status === 'completed' ? 0 : null},"status":"${status}",${rest},${end}}`
    const beginning = head('in_progress', '"output":[],"usage":null')
    const message = (status: string, content: string) =>
      `{"id":"msg","type":"message","status":"${status}","role":"assistant","content":[${content}]}`
    const part = (text: string) =>
      `{"type":"output_text","text":"${text}","annotations":[],"logprobs":[]}`
    const usage =
      '{"input_tokens":12,"input_tokens_details":{"cached_tokens":5},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":15}'
    const done = message('completed', part('Hello there'))
    let number = 0
    const event = (type: string, fields: string) =>
      `event: response.${type}\ndata: {"type":"response.${type}","sequence_number":${number++},${fields}}\n\n`
    const place = '"output_index":0,"item_id":"msg","content_index":0'
    expect(settled(await streamOf('responses'))).toBe(
      ': downloading @acme/tiny 45% 3.1 MB/s\n\n: heartbeat\n\n' +
        event('created', `"response":${beginning}`) +
        event('in_progress', `"response":${beginning}`) +
        event('output_item.added', `"output_index":0,"item":${message('in_progress', '')}`) +
        event('content_part.added', `${place},"part":${part('')}`) +
        event('output_text.delta', `${place},"delta":"Hello","logprobs":[]`) +
        ': heartbeat\n\n' +
        event('output_text.delta', `${place},"delta":" there","logprobs":[]`) +
        event('output_text.done', `${place},"text":"Hello there","logprobs":[]`) +
        event('content_part.done', `${place},"part":${part('Hello there')}`) +
        event('output_item.done', `"output_index":0,"item":${done}`) +
        event(
          'completed',
          `"response":${head('completed', `"output":[${done}],"usage":${usage}`)}`,
        ),
    )
  })

  it('repeats fields of its request, and has the same items streamed and in one body', async () => {
    const fields = { ...REASONING.responses, instructions: 'S', max_output_tokens: 50 }
    await expectBoth(fields, CALLING, {
      status: 'completed',
      store: true,
      ...fields,
      output: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Two cities.' }] },
        { type: 'message', content: [{ type: 'output_text', text: 'Let me look.' }] },
        { type: 'function_call', call_id: 'call_A1', name: 'weather', status: 'completed' },
        { type: 'function_call', call_id: 'call_B2', name: 'now', arguments: '{}' },
      ],
      usage: { output_tokens_details: { reasoning_tokens: 4 } },
    })
  })

  it('seals its thoughts for a client that sends them back', async () => {
    const fields = { ...REASONING.responses, include: ['reasoning.encrypted_content'] }
    const sealed = { type: 'reasoning', encrypted_content: expect.stringMatching(/^seal_/) }
    await expectBoth(fields, CALLING, { output: [sealed, {}, {}, {}] })
  })

  it.each([
    ['call', CUT, ['completed', 'incomplete']],
    ['text', [...HELLO.slice(0, -1), finish('length')], ['incomplete']],
  ])('whose %s is cut off is incomplete from there', async (_, script, statuses) => {
    await expectBoth({}, script, {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: statuses.map((status) => ({ status })),
    })
  })

  it('has one empty message if the model writes nothing', async () => {
    const output = [{ type: 'message', content: [{ text: '' }] }]
    await expectBoth({}, without('text', HELLO), { output })
    await expectBoth({}, without('text', THINKING), { output })
  })
})
