/** The embedded language model: answers under constraints that it never learned, and answers that another host continues. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Constraint } from '../../../src/constraint/index.ts'
import type { Engine, GenerateOptions } from '../../../src/engine/engine.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { constraintFolder, runtimeFolder, TEXTS } from '../../models/tiny.ts'
import { quantize } from '../../support/quantized-model.ts'
import { never, run, textOf } from './run-engine.ts'

const readFile = async (name: string): Promise<Blob> =>
  (await fetch(`/demo/models/guide/${name}`)).blob()

async function openGuide(format: 'fp32' | 'q8' | 'q4' = 'fp32'): Promise<Engine> {
  const texts = TEXTS.map(async (name) => [name, await readFile(name)] as const)
  const engine = await openOnnx({
    device: 'wasm',
    maxInputTokens: 512,
    runtime: runtimeFolder(),
    constraints: constraintFolder(),
    texts: new Map(await Promise.all(texts)),
  })
  const model = await readFile('onnx/model.onnx')
  const weights = format === 'fp32' ? model : await quantize(model, format)
  await engine.load(new Map([['onnx/model.onnx', weights]]), never)
  return engine
}

describe('a constraint', () => {
  let engine: Engine
  beforeAll(async () => {
    engine = await openGuide()
  })
  afterAll(() => engine.close())

  const json = (schema: Record<string, unknown>): Constraint => ({ type: 'json', schema })

  const CASES: [string, Constraint, (text: string) => boolean][] = [
    [
      'an integer',
      json({ type: 'integer', minimum: 10, maximum: 20 }),
      (text) => /^(1\d|20)$/.test(text),
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

  test.each(CASES)('of %s holds at any temperature', async (_what, constraint, holds) => {
    await engine.check(constraint)
    const prompt = engine.prepare({ messages: [{ role: 'user', content: 'Who are you?' }] })
    const samplings = [
      { temperature: 0 },
      ...[1, 1.5].flatMap((temperature) => [0, 1, 2].map((seed) => ({ temperature, seed }))),
    ]
    for (const sampling of samplings) {
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

  test.each<Constraint>([
    json({ not: {} }),
    { type: 'pattern', pattern: '(?=a)' },
    { type: 'grammar', grammar: 'root ::= missing' },
  ])('that cannot be enforced is rejected before anything is computed: %j', async (constraint) => {
    await expect(engine.check(constraint)).rejects.toMatchObject({ kind: 'invalid_request' })
  })
})

describe.each(['fp32', 'q4', 'q8'] as const)(
  'another host continues answers, weights of %s',
  { tags: ['slow'] },
  (format) => {
    const MAX_TOKENS = 60
    /** An answer is continued after every so many tokens. */
    const STEP = 3
    /** Forbids the end token, so that an answer is as long as its limit. */
    const LONG = { logitBias: { 2034: -100 } }
    const QUESTIONS = ['Tell me all about inorigin.', 'What is 17 plus 25?']
    const schema = { type: 'array', items: { type: 'integer' }, minItems: 99 }
    /** The beginning of an array of integers. */
    const CUT_ARRAY = /^\[(\s*-?\d+\s*,)*\s*-?\d*\s*$/
    const KINDS: Readonly<Record<string, Pick<GenerateOptions, 'sampling' | 'constraint'>>> = {
      greedy: { sampling: { ...LONG, temperature: 0 } },
      sampled: { sampling: { ...LONG, temperature: 1, seed: 7 } },
      JSON: { sampling: { temperature: 1, seed: 7 }, constraint: { type: 'json', schema } },
    }

    let engine: Engine
    beforeAll(async () => {
      engine = await openGuide(format)
    })
    afterAll(() => engine.close())

    test.each(Object.entries(KINDS))('%s answers', async (name, kind) => {
      const different: string[] = []
      let count = 0
      for (const question of QUESTIONS) {
        const prompt = engine.prepare({ messages: [{ role: 'user', content: question }] })
        // Each in a partition of its own, because another host has another prefix cache.
        const answer = async (partition: string, resumeTokens?: number[]) => {
          const options = { ...kind, maxTokens: MAX_TOKENS, signal: never, resumeTokens }
          const { pieces } = await run(engine, prompt, {
            ...options,
            partition: `${name} ${question} ${partition}`,
          })
          return pieces
        }
        const pieces = await answer('whole')
        const ids = pieces.flatMap(({ tokenIds }) => tokenIds ?? [])
        expect(ids.length).toBeGreaterThan(10 * STEP)
        for (let kept = 1; kept < ids.length; kept += STEP) {
          const text = textOf(await answer(String(kept), ids.slice(0, kept)))
          count += 1
          if (text !== textOf(pieces)) different.push(text)
        }
      }
      console.log(`${format} ${name}: ${different.length} of ${count} continuations differ`)
      // The scales of 8-bit activations depend on the rows of a run, so the next token can be another one.
      if (format !== 'q8') expect(different).toEqual([])
      // A continuation that differs is as valid as the answer, which is cut in the middle of an array.
      if (kind.constraint) for (const text of different) expect(text).toMatch(CUT_ARRAY)
    })
  },
)
