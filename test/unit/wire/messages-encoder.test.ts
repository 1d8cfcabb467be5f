import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { checkMessageStream } from '../../support/anthropic-grammar.ts'
import { HELLO, messageOf, scriptedHost, send, USAGE } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'

const PATH = '/v1/messages'

async function streamed(fields: object, script: Script = HELLO): Promise<string> {
  const response = await send(scriptedHost({ script }), PATH, {
    body: messageOf({ stream: true, ...fields }),
  })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  return response.text()
}

const settled = (raw: string) => raw.replaceAll(/"msg_[0-9a-f]{24}"/g, '"ID"')

describe('a streamed message', () => {
  it('is what the book says, to the letter', async () => {
    expect(settled(await streamed({}))).toBe(
      ': downloading @acme/tiny 45% 3.1 MB/s\n\n' +
        'event: ping\ndata: {"type":"ping"}\n\n' +
        'event: ping\ndata: {"type":"ping"}\n\n' +
        'event: message_start\ndata: {"type":"message_start","message":{"id":"ID","type":"message","role":"assistant","model":"@acme/tiny","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":5}}}\n\n' +
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n' +
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}\n\n' +
        'event: ping\ndata: {"type":"ping"}\n\n' +
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}\n\n' +
        'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n' +
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":7,"output_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":5}}\n\n' +
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    )
  })

  it('of nothing has one empty text block', async () => {
    const script = HELLO.filter((event) => event instanceof Error || event.type !== 'text')
    const { blocks, stopReason } = checkMessageStream(await streamed({}, script))
    expect(blocks).toMatchObject([{ type: 'text', text: '' }])
    expect(stopReason).toBe('end_turn')
  })

  it.each([
    ['stop', null, 'end_turn'],
    ['length', null, 'max_tokens'],
    ['stop_sequence', 'END', 'stop_sequence'],
  ] as const)('tells the end %s', async (reason, stopSequence, stopReason) => {
    const script: Script = [
      ...HELLO.slice(0, -1),
      { type: 'finish', reason, stopSequence, usage: USAGE },
    ]
    expect(checkMessageStream(await streamed({}, script))).toMatchObject({
      stopReason,
      stopSequence,
    })
  })

  it.each([
    ['in the middle', HELLO.slice(0, 4), 'Hello'],
    ['before the start', HELLO.slice(0, 2), ''],
  ])('ends in an error event when it fails %s', async (_, begun, text) => {
    const raw = await streamed({}, [
      ...begun,
      new InoriginError('internal', 'The device was lost.'),
    ])
    expect(checkMessageStream(raw)).toMatchObject({ text, error: { type: 'api_error' } })
    expect(
      raw.endsWith(
        'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"The device was lost."}}\n\n',
      ),
    ).toBe(true)
  })

  it('is an error when its events end too soon', async () => {
    expect(checkMessageStream(await streamed({}, HELLO.slice(0, 5))).error).toMatchObject({
      type: 'api_error',
    })
  })
})

describe('a message', () => {
  it('is one JSON body, with spaces while it is made', async () => {
    const response = await send(scriptedHost(), PATH, { body: messageOf() })
    expect(response.headers.get('content-type')).toBe('application/json')
    const raw = await response.text()
    expect(raw.startsWith('   {')).toBe(true)
    expect(settled(raw.trim())).toBe(
      '{"id":"ID","type":"message","role":"assistant","model":"@acme/tiny","content":[{"type":"text","text":"Hello there"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":5}}',
    )
  })

  it('tells the stop sequence', async () => {
    const finish = {
      type: 'finish',
      reason: 'stop_sequence',
      stopSequence: 'END',
      usage: USAGE,
    } as const
    const response = await send(scriptedHost({ script: [...HELLO.slice(0, -1), finish] }), PATH, {
      body: messageOf(),
    })
    expect(await response.json()).toMatchObject({
      stop_reason: 'stop_sequence',
      stop_sequence: 'END',
    })
  })

  it('breaks its body off when it fails late', async () => {
    const script = [...HELLO.slice(0, 4), new InoriginError('internal', 'The device was lost.')]
    const response = await send(scriptedHost({ script }), PATH, { body: messageOf() })
    await expect(response.text()).rejects.toThrow('The device was lost.')
  })
})
