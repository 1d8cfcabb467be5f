/** Where a text stops being JSON, how deep it may be nested, and how many values it may have. */
import { describe, expect, test } from 'vitest'
import { findJsonError, MAX_DEPTH, MAX_NODES, MAX_VALUES } from '../../../src/values/json.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from '../wire/scripted-host.ts'

const CHAT = '/v1/chat/completions'
const ARGUMENTS = 'messages[0].tool_calls[0].function.arguments'

const nested = (levels: number, core = '') => '['.repeat(levels) + core + ']'.repeat(levels)

/** Writes so many items without a trailing separator. */
const listed = (item: string, count: number): string => `[${`${item},`.repeat(count - 1)}${item}]`

/** Sends a body, and returns the error of its response. */
const refused = async (path: string, body: unknown, status: number) =>
  errorOf(await send(scriptedHost(), path, { body }), status)

/** A chat whose history has calls with these arguments. */
const calling = (...texts: string[]) => {
  const calls = texts.map((text, id) => ({ id: `${id}`, function: { name: 'f', arguments: text } }))
  const messages = [
    { role: 'assistant', tool_calls: calls },
    { role: 'user', content: 'x' },
  ]
  return chatOf({ messages })
}

describe('The position of a fault', () => {
  test.each([
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
  ])('in %j is %i', (text, position) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
    expect(findJsonError(text)).toEqual({ type: 'syntax', position })
  })

  test.each([CHAT, '/v1/messages', '/v1/predictions'])(
    'is part of an error of %s',
    async (path) => {
      expect(await refused(path, '{\n  "model": "x",\n  messages: []\n}', 400)).toMatchObject({
        type: 'invalid_request_error',
        code: 'invalid_json',
        message: 'The body is not JSON: unexpected "m" at position 20 (line 3, column 3).',
        details: { position: 20 },
      })
      const { message } = await refused(path, '{"a":[1', 400)
      expect(message).toBe('The body is not JSON: it ends at position 7 and is incomplete.')
    },
  )
})

describe('JSON', () => {
  const texts = '0 -0 1.5e-3 -12.25E+7 0e1 true false null "" "\\u00e9\\n\\"" [] {} [1.0,-1,true]'
  test.each([
    ...texts.split(' '),
    ' [ 1 , [ ] , { } ] ',
    '{"__proto__":{"a":1},"a":1,"a":2}',
    '"\ud800"',
    '{"a":null}',
  ])('is accepted: %s', (text) => {
    expect(() => JSON.parse(text)).not.toThrow()
    expect(findJsonError(text)).toBeUndefined()
  })

  /** Returns the error of the JavaScript engine, with its position if it has one. */
  function parseByEngine(text: string): { position: number | undefined } | undefined {
    try {
      JSON.parse(text)
      return undefined
    } catch (error) {
      const [, position] = / at position (\d+)/.exec(String(error)) ?? []
      return { position: position === undefined ? undefined : Number(position) }
    }
  }

  test('is what the JavaScript engine accepts, wherever a character is changed', () => {
    const whole = JSON.stringify({ a: [1, -2.5e3, true, null, { b: 'x\\"\u00e9' }], c: { d: [] } })
    let compared = 0
    for (let at = 0; at < whole.length; at += 1) {
      for (const character of ['', ...'}],:{["x 0-.eu\\\n']) {
        const text = whole.slice(0, at) + character + whole.slice(at + 1)
        const [own, expected] = [findJsonError(text), parseByEngine(text)]
        if ((own === undefined) !== (expected === undefined)) expect(own, text).toEqual(expected)
        if (own?.type !== 'syntax' || expected?.position === undefined) continue
        // Within a word, a number or an escape, the engine reports the character, this the beginning.
        const between = text.slice(own.position, expected.position)
        expect(between, `${text} at ${expected.position}`).toMatch(/^(?:\\?\w*|[\w.+-]*)$/)
        compared += 1
      }
    }
    expect(compared).toBeGreaterThan(20)
  })
})

describe('Nesting', () => {
  test('is counted from the outermost value', () => {
    expect(findJsonError(nested(MAX_DEPTH))).toBeUndefined()
    expect(findJsonError(nested(MAX_DEPTH, '1'))).toBeUndefined()
    expect(findJsonError(nested(MAX_DEPTH + 1))).toEqual({ type: 'depth', path: [0, 0, 0, 0] })
    const inner = findJsonError(`{"a":[1,{"\\u0062":0,"c\\"":${nested(MAX_DEPTH)}}]}`)
    expect(inner).toEqual({ type: 'depth', path: ['a', 1, 'c"', 0] })
  })

  /** The nested value replaces this one in a body. */
  const HERE = 'here'
  const schema = { enum: HERE }
  const used = [{ type: 'tool_use', id: 'a', name: 'f', input: { HERE } }]
  const messages = [
    { role: 'assistant', content: used },
    { role: 'user', content: 'Go on' },
  ]

  test.each([
    [CHAT, 'metadata[0][0][0]', chatOf({ metadata: HERE })],
    [
      CHAT,
      'tools[0].function.parameters',
      chatOf({ tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] }),
    ],
    [
      '/v1/messages',
      'tools[0].input_schema.enum',
      messageOf({ tools: [{ name: 'f', input_schema: schema }] }),
    ],
    ['/v1/messages', 'messages[0].content[0]', messageOf({ messages })],
  ])('in a body of %s is limited: %s', async (path, param, given) => {
    const bodyOf = (levels: number) => JSON.stringify(given).replace(`"${HERE}"`, nested(levels))
    for (const levels of [MAX_DEPTH, 10_000, 1_000_000]) {
      const error = { param, code: 'nested_too_deeply' }
      expect(await refused(path, bodyOf(levels), 400)).toMatchObject(error)
    }
    expect((await send(scriptedHost(), path, { body: bodyOf(20) })).status).toBe(200)
  })

  test('in the text of arguments is limited', async () => {
    const body = (levels: number) => calling(`{"a":${nested(levels)}}`)
    for (const levels of [MAX_DEPTH, 100_000]) {
      expect((await refused(CHAT, body(levels), 400)).param).toBe(ARGUMENTS)
    }
    const accepted = await send(scriptedHost(), CHAT, { body: body(MAX_DEPTH - 1) })
    expect(accepted.status).toBe(200)
  })
})

describe('The number of values', () => {
  test.each([
    ['numbers', (count: number) => listed('1', count), MAX_VALUES - 1],
    ['arrays', (count: number) => listed('[]', count), MAX_NODES - 1],
    ['objects', (count: number) => listed('{}', count), MAX_NODES - 1],
    ['members', (count: number) => `{${listed('"a":1', count).slice(1, -1)}}`, MAX_NODES - 1],
  ])('is limited: %s', (_what, write, most) => {
    expect(findJsonError(write(most))).toBeUndefined()
    expect(findJsonError(write(most + 1))).toEqual({ type: 'size' })
  })

  test('does not include the characters of texts', () => {
    expect(findJsonError(listed('"a,[{:"', MAX_NODES + 1))).toBeUndefined()
  })

  test.each([CHAT, '/v1/messages', '/v1/responses', '/v1/predictions/remote'])(
    'of a body of %s is checked before it is parsed',
    async (path) => {
      const body = JSON.stringify(chatOf({ metadata: 'HERE' }))
      const large = body.replace('"HERE"', listed('{}', MAX_NODES))
      expect(await refused(path, large, 413)).toMatchObject({
        type: 'request_too_large',
        code: 'too_many_values',
        message: expect.stringMatching(
          /^The body has too many JSON values\. Send at most 1200000 values, and/,
        ),
      })
    },
  )

  test('of the text of arguments is limited', async () => {
    const error = await refused(CHAT, calling(`{"a":${listed('{}', MAX_NODES)}}`), 400)
    expect(error).toMatchObject({ code: 'invalid_value', param: ARGUMENTS })
    expect(error.message).toContain('must be the JSON text of at most 1200000 values')
  })

  const many = `{"a":${listed('{}', 75_000)}}`
  const call = { type: 'function_call', name: 'f', arguments: many }
  test.each<[string, (count: number) => object]>([
    [CHAT, (count) => calling(...Array<string>(count).fill(many))],
    [
      '/v1/responses',
      (count) => ({
        model: chatOf()['model'],
        input: Array.from({ length: count }, (_, id) => ({ ...call, call_id: `${id}` })),
      }),
    ],
  ])('of all arguments of a request of %s together is limited', async (path, bodyWith) => {
    expect((await send(scriptedHost(), path, { body: bodyWith(2) })).status).toBe(200)
    expect(await refused(path, bodyWith(3), 413)).toMatchObject({
      code: 'too_many_values',
      message: expect.stringMatching(
        /^The body and the arguments of its tool calls have too many JSON values\. Send at most /,
      ),
    })
  })
})
