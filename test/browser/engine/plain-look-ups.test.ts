/** Look-ups in tables that are quantized in blocks, beside the operators that take their place. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readOperations } from '../../../src/engine/onnx/graph-file.ts'
import { withPlainLookUps } from '../../../src/engine/onnx/plain-look-ups.ts'
import type { Runtime } from '../../../src/engine/onnx/runtime.ts'
import { onnxFile, type Weight } from '../../support/onnx.ts'
import { createChance } from '../../support/random.ts'
import { openRuntime, type OpenedRuntime } from '../../models/layouts.ts'

const ROWS = 7
const BLOCK = 16
const BLOCKS = 4

const { below } = createChance(5)
const bytes = (length: number) => Uint8Array.from({ length }, () => below(256))

interface Table {
  bits: 4 | 8
  hasZeros: boolean
  /** `true` for a table whose blocks are a dimension of their own, as of GGUF files. */
  isApart?: boolean
  ids: 'int32' | 'int64'
}

function createGraph({ bits, hasZeros, isApart = false, ids }: Table): Blob {
  const row = isApart ? [BLOCKS, (BLOCK * bits) / 8] : [(BLOCK * BLOCKS * bits) / 8]
  const scales = Float32Array.from({ length: ROWS * BLOCKS }, () => (1 + below(1_000)) / 1_000)
  const zeroBytes = (BLOCKS * bits) / 8
  const weights: Weight[] = [
    {
      name: 'values',
      type: 'uint8',
      shape: [ROWS, ...row],
      data: bytes((ROWS * BLOCKS * BLOCK * bits) / 8),
    },
    {
      name: 'scales',
      type: 'float32',
      shape: isApart ? [ROWS, BLOCKS, 1] : [ROWS, BLOCKS],
      data: new Uint8Array(scales.buffer),
    },
    ...(hasZeros
      ? [
          {
            name: 'zeros',
            type: 'uint8' as const,
            shape: [ROWS, zeroBytes],
            data: bytes(ROWS * zeroBytes),
          },
        ]
      : []),
  ]
  const file = onnxFile({
    opset: 21,
    inputs: [{ name: 'ids', type: ids, shape: ['batch', 'length'] }],
    outputs: [{ name: 'y', type: 'float32', shape: null }],
    nodes: [
      {
        type: 'GatherBlockQuantized',
        domain: 'com.microsoft',
        inputs: ['values', 'ids', 'scales', ...(hasZeros ? ['zeros'] : [])],
        outputs: ['y'],
        attributes: { gather_axis: 0, quantize_axis: isApart ? 2 : 1, bits, block_size: BLOCK },
      },
    ],
    weights,
  })
  return new Blob([file])
}

let opened: OpenedRuntime
beforeAll(async () => {
  opened = await openRuntime('wasm')
})
afterAll(() => opened.close())

async function lookUp(runtime: Runtime, model: Blob, type: Table['ids'], onCpu = false) {
  const session = await runtime.createSession(model, { onCpu })
  const ids = [3, 0, 6, 6, 1, 5]
  const data = type === 'int64' ? BigInt64Array.from(ids, BigInt) : Int32Array.from(ids)
  const { y } = await session.run({ ids: new runtime.ort.Tensor(type, data as never, [2, 3]) })
  await session.release()
  return { dims: y?.dims, numbers: Array.from((y?.data ?? []) as Float32Array) }
}

test.each<Table>([
  { bits: 4, hasZeros: false, ids: 'int64' },
  { bits: 4, hasZeros: true, ids: 'int32' },
  { bits: 8, hasZeros: false, ids: 'int32' },
  { bits: 8, hasZeros: true, ids: 'int64' },
  { bits: 4, hasZeros: false, isApart: true, ids: 'int64' },
  { bits: 8, hasZeros: false, isApart: true, ids: 'int64' },
])('the rows of a table are the same: %j', async (table) => {
  const model = createGraph(table)
  const plain = await withPlainLookUps({ model, externalData: [] })
  const kinds = (await readOperations(plain.model)).map(({ kind }) => kind)
  expect(kinds).not.toContain('GatherBlockQuantized')
  const found = await lookUp(opened.runtime, plain.model, table.ids)
  expect(found).toEqual(await lookUp(opened.runtime, model, table.ids))
  expect(new Set(found.numbers).size).toBeGreaterThan(20)
})

test.each(['wasm', 'webgpu'] as const)(
  'the build for WebGPU looks rows up on the CPU: %s',
  async (device) => {
    const model = createGraph({ bits: 8, hasZeros: false, isApart: true, ids: 'int64' })
    const expected = await lookUp(opened.runtime, model, 'int64')
    const other = await openRuntime(device, true)
    expect(await lookUp(other.runtime, model, 'int64', device === 'webgpu')).toEqual(expected)
    other.close()
  },
)

test('a graph without such tables stays the same', async () => {
  const file = onnxFile({
    opset: 21,
    inputs: [{ name: 'x', type: 'float32', shape: [1] }],
    outputs: [{ name: 'y', type: 'float32', shape: [1] }],
    nodes: [{ type: 'Abs', inputs: ['x'], outputs: ['y'] }],
    weights: [],
  })
  const files = { model: new Blob([file]), externalData: [] }
  expect(await withPlainLookUps(files)).toBe(files)
})
