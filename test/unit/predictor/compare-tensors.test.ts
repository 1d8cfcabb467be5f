import { describe, expect, test } from 'vitest'
import type { Operation } from '../../../src/engine/onnx/graph-file.ts'
import { findChoiceSource, type ChosenFrom } from '../../../src/predictor/chosen-from.ts'
import { compareTensors } from '../../../src/predictor/gpu-check.ts'
import type { RawTensor } from '../../../src/predictor/tensor.ts'
import { toHalf } from '../../../src/values/elements.ts'

const floats = (data: number[], shape = [data.length]): RawTensor => ({
  type: 'float32',
  data: Float32Array.from(data),
  shape,
})
const halves = (data: number[]): RawTensor => ({
  type: 'float16',
  data: Uint16Array.from(data, toHalf),
  shape: [data.length],
})
const integers = (data: number[], shape = [data.length]): RawTensor => ({
  type: 'int64',
  data: BigInt64Array.from(data, BigInt),
  shape,
})
const booleans = (data: number[]): RawTensor => ({
  type: 'bool',
  data: Uint8Array.from(data),
  shape: [data.length],
})
const text = (data: string[]): RawTensor => ({ type: 'string', data, shape: [1] })

const box = Array.from({ length: 32 }, (_, index) => 20 * index)
const scored = (factor: number): RawTensor =>
  floats([...box, ...box.map((_, index) => (factor * index) / 64)], [1, 2, 32])

test.each<[string, RawTensor, RawTensor, string]>([
  ['the same', floats([1, 2, -4]), floats([1, 2, -4]), 'same'],
  ['rounding, relative to the largest', floats([1, 2.03, -4]), floats([1, 2, -4]), 'same'],
  ['more than rounding', floats([1, 2.1, -4]), floats([1, 2, -4]), 'different'],
  ['other numbers', floats([1, 2, 4]), floats([1, 2, -4]), 'gross'],
  ['tiny numbers', floats([1e-6, 0]), floats([3e-6, 0]), 'same'],
  ['NaN where the CPU has a number', floats([NaN, 2]), floats([1, 2]), 'gross'],
  ['NaN on both', floats([NaN, 2]), floats([NaN, 2]), 'same'],
  ['the same infinity', floats([Infinity, 2]), floats([Infinity, 2]), 'same'],
  ['infinities of other signs', floats([Infinity, 2]), floats([-Infinity, 2]), 'gross'],
  ['16 bits, which have a larger tolerance', halves([1, 2.05]), halves([1, 2]), 'same'],
  ['that tolerance in 32 bits', floats([1, 2.05]), floats([1, 2]), 'different'],
  ['more than that in 16 bits', halves([1, 2.2]), halves([1, 2]), 'different'],
  ['another shape', floats([1, 2], [1, 2]), floats([1, 2], [2, 1]), 'gross'],
  // Small scores beside large coordinates are compared among themselves.
  ['half the scores beside a box', scored(0.5), scored(1), 'different'],
  ['scores beside a box', scored(1), scored(1), 'same'],
  ['integers of an unknown source', integers([9]), integers([1]), 'different'],
  ['more integers', integers([1, 2]), integers([1]), 'different'],
  ['other texts', text(['a']), text(['b']), 'different'],
  ['the same text', text(['a']), text(['a']), 'same'],
])('%s', (_, computed, reference, expected) => {
  expect(compareTensors(computed, reference)).toBe(expected)
})

describe('Integers and booleans are compared by the numbers that they are chosen from', () => {
  const byPosition = (axis: number, tensor: RawTensor): ChosenFrom => ({
    choice: { by: 'position', axis },
    tensors: [tensor],
  })
  /** Scores of two rows with three positions. */
  const scores = byPosition(1, floats([0.1, 0.9, 0.8999, 0.5, 0.1, 0.4], [2, 3]))
  const columns = byPosition(-2, floats([1, 5, 4, 5.001], [2, 2]))
  const best = byPosition(1, floats([3, 2.999, 1], [1, 3]))
  // Scores of one row are small beside those of another.
  const unlike = byPosition(1, floats([300, 1, 2, 1, 0.02, 0.3], [2, 3]))
  const row = (...data: number[]): RawTensor => integers(data, [1, 2])

  test.each<[string, RawTensor, RawTensor, ChosenFrom, string]>([
    ['the same', integers([1, 0]), integers([1, 0]), scores, 'same'],
    ['a near-tie', integers([2, 0]), integers([1, 0]), scores, 'same'],
    ['a worse one', integers([1, 2]), integers([1, 0]), scores, 'different'],
    ['a far worse one', integers([0, 0]), integers([1, 0]), scores, 'gross'],
    ['an unknown position', integers([7, 0]), integers([1, 0]), scores, 'different'],
    ['a row of small scores', integers([0, 1]), integers([0, 0]), unlike, 'different'],
    ['a tie on the first axis', row(1, 0), row(1, 1), columns, 'same'],
    ['another on the first axis', row(0, 1), row(1, 1), columns, 'gross'],
    ['a tie among several', row(1, 0), row(0, 1), best, 'same'],
    ['another among several', row(0, 2), row(0, 1), best, 'gross'],
  ])('position: %s', (_, computed, reference, source, expected) => {
    expect(compareTensors(computed, reference, source)).toBe(expected)
  })

  test.each([
    [[0, 1], 'same'],
    [[1, 0], 'gross'],
  ])('comparison: %j is %s', (computed, expected) => {
    const limit: ChosenFrom = {
      choice: { by: 'comparison' },
      tensors: [floats([0.5001, 0.9]), floats([0.5], [])],
    }
    expect(compareTensors(booleans(computed), booleans([1, 1]), limit)).toBe(expected)
  })

  test.each([
    ['nearest', 1.5, 2, 1, 'same'],
    ['nearest', 5.49, 5, 6, 'same'],
    ['nearest', 5.1, 5, 6, 'different'],
    ['nearest', 5.1, 5, 4, 'different'],
    ['nearest', 100, 100, 90, 'different'],
    ['down', 4.99, 4, 5, 'same'],
    ['down', 5.01, 5, 4, 'same'],
    ['down', 5.01, 5, 6, 'different'],
    ['up', 5.01, 6, 5, 'same'],
    ['up', 5.99, 6, 5, 'different'],
    ['zero', -4.99, -4, -5, 'same'],
    ['zero', 5.3, 5, 6, 'different'],
    ['zero', 0.5, 0, -1, 'different'],
    ['zero', 0.99, 0, 1, 'same'],
  ] as const)('rounding to %s: %d is %d, and %d is %s', (to, source, right, ours, expected) => {
    const rounded: ChosenFrom = { choice: { by: 'rounding', to }, tensors: [floats([source, 6])] }
    expect(compareTensors(integers([ours, 6]), integers([right, 6]), rounded)).toBe(expected)
  })
})

describe('findChoiceSource', () => {
  /** Reads an operation such as `ArgMax 2: scores -> a`, where 2 is its axis. */
  function toOperation(written: string): Operation {
    const [, kind = '', axis, inputs = '', outputs = ''] =
      /^(\w+)(?: (\d+))?: (.+) -> (.+)$/.exec(written) ?? []
    const names = (list: string) => list.split(' ')
    return {
      kind,
      inputs: names(inputs),
      outputs: names(outputs),
      axis: axis === undefined ? undefined : Number(axis),
    }
  }

  test.each<[string, string[], ChosenFrom['choice'] | undefined, string[]]>([
    [
      'an ArgMax before operators that keep the order',
      ['ArgMax 2: scores -> a', 'Squeeze: a axes -> b', 'Cast: b -> y'],
      { by: 'position', axis: 2 },
      ['scores'],
    ],
    ['a TopK', ['TopK: scores k -> values y'], { by: 'position', axis: -1 }, ['scores']],
    ['a comparison', ['Greater: scores limit -> y'], { by: 'comparison' }, ['scores', 'limit']],
    ['a cast', ['MatMul: a b -> c', 'Cast: c -> y'], { by: 'rounding', to: 'zero' }, ['c']],
    [
      'a rounding before a clip and a cast',
      ['Round: a -> b', 'Clip: b min max -> c', 'Cast: c -> y'],
      { by: 'rounding', to: 'nearest' },
      ['a'],
    ],
    ['nothing known', ['NonMaxSuppression: boxes scores -> y'], undefined, []],
  ])('finds %s', (_, operations, choice, tensors) => {
    const source = findChoiceSource(operations.map(toOperation), 'y')
    expect(source).toEqual(choice && { choice, tensors })
  })
})
