/** Products with weights in blocks, whose converted forms the runtime computes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { convertWeights, type WeightForm } from '../../../src/engine/onnx/convert-weights.ts'
import type { Runtime } from '../../../src/engine/onnx/runtime.ts'
import { createChance } from '../../support/random.ts'
import { onnxFile, type Operator, type Weight } from '../../support/onnx.ts'
import { openRuntime, type OpenedRuntime } from '../../models/layouts.ts'

const BLOCK = 32
/** Columns of the two products, which share an input. */
const COLUMNS = [48, 16]
/** Column of the input whose values are much greater than the others. */
const OUTLIER = 7

const { below } = createChance(11)
const chance = (): number => below(1_000_000) / 1_000_000

/** Returns the products of one input with weights of 8 bits in blocks. */
function createGraph(length: number, shape: readonly string[], opset: number): Blob {
  const blocks = length / BLOCK
  const products = COLUMNS.map((columns, at) => {
    const values = Uint8Array.from({ length: columns * length }, () => below(256))
    // The outlier's weights are 0, so that the other values decide the result.
    for (let column = 0; column < columns; column += 1) values[column * length + OUTLIER] = 128
    const scales = Float32Array.from({ length: columns * blocks }, () => (1 + chance()) / 1000)
    const weights: Weight[] = [
      { name: `w${at}`, type: 'uint8', shape: [columns, blocks, BLOCK], data: values },
      {
        name: `s${at}`,
        type: 'float32',
        shape: [columns * blocks],
        data: new Uint8Array(scales.buffer),
      },
    ]
    const node: Operator = {
      type: 'MatMulNBits',
      domain: 'com.microsoft',
      inputs: ['x', `w${at}`, `s${at}`],
      outputs: [`y${at}`],
      attributes: { K: length, N: columns, bits: 8, block_size: BLOCK },
    }
    return { node, weights, output: { name: `y${at}`, type: 'float32', shape: null } as const }
  })
  const file = onnxFile({
    opset,
    inputs: [{ name: 'x', type: 'float32', shape: [...shape, length] }],
    outputs: products.map(({ output }) => output),
    nodes: products.map(({ node }) => node),
    weights: products.flatMap(({ weights }) => weights),
  })
  return new Blob([file])
}

let opened: OpenedRuntime
let runtime: Runtime
beforeAll(async () => {
  opened = await openRuntime('wasm')
  runtime = opened.runtime
})
afterAll(() => opened.close())

/** Resolves with the outputs of both products, in a form or as the runtime computes the file. */
async function compute(model: Blob, x: Float32Array, dims: readonly number[], form?: WeightForm) {
  const files = { model, externalData: [] }
  const signal = new AbortController().signal
  const converted = form ? await convertWeights(files, form, signal) : files
  expect(converted === files).toBe(!form)
  const session = await runtime.createSession(converted.model, {
    externalData: converted.externalData,
  })
  const outputs = await session.run({ x: new runtime.ort.Tensor('float32', x, dims) })
  const results = ['y0', 'y1'].map((name) => ({
    dims: [...(outputs[name]?.dims ?? [])],
    data: Float32Array.from((outputs[name]?.data ?? []) as Float32Array),
  }))
  await session.release()
  return results
}

/** Returns the root of the mean square of differences, over that of the values. */
function relativeError(wanted: Float32Array, got: Float32Array): number {
  const square = (values: Float32Array): number =>
    values.reduce((sum, value) => sum + value ** 2, 0)
  return Math.sqrt(square(got.map((value, at) => value - (wanted[at] ?? NaN))) / square(wanted))
}

test.each([
  [576, [2, 3], 18],
  [576, [5], 18],
  [1536, [1, 1], 14],
  [64, [2, 2, 1], 21],
])('rows of %i values in a shape of %j, opset %i', async (length, leading, opset) => {
  const names = leading.map((_, axis) => `axis${axis}`)
  const model = createGraph(length, names, opset)
  const rows = leading.reduce((count, size) => count * size, 1)
  const x = Float32Array.from({ length: rows * length }, (_, at) => {
    return (chance() - 0.5) * (at % length === OUTLIER ? 100 : 1)
  })
  // The last row is padding.
  if (rows > 1) x.fill(0, (rows - 1) * length)
  const dims = [...leading, length]
  const wanted = await compute(model, x, dims)
  const exact = await compute(model, x, dims, 'float32')
  const fast = await compute(model, x, dims, 'int8')
  for (const [at, { dims: shape, data }] of wanted.entries()) {
    expect(shape).toEqual([...leading, COLUMNS[at]])
    expect(exact[at]?.dims).toEqual(shape)
    expect(fast[at]?.dims).toEqual(shape)
    expect(relativeError(data, exact[at]?.data ?? new Float32Array())).toBeLessThan(1e-6)
    // One scale for a whole row would lose a quarter.
    const error = relativeError(data, fast[at]?.data ?? new Float32Array())
    expect(error).toBeLessThan(0.1)
    expect(error).toBeGreaterThan(1e-4)
  }
})
