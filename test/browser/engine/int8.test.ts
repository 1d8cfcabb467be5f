/** 4-bit weights that were converted to 8-bit integers, beside those that were not. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import {
  maxDifference,
  openDecoder,
  openRuntime,
  prefill,
  readFiles,
  takeRow,
  type OpenedDecoder,
  type OpenedRuntime,
} from '../../models/layouts.ts'
import { runtimeFolder } from '../../models/tiny.ts'
import expected from '../../models/layouts/expected.json'

const Q4 = { device: 'wasm', model: 'layouts/q4/onnx/model_q4.onnx' } as const
/** Rounding of the two, over the greatest of the logits. Random weights of 32 rows hide little of it. */
const CLOSENESS = 0.04
/** Sums of floats, which the attention between the products makes in another order. */
const EXACT = 2e-5

const prompt = expected.q4[2]?.prompt as number[]
let runtime: OpenedRuntime
let exact: OpenedDecoder
let int8: OpenedDecoder

beforeAll(async () => {
  runtime = await openRuntime('wasm')
  exact = await openDecoder(Q4, runtime)
  int8 = await openDecoder({ ...Q4, int8: true }, runtime)
})
afterAll(async () => {
  await exact.close()
  await int8.close()
  runtime.close()
})

/** Logits after each prefix of the prompt of that length. */
async function logits({ decoder }: Pick<OpenedDecoder, 'decoder'>, length: number, chunk?: number) {
  const sequence = decoder.open()
  const first = await prefill(sequence, prompt.slice(0, length), chunk)
  const second = await takeRow(await sequence.forward([7]))
  sequence.close()
  return [first, second] as const
}

test.each([1, 9, 70])('differ little in their logits after %i tokens', async (length) => {
  const wanted = await logits(exact, length)
  const got = await logits(int8, length)
  for (const [step, row] of wanted.entries()) {
    const greatest = maxDifference(row, new Float32Array(row.length))
    const difference = maxDifference(row, got[step] ?? row) / greatest
    expect(difference).toBeLessThan(CLOSENESS)
    // Equal logits would mean that nothing was converted.
    expect(difference).toBeGreaterThan(1e-4)
  }
})

test('give the same logits in chunks of any size, and beside other sequences', async () => {
  const [wanted] = await logits(int8, 70, 64)
  expect(maxDifference(wanted, (await logits(int8, 70, 5))[0])).toBeLessThan(EXACT)

  const { decoder } = int8
  const texts = [prompt.slice(0, 30), prompt.slice(0, 7), prompt.slice(5, 25)]
  const together = texts.map(() => decoder.open())
  for (const [index, sequence] of together.entries()) await sequence.extend(texts[index] ?? [])
  const batch = await decoder.step(together.map((sequence) => ({ sequence, token: 11 })))
  for (const [row, text] of texts.entries()) {
    const alone = decoder.open()
    const single = await prefill(alone, [...text, 11])
    alone.close()
    expect(maxDifference(await batch.row(row), single)).toBeLessThan(EXACT)
  }
  batch.release()
  for (const sequence of together) sequence.close()
})

test('are what a load on WASM computes with', async () => {
  const { model, externalData } = await readFiles(Q4.model)
  const weights = new Map([
    ['onnx/model_q4.onnx', model],
    ...externalData.map(({ path, data }) => [`onnx/${path}`, data] as const),
  ])
  const options = { contextWindow: 512, firstPosition: 0, warm: false } as const
  const loaded = await loadDecoder(
    { device: 'wasm', runtime: runtimeFolder(), ...options },
    weights,
    new AbortController().signal,
  )
  const [wanted] = await logits(int8, 9)
  expect(maxDifference(wanted, (await logits(loaded, 9))[0])).toBeLessThan(EXACT)
  await loaded.release()
})
