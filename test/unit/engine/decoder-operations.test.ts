import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { readOperations } from '../../../src/engine/onnx/decoder/operations.ts'

const read = async (path: string): Promise<Blob> =>
  new Blob([await readFile(new URL(`../../models/${path}`, import.meta.url))])

test('lists the operations of a model, with their inputs', async () => {
  const operations = await readOperations(await read('tiny/onnx/model.onnx'))
  const grouped = operations.filter(({ kind }) => kind === 'GroupQueryAttention')
  expect(grouped.map(({ inputs }) => inputs.slice(3, 5))).toEqual([
    ['past_key_values.0.key', 'past_key_values.0.value'],
    ['past_key_values.1.key', 'past_key_values.1.value'],
  ])
})

test('lists those inside of branches and loops', async () => {
  const branches = await readOperations(await read('layouts/branch/onnx/model.onnx'))
  const joins = branches.filter(({ inputs }) => inputs[0]?.startsWith('past_key_values'))
  expect(joins.map(({ kind }) => kind)).toEqual(Array(4).fill('Concat'))
  const loop = await readOperations(await read('layouts/recurrent/onnx/model.onnx'))
  expect(loop.filter(({ kind }) => kind === 'Scan')).toHaveLength(1)
  expect(loop.some(({ inputs }) => inputs.includes('state_in'))).toBe(true)
})

test('reads little of a model whose weights are long', async () => {
  const weight = 2 ** 24
  // A graph of one node, a tensor of 16 MiB, and another node.
  const node = (kind: string): number[] => [
    10,
    kind.length + 2,
    34,
    kind.length,
    ...Buffer.from(kind),
  ]
  const length = [0x80, 0x80, 0x80, 0x08]
  const graph = [...node('First'), 42, ...length]
  const total = graph.length + weight + node('Second').length
  const head = [58, ...varint(total), ...graph]
  const parts = [Uint8Array.from(head), new Uint8Array(weight), Uint8Array.from(node('Second'))]
  const model = new Blob(parts)
  let bytes = 0
  const slice = model.slice.bind(model)
  model.slice = (from = 0, to = model.size) => {
    bytes += Math.min(to, model.size) - from
    return slice(from, to)
  }
  expect((await readOperations(model)).map(({ kind }) => kind)).toEqual(['First', 'Second'])
  expect(bytes).toBeLessThan(4 * 2 ** 20)
})

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}

test.each(['', 'not a model at all', '\u0000\u0001\u0002'])('finds none in %j', async (text) => {
  expect(await readOperations(new Blob([text]))).toEqual([])
})
