/** The checkers themselves: a stream of the book passes, and every way to break it is noticed. */
import { describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { checkChatStream } from '../../support/openai-grammar.ts'

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
const STOP = delta('{}', '"stop"')
const CALLED = delta('{}', '"tool_calls"')
const USAGE =
  `data: {${HEAD},"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,` +
  '"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":0}}}\n\n'
/** Chunks as they are where usage was asked for. */
const untilUsage = (raw: string) => raw.replaceAll('}]}\n', '}],"usage":null}\n')
const DONE = 'data: [DONE]\n\n'
const ERROR = 'data: {"error":{"message":"Gone.","type":"api_error","code":null,"param":null}}\n\n'

describe('checkChatStream', () => {
  it.each([
    ['text', ROLE + HELLO + HELLO + STOP + DONE, false],
    ['nothing', ROLE + STOP + DONE, false],
    ['comments', `: wait\n\n${ROLE}: wait\n\n${HELLO}${STOP}${DONE}`, false],
    ['usage', untilUsage(ROLE + HELLO + STOP) + USAGE + DONE, true],
    ['reasoning and a call', ROLE + REASONING + HELLO + CALL + ARGUMENTS + CALLED + DONE, false],
    ['an error', ROLE + HELLO + ERROR, false],
    ['an error at once', ERROR, false],
  ])('takes %s', (_, raw, includeUsage) => {
    expect(() => checkChatStream(raw, { includeUsage })).not.toThrow()
  })

  it('tells what was in the stream', () => {
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
    ['no [DONE]', ROLE + HELLO + STOP],
    ['no finish', ROLE + HELLO + DONE],
    ['no role', HELLO + STOP + DONE],
    ['role twice', ROLE + ROLE + STOP + DONE],
    ['a role with content', delta('{"role":"assistant","content":"x"}') + STOP + DONE],
    ['a role without content', delta('{"role":"assistant"}') + STOP + DONE],
    ['two finishes', ROLE + STOP + STOP + DONE],
    ['content after the finish', ROLE + STOP + HELLO + DONE],
    ['content in the finish', ROLE + delta('{"content":"x"}', '"stop"') + DONE],
    ['reasoning after content', ROLE + HELLO + REASONING + STOP + DONE],
    ['content after a call', ROLE + CALL + ARGUMENTS + HELLO + CALLED + DONE],
    ['an empty content delta', ROLE + delta('{"content":""}') + STOP + DONE],
    ['an unknown finish reason', ROLE + delta('{}', '"stop_sequence"') + DONE],
    ['stop after a call', ROLE + CALL + ARGUMENTS + STOP + DONE],
    ['tool_calls without a call', ROLE + CALLED + DONE],
    ['arguments that are no JSON', ROLE + CALL + ARGUMENTS + ARGUMENTS + CALLED + DONE],
    ['arguments without a call', ROLE + ARGUMENTS + CALLED + DONE],
    [
      'a call without type',
      ROLE + CALL.replace('"type":"function",', '') + ARGUMENTS + CALLED + DONE,
    ],
    [
      'a call out of turn',
      ROLE + CALL.replace('"tool_calls":[{"index":0', '"tool_calls":[{"index":1') + CALLED + DONE,
    ],
    ['usage that was not asked for', ROLE + STOP + USAGE + DONE],
    ['something after [DONE]', ROLE + STOP + DONE + HELLO],
    ['[DONE] twice', ROLE + STOP + DONE + DONE],
    ['something after an error', ROLE + ERROR + DONE],
    ['an error after the finish', ROLE + STOP + ERROR],
    ['an error of a string', ROLE + 'data: {"error":"Gone."}\n\n'],
    ['an error without a type', ROLE + ERROR.replace('"type":"api_error",', '')],
    ['another id', ROLE + HELLO.replace('chatcmpl-1', 'chatcmpl-2') + STOP + DONE],
    ['another model', ROLE + HELLO.replace('"m"', '"n"') + STOP + DONE],
    ['another time', ROLE + HELLO.replace('1767225600', '1767225601') + STOP + DONE],
    ['a time in milliseconds and a half', ROLE.replace('1767225600', '1767225600.5') + STOP + DONE],
    ['an id of another kind', (ROLE + STOP).replaceAll('chatcmpl-1', 'msg_1') + DONE],
    ['another object', ROLE + HELLO.replace('.chunk', '') + STOP + DONE],
    ['no choices', ROLE + `data: {${HEAD}}\n\n` + STOP + DONE],
    ['another index', ROLE + HELLO.replace('"index":0', '"index":1') + STOP + DONE],
    ['no index', ROLE + HELLO.replace('"index":0,', '') + STOP + DONE],
    ['an unknown key', ROLE + HELLO.replace('"delta"', '"extra":1,"delta"') + STOP + DONE],
    ['a chunk of its own kind', ROLE + 'data: {"progress":0.5}\n\n' + STOP + DONE],
    ['an event name', ROLE + `event: chunk\n${HELLO}` + STOP + DONE],
    ['an empty data line', ROLE + 'data: \n\n' + STOP + DONE],
    ['an event without data', ROLE + 'event: x\n\n' + STOP + DONE],
    ['two data lines', ROLE + HELLO.replace('\n\n', '\ndata: {}\n\n') + STOP + DONE],
    ['no JSON', ROLE + 'data: {\n\n' + STOP + DONE],
    ['carriage returns', (ROLE + STOP + DONE).replaceAll('\n', '\r\n')],
    ['an end cut off', (ROLE + STOP + DONE).slice(0, -1)],
    ['an empty line too many', `${ROLE}\n${STOP}${DONE}`],
    ['nothing at all', ''],
  ])('refuses %s', (_, raw) => {
    expect(() => checkChatStream(raw)).toThrow('off grammar')
  })

  it.each([
    ['that is missing', ROLE + STOP + DONE],
    ['before the finish', ROLE + USAGE + STOP + DONE],
    ['twice', ROLE + STOP + USAGE + USAGE + DONE],
    ['without an id', ROLE + STOP + USAGE.replace('"id":"chatcmpl-1",', '') + DONE],
    ['without choices', ROLE + STOP + USAGE.replace('"choices":[],', '') + DONE],
    [
      'with a wrong sum',
      ROLE + STOP + USAGE.replace('"total_tokens":3', '"total_tokens":4') + DONE,
    ],
    [
      'with too much cached',
      ROLE + STOP + USAGE.replace('"cached_tokens":1', '"cached_tokens":9') + DONE,
    ],
    [
      'with half a token',
      ROLE + STOP + USAGE.replace('"cached_tokens":1', '"cached_tokens":0.5') + DONE,
    ],
  ])('refuses usage %s', (_, raw) => {
    expect(() => checkChatStream(untilUsage(raw), { includeUsage: true })).toThrow('off grammar')
  })

  it('refuses chunks that do not say that usage is still to come', () => {
    const raw = untilUsage(ROLE) + STOP + USAGE + DONE
    expect(() => checkChatStream(raw, { includeUsage: true })).toThrow('lacks the key usage')
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
const TEXT =
  opening('{"type":"text","text":""}') + part('{"type":"text_delta","text":"Hello"}') + closing()
const THINKING_OPEN = opening('{"type":"thinking","thinking":"","signature":""}')
const THINKING =
  THINKING_OPEN +
  part('{"type":"thinking_delta","thinking":"Hm."}') +
  part('{"type":"signature_delta","signature":"s"}') +
  closing()
const TOOL_OPEN = opening('{"type":"tool_use","id":"toolu_1","name":"f","input":{}}')
const TOOL =
  TOOL_OPEN + part('{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}') + closing()
const ending = (reason: string, sequence = 'null') =>
  event(
    'message_delta',
    `,"delta":{"stop_reason":"${reason}","stop_sequence":${sequence}},"usage":{"output_tokens":3}`,
  )
const END = ending('end_turn')
const CLOSE = event('message_stop')
const FAILED = event('error', ',"error":{"type":"api_error","message":"Gone."}')

describe('checkMessageStream', () => {
  it.each([
    ['text', START + TEXT + END + CLOSE],
    ['pings and comments', `: wait\n\n${PING}${START}${PING}${TEXT}${PING}${END}${PING}${CLOSE}`],
    [
      'thinking and text',
      START + THINKING + TEXT.replaceAll('"index":0', '"index":1') + END + CLOSE,
    ],
    ['a call', START + TOOL + ending('tool_use') + CLOSE],
    ['a call without input', START + TOOL_OPEN + closing() + ending('tool_use') + CLOSE],
    ['a stop sequence', START + TEXT + ending('stop_sequence', '"END"') + CLOSE],
    ['a call cut off by a limit', START + TOOL.replace('1}"', '1"') + ending('max_tokens') + CLOSE],
    ['an error', START + TEXT + FAILED],
    ['an error at once', FAILED],
    ['an error within a block', START + THINKING_OPEN + FAILED],
  ])('takes %s', (_, raw) => {
    expect(() => checkMessageStream(raw)).not.toThrow()
  })

  it('tells what was in the stream', () => {
    expect(
      checkMessageStream(START + TEXT + ending('stop_sequence', '"END"') + CLOSE),
    ).toMatchObject({
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
  })

  it.each([
    ['no message_stop', START + TEXT + END],
    ['no message_delta', START + TEXT + CLOSE],
    ['no start', TEXT + END + CLOSE],
    ['two starts', START + START + TEXT + END + CLOSE],
    ['two deltas', START + TEXT + END + END + CLOSE],
    ['no block', START + END + CLOSE],
    ['a block left open', START + opening('{"type":"text","text":""}') + END + CLOSE],
    [
      'overlapping blocks',
      START +
        opening('{"type":"text","text":""}') +
        opening('{"type":"text","text":""}', 1) +
        closing(1) +
        END +
        CLOSE,
    ],
    ['a gap', START + TEXT.replaceAll('"index":0', '"index":1') + END + CLOSE],
    ['an index used twice', START + TEXT + TEXT + END + CLOSE],
    ['a delta outside', START + TEXT + part('{"type":"text_delta","text":"x"}') + END + CLOSE],
    [
      'a delta for another block',
      START +
        opening('{"type":"text","text":""}') +
        part('{"type":"text_delta","text":"x"}', 1) +
        closing() +
        END +
        CLOSE,
    ],
    ['a delta of another kind', START + TEXT.replace('text_delta', 'thinking_delta') + END + CLOSE],
    ['an empty delta', START + TEXT.replace('Hello', '') + END + CLOSE],
    ['text at the start of a block', START + TEXT.replace('"text":""', '"text":"x"') + END + CLOSE],
    ['citations', START + TEXT.replace('"text":""', '"text":"","citations":null') + END + CLOSE],
    [
      'a block of another type',
      START + TEXT.replace('"type":"text",', '"type":"banana",') + END + CLOSE,
    ],
    ['thinking without a signature', START + THINKING_OPEN + closing() + END + CLOSE],
    [
      'two signatures',
      START +
        THINKING_OPEN +
        part('{"type":"signature_delta","signature":"s"}').repeat(2) +
        closing() +
        END +
        CLOSE,
    ],
    ['input that is no JSON', START + TOOL.replace('1}"', '1"') + ending('tool_use') + CLOSE],
    [
      'input at the start of a call',
      START + TOOL.replace('"input":{}', '"input":{"a":1}') + ending('tool_use') + CLOSE,
    ],
    [
      'caller',
      START + TOOL.replace('"input":{}', '"input":{},"caller":null') + ending('tool_use') + CLOSE,
    ],
    [
      'a block behind input that is no JSON',
      START +
        TOOL.replace('1}"', '1"') +
        TEXT.replaceAll('"index":0', '"index":1') +
        ending('max_tokens') +
        CLOSE,
    ],
    [
      'an id of the other style',
      START + TOOL.replace('toolu_', 'call_') + ending('tool_use') + CLOSE,
    ],
    ['a call and end_turn', START + TOOL + END + CLOSE],
    ['tool_use without a call', START + TEXT + ending('tool_use') + CLOSE],
    ['an unknown reason', START + TEXT + ending('stop') + CLOSE],
    ['stop_sequence without the text', START + TEXT + ending('stop_sequence') + CLOSE],
    ['end_turn with a stop sequence', START + TEXT + ending('end_turn', '"END"') + CLOSE],
    ['no usage at the start', START.replace(/,"usage":{[^}]*}/, '') + TEXT + END + CLOSE],
    [
      'output at the start',
      START.replace('"output_tokens":0', '"output_tokens":1') + TEXT + END + CLOSE,
    ],
    ['no usage at the end', START + TEXT + END.replace(/,"usage":{[^}]*}/, '') + CLOSE],
    [
      'another prompt at the end',
      START + TEXT + END.replace('"output_tokens":3', '"output_tokens":3,"input_tokens":9') + CLOSE,
    ],
    ['no type of the message', START.replace('"type":"message",', '') + TEXT + END + CLOSE],
    ['an id of another kind', START.replace('msg_1', 'chatcmpl-1') + TEXT + END + CLOSE],
    ['content at the start', START.replace('"content":[]', '"content":[{}]') + TEXT + END + CLOSE],
    ['[DONE]', `${START}${TEXT}${END}${CLOSE}data: [DONE]\n\n`],
    ['no event name', START + TEXT + END + CLOSE.replace('event: message_stop\n', '')],
    [
      'an event name that is not the type',
      START + TEXT + END + CLOSE.replace('event: message_stop', 'event: ping'),
    ],
    ['an event of its own kind', START + event('progress') + TEXT + END + CLOSE],
    ['a ping after the stop', START + TEXT + END + CLOSE + PING],
    ['an error after the end of the text', START + TEXT + END + FAILED],
    ['something after an error', START + FAILED + CLOSE],
    ['an error of a string', `${START}event: error\ndata: {"type":"error","error":"Gone."}\n\n`],
    ['an end cut off', (START + TEXT + END + CLOSE).slice(0, -1)],
    ['nothing at all', ''],
  ])('refuses %s', (_, raw) => {
    expect(() => checkMessageStream(raw)).toThrow('off grammar')
  })
})
