/** The checker itself: a stream of the book passes, and every way to break it is noticed. */
import { describe, expect, it } from 'vitest'
import { checkResponseStream } from '../../support/responses-grammar.ts'

const REST =
  '"background":false,"error":null,"instructions":null,"max_output_tokens":null,"metadata":{},"model":"m",' +
  '"parallel_tool_calls":true,"previous_response_id":null,"reasoning":null,"store":false,"temperature":null,' +
  '"text":{},"tool_choice":"auto","tools":[],"top_p":null,"truncation":"disabled","incomplete_details":null'
const whole = (status: string, output: string, usage: string) =>
  `{"id":"resp_1","object":"response","created_at":1767225600,"status":"${status}",${REST},"output":[${output}],"usage":${usage}}`
const USAGE =
  '{"input_tokens":2,"input_tokens_details":{"cached_tokens":1},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3}'
const PART = '{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}'
const message = (status: string, content: string) =>
  `{"id":"msg_1","type":"message","status":"${status}","role":"assistant","content":[${content}]}`
const CALL =
  '{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{}"}'
const PLACE = '"output_index":0,"item_id":"msg_1","content_index":0'
const CALL_PLACE = '"output_index":1,"item_id":"fc_1"'

const EVENTS: ReadonlyArray<readonly [type: string, fields: string]> = [
  ['created', `"response":${whole('in_progress', '', 'null')}`],
  ['in_progress', `"response":${whole('in_progress', '', 'null')}`],
  ['output_item.added', `"output_index":0,"item":${message('in_progress', '')}`],
  ['content_part.added', `${PLACE},"part":${PART.replace('Hi', '')}`],
  ['output_text.delta', `${PLACE},"delta":"H","logprobs":[]`],
  ['output_text.delta', `${PLACE},"delta":"i","logprobs":[]`],
  ['output_text.done', `${PLACE},"text":"Hi","logprobs":[]`],
  ['content_part.done', `${PLACE},"part":${PART}`],
  ['output_item.done', `"output_index":0,"item":${message('completed', PART)}`],
  [
    'output_item.added',
    `"output_index":1,"item":${CALL.replace('{}', '').replace('completed', 'in_progress')}`,
  ],
  ['function_call_arguments.delta', `${CALL_PLACE},"delta":"{}"`],
  ['function_call_arguments.done', `${CALL_PLACE},"name":"f","arguments":"{}"`],
  ['output_item.done', `"output_index":1,"item":${CALL}`],
  ['completed', `"response":${whole('completed', `${message('completed', PART)},${CALL}`, USAGE)}`],
]

const stream = (events: typeof EVENTS) =>
  events
    .map(
      ([type, fields], index) =>
        `event: response.${type}\ndata: {"type":"response.${type}","sequence_number":${index},${fields}}\n\n`,
    )
    .join('')
const BOOK = stream(EVENTS)
const without = (index: number) => stream(EVENTS.filter((_, at) => at !== index))
const twice = (index: number) =>
  stream(EVENTS.flatMap((event, at) => (at === index ? [event, event] : [event])))

describe('checkResponseStream', () => {
  it('takes what the book says', () => {
    const { items, response } = checkResponseStream(BOOK)
    expect(items).toMatchObject([{ text: 'Hi' }, { name: 'f', callId: 'call_1', text: '{}' }])
    expect(response).toMatchObject({ status: 'completed' })
  })

  it.each(EVENTS.map(([type], index) => [type, index] as const))('misses %s (%i)', (_, index) => {
    expect(() => checkResponseStream(without(index))).toThrow('off grammar')
  })

  it.each(EVENTS.map(([type], index) => [type, index] as const))(
    'refuses %s (%i) twice',
    (_, index) => {
      expect(() => checkResponseStream(twice(index))).toThrow('off grammar')
    },
  )

  it.each([
    ['a number left out', '"sequence_number":3', '"sequence_number":4'],
    ['another item', '"item_id":"msg_1"', '"item_id":"msg_2"'],
    ['another place', '"output_index":1', '"output_index":2'],
    ['an id of another kind', '"fc_1"', '"call_1"'],
    ['a call id of another kind', '"call_id":"call_1"', '"call_id":"toolu_1"'],
    ['arguments that are no JSON', '{}"', '{"'],
    ['a part without annotations', '"annotations":[],', ''],
    ['a wrong sum', '"total_tokens":3', '"total_tokens":4'],
    ['an unknown key', '"store":false', '"store":false,"x":1'],
    ['no usage at the end', `"usage":${USAGE}`, '"usage":null'],
    ['an unknown event', 'output_text.done', 'output_text.over'],
    ['an event without a name', 'event: response.completed\n', ''],
    ['an end cut off', 'event: response.completed', 'event: response.complete'],
  ])('refuses %s', (_, from, to) => {
    expect(BOOK).toContain(from)
    expect(() => checkResponseStream(BOOK.replaceAll(from, to))).toThrow('off grammar')
  })
})
