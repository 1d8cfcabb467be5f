import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { GenerationEvent } from '../../../src/types/index.ts'
import { tinyFiles } from '../../models/tiny.ts'
import {
  decoded,
  GREEDY,
  load,
  long,
  never,
  open,
  run,
  short,
  textOf,
  WEIGHTS,
} from './run-engine.ts'

// On WebGPU, run-lost.test.ts compares texts with the reference, also where no device is lost yet.
describe('on wasm', () => {
  let engine: Engine
  beforeAll(async () => {
    engine = await load()
  })
  afterAll(() => engine.close())

  test.each([short, long])('gives the text of the reference', async ({ prompt, greedy }) => {
    const { pieces, ending } = await run(engine, prompt)
    expect(textOf(pieces)).toBe(decoded(greedy))
    expect(ending).toEqual({ reason: 'length', completionTokens: 16 })
    expect(pieces.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(16)
  })

  test('gives the same text for the same seed, another for another', async () => {
    const sampled = async (seed: number): Promise<string> => {
      const sampling = { temperature: 1.5, topP: 0.95, topK: 50, seed }
      return textOf((await run(engine, short.prompt, { ...GREEDY, sampling })).pieces)
    }
    const text = await sampled(5)
    expect(await sampled(5)).toBe(text)
    expect(await sampled(6)).not.toBe(text)
    expect(text).not.toBe(decoded(short.greedy))
  })

  test('stops within one token of an abort', async () => {
    const cancelling = new AbortController()
    const running = engine.generate(short.prompt, {
      ...GREEDY,
      maxTokens: 400,
      signal: cancelling.signal,
    })
    await running.next()
    cancelling.abort()
    await expect(running.next()).rejects.toMatchObject({ kind: 'aborted' })
    expect(await running.next()).toMatchObject({ done: true })
  })

  test('sees a message that cancels while it computes', async () => {
    const cancelling = new AbortController()
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => cancelling.abort()
    const running = engine.generate(short.prompt, {
      ...GREEDY,
      maxTokens: 400,
      signal: cancelling.signal,
    })
    let count = 0
    const all = (async () => {
      for await (const { tokens } of running) {
        count += tokens
        if (count >= 3) port2.postMessage('cancel')
      }
    })()
    await expect(all).rejects.toMatchObject({ kind: 'aborted' })
    expect(count).toBeLessThan(8)
    port1.close()
  })

  test('sees an abort between two chunks of a prompt', async () => {
    const cancelling = new AbortController()
    const running = engine.generate(long.prompt, { ...GREEDY, signal: cancelling.signal })
    const first = running.next()
    cancelling.abort()
    await expect(first).rejects.toMatchObject({ kind: 'aborted' })
  })

  test('answers again after one that was left', async () => {
    for await (const piece of engine.generate(short.prompt, GREEDY)) {
      expect(piece.tokens).toBeGreaterThan(0)
      break
    }
    expect(textOf((await run(engine, short.prompt)).pieces)).toBe(decoded(short.greedy))
  })

  test('answers a conversation with stop texts and true counts', async () => {
    const request = {
      model: '@test/tiny',
      messages: [{ role: 'user', content: 'hello world' } as const],
      sampling: {},
    }
    const ask = async (stop: string[]): Promise<GenerationEvent[]> => {
      const events: GenerationEvent[] = []
      const asked = { ...request, stop }
      const options = { plan: await planGeneration(engine, asked), maxOutputTokens: 24 }
      for await (const event of runGeneration(engine, asked, options, never)) events.push(event)
      return events
    }
    const shown = (events: GenerationEvent[]): string =>
      events.map((event) => (event.type === 'text' ? event.text : '')).join('')
    const prompt = engine.prepare({ messages: request.messages })
    const free = await ask([])
    expect(free[0]).toEqual({ type: 'start', promptTokens: prompt.tokens.length, cachedTokens: 0 })
    expect(free.at(-1)).toMatchObject({
      reason: 'length',
      usage: { promptTokens: prompt.tokens.length, cachedTokens: 0, completionTokens: 24 },
    })
    const whole = shown(free)
    const stop = whole.slice(6, 9)
    const ended = await ask([stop])
    expect(shown(ended)).toBe(whole.slice(0, whole.indexOf(stop)))
    expect(ended.at(-1)).toMatchObject({ reason: 'stop_sequence', stopSequence: stop })
  })
})

test('ends at an end token, which counts and is not shown', async () => {
  const eos_token_id = short.greedy[3]
  const engine = await load({
    texts: { 'generation_config.json': { eos_token_id, do_sample: false } },
  })
  const { pieces, ending } = await run(engine, short.prompt)
  expect(ending).toMatchObject({ reason: 'stop', completionTokens: 4 })
  expect(textOf(pieces)).toBe(decoded(short.greedy.slice(0, 3)))
  await engine.close()
})

test('ends at the end of its context, and refuses prompts that leave no room', async () => {
  const engine = await load({ maxInputTokens: 16 })
  expect(engine.contextWindow).toBe(16)
  const { ending } = await run(engine, short.prompt)
  expect(ending).toMatchObject({ reason: 'length', completionTokens: 4 })
  const content = 'cat '.repeat(20)
  expect(() => engine.prepare({ messages: [{ role: 'user', content }] })).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      code: 'context_length_exceeded',
      message: expect.stringMatching(/^prompt is too long: \d+ tokens > 15 maximum/),
    }),
  )
  await engine.close()
})

describe('says what is wrong', () => {
  test('without a chat template', async () => {
    const texts = { 'tokenizer_config.json': { eos_token: '<|im_end|>' } }
    await expect(open({ texts })).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'no_chat_template',
    })
  })

  test('without the weights', async () => {
    const engine = await open()
    await expect(engine.load(new Map(), never)).rejects.toMatchObject({
      code: 'model_unusable',
      message: expect.stringContaining('onnx/model.onnx'),
    })
  })

  test('with weights that are damaged or cut short', async () => {
    const engine = await open()
    const whole = (await tinyFiles(WEIGHTS)).get('onnx/model.onnx') as Blob
    for (const damaged of [new Blob(['not a model']), whole.slice(0, 100_000)]) {
      await expect(
        engine.load(new Map([['onnx/model.onnx', damaged]]), never),
      ).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'model_unusable',
      })
    }
    await engine.load(await tinyFiles(WEIGHTS), never)
    expect(textOf((await run(engine, short.prompt)).pieces)).toBe(decoded(short.greedy))
    await engine.close()
  })

  test('without its external weights', async () => {
    const engine = await open()
    const weights = await tinyFiles(['older/model.onnx'])
    await expect(engine.load(weights, never)).rejects.toMatchObject({ code: 'model_unusable' })
  })

  test('when it was cancelled while loading', async () => {
    const engine = await open()
    await expect(engine.load(await tinyFiles(WEIGHTS), AbortSignal.abort())).rejects.toMatchObject({
      kind: 'aborted',
    })
  })
})

test('loads external weights by the name the graph gives them', async () => {
  const engine = await open()
  await engine.load(await tinyFiles(['older/model.onnx', 'older/model.onnx_data']), never)
  expect(textOf((await run(engine, long.prompt)).pieces)).toBe(decoded(long.greedy))
  await engine.close()
})
