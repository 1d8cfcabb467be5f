import { describe, expect, test } from 'vitest'
import {
  normalizeJson,
  readConstraint,
} from '../../../../src/adapters/language-model/constraint.ts'
import { derive } from '../../../../src/adapters/language-model/derivative.ts'
import { isNothing } from '../../../../src/engine/schema/expression.ts'
import { parseGrammar } from '../../../../src/engine/constraint/grammar.ts'
import { createStepBudget } from '../../../../src/engine/schema/step-budget.ts'
import { openSession } from './open.ts'

/** Returns `true` if the grammar has the text, which it reads character by character. */
function accepts(source: string, text: string): boolean {
  const grammar = parseGrammar(source, '', createStepBudget())
  // Half a character ends a text, because no text has it.
  const ended = { ...grammar, root: { type: 'sequence', parts: [grammar.root, END] } as const }
  return !isNothing(derive(ended, `${text}\ud800`))
}
const END = { type: 'set', set: [[0xd800, 0xd800]] } as const

async function grammarOf(constraint: object, prefix = ''): Promise<string> {
  const { field } = await readConstraint(constraint).toFormat(prefix)
  return (field as { grammar: string }).grammar
}

const rating = {
  type: 'object',
  required: ['rating'],
  additionalProperties: false,
  properties: { rating: { type: 'integer', minimum: 0, maximum: 5 }, note: { type: 'string' } },
}

describe('Regular expressions', () => {
  test.each([
    [/^\d{3}-[a-f]+$/, ['123-abc'], ['123-', '1234-a', '123-x']],
    [/^(yes|no)\n"\\$/, ['yes\n"\\'], ['yes']],
    [/^[^a-z\]]é😀?$/u, ['Aé', '-é😀'], ['aé', ']é']],
    [/^hello [^x]$/i, ['HeLLo a', 'hello Y'], ['hello x', 'hello X']],
    [/b+|^c$/, ['bbb', 'c'], ['abba', 'cc']],
    // oxlint-disable-next-line no-useless-escape -- They mean themselves without the flag u.
    [/^\"{x}]\-[\"\-]{2}\'$/, ['"{x}]-"-\''], ['"{x}]-x-\'']],
  ])('%s', async (pattern, good, bad) => {
    const grammar = await grammarOf(pattern)
    for (const text of good) expect([text, accepts(grammar, text)]).toEqual([text, true])
    for (const text of bad) expect([text, accepts(grammar, text)]).toEqual([text, false])
  })

  test('are continued after a prefix', async () => {
    const grammar = await grammarOf(/^Greetings and [a-z]+$/, 'Greetings')
    expect(accepts(grammar, 'Greetings and more')).toBe(true)
    expect(accepts(grammar, 'Greetings')).toBe(false)
    await expect(grammarOf(/^Greetings/, 'Hello')).rejects.toMatchObject({
      name: 'NotSupportedError',
    })
  })

  test.each([/^a$/m, /a(?=b)/, /(a)\1/])('%s is refused', async (pattern) => {
    const refused = (async () => grammarOf(pattern))()
    await expect(refused).rejects.toMatchObject({ name: 'NotSupportedError' })
  })
})

describe('JSON Schemas', () => {
  test('are continued after a prefix with any spaces', async () => {
    const prefix = '{ "rating" :4'
    const format = await readConstraint(rating).toFormat(prefix)
    expect(format.forced).toBe('{"rating": 4')
    const { grammar } = format.field as { grammar: string }
    expect(accepts(grammar, '{"rating": 4}')).toBe(true)
    expect(accepts(grammar, '{"rating": 4, "note": "a \\" b"}')).toBe(true)
    expect(accepts(grammar, '{"rating": 5}')).toBe(false)
    await expect(grammarOf(rating, '{"rating": 7')).rejects.toMatchObject({
      name: 'NotSupportedError',
    })
  })

  test('keep spaces in strings, and an open end', () => {
    expect(normalizeJson('{ "a  b"  : [1 ,2, ')).toBe('{"a  b": [1, 2, ')
    expect(normalizeJson('{"a":')).toBe('{"a":')
    expect(normalizeJson('["x \\" y')).toBe('["x \\" y')
  })

  test('are refused if they are invalid', async () => {
    expect(() => readConstraint([])).toThrow(TypeError)
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    expect(() => readConstraint(loop)).toThrow(
      expect.objectContaining({ name: 'NotSupportedError' }),
    )
    const soup = (async () => grammarOf({ type: 'soup' }, '{'))()
    await expect(soup).rejects.toMatchObject({ name: 'NotSupportedError' })
  })
})

test('The prompt describes the constraint unless that is omitted', async () => {
  const { server, session } = await openSession({ answers: () => '{"rating": 4}' })
  await session.prompt('Rate it', { responseConstraint: rating })
  expect(server.requests[0]?.messages[0]?.content).toContain(JSON.stringify(rating))
  expect(server.requests[0]?.format).toEqual({ type: 'json_schema', schema: rating })
  const options = { responseConstraint: rating, omitResponseConstraintInput: true }
  await session.prompt('Again', options)
  expect(server.requests[1]?.messages.at(-1)?.content).toBe('Again')
  const [more, less] = await Promise.all([
    session.measureContextUsage('Again', { responseConstraint: rating }),
    session.measureContextUsage('Again', options),
  ])
  expect(more).toBeGreaterThan(less)
})

test('An incomplete answer is a SyntaxError', async () => {
  const { session } = await openSession({ answers: () => '{"rating":' })
  const asked = session.prompt('Rate it', { responseConstraint: rating })
  await expect(asked).rejects.toMatchObject({ name: 'SyntaxError' })
})

test('The prefix of a constraint is not repeated', async () => {
  const { server, session } = await openSession({ answers: () => '{"rating": 4}' })
  const content = '{ "rating":'
  const input = [
    { role: 'user' as const, content: 'Rate it' },
    { role: 'assistant' as const, content, prefix: true },
  ]
  const answer = await session.prompt(input, { responseConstraint: rating })
  expect(JSON.parse(content + String(answer))).toEqual({ rating: 4 })
  expect(server.requests[0]?.format).toMatchObject({ type: 'grammar' })
  await session.prompt('Next')
  expect(server.requests[1]?.messages[1]).toEqual({
    role: 'assistant',
    content: '{ "rating": 4}',
  })
})
