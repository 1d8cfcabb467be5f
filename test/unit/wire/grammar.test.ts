/** The checkers of streams refuse a stream that is wrong in any one place. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { errorResponse } from '../../../src/wire/errors.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkErrorBody } from '../../support/error-body.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'
import { checkResponseStream } from '../../support/responses-grammar.ts'
import { pathsOf, put } from './mutate.ts'

/** Names each damage to one of the frames that the checker accepts. */
function acceptedDamage(frames: readonly string[], check: (raw: string) => unknown): string[] {
  const damaged = new Map<string, readonly string[]>()
  for (const [index, frame] of frames.entries()) {
    const [before, after] = [frames.slice(0, index), frames.slice(index + 1)]
    damaged.set(`without ${index}`, [...before, ...after])
    damaged.set(`${index} twice`, [...before, frame, frame, ...after])
    if (after[0]) damaged.set(`${index} late`, [...before, after[0], frame, ...after.slice(1)])
    const [, head = '', json = ''] = /^((?:event: .*\n)?data: )(\{.*\})\n\n$/.exec(frame) ?? []
    if (json === '') continue
    const data = JSON.parse(json) as unknown
    for (const path of [[], ...pathsOf(data)]) {
      const name = `${index} ${path.join('.')}`
      const toFrame = (value: unknown) => `${head}${JSON.stringify(put(data, path, value))}\n\n`
      const changed = (value: unknown) => [...before, toFrame(value), ...after]
      if (path.length > 0) damaged.set(`${name} absent`, changed(undefined))
      damaged.set(`${name} wrong`, changed({ wrong: 1 }))
      const own = path.reduce((at: unknown, key) => Reflect.get(at as object, key), data)
      const isObject = typeof own === 'object' && own !== null && !Array.isArray(own)
      if (isObject) damaged.set(`${name} with more`, changed({ ...own, more: 1 }))
    }
  }
  const accepts = (raw: string): boolean => {
    try {
      check(raw)
      return true
    } catch (error) {
      expect(String(error)).toContain('off grammar')
      return false
    }
  }
  expect(accepts(frames.join(''))).toBe(true)
  return [...damaged].flatMap(([name, each]) => (accepts(each.join('')) ? [name] : []))
}

const HEAD = '"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m"'
const delta = (fields: string, reason = 'null') =>
  `data: {${HEAD},"choices":[{"index":0,"delta":${fields},"finish_reason":${reason},"logprobs":null}]}\n\n`
const ROLE = delta('{"role":"assistant","content":""}')
const REASONING = delta('{"reasoning_content":"Hm."}')
const HELLO = delta('{"content":"Hello"}')
const CALL = delta(
  '{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}',
)
const ARGUMENTS = delta('{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}')
const CUSTOM = delta(
  '{"tool_calls":[{"index":0,"id":"call_1","type":"custom","custom":{"name":"f","input":""}}]}',
)
const INPUT = delta('{"tool_calls":[{"index":0,"custom":{"input":"a"}}]}')
const STOP = delta('{}', '"stop"')
const CALLED = delta('{}', '"tool_calls"')
const USAGE =
  `data: {${HEAD},"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,` +
  '"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":0}}}\n\n'
/** Chunks of a stream for which usage was requested. */
const untilUsage = (raw: string) => raw.replaceAll('}]}\n', '}],"usage":null}\n')
const DONE = 'data: [DONE]\n\n'
const ERROR = 'data: {"error":{"message":"Gone.","type":"api_error","code":null,"param":null}}\n\n'

describe('checkChatStream', () => {
  it('returns the parts of a stream', () => {
    const seen = checkChatStream(
      untilUsage(ROLE + REASONING + HELLO + CALL + ARGUMENTS + CALLED) + USAGE + DONE,
      { includeUsage: true },
    )
    expect(seen).toMatchObject({
      id: 'chatcmpl-1',
      model: 'm',
      reasoning: 'Hm.',
      content: 'Hello',
      toolCalls: [{ id: 'call_1', name: 'f', arguments: '{}' }],
      finishReason: 'tool_calls',
      usage: { total_tokens: 3 },
      error: null,
    })
  })

  it.each([
    [
      'a text',
      [ROLE, REASONING, HELLO, STOP, DONE],
      false,
      ['without 1', '1 twice', 'without 2', '2 twice'],
    ],
    ['calls', [ROLE, HELLO, CALL, ARGUMENTS, CALLED, DONE], false, ['without 1', '1 twice']],
    [
      'a call of a custom tool',
      [ROLE, CUSTOM, INPUT, CALLED, DONE],
      false,
      ['without 2', '2 twice'],
    ],
    [
      'usage',
      [...[ROLE, HELLO, STOP].map(untilUsage), USAGE, DONE],
      true,
      ['without 1', '1 twice'],
    ],
    [
      'an error',
      [ROLE, HELLO, ERROR],
      false,
      ['without 1', '1 twice', '2 error.code wrong', '2 error.param wrong'],
    ],
    ['an error at once', [ERROR], false, ['0 error.code wrong', '0 error.param wrong']],
  ])('accepts no other damage to %s', (_, frames, includeUsage, accepted) => {
    const damage = acceptedDamage(frames, (raw) => checkChatStream(raw, { includeUsage }))
    expect(damage.filter((name) => !name.endsWith('logprobs absent'))).toEqual(accepted)
  })

  it('accepts comments', () => {
    const raw = `: wait\n\n${ROLE}: wait\n\n${HELLO}${STOP}${DONE}`
    expect(checkChatStream(raw).content).toBe('Hello')
  })

  const USED = untilUsage(ROLE + STOP) + USAGE + DONE
  it.each([
    ['a role with content', delta('{"role":"assistant","content":"x"}') + STOP + DONE],
    ['content in the finish', ROLE + delta('{"content":"x"}', '"stop"') + DONE],
    ['an empty content delta', ROLE + delta('{"content":""}') + STOP + DONE],
    ['the reason stop after a call', ROLE + CALL + ARGUMENTS + STOP + DONE],
    ['the reason tool_calls without a call', ROLE + CALLED + DONE],
    ['a call out of turn', ROLE + CALL.replace('[{"index":0', '[{"index":1') + CALLED + DONE],
    ['usage that was not requested', ROLE + STOP + USAGE + DONE],
    ['another id', ROLE + HELLO.replace('chatcmpl-1', 'chatcmpl-2') + STOP + DONE],
    ['another model', ROLE + HELLO.replace('"m"', '"n"') + STOP + DONE],
    ['another time', ROLE + HELLO.replace('1767225600', '1767225601') + STOP + DONE],
    ['a fraction of a second', (ROLE + STOP).replaceAll('1767225600', '1767225600.5') + DONE],
    ['an id of another kind', (ROLE + STOP).replaceAll('chatcmpl-1', 'msg_1') + DONE],
    ['another index', ROLE + HELLO.replace('"index":0', '"index":1') + STOP + DONE],
    ['a wrong sum', USED.replace('"total_tokens":3', '"total_tokens":4'), true],
    ['too much cached', USED.replace('"cached_tokens":1', '"cached_tokens":9'), true],
    ['half a token', USED.replace('"cached_tokens":1', '"cached_tokens":0.5'), true],
    ['an event name', ROLE + `event: chunk\n${HELLO}` + STOP + DONE],
    ['an empty data line', ROLE + 'data: \n\n' + STOP + DONE],
    ['an event without data', ROLE + 'event: x\n\n' + STOP + DONE],
    ['two data lines', ROLE + HELLO.replace('\n\n', '\ndata: {}\n\n') + STOP + DONE],
    ['data that is not JSON', ROLE + 'data: {\n\n' + STOP + DONE],
    ['carriage returns', (ROLE + STOP + DONE).replaceAll('\n', '\r\n')],
    ['a missing end', (ROLE + STOP + DONE).slice(0, -1)],
    ['an additional empty line', `${ROLE}\n${STOP}${DONE}`],
    ['nothing at all', ''],
  ])('refuses %s', (_, raw, includeUsage = false) => {
    expect(() => checkChatStream(raw, { includeUsage })).toThrow('off grammar')
  })
})

const event = (name: string, fields = '') => `event: ${name}\ndata: {"type":"${name}"${fields}}\n\n`
const PING = event('ping')
const START = event(
  'message_start',
  ',"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,' +
    '"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":5}}',
)
const opening = (block: string, index = 0) =>
  event('content_block_start', `,"index":${index},"content_block":${block}`)
const part = (fields: string, index = 0) =>
  event('content_block_delta', `,"index":${index},"delta":${fields}`)
const closing = (index = 0) => event('content_block_stop', `,"index":${index}`)
const text = (index = 0) => [
  opening('{"type":"text","text":""}', index),
  part('{"type":"text_delta","text":"Hello"}', index),
  closing(index),
]
const THINKING = [
  opening('{"type":"thinking","thinking":"","signature":""}'),
  part('{"type":"thinking_delta","thinking":"Hm."}'),
  part('{"type":"signature_delta","signature":"s"}'),
  closing(),
]
const TOOL = [
  opening('{"type":"tool_use","id":"toolu_1","name":"f","input":{}}'),
  part('{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}'),
  closing(),
]
const ending = (reason: string, sequence = 'null') =>
  event(
    'message_delta',
    `,"delta":{"stop_reason":"${reason}","stop_sequence":${sequence}},"usage":{"output_tokens":3}`,
  )
const CLOSE = event('message_stop')
const FAILED = event('error', ',"error":{"type":"api_error","message":"Gone."}')

describe('checkMessageStream', () => {
  const pings = ['0 late', 'without 1', '1 twice', '1 late', 'without 3', '3 twice']
  it.each([
    ['a text', [START, PING, ...text(), ending('stop_sequence', '"END"'), CLOSE], pings],
    [
      'thoughts',
      [START, ...THINKING, ...text(1), ending('end_turn'), CLOSE],
      ['without 2', '2 twice', 'without 6', '6 twice'],
    ],
    ['a call', [START, ...TOOL, ending('tool_use'), CLOSE], ['without 2']],
    ['an error', [START, ...text(), FAILED], ['without 2', '2 twice', 'without 3']],
    ['an error at once', [FAILED], []],
  ])('accepts no other damage to %s', (_, frames, accepted) => {
    expect(acceptedDamage(frames, checkMessageStream)).toEqual(accepted)
  })

  const BOOK = [START, ...text(), ending('end_turn'), CLOSE].join('')
  const CALLED_BOOK = [START, ...TOOL, ending('tool_use'), CLOSE].join('')
  const cut = START + TOOL.join('').replace('1}"', '1"')

  it('returns the parts of a stream', () => {
    const raw = START + text().join('') + ending('stop_sequence', '"END"') + CLOSE
    expect(checkMessageStream(`: wait\n\n${raw}`)).toMatchObject({
      id: 'msg_1',
      model: 'm',
      text: 'Hello',
      blocks: [{ type: 'text', text: 'Hello' }],
      stopReason: 'stop_sequence',
      stopSequence: 'END',
      startUsage: { input_tokens: 7 },
      usage: { output_tokens: 3 },
      error: null,
    })
    expect(checkMessageStream(cut + ending('max_tokens') + CLOSE).stopReason).toBe('max_tokens')
  })

  it.each([
    ['no block', START + ending('end_turn') + CLOSE],
    ['overlapping blocks', START + text()[0] + text(1).join('') + ending('end_turn') + CLOSE],
    ['a gap', START + text(1).join('') + ending('end_turn') + CLOSE],
    ['a delta for another block', BOOK.replace('delta","index":0', 'delta","index":1')],
    ['a delta of another kind', BOOK.replace('text_delta', 'thinking_delta')],
    ['an empty delta', BOOK.replace('Hello', '')],
    ['text at the start of a block', BOOK.replace('"text":""', '"text":"x"')],
    ['input at the start of a call', CALLED_BOOK.replace('"input":{}', '"input":{"a":1}')],
    ['input that is not JSON', cut + ending('tool_use') + CLOSE],
    ['a block after input that is not JSON', cut + text(1).join('') + ending('max_tokens') + CLOSE],
    ['an id of the other style', CALLED_BOOK.replace('toolu_', 'call_')],
    ['a call and end_turn', CALLED_BOOK.replace('"tool_use","stop_s', '"end_turn","stop_s')],
    ['tool_use without a call', BOOK.replace('end_turn', 'tool_use')],
    ['an unknown reason', BOOK.replace('end_turn', 'stop')],
    ['stop_sequence without the text', BOOK.replace('end_turn', 'stop_sequence')],
    ['end_turn with a stop sequence', START + text().join('') + ending('end_turn', '"E"') + CLOSE],
    ['output at the start', BOOK.replace('"output_tokens":0', '"output_tokens":1')],
    ['another prompt at the end', BOOK.replace('tokens":3', 'tokens":3,"input_tokens":9')],
    ['an id of another kind', BOOK.replace('msg_1', 'chatcmpl-1')],
    ['content at the start', BOOK.replace('"content":[]', '"content":[{}]')],
    ['[DONE]', `${BOOK}data: [DONE]\n\n`],
    ['no event name', BOOK.replace('event: message_stop\n', '')],
    ['an event name that is not the type', BOOK.replace('event: message_stop', 'event: ping')],
    ['an event of its own kind', START + event('progress') + BOOK.slice(START.length)],
    ['a ping after the stop', BOOK + PING],
    ['an error after the end of the text', BOOK.replace(CLOSE, FAILED)],
    ['a missing end', BOOK.slice(0, -1)],
    ['nothing at all', ''],
  ])('refuses %s', (_, raw) => {
    expect(raw).not.toBe(BOOK)
    expect(() => checkMessageStream(raw)).toThrow('off grammar')
  })
})

describe('checkResponseStream', () => {
  const rest =
    '"background":false,"error":null,"frequency_penalty":0,"instructions":null,"max_output_tokens":null,' +
    '"max_tool_calls":null,"metadata":{},"model":"m","parallel_tool_calls":true,"presence_penalty":0,' +
    '"previous_response_id":null,"prompt_cache_key":null,"reasoning":null,"safety_identifier":null,' +
    '"service_tier":"default","store":false,"temperature":1,"text":{},"tool_choice":"auto","tools":[],' +
    '"top_logprobs":0,"top_p":1,"truncation":"disabled","incomplete_details":null'
  const response = (status: string, output: string, usage: string) =>
    `"response":{"id":"resp_1","object":"response","created_at":1767225600,"completed_at":${status === 'completed' ? 1767225601 : null},"status":"${status}",${rest},"output":[${output}],"usage":${usage}}`
  const usage =
    '{"input_tokens":2,"input_tokens_details":{"cached_tokens":1},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3}'
  const textPart = (content: string) =>
    `{"type":"output_text","text":"${content}","annotations":[],"logprobs":[]}`
  const message = (status: string, content: string) =>
    `{"id":"msg_1","type":"message","status":"${status}","role":"assistant","content":[${content}]}`
  const call = (status: string, input: string) =>
    `{"id":"fc_1","type":"function_call","status":"${status}","call_id":"call_1","name":"f","arguments":"${input}"}`
  const done = message('completed', textPart('Hi'))
  const item = (type: string, index: number, value: string) =>
    numbered(`output_item.${type}`, `"output_index":${index},"item":${value}`)
  const inText = (type: string, fields: string) =>
    numbered(type, `"output_index":0,"item_id":"msg_1","content_index":0,${fields}`)
  const inCall = (type: string, fields: string) =>
    numbered(`function_call_arguments.${type}`, `"output_index":1,"item_id":"fc_1",${fields}`)
  const numbered = (type: string, fields: string) =>
    event(`response.${type}`, `,"sequence_number":0,${fields}`)
  const custom = (status: string, input: string) =>
    `{"id":"ctc_1","type":"custom_tool_call","status":"${status}","call_id":"call_2","name":"g","input":"${input}"}`
  const inCustom = (type: string, fields: string) =>
    numbered(`custom_tool_call_input.${type}`, `"output_index":2,"item_id":"ctc_1",${fields}`)
  const output = `${done},${call('completed', '{}')},${custom('completed', 'a')}`
  const FRAMES = [
    numbered('created', response('in_progress', '', 'null')),
    numbered('in_progress', response('in_progress', '', 'null')),
    item('added', 0, message('in_progress', '')),
    inText('content_part.added', `"part":${textPart('')}`),
    inText('output_text.delta', '"delta":"H","logprobs":[]'),
    inText('output_text.delta', '"delta":"i","logprobs":[]'),
    inText('output_text.done', '"text":"Hi","logprobs":[]'),
    inText('content_part.done', `"part":${textPart('Hi')}`),
    item('done', 0, done),
    item('added', 1, call('in_progress', '')),
    inCall('delta', '"delta":"{}"'),
    inCall('done', '"name":"f","arguments":"{}"'),
    item('done', 1, call('completed', '{}')),
    item('added', 2, custom('in_progress', '')),
    inCustom('delta', '"delta":"a"'),
    inCustom('done', '"input":"a"'),
    item('done', 2, custom('completed', 'a')),
    numbered('completed', response('completed', output, usage)),
  ]
  /** Numbers the events from 0, so that only the damage is wrong. */
  function toNumbered(raw: string): string {
    let next = 0
    return raw.replaceAll('"sequence_number":0', () => `"sequence_number":${next++}`)
  }
  const check = (raw: string) => checkResponseStream(toNumbered(raw))
  const BOOK = toNumbered(FRAMES.join(''))

  it('accepts no other damage than in fields that repeat the request', () => {
    const repeated = /response\.(\w+) (wrong|with more)$/
    const unchecked =
      'background error frequency_penalty instructions max_output_tokens max_tool_calls metadata ' +
      'parallel_tool_calls presence_penalty previous_response_id prompt_cache_key reasoning ' +
      'safety_identifier store temperature text tool_choice tools top_logprobs top_p truncation'
    const damage = acceptedDamage(FRAMES, check)
    const isRepeated = (name: string) =>
      unchecked.split(' ').includes(repeated.exec(name)?.[1] ?? '')
    expect(damage.filter((name) => !isRepeated(name))).toEqual([])
  })

  it('returns the parts of a stream', () => {
    const seen = checkResponseStream(BOOK)
    expect(seen.items).toMatchObject([
      { text: 'Hi' },
      { name: 'f', callId: 'call_1', text: '{}' },
      { name: 'g', callId: 'call_2', text: 'a' },
    ])
    expect(seen.response).toMatchObject({ status: 'completed' })
  })

  it.each([
    ['a number left out', '"sequence_number":3', '"sequence_number":4'],
    ['another item', '"item_id":"msg_1"', '"item_id":"msg_2"'],
    ['another place', '"output_index":1', '"output_index":2'],
    ['an id of another kind', '"fc_1"', '"call_1"'],
    ['a call id of another kind', '"call_id":"call_1"', '"call_id":"toolu_1"'],
    ['arguments that are no JSON', '{}"', '{"'],
    ['a wrong sum', '"total_tokens":3', '"total_tokens":4'],
    ['no usage at the end', `"usage":${usage}`, '"usage":null'],
    ['an unknown event', 'output_text.done', 'output_text.over'],
    ['an event without a name', 'event: response.completed\n', ''],
    ['an end cut off', 'event: response.completed', 'event: response.complete'],
  ])('refuses %s', (_, from, to) => {
    expect(BOOK).toContain(from)
    expect(() => checkResponseStream(BOOK.replaceAll(from, to))).toThrow('off grammar')
  })
})

describe('a stream that its reader left', () => {
  it.each([
    ['chat', checkChatStream, ROLE],
    ['messages', checkMessageStream, PING],
    ['responses', checkResponseStream, ': wait\n\n'],
  ] as const)('%s: may end anywhere, and only there', (_, check, raw) => {
    expect(() => check(`${raw}data: {"to`, { cut: true })).not.toThrow()
    expect(() => check(raw, { cut: true })).not.toThrow()
    expect(() => check(raw)).toThrow('the stream ended')
    expect(() => check(`${raw}data: {"to`)).toThrow('not ended by an empty line')
    expect(() => check(`data: {"to\n\n${raw}`, { cut: true })).toThrow('off grammar')
  })
})

describe('checkErrorBody', () => {
  const HEADERS = { 'request-id': 'req_1', 'x-should-retry': 'false' }
  const error = { message: 'No.', type: 'not_found_error', param: null, code: null, details: {} }
  const body = { type: 'error', error, request_id: 'req_1', errors: [{ message: 'No.' }] }
  const check = (changed: object, headers: Record<string, string> = HEADERS) =>
    checkErrorBody(JSON.stringify({ ...body, ...changed }), headers)

  it('accepts what the server sends', async () => {
    const response = errorResponse(new InoriginError('not_found', 'No.'), 'req_1')
    const headers = { ...Object.fromEntries(response.headers), 'request-id': 'req_1' }
    const raw = await response.text()
    expect(JSON.parse(raw)).toEqual(body)
    expect(() => checkErrorBody(raw, headers)).not.toThrow()
  })

  it.each([
    ['another id', { request_id: 'req_2' }],
    ['no message', { error: { ...error, message: '' } }],
    ['an unknown type', { error: { ...error, type: 'bad' } }],
    ['a key too many', { more: 1 }],
    ['a text for an error', { error: 'No.' }],
    ['another message', { errors: [{ message: 'Yes.' }] }],
    ['no errors', { errors: [] }],
    ['no word on a retry', {}, { 'request-id': 'req_1' }],
  ])('refuses %s', (_, changed, headers = HEADERS) => {
    expect(() => check(changed, headers)).toThrow('off grammar')
  })
})
