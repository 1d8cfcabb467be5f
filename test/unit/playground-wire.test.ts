/** The three wire styles of the playground: what they send, and what they read from events. */
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { PARAMETERS } from '../../demo/chat/parameters.ts'
import { findSchemaProblem } from '../../demo/chat/schema-check.ts'
import { completions } from '../../demo/wire/completions.ts'
import { messages } from '../../demo/wire/messages.ts'
import { responses } from '../../demo/wire/responses.ts'
import type { Question, WireStyle } from '../../demo/wire/style.ts'
import { chatFields } from '../../src/wire/chat-schema.ts'
import { messagesBodySchema } from '../../src/wire/messages.ts'
import { responsesBodySchema } from '../../src/wire/responses.ts'

const schema = { type: 'object' }

const question: Question = {
  model: '@a/b',
  history: [{ question: 'Hi', answer: 'Hello' }],
  question: 'Who?',
  images: ['data:image/png;base64,AA=='],
  settings: {
    system: 'Be brief.',
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    minP: 0.1,
    frequencyPenalty: 1,
    presencePenalty: -1,
    repetitionPenalty: 1.1,
    logitBias: { 5: -100 },
    maxTokens: 7,
    seed: 1,
    effort: 'low',
    schema,
  },
}

/** Returns the body as the server receives it. */
function bodyOf(style: WireStyle, given: Question): Record<string, unknown> {
  return JSON.parse(JSON.stringify(style.request(given).body)) as Record<string, unknown>
}

describe.each([
  ['completions', completions, chatFields],
  ['messages', messages, messagesBodySchema],
  ['responses', responses, responsesBodySchema],
] as const)('%s', (_name, style, fields) => {
  test('sends a body that the server accepts, with all sampling fields', () => {
    const body = bodyOf(style, question)
    const parsed = v.safeParse(fields, body)
    expect(parsed.issues ?? []).toEqual([])
    expect(body).toMatchObject({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.1,
      frequency_penalty: 1,
      presence_penalty: -1,
      repetition_penalty: 1.1,
      logit_bias: { 5: -100 },
      seed: 1,
    })
    expect(JSON.stringify(body)).toContain(JSON.stringify(schema))
  })

  test('sends a body that the server accepts for each effort it has, and without settings', () => {
    for (const effort of style.efforts) {
      const body = bodyOf(style, { ...question, settings: { effort } })
      expect(v.safeParse(fields, body).issues ?? []).toEqual([])
    }
    expect(v.safeParse(fields, bodyOf(style, { ...question, settings: {} })).success).toBe(true)
  })
})

test.each([
  ['completions', completions, chatFields],
  ['messages', messages, messagesBodySchema],
] as const)('%s continues the text of an answer', (_name, style, fields) => {
  const body = bodyOf(style, { ...question, prefill: 'I am' })
  expect(v.safeParse(fields, body).issues ?? []).toEqual([])
  expect((body['messages'] as unknown[]).at(-1)).toEqual({ role: 'assistant', content: 'I am' })
  expect(JSON.stringify(body)).not.toContain('json_schema')
  expect(body).not.toHaveProperty('thinking')
})

test('stop sequences have the name of each style', () => {
  const given = { ...question, settings: { stop: ['END'] } }
  expect(bodyOf(completions, given)['stop']).toEqual(['END'])
  expect(bodyOf(messages, given)['stop_sequences']).toEqual(['END'])
  expect(Object.keys(responses.unsupported)).toEqual(['stop'])
})

test.each([
  ['text', { type: 'response.output_text.delta', delta: 'a' }, { text: 'a' }],
  ['reasoning', { type: 'response.reasoning_summary_text.delta', delta: 'r' }, { reasoning: 'r' }],
  ['an error', { type: 'error', message: 'no' }, { error: 'no' }],
  [
    'a failure',
    { type: 'response.failed', response: { error: { message: 'no' } } },
    { error: 'no' },
  ],
  ['another event', { type: 'response.created', response: {} }, {}],
  [
    'a cut',
    {
      type: 'response.incomplete',
      response: {
        incomplete_details: { reason: 'max_output_tokens' },
        usage: {
          input_tokens: 5,
          output_tokens: 3,
          input_tokens_details: { cached_tokens: 2 },
          output_tokens_details: { reasoning_tokens: 1 },
        },
      },
    },
    {
      done: true,
      finish: 'max_output_tokens',
      promptTokens: 5,
      completionTokens: 3,
      cachedTokens: 2,
      reasoningTokens: 1,
    },
  ],
])('a response tells %s', (_what, event, piece) => {
  expect(responses.read({ event: event.type, data: JSON.stringify(event) })).toEqual(piece)
})

const parse = (name: string, text: string) =>
  PARAMETERS.find((parameter) => parameter.name === name)?.parse(text)

test.each([
  ['temperature', '9', 'Temperature must be a number between 0 and 2, got "9".'],
  ['temperature', 'hot', 'Temperature must be a number between 0 and 2, got "hot".'],
  ['maxTokens', '0', 'Max tokens must be a whole number of at least 1, got "0".'],
  ['maxTokens', '1.5', 'Max tokens must be a whole number of at least 1, got "1.5".'],
  ['seed', '1e99', 'Seed must be a whole number, got "1e99".'],
  ['logitBias', '{"a":1}', 'Logit bias must map token ids'],
  ['logitBias', '[1]', 'Logit bias must map token ids'],
  ['schema', '{', 'The schema is not JSON'],
  ['schema', '[]', '$ must be an object that is a JSON schema.'],
  ['stop', 'a\n'.repeat(65), 'At most 64 stop sequences are possible, got 65.'],
])('%s cannot be %j', (name, text, says) => {
  expect(() => parse(name, text)).toThrow(says)
})

test.each([
  ['temperature', '0,7', 0.7],
  ['seed', '-3', -3],
  ['stop', 'a\n\n\\n\\n', ['a', '\n\n']],
  ['logitBias', '{"7":-100}', { 7: -100 }],
])('%s can be %j', (name, text, value) => {
  expect(parse(name, text)).toEqual(value)
})

test.each([
  [{ type: 'text' }, '$.type must be one of'],
  [{ properties: { a: { enum: [] } } }, '$.properties.a.enum must be an array'],
  [{ required: 'a' }, '$.required must be an array of names.'],
  [{ items: { anyOf: [{ type: 'string' }, 7] } }, '$.items.anyOf[1] must be an object'],
  [{ properties: [] }, '$.properties must be an object of schemas.'],
])('%j is no schema', (given, says) => {
  expect(findSchemaProblem(given)).toContain(says)
})

test('a schema may have booleans, definitions and lists of types', () => {
  const given = {
    $defs: { a: { type: ['string', 'null'] } },
    type: 'object',
    properties: { b: { $ref: '#/$defs/a' }, c: true },
    additionalProperties: false,
    required: ['b'],
  }
  expect(findSchemaProblem(given)).toBeUndefined()
})
