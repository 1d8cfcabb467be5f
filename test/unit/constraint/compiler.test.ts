/** The door: compilers of constraints, their cache, and the matchers that they open. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type Constraint,
  type ConstraintCompiler,
  ConstraintError,
  createConstraintCompiler,
  type JsonConstraint,
  type JsonSchema,
  type Matcher,
  type WasmSource,
} from '../../../src/constraint/index.ts'
import { Instance } from '../../../src/constraint/instance.ts'
import { createVocabulary } from './texts.ts'

const WASM = readFileSync(join(import.meta.dirname, '../../../src/constraint/llguidance.wasm'))
const never = new AbortController().signal
const vocabulary = createVocabulary(['ab', '{"a', '": '], ['<call>', '</call>'])
const { bytes } = vocabulary
const opened: ConstraintCompiler[] = []
const { compile: compileUnchanged } = Instance.prototype

function create(wasm: WasmSource = WASM): ConstraintCompiler {
  const compiler = createConstraintCompiler({ ...vocabulary, wasm })
  opened.push(compiler)
  return compiler
}

afterEach(() => {
  for (const compiler of opened.splice(0)) compiler.close()
})

const text = (value: string): Constraint => ({ type: 'constant', text: value })
const json = (schema: JsonSchema, path?: string, strict?: boolean): Constraint => ({
  type: 'json',
  schema,
  path,
  strict,
})

/** Returns the texts of the single bytes that can come next. */
function allowed(matcher: Matcher): string {
  const mask = matcher.mask()
  return bytes
    .slice(0, 128)
    .map((_, id) => (((mask[id >>> 5] ?? 0) >>> (id & 31)) & 1 ? String.fromCharCode(id) : ''))
    .join('')
}

const forced = (matcher: Matcher): string => new TextDecoder().decode(matcher.forced())

/** Returns `true` if a text of the matcher can be the value, with the white space of the engine. */
function accepts(matcher: Matcher, value: string): boolean {
  return [...new TextEncoder().encode(value)].every((byte) => matcher.accept(byte))
}

describe('the module', () => {
  test('is loaded by the first use, and once', async () => {
    const load = vi.fn<() => Promise<Uint8Array>>(async () => WASM)
    const compiler = create(load)
    expect([load.mock.calls.length, compiler.memoryBytes]).toEqual([0, 0])
    await Promise.all([compiler.open(text('a'), never), compiler.open(text('b'), never)])
    expect(load).toHaveBeenCalledOnce()
    expect(compiler.memoryBytes).toBeGreaterThan(2 ** 20)
  })

  test('is loaded again after a failure', async () => {
    const load = vi.fn<() => Promise<Uint8Array>>(async () => WASM)
    load.mockRejectedValueOnce(new Error('No network.'))
    const compiler = create(load)
    await expect(compiler.open(text('a'), never)).rejects.toThrow('No network.')
    expect(forced(await compiler.open(text('a'), never))).toBe('a')
  })

  test('is compiled from bytes of any type, and requested once more if they are damaged', async () => {
    const caches: unknown[] = []
    vi.stubGlobal('fetch', async (_url: URL, { cache }: RequestInit) => {
      caches.push(cache)
      const body = caches.length === 1 ? WASM.subarray(0, 1000) : WASM
      return new Response(body, { headers: { 'content-type': 'text/plain' } })
    })
    const compiler = create(new URL('http://app.test/llguidance.wasm'))
    expect(forced(await compiler.open(text('a'), never))).toBe('a')
    expect(caches).toEqual(['default', 'reload'])
  })

  test.each([
    [async () => new Response('', { status: 404 }), /could not be loaded. It has the status 404/],
    [async () => Promise.reject(new TypeError('offline')), /The server did not answer/],
    [async () => new Response('<!doctype html>'), /It is not a WASM module/],
  ])('is missing if it cannot be loaded', async (answer, message) => {
    vi.stubGlobal('fetch', answer)
    const missing = { code: 'constraint_missing', message: expect.stringMatching(message) }
    await expect(create('http://app.test/x.wasm').open(text('a'), never)).rejects.toMatchObject(
      missing,
    )
  })
})

describe('a matcher', () => {
  test('leads through a text', async () => {
    const matcher = await create().open(text('<call>x</call>'), never)
    expect([forced(matcher), matcher.loosened]).toEqual(['<call>x</call>', []])
    const [begin, end] = ['<call>', '</call>'].map((name) => vocabulary.special.get(name) ?? -1)
    for (const token of [begin, 0x78, end, vocabulary.endTokens[0]]) {
      expect(matcher.accept(0)).toBe(false)
      expect(matcher.accept(token ?? -1)).toBe(true)
    }
    expect([forced(matcher), matcher.mask().some(Boolean)]).toEqual(['', false])
  })

  test('finds longer tokens in place of one', async () => {
    const matcher = await create().open(text('abc'), never)
    expect([matcher.canExtend(0x61), matcher.canExtend(0x62)]).toEqual([true, false])
  })

  test('is independent of others of the same constraint', async () => {
    const compiler = create()
    const [one, other] = [
      await compiler.open(text('ab'), never),
      await compiler.open(text('ab'), never),
    ]
    expect(one.accept(0x61)).toBe(true)
    one.close()
    one.close()
    expect(allowed(other)).toBe('a')
  })

  test('keeps its mask while other calls grow the memory', async () => {
    const compiler = create()
    const matcher = await compiler.open(text('ab'), never)
    const mask = matcher.mask()
    const before = compiler.memoryBytes
    const properties = Object.fromEntries(
      Array.from({ length: 800 }, (_, index) => [`property${index}`, { type: 'string' }]),
    )
    await compiler.open(json({ type: 'object', properties }), never)
    expect(compiler.memoryBytes).toBeGreaterThan(before)
    expect(mask).toHaveLength(Math.ceil(bytes.length / 32))
    expect([matcher.mask() === mask, allowed(matcher)]).toEqual([true, 'a'])
    matcher.accept(0x61)
    expect([matcher.mask() === mask, allowed(matcher)]).toEqual([true, 'b'])
  })

  test('continues a text that was begun', async () => {
    const whole = json({
      type: 'object',
      properties: { a: { enum: ['x'.repeat(3000), 'y'] } },
      additionalProperties: false,
    })
    const compiler = create()
    const rest = (begun: string) => compiler.open({ type: 'rest', text: begun, whole }, never)
    expect(forced(await rest('{"a": "y'))).toBe('"}')
    expect(forced(await rest(`{"a": "${'x'.repeat(2500)}`))).toBe(`${'x'.repeat(500)}"}`)
    expect(forced(await rest(''))).toBe('{')
    await expect(rest('{"a": "z')).rejects.toMatchObject({
      code: 'unsupported_constraint',
      message: expect.stringMatching(/^No text that begins with this prefix/),
    })
  })

  test('fails at a token that takes too many steps, and the next one gets another grammar', async () => {
    const slow: Constraint = { type: 'pattern', pattern: '((.{1,50}){1,50}){1,50}' }
    const compiler = create()
    const compile = vi.spyOn(Instance.prototype, 'compile')
    const other = await compiler.open(text('ab'), never)
    for (const times of [1, 2]) {
      const matcher = await compiler.open(slow, never)
      const run = () => {
        for (let count = 0; count < 50; count += 1) {
          matcher.mask()
          matcher.accept(0x61)
        }
      }
      expect(run).toThrow(expect.objectContaining({ code: 'constraint_too_slow' }))
      matcher.close()
      expect(compile).toHaveBeenCalledTimes(1 + times)
    }
    expect(allowed(other)).toBe('a')
  })
})

describe('schemas', () => {
  const bad = { type: 'integer', multipleOf: 20_011 }

  test('list what restricts nothing, and what is not kept', async () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'integer', 'x-unit': 'px' } },
      required: ['a'],
    }
    const { loosened } = await create().open(json(schema, 'tools[0].parameters'), never)
    expect(loosened).toEqual([{ path: 'tools[0].parameters.properties.a', keyword: 'x-unit' }])
  })

  test('that the engine refuses are loosened, and no others', async () => {
    const shape = (schema: object, closed: boolean): JsonSchema => ({
      type: 'object',
      properties: { a: schema },
      required: ['a'],
      ...(closed && { additionalProperties: false }),
    })
    vi.spyOn(Instance.prototype, 'compile').mockImplementation(refuse(/"minLength":7/))
    const parts = [
      json(shape({ type: 'string', minLength: 7 }, true), 'one'),
      json(shape({ type: 'string', minLength: 5 }, true), 'two'),
    ]
    const compiler = create()
    const open = () => compiler.open({ type: 'sequence', parts }, never)
    const matcher = await open()
    expect(matcher.loosened).toEqual([{ path: 'one', keyword: 'schema' }])
    expect(accepts(matcher, '{"a": "x"}{"a": "')).toBe(true)
    expect(accepts(matcher, '1234"')).toBe(false)
    // What is left of the first is its shape.
    expect(accepts(await open(), '{"a": 1')).toBe(false)
  })

  test('are loosened together if the engine refuses only the whole', async () => {
    vi.spyOn(Instance.prototype, 'compile').mockImplementation(
      refuse(/"minLength":7.*"minLength":8/s),
    )
    const parts = [7, 8].map((minLength) => json({ type: 'string', minLength }, `at ${minLength}`))
    const matcher = await create().open({ type: 'sequence', parts }, never)
    expect(matcher.loosened).toEqual([
      { path: 'at 7', keyword: 'schema' },
      { path: 'at 8', keyword: 'schema' },
    ])
    expect(accepts(matcher, '"x""y"')).toBe(true)
  })

  test('become any value if nothing else helps', async () => {
    vi.spyOn(Instance.prototype, 'compile').mockImplementation(refuse(/"type"/))
    const matcher = await create().open(json({ type: 'integer', minimum: 3 }), never)
    expect(matcher.loosened).toEqual([{ path: '', keyword: 'schema' }])
    expect(accepts(matcher, '["x"]')).toBe(true)
  })

  test.each<JsonSchema>([
    false,
    { enum: [] },
    { type: 'object', required: ['a'], properties: { a: false } },
  ])(
    'without a value are errors, or any value if the text need not have one: %j',
    async (schema) => {
      const rejection = {
        code: 'unsupported_constraint',
        message: expect.stringMatching(/no value/),
      }
      const part = json(schema, 'a') as JsonConstraint
      await expect(create().open(part, never)).rejects.toMatchObject(rejection)
      const strict = { ...part, strict: true, isOptional: true }
      await expect(create().open(strict, never)).rejects.toMatchObject(rejection)
      const matcher = await create().open({ ...part, isOptional: true }, never)
      expect(matcher.loosened).toEqual([{ path: 'a', keyword: 'schema' }])
      expect(accepts(matcher, '["x"]')).toBe(true)
    },
  )

  test('that are strict are errors that say what a keyword must be', async () => {
    const schema = { properties: { a: { type: 'date' } } }
    await expect(create().open(json(schema, 'x', true), never)).rejects.toMatchObject({
      path: 'x.properties.a',
      keyword: 'type',
      message: expect.stringContaining('The keyword type at x.properties.a must be one of null,'),
    })
  })

  test('that are strict are errors with the reason', async () => {
    vi.spyOn(Instance.prototype, 'compile').mockImplementation(refuse(/"minLength":7/))
    const schema = { type: 'string', minLength: 7 }
    await expect(
      create().open(json(schema, 'tools[1].parameters', true), never),
    ).rejects.toMatchObject({
      code: 'unsupported_constraint',
      path: 'tools[1].parameters',
      message: expect.stringContaining('is not supported: Refused by the test.'),
    })
  })

  test('that are strict are errors that name a keyword that is not kept', async () => {
    await expect(create().open(json(bad, 'x', true), never)).rejects.toMatchObject({
      code: expect.stringMatching(/^(unsupported_constraint|constraint_too_slow)$/),
      path: 'x',
    })
    expect((await create().open(json(bad, 'x'), never)).loosened).toHaveLength(1)
  })

  test('in a grammar of the caller may not divide by large numbers either', async () => {
    const grammar = `start: %json ${JSON.stringify(bad)}`
    await expect(
      create().open({ type: 'grammar', grammar, syntax: 'lark' }, never),
    ).rejects.toMatchObject({ code: 'constraint_too_slow' })
  })

  /** A compilation that refuses sources with this pattern. */
  function refuse(pattern: RegExp): Instance['compile'] {
    return function (this: Instance, source, limit) {
      if (!pattern.test(source)) return compileUnchanged.call(this, source, limit)
      throw new ConstraintError('unsupported_constraint', 'Refused by the test.')
    }
  }
})

describe('grammars', () => {
  const openAndClose = async (compiler: ConstraintCompiler, ...values: number[]): Promise<void> => {
    for (const value of values) (await compiler.open(text(`text ${value}`), never)).close()
  }

  test('are compiled once', async () => {
    const compile = vi.spyOn(Instance.prototype, 'compile')
    const compiler = create()
    await Promise.all([compiler.open(text('a'), never), compiler.open(text('a'), never)])
    await compiler.open(text('a'), never)
    expect(compile).toHaveBeenCalledOnce()
  })

  test('are evicted beyond 16, the least recently used first, but for those in use', async () => {
    const compile = vi.spyOn(Instance.prototype, 'compile')
    const drop = vi.spyOn(Instance.prototype, 'dropGrammar')
    const compiler = create()
    const used = await compiler.open(text('text 0'), never)
    const numbers = Array.from({ length: 16 }, (_, index) => index + 1)
    await openAndClose(compiler, ...numbers)
    await vi.waitFor(() => expect(drop).toHaveBeenCalledOnce(), 20_000)
    expect(compile).toHaveBeenCalledTimes(17)
    await openAndClose(compiler, 0, 16, 3)
    expect(compile).toHaveBeenCalledTimes(17)
    await openAndClose(compiler, 1)
    expect(compile).toHaveBeenCalledTimes(18)
    await vi.waitFor(() => expect(drop).toHaveBeenCalledTimes(2), 20_000)
    // The one that the last one evicted.
    await openAndClose(compiler, 2)
    expect(compile).toHaveBeenCalledTimes(19)
    expect(forced(used)).toBe('text 0')
  })

  test('of the caller may have long choices, but not grow without end', async () => {
    const compiler = create()
    const open = (grammar: string) =>
      compiler.open({ type: 'grammar', grammar, syntax: 'lark' }, never)
    const names = Array.from({ length: 1000 }, (_, index) => `"name ${index}"`)
    const choice = await open(`start: ${names.join(' | ')}`)
    expect(accepts(choice, 'name 777')).toBe(true)
    const ambiguous = await open('start: s\ns: s s | "a" | ""')
    expect(() => accepts(ambiguous, 'a'.repeat(300))).toThrow(
      expect.objectContaining({ code: 'constraint_too_slow' }),
    )
  })

  test('that are refused are compiled again', async () => {
    const compiler = create()
    const open = () =>
      compiler.open({ type: 'grammar', grammar: 'start: x', syntax: 'lark' }, never)
    await expect(open()).rejects.toMatchObject({ code: 'unsupported_constraint' })
    await expect(open()).rejects.toMatchObject({ code: 'unsupported_constraint' })
  })
})

describe('the instance', () => {
  test('is replaced after a trap, which ends one text', async () => {
    const load = vi.fn<() => Promise<Uint8Array>>(async () => WASM)
    const compiler = create(load)
    const other = await compiler.open(text('ab'), never)
    const { open } = Instance.prototype
    vi.spyOn(Instance.prototype, 'open').mockImplementationOnce(function (this: Instance) {
      return open.call(this, 1_000_000)
    })
    await expect(compiler.open(text('x'), never)).rejects.toMatchObject({ code: 'constraint_trap' })
    const created = vi.spyOn(Instance, 'open')
    expect(forced(await compiler.open(text('x'), never))).toBe('x')
    expect(created).toHaveBeenCalledOnce()
    expect(load).toHaveBeenCalledOnce()
    expect(allowed(other)).toBe('a')
    other.close()
  })

  test('is freed when no matcher was open for some minutes', async () => {
    const compiler = create()
    const matcher = await compiler.open(text('ab'), never)
    vi.useFakeTimers()
    try {
      vi.advanceTimersByTime(60 * 60_000)
      expect(compiler.memoryBytes).toBeGreaterThan(0)
      matcher.close()
      vi.advanceTimersByTime(4 * 60_000)
      expect(compiler.memoryBytes).toBeGreaterThan(0)
      vi.advanceTimersByTime(2 * 60_000)
      expect(compiler.memoryBytes).toBe(0)
    } finally {
      vi.useRealTimers()
    }
    expect(forced(await compiler.open(text('x'), never))).toBe('x')
  })

  test('is freed by close, and nothing is opened then', async () => {
    const compiler = create()
    const matcher = await compiler.open(text('ab'), never)
    compiler.close()
    expect([compiler.memoryBytes, allowed(matcher)]).toEqual([0, 'a'])
    matcher.close()
    await expect(compiler.open(text('ab'), never)).rejects.toThrow('closed')
  })
})

describe('a signal', () => {
  test('ends the wait of one caller', async () => {
    let deliver: (bytes: Uint8Array) => void = () => undefined
    const compiler = create(() => new Promise((resolve) => (deliver = resolve)))
    const controller = new AbortController()
    const [ended, other] = [
      compiler.open(text('a'), controller.signal),
      compiler.open(text('a'), never),
    ]
    controller.abort(new Error('Enough.'))
    await expect(ended).rejects.toThrow('Enough.')
    deliver(WASM)
    expect(forced(await other)).toBe('a')
  })

  test('that is aborted loads nothing', async () => {
    const load = vi.fn<() => Promise<Uint8Array>>(async () => WASM)
    const compiler = create(load)
    const aborted = AbortSignal.abort(new Error('Too late.'))
    await expect(compiler.open(text('a'), aborted)).rejects.toThrow('Too late.')
    expect(load).not.toHaveBeenCalled()
  })
})
