/** The inspector's reading of an answer, and its difference of two texts. */
import { describe, expect, test } from 'vitest'
import { diffLines } from '../../../demo/inspector/diff.ts'
import { timelineReader } from '../../../demo/inspector/timeline.ts'
import { usageReader } from '../../../demo/inspector/usage.ts'
import type { Answer } from '../../../demo/wire/answer.ts'
import { messages } from '../../../demo/wire/messages.ts'

const request = { path: 'messages', headers: {}, body: {} }

describe('the time line', () => {
  const frame = (type: string, rest: object = {}) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
  const pieces = [
    { at: 10, text: `${frame('ping')}: load 3 of 8 MB\n\nevent: content` },
    {
      at: 250,
      text: `_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}\n\n`,
    },
    { at: 251, text: `${frame('message_stop')}data: {not json\n\n` },
  ]

  test('gives each event the time of the piece that completed it, whatever is read at once', () => {
    const answer: Answer = { style: messages, url: '', request, raw: '', text: '', arrivals: [] }
    const whole = timelineReader(answer)
    const early = timelineReader(answer)
    const seen = []
    for (const { at, text } of pieces) {
      answer.raw += text
      answer.arrivals?.push({ at, length: answer.raw.length })
      seen.push(...early())
    }
    expect(seen).toEqual([
      { at: 10, gap: 10, kind: 'heartbeat', text: 'ping' },
      { at: 10, gap: 0, kind: 'heartbeat', text: 'load 3 of 8 MB' },
      { at: 250, gap: 240, kind: 'token', text: 'Hi' },
      { at: 251, gap: 1, kind: 'event', text: 'message_stop' },
      { at: 251, gap: 0, kind: 'event', text: '{not json' },
    ])
    expect(whole()).toEqual(seen)
    expect(whole()).toEqual([])
  })
})

test('usage is collected from all events, by the names of its style', () => {
  const read = usageReader()
  const start = { message: { usage: { input_tokens: 7, output_tokens: 1 } } }
  const end = { usage: { output_tokens: 9, details: { cached: 3 }, service_tier: null } }
  read(`data: ${JSON.stringify(start)}\n\ndata: {"usage": bro`)
  expect([...read(`ken\n\ndata: ${JSON.stringify(end)}\n\n`)]).toEqual([
    ['input_tokens', 7],
    ['output_tokens', 9],
    ['details.cached', 3],
  ])
})

describe('a difference of lines', () => {
  const marked = (before: string, after: string) =>
    diffLines(before, after).map(({ kind, text }) => kind.slice(0, 1) + text)

  test('keeps the longest common lines', () => {
    expect(marked('a\nb\nc\nd', 'b\nx\nd\ne')).toEqual(['ra', 'sb', 'rc', 'ax', 'sd', 'ae'])
  })

  test('of equal texts has no change, and of others every line', () => {
    expect(marked('a\nb', 'a\nb')).toEqual(['sa', 'sb'])
    expect(marked('a', 'b')).toEqual(['ra', 'ab'])
  })
})
