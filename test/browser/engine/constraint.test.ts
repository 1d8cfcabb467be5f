/** The embedded model, made to write what it never learnt. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Constraint } from '../../../src/engine/constraint.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { runtimeFolder } from '../../models/tiny.ts'
import { never, run, textOf } from './run-engine.ts'

const TEXTS = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']

let engine: Engine

beforeAll(async () => {
  const file = async (name: string): Promise<readonly [string, Blob]> => [
    name,
    await (await fetch(`/demo/models/guide/${name}`)).blob(),
  ]
  engine = await openOnnx({
    device: 'wasm',
    maxInputTokens: 512,
    runtime: runtimeFolder(),
    texts: new Map(await Promise.all(TEXTS.map(file))),
  })
  await engine.load(new Map([await file('onnx/model.onnx')]), never)
})
afterAll(() => engine.close())

const json = (schema: Record<string, unknown>): Constraint => ({ type: 'json', schema })
const isInteger = (value: unknown): boolean => Number.isInteger(value)

const CASES: [string, Constraint, (text: string) => boolean][] = [
  [
    'an integer',
    json({ type: 'integer', minimum: 10, maximum: 20 }),
    (text) => {
      const value: unknown = JSON.parse(text)
      return isInteger(value) && Number(value) >= 10 && Number(value) <= 20
    },
  ],
  [
    'one of three',
    json({ enum: ['low', 'middle', 'high'] }),
    (text) => ['"low"', '"middle"', '"high"'].includes(text),
  ],
  [
    'a short string',
    json({ type: 'string', minLength: 3, maxLength: 12 }),
    (text) => {
      const { length } = Array.from(JSON.parse(text) as string)
      return length >= 3 && length <= 12
    },
  ],
  [
    'a date',
    json({ type: 'string', format: 'date' }),
    (text) => !Number.isNaN(Date.parse(JSON.parse(text) as string)),
  ],
  [
    'an object',
    json({
      type: 'object',
      properties: { count: { type: 'integer', minimum: 0, maximum: 9 }, ok: { type: 'boolean' } },
      required: ['count', 'ok'],
      additionalProperties: false,
    }),
    (text) => /^\{"count": \d, "ok": (?:true|false)\}$/.test(text),
  ],
  [
    'a pattern',
    { type: 'pattern', pattern: '[A-Z]{2}-\\d{4}' },
    (text) => /^[A-Z]{2}-\d{4}$/.test(text),
  ],
  [
    'a grammar',
    { type: 'grammar', grammar: 'root ::= ("ja" | "nein") [.!]{1,2}' },
    (text) => /^(?:ja|nein)[.!]{1,2}$/.test(text),
  ],
  [
    'a call',
    {
      type: 'separated',
      tags: [
        {
          type: 'tagged',
          begin: '<call>',
          content: json({ type: 'array', items: { type: 'null' }, maxItems: 2 }),
          end: '</call>',
        },
      ],
      separator: '\n',
      required: true,
      single: true,
    },
    (text) => /^<call>\[(?:null(?:, null)?)?\]<\/call>$/.test(text),
  ],
]

describe.each([0, 1, 1.5])('At temperature %d', (temperature) => {
  test.each(CASES)('%s is written', async (_what, constraint, holds) => {
    const prompt = engine.prepare({ messages: [{ role: 'user', content: 'Who are you?' }] })
    for (let seed = 0; seed < (temperature === 0 ? 1 : 3); seed++) {
      const sampling = { temperature, seed }
      const options = { maxTokens: 120, sampling, signal: never, constraint }
      const { pieces, ending } = await run(engine, prompt, options)
      const text = textOf(pieces)
      expect({ text, ending: ending.reason, holds: holds(text) }).toEqual({
        text,
        ending: 'stop',
        holds: true,
      })
    }
  })
})

test('What cannot be kept is refused before anything is computed', async () => {
  await expect(engine.check(json({ not: {} }))).rejects.toMatchObject({ kind: 'invalid_request' })
  await expect(engine.check({ type: 'pattern', pattern: '(?=a)' })).rejects.toMatchObject({
    kind: 'invalid_request',
  })
})
