/**
 * The engine for ONNX with the tiny model. mlc.test.ts holds it to the contract of engines, and trust.test.ts compares
 * its texts on WebGPU with the reference.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GpuVerdict } from '../../../src/device/gpu-verdict.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { CASES, tinyFiles } from '../../models/tiny.ts'
import {
  decoded,
  GREEDY,
  load,
  long,
  never,
  open,
  promptOf,
  run,
  short,
  textOf,
  WEIGHTS,
} from './run-engine.ts'

describe('on wasm', () => {
  let engine: Engine
  beforeAll(async () => {
    engine = await load()
  })
  afterAll(() => engine.close())

  test('answers at once are those of the reference', async () => {
    const answers = await Promise.all(CASES.map(({ prompt }) => run(engine, promptOf(prompt))))
    for (const [index, { pieces, ending }] of answers.entries()) {
      expect(textOf(pieces)).toBe(decoded(CASES[index]?.greedy ?? []))
      expect(ending).toEqual({ reason: 'length', completionTokens: 16 })
      expect(pieces.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(16)
    }
  })

  test('an abort by a message is noticed between two tokens', async () => {
    const canceling = new AbortController()
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => canceling.abort()
    const options = { ...GREEDY, maxTokens: 400, signal: canceling.signal }
    let count = 0
    const read = async (): Promise<void> => {
      for await (const { tokens } of engine.generate(short.prompt, options)) {
        count += tokens
        if (count >= 3) port2.postMessage('cancel')
      }
    }
    await expect(read()).rejects.toMatchObject({ kind: 'aborted' })
    expect(count).toBeLessThan(8)
    port1.close()
  })

  test('logprobs are those of the bytes of a text, and the best first', async () => {
    const { pieces } = await run(engine, short.prompt, { ...GREEDY, maxTokens: 6, logprobs: 3 })
    const logprobs = pieces.flatMap((piece) => piece.logprobs ?? [])
    const bytes = Uint8Array.from(logprobs.flatMap((each) => each.bytes))
    expect(new TextDecoder().decode(bytes)).toContain(textOf(pieces).trim())
    for (const { bytes: chosen, logprob, top } of logprobs) {
      expect(top).toHaveLength(3)
      expect(top[0]).toMatchObject({ bytes: chosen, logprob })
      expect(logprob).toBeLessThan(0)
      expect(logprob).toBeGreaterThanOrEqual(top[1]?.logprob as number)
    }
  })

  test('a constant text comes in one piece and ends the answer', async () => {
    const constraint = { type: 'constant', text: 'hello world' } as const
    const { pieces, ending } = await run(engine, short.prompt, { ...GREEDY, constraint })
    expect(pieces.map((piece) => piece.text)).toEqual(['hello world'])
    expect(ending).toMatchObject({ reason: 'stop' })
  })
})

test('a load with expected weights uses the runtime that has started, and starts no other', async () => {
  const countRuntimes = (): number => performance.getEntriesByName('inorigin:runtime').length
  const weights = await tinyFiles(WEIGHTS)
  performance.clearMarks('inorigin:runtime')
  const engine = await open({ expectedWeights: weights })
  await expect.poll(countRuntimes).toBe(1)
  await engine.load(weights, never)
  expect(countRuntimes()).toBe(1)
  expect(textOf((await run(engine, short.prompt)).pieces)).toBe(decoded(short.greedy))
  await engine.close()
})

describe('a load with expected weights on a GPU', () => {
  const { requestDevice } = GPUAdapter.prototype
  const opened: GPUDevice[] = []
  beforeEach(() => {
    opened.length = 0
    GPUAdapter.prototype.requestDevice = async function (wanted) {
      const device = await requestDevice.call(this, wanted)
      opened.push(device)
      return device
    }
  })
  afterEach(() => void (GPUAdapter.prototype.requestDevice = requestDevice))

  const begin = async (verdict?: GpuVerdict): Promise<Engine> => {
    const expectedWeights = await tinyFiles(WEIGHTS)
    const engine = await open({ device: 'webgpu', expectedWeights, verdict })
    await expect.poll(() => opened.length, { timeout: 60_000 }).toBe(1)
    return engine
  }
  const answer = async (engine: Engine): Promise<string> => {
    await engine.load(await tinyFiles(WEIGHTS), never)
    const text = textOf((await run(engine, short.prompt)).pieces)
    await engine.close()
    return text
  }

  test('uses the one whose self-test has begun, and opens no other', async () => {
    const engine = await begin()
    expect(await answer(engine)).toBe(decoded(short.greedy))
    expect(opened).toHaveLength(1)
  })

  test('opens another one if it was lost meanwhile', async () => {
    const engine = await begin({ features: [] })
    opened[0]?.destroy()
    await opened[0]?.lost
    expect(await answer(engine)).toBe(decoded(short.greedy))
    expect(opened).toHaveLength(2)
  })
})

test('an answer ends at an end token, which counts and is not part of the text', async () => {
  const eos_token_id = short.greedy[3]
  const engine = await load({
    texts: { 'generation_config.json': { eos_token_id, do_sample: false } },
  })
  const { pieces, ending } = await run(engine, short.prompt)
  expect(ending).toMatchObject({ reason: 'stop', completionTokens: 4 })
  expect(textOf(pieces)).toBe(decoded(short.greedy.slice(0, 3)))
  await engine.close()
})

describe('a load rejects', () => {
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

  test('with weights that are damaged or cut short, and the next load works', async () => {
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

  test('when it is canceled', async () => {
    const engine = await open()
    await expect(engine.load(await tinyFiles(WEIGHTS), AbortSignal.abort())).rejects.toMatchObject({
      kind: 'aborted',
    })
  })
})

test('a load finds external weights by the name that the graph gives them', async () => {
  const engine = await open()
  await engine.load(await tinyFiles(['older/model.onnx', 'older/model.onnx_data']), never)
  expect(textOf((await run(engine, long.prompt)).pieces)).toBe(decoded(long.greedy))
  await engine.close()
})
