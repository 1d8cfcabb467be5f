/** Where a text stops being JSON, and how deep it may be nested. */
import { describe, expect, it } from 'vitest'
import { MAX_DEPTH, placeOfFault, tooDeep } from '../../../src/wire/json.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'

const nested = (levels: number, core = '') => '['.repeat(levels) + core + ']'.repeat(levels)

describe('the place of a fault', () => {
  it.each([
    ['', 0],
    ['  ', 2],
    ['{', 1],
    ['{"a":1', 6],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['{a:1}', 1],
    ["{'a':1}", 1],
    ['{"a":1 "b":2}', 7],
    ['[1,]', 3],
    ['[,1]', 1],
    ['[1 2]', 3],
    ['[1}', 2],
    ['{"a":[}]', 6],
    ['{} {}', 3],
    ['{}x', 2],
    ['tru', 0],
    ['nulll', 0],
    ['01', 0],
    ['-', 0],
    ['1.', 0],
    ['1e', 0],
    ['"abc', 4],
    ['"a\nb"', 2],
    ['"a\\x"', 2],
    ['"\\u12g4"', 1],
    ['{"a":"b\\', 7],
    ['{"a":undefined}', 5],
    ['{"a":NaN}', 5],
    ['\ufeff{}', 0],
    ['{"a":1}\u00a0', 7],
  ])('in %j is %i', (text, place) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
    expect(placeOfFault(text)).toBe(place)
  })

  it('is where the JavaScript engine sees it, wherever that says so', () => {
    const whole = JSON.stringify({ a: [1, -2.5e3, true, null, { b: 'x\\"\u00e9' }], c: { d: [] } })
    let compared = 0
    for (let at = 0; at < whole.length; at += 1) {
      for (const sign of ['', '}', ']', ',', ':', '{', '[', '"', 'x', ' ']) {
        const text = whole.slice(0, at) + sign + whole.slice(at + 1)
        const told = placeSeenByEngine(text)
        if (told === undefined) continue
        // Within a word, a number or an escape, the engine tells the sign, this the beginning.
        const between = text.slice(placeOfFault(text), told)
        expect(between, `${text} at ${told}`).toMatch(/^(?:\\?\w*|[\w.+-]*)$/)
        compared += 1
      }
    }
    expect(compared).toBeGreaterThan(20)
  })

  it('is told with the line', async () => {
    const body = '{\n  "model": "x",\n  messages: []\n}'
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/predictions']) {
      const error = await errorOf(await send(scriptedHost(), path, { body }), 400)
      expect(error).toMatchObject({
        type: 'invalid_request_error',
        code: 'invalid_json',
        message: 'The body is not JSON: unexpected "m" at position 20 (line 3, column 3).',
        details: { position: 20 },
      })
    }
  })

  it('may be the end', async () => {
    const error = await errorOf(await send(scriptedHost(), '/v1/messages', { body: '{"a":[1' }), 400)
    expect(error.message).toBe('The body is not JSON: it ends at position 7, before it is whole.')
  })
})

function placeSeenByEngine(text: string): number | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    const [, place] = / at position (\d+)/.exec(String(error)) ?? []
    return place === undefined ? undefined : Number(place)
  }
}

describe('nesting', () => {
  it('is counted from the outermost', () => {
    expect(tooDeep(JSON.parse(nested(MAX_DEPTH)))).toBeUndefined()
    expect(tooDeep(JSON.parse(nested(MAX_DEPTH, '1')))).toBeUndefined()
    expect(tooDeep(JSON.parse(nested(MAX_DEPTH + 1)))).toEqual([0, 0, 0, 0])
    expect(tooDeep('text')).toBeUndefined()
    expect(tooDeep(null)).toBeUndefined()
  })

  /** What stands for the nested value in a body until that is written. */
  const HERE = 'here'
  const function_ = (parameters: object) => [{ type: 'function', function: { name: 'f', parameters } }]

  it.each([
    ['/v1/chat/completions', 'metadata[0][0][0]', chatOf({ metadata: HERE })],
    [
      '/v1/chat/completions',
      'tools[0].function.parameters',
      chatOf({ tools: function_({ enum: HERE }) }),
    ],
    [
      '/v1/messages',
      'tools[0].input_schema.enum',
      messageOf({ tools: [{ name: 'f', input_schema: { enum: HERE } }] }),
    ],
    [
      '/v1/messages',
      'messages[0].content[0]',
      messageOf({
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: { HERE } }] },
          { role: 'user', content: 'Go on' },
        ],
      }),
    ],
  ])('of %s is refused where it is too deep: %s', async (path, param, given) => {
    const bodyOf = (levels: number) => JSON.stringify(given).replace(`"${HERE}"`, nested(levels))
    for (const levels of [MAX_DEPTH, 10_000, 1_000_000]) {
      const sent = await send(scriptedHost(), path, { body: bodyOf(levels) })
      expect(await errorOf(sent, 400)).toMatchObject({ param, code: 'nested_too_deeply' })
    }
    expect((await send(scriptedHost(), path, { body: bodyOf(20) })).status).toBe(200)
  })

  it('hidden in the text of arguments is refused all the same', async () => {
    const call = (levels: number) => ({
      messages: [
        {
          role: 'assistant',
          tool_calls: [{ id: 'a', function: { name: 'f', arguments: `{"a":${nested(levels)}}` } }],
        },
      ],
    })
    const path = '/v1/chat/completions'
    for (const levels of [MAX_DEPTH, 100_000]) {
      const sent = await send(scriptedHost(), path, { body: chatOf(call(levels)) })
      expect((await errorOf(sent, 400)).param).toBe('messages[0].tool_calls[0].function.arguments')
    }
    const taken = await send(scriptedHost(), path, { body: chatOf(call(MAX_DEPTH - 1)) })
    expect(taken.status).toBe(200)
  })
})
