/**
 * Answers of the embedded model that are continued after any number of their tokens, as another host does.
 *
 * @module-tag slow
 */
import { afterAll, describe, expect, test } from 'vitest'
import type { Engine, GenerateOptions } from '../../../src/engine/engine.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { runtimeFolder } from '../../models/tiny.ts'
import { quantize } from '../../support/quantized-model.ts'
import { never, run, textOf } from './run-engine.ts'

const FOLDER = '/demo/models/guide/'
const TEXTS = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']
const TOKENS = 60
/** Every so many tokens, an answer is continued from there. */
const STEP = 3
/** Forbids the end token, so that an answer is as long as its limit. */
const LONG = { logitBias: { 2034: -100 } }

const readFile = async (name: string): Promise<Blob> => (await fetch(FOLDER + name)).blob()

const engines: Engine[] = []
afterAll(() => Promise.all(engines.map((engine) => engine.close())))

async function openGuide(format: 'fp32' | 'q8' | 'q4'): Promise<Engine> {
  const texts = TEXTS.map(async (name) => [name, await readFile(name)] as const)
  const engine = await openOnnx({
    device: 'wasm',
    maxInputTokens: 512,
    runtime: runtimeFolder(),
    texts: new Map(await Promise.all(texts)),
  })
  engines.push(engine)
  const model = await readFile('onnx/model.onnx')
  const weights = format === 'fp32' ? model : await quantize(model, format)
  await engine.load(new Map([['onnx/model.onnx', weights]]), never)
  return engine
}

const QUESTIONS = ['Tell me all about inorigin.', 'What is 17 plus 25?']
const ARRAY = {
  type: 'json',
  schema: { type: 'array', items: { type: 'integer' }, minItems: 99 },
} as const

type Kind = Pick<GenerateOptions, 'sampling' | 'constraint'>
const KINDS: Readonly<Record<string, Kind>> = {
  greedy: { sampling: { ...LONG, temperature: 0 } },
  sampled: { sampling: { ...LONG, temperature: 1, seed: 7 } },
  JSON: { sampling: { temperature: 1, seed: 7 }, constraint: ARRAY },
}

/** Continues an answer from many of its tokens. Resolves with the texts. */
async function continueEverywhere(
  engine: Engine,
  question: string,
  kind: Kind,
): Promise<{ whole: string; continued: string[] }> {
  const prompt = engine.prepare({ messages: [{ role: 'user', content: question }] })
  // Each in a partition of its own, because another host has another prefix cache.
  const answer = (partition: string, resumeTokens?: number[]) =>
    run(engine, prompt, { ...kind, maxTokens: TOKENS, signal: never, partition, resumeTokens })
  const { pieces } = await answer(`${question} whole`)
  const ids = pieces.flatMap(({ tokenIds }) => tokenIds ?? [])
  const continued: string[] = []
  for (let count = 1; count < ids.length; count += STEP) {
    const resumed = await answer(`${question} ${count}`, ids.slice(0, count))
    continued.push(textOf(resumed.pieces))
  }
  return { whole: textOf(pieces), continued }
}

/** The beginning of an array of integers. */
const CUT_ARRAY = /^\[(\s*-?\d+\s*,)*\s*-?\d*\s*$/

describe.each(['fp32', 'q4', 'q8'] as const)('weights of %s', (format) => {
  let engine: Engine | undefined

  test.each(Object.entries(KINDS))('%s answers', async (name, kind) => {
    engine ??= await openGuide(format)
    const different: string[] = []
    let count = 0
    for (const question of QUESTIONS) {
      const { whole, continued } = await continueEverywhere(engine, question, kind)
      expect(continued.length).toBeGreaterThan(10)
      different.push(...continued.filter((text) => text !== whole))
      count += continued.length
    }
    console.log(`${format} ${name}: ${different.length} of ${count} continuations differ`)
    // The scales of 8-bit activations depend on the rows of a run, so the next token can be another one.
    if (format !== 'q8') expect(different).toEqual([])
    // A continuation that differs is as valid as the answer, which is cut in the middle of an array.
    if (kind.constraint) for (const text of different) expect(text).toMatch(CUT_ARRAY)
  })
})
