/** Where a text stops being JSON, and how deep it may be nested. */
import { describe, expect, it } from 'vitest'
import { findJsonError, MAX_DEPTH, MAX_NODES, MAX_VALUES } from '../../../src/values/json.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from '../wire/scripted-host.ts'

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
    expect(findJsonError(text)).toEqual({ type: 'syntax', position: place })
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
        const between = text.slice(positionIn(text), told)
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
    const error = await errorOf(
      await send(scriptedHost(), '/v1/messages', { body: '{"a":[1' }),
      400,
    )
    expect(error.message).toBe('The body is not JSON: it ends at position 7 and is incomplete.')
  })
})

function positionIn(text: string): number | undefined {
  const fault = findJsonError(text)
  return fault?.type === 'syntax' ? fault.position : undefined
}

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
    expect(findJsonError(nested(MAX_DEPTH))).toBeUndefined()
    expect(findJsonError(nested(MAX_DEPTH, '1'))).toBeUndefined()
    expect(findJsonError(nested(MAX_DEPTH + 1))).toEqual({ type: 'depth', path: [0, 0, 0, 0] })
    expect(findJsonError(`{"a":[1,{"\\u0062":0,"c\\"":${nested(MAX_DEPTH)}}]}`)).toEqual({
      type: 'depth',
      path: ['a', 1, 'c"', 0],
    })
  })

  /** What stands for the nested value in a body until that is written. */
  const HERE = 'here'
  const function_ = (parameters: object) => [
    { type: 'function', function: { name: 'f', parameters } },
  ]

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
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: 'a', name: 'f', input: { HERE } }],
          },
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

describe('what is JSON', () => {
  it.each([
    '0',
    '-0',
    '1.5e-3',
    '-12.25E+7',
    '0e1',
    'true',
    'false',
    'null',
    '""',
    '"\\u00e9\\n\\""',
    '[]',
    '{}',
    ' [ 1 , [ ] , { } ] ',
    '{"__proto__":{"a":1},"a":1,"a":2}',
    '"\ud800"',
    '[1.0,-1,true]',
    '{"a":null}',
  ])('has no fault: %s', (text) => {
    expect(() => JSON.parse(text)).not.toThrow()
    expect(findJsonError(text)).toBeUndefined()
  })

  it('is what the JavaScript engine takes, wherever a sign is changed', () => {
    const whole = JSON.stringify({ a: [1, -2.5e3, true, null, { b: 'x\\"\u00e9' }], c: { d: [] } })
    const signs = [
      '',
      '}',
      ']',
      ',',
      ':',
      '{',
      '[',
      '"',
      'x',
      ' ',
      '0',
      '-',
      '.',
      'e',
      'u',
      '\\',
      '\n',
    ]
    for (let at = 0; at < whole.length; at += 1) {
      for (const sign of signs) {
        const text = whole.slice(0, at) + sign + whole.slice(at + 1)
        expect(findJsonError(text) === undefined, text).toBe(isJson(text))
      }
    }
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** As many items, so that no separator is left over. */
const listed = (item: string, count: number): string => `[${`${item},`.repeat(count - 1)}${item}]`

describe('the number of values', () => {
  it.each([
    ['numbers', (count: number) => listed('1', count), MAX_VALUES - 1],
    ['texts', (count: number) => listed('"a,[{:"', count), MAX_VALUES - 1],
    ['arrays', (count: number) => listed('[]', count), MAX_NODES - 1],
    ['objects', (count: number) => listed('{}', count), MAX_NODES - 1],
    ['members', (count: number) => `{${listed('"a":1', count).slice(1, -1)}}`, MAX_NODES - 1],
  ])('of %s is bounded', (_what, write, most) => {
    expect(findJsonError(write(most))).toBeUndefined()
    expect(findJsonError(write(most + 1))).toEqual({ type: 'size' })
  })

  it('in a body is refused with 413 before it is parsed', async () => {
    const body = JSON.stringify(chatOf({ metadata: 'HERE' })).replace(
      '"HERE"',
      listed('{}', MAX_NODES),
    )
    for (const path of [
      '/v1/chat/completions',
      '/v1/messages',
      '/v1/responses',
      '/v1/predictions/remote',
    ]) {
      expect(await errorOf(await send(scriptedHost(), path, { body }), 413)).toMatchObject({
        type: 'request_too_large',
        code: 'too_many_values',
        message: expect.stringMatching(
          /^The body has too many JSON values\. Send at most 1200000 values, and/,
        ),
      })
    }
  })

  it('in the text of arguments is refused', async () => {
    const text = `{"a":${listed('{}', MAX_NODES)}}`
    const call = { id: 'a', function: { name: 'f', arguments: text } }
    const body = chatOf({
      messages: [
        { role: 'assistant', tool_calls: [call] },
        { role: 'user', content: 'x' },
      ],
    })
    const error = await errorOf(await send(scriptedHost(), '/v1/chat/completions', { body }), 400)
    expect(error).toMatchObject({
      code: 'invalid_value',
      param: 'messages[0].tool_calls[0].function.arguments',
    })
    expect(error.message).toContain('must be the JSON text of at most 1200000 values')
  })

  it('in all arguments of a request together is refused with 413', async () => {
    const many = { name: 'f', arguments: `{"a":${listed('1', 450_000)}}` }
    const calls = [0, 1, 2].map((id) => ({ id: `${id}`, function: many }))
    const styles = [
      [
        '/v1/chat/completions',
        (count: number) =>
          chatOf({
            messages: [
              { role: 'assistant', tool_calls: calls.slice(0, count) },
              { role: 'user', content: 'x' },
            ],
          }),
      ],
      [
        '/v1/responses',
        (count: number) => ({
          model: chatOf()['model'],
          input: calls
            .slice(0, count)
            .map(({ id }) => ({ type: 'function_call', call_id: id, ...many })),
        }),
      ],
    ] as const
    for (const [path, bodyWith] of styles) {
      expect((await send(scriptedHost(), path, { body: bodyWith(2) })).status).toBe(200)
      const response = await send(scriptedHost(), path, { body: bodyWith(3) })
      expect(await errorOf(response, 413)).toMatchObject({
        code: 'too_many_values',
        message: expect.stringMatching(
          /^The body and the arguments of its tool calls have too many JSON values\. Send at most /,
        ),
      })
    }
  })
})
