import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { convertToInt8 } from '../../../src/engine/onnx/int8/convert.ts'
import { readGraphFile } from '../../../src/engine/onnx/int8/graph-file.ts'
import type { GraphFiles } from '../../../src/engine/onnx/model-files.ts'

const NEVER = new AbortController().signal

const read = async (path: string): Promise<Blob> =>
  new Blob([await readFile(new URL(`../../models/layouts/${path}`, import.meta.url))])

const readQ4 = async (): Promise<GraphFiles> => ({
  model: await read('q4/onnx/model_q4.onnx'),
  externalData: [{ path: 'model_q4.onnx_data', data: await read('q4/onnx/model_q4.onnx_data') }],
})

describe('a graph with 4-bit weights', () => {
  test('has 8-bit products in their place, in an order that can run', async () => {
    const before = await readGraphFile(await readQ4())
    const after = await readGraphFile(await convertToInt8(await readQ4(), NEVER))
    const count = (graph: typeof after, kind: string): number =>
      graph.nodes.filter((node) => node.kind === kind).length
    const products = count(before, 'MatMulNBits')
    expect(products).toBeGreaterThan(10)
    expect(count(after, 'MatMulNBits')).toBe(0)
    expect(count(after, 'MatMulIntegerToFloat')).toBe(products)
    // Queries, keys and values share an input, and so do both halves of a gate.
    const inputs = before.nodes.filter(({ kind }) => kind === 'MatMulNBits')
    expect(count(after, 'QuantizeLinear')).toBe(new Set(inputs.map((node) => node.inputs[0])).size)

    const ready = new Set([...after.constants.keys(), ...after.ports, ''])
    for (const { inputs: needed, outputs } of after.nodes) {
      expect(needed.filter((name) => !ready.has(name))).toEqual([])
      for (const name of outputs) ready.add(name)
    }
  })

  test('keeps no weights that nothing uses, and those in the other file', async () => {
    const files = await readQ4()
    const converted = await convertToInt8(files, NEVER)
    const { constants, nodes } = await readGraphFile(converted)
    const used = new Set(nodes.flatMap(({ inputs }) => inputs))
    expect([...constants.keys()].filter((name) => !used.has(name))).toEqual([])
    expect(converted.externalData[0]).toBe(files.externalData[0])
    const sizes = [...constants.values()]
      .filter(({ type }) => type === 3)
      .map(({ data }) => data?.size)
    const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? NaN), 0)
    expect(converted.externalData[1]?.data.size).toBe(bytes)
  })

  test('stays as it is if the new weights are too large', async () => {
    const files = await readQ4()
    const bytes = (await convertToInt8(files, NEVER)).externalData[1]?.data.size ?? 0
    expect(await convertToInt8(files, NEVER, bytes - 1)).toBe(files)
    expect(await convertToInt8(files, NEVER, bytes)).not.toBe(files)
  })

  test('stays as it is if a file with its weights is missing', async () => {
    const files = { ...(await readQ4()), externalData: [] }
    expect(await convertToInt8(files, NEVER)).toBe(files)
  })

  test('is not converted any further once the load is canceled', async () => {
    const canceled = convertToInt8(await readQ4(), AbortSignal.abort())
    await expect(canceled).rejects.toMatchObject({ kind: 'aborted' })
  })
})

test.each(['plain/onnx/model.onnx', 'branch/onnx/model.onnx', 'q4f16/onnx/model_q4f16.onnx'])(
  '%s stays as it is',
  async (path) => {
    const files = { model: await read(path), externalData: [] }
    expect(await convertToInt8(files, NEVER)).toBe(files)
  },
)

test('a file that is no model stays as it is', async () => {
  const files = { model: new Blob(['not a model at all']), externalData: [] }
  expect(await convertToInt8(files, NEVER)).toBe(files)
})
