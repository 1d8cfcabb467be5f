import { describe, expect, test } from 'vitest'
import type { Operation } from '../../../src/engine/onnx/decoder/operations.ts'
import { findChoiceSource, type ChosenFrom } from '../../../src/predictor/chosen-from.ts'
import { compareTensors } from '../../../src/predictor/compare-tensors.ts'
import type { RawTensor } from '../../../src/predictor/tensor.ts'
import { toHalf } from '../../../src/values/half.ts'

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

describe('floats', () => {
  test.each([
    ['the same', [1, 2, -4], [1, 2, -4], 'same'],
    ['rounding, relative to the largest', [1, 2.03, -4], [1, 2, -4], 'same'],
    ['more than rounding', [1, 2.1, -4], [1, 2, -4], 'different'],
    ['other numbers', [1, 2, 4], [1, 2, -4], 'gross'],
    ['tiny numbers', [1e-6, 0], [3e-6, 0], 'same'],
    ['NaN where the CPU has a number', [NaN, 2], [1, 2], 'gross'],
    ['NaN on both', [NaN, 2], [NaN, 2], 'same'],
    ['the same infinity', [Infinity, 2], [Infinity, 2], 'same'],
    ['infinities of other signs', [Infinity, 2], [-Infinity, 2], 'gross'],
  ])('%s', (_, computed, reference, expected) => {
    expect(compareTensors(floats(computed), floats(reference))).toBe(expected)
  })

  test('of 16 bits have a larger tolerance', () => {
    expect(compareTensors(halves([1, 2.2]), halves([1, 2]))).toBe('different')
    expect(compareTensors(halves([1, 2.05]), halves([1, 2]))).toBe('same')
    expect(compareTensors(floats([1, 2.05]), floats([1, 2]))).toBe('different')
  })

  test('of another shape are grossly different', () => {
    expect(compareTensors(floats([1, 2], [1, 2]), floats([1, 2], [2, 1]))).toBe('gross')
  })

  test('small scores beside large coordinates are compared among themselves', () => {
    const box = Array.from({ length: 32 }, (_, index) => 20 * index)
    const scores = box.map((_, index) => index / 64)
    const reference = floats([...box, ...scores], [1, 2, 32])
    const computed = floats([...box, ...scores.map((score) => score / 2)], [1, 2, 32])
    expect(compareTensors(computed, reference)).toBe('different')
    expect(compareTensors(reference, reference)).toBe('same')
  })
})

describe('integers', () => {
  /** Scores of two rows with three positions. */
  const scores = floats([0.1, 0.9, 0.8999, 0.5, 0.1, 0.4], [2, 3])
  const byPosition: ChosenFrom = { choice: { by: 'position', axis: 1 }, tensors: [scores] }

  test.each([
    ['the same', [1, 0], 'same'],
    ['a near-tie', [2, 0], 'same'],
    ['a worse one', [1, 2], 'different'],
    ['a far worse one', [0, 0], 'gross'],
    ['a position that there is not', [7, 0], 'different'],
  ])('%s', (_, chosen, expected) => {
    expect(compareTensors(integers(chosen), integers([1, 0]), byPosition)).toBe(expected)
  })

  test('of a row whose scores are small beside those of another', () => {
    const rows = floats([300, 1, 2, 1, 0.02, 0.3], [2, 3])
    const source: ChosenFrom = { choice: { by: 'position', axis: 1 }, tensors: [rows] }
    expect(compareTensors(integers([0, 1]), integers([0, 0]), source)).toBe('different')
  })

  test('on the first axis, and several of them', () => {
    const columns = floats([1, 5, 4, 5.001], [2, 2])
    const source: ChosenFrom = { choice: { by: 'position', axis: -2 }, tensors: [columns] }
    expect(compareTensors(integers([1, 0], [1, 2]), integers([1, 1], [1, 2]), source)).toBe('same')
    expect(compareTensors(integers([0, 1], [1, 2]), integers([1, 1], [1, 2]), source)).toBe('gross')
    const best: ChosenFrom = {
      choice: { by: 'position', axis: 1 },
      tensors: [floats([3, 2.999, 1], [1, 3])],
    }
    expect(compareTensors(integers([1, 0], [1, 2]), integers([0, 1], [1, 2]), best)).toBe('same')
    expect(compareTensors(integers([0, 2], [1, 2]), integers([0, 1], [1, 2]), best)).toBe('gross')
  })

  test('comparisons and roundings', () => {
    const limit: ChosenFrom = {
      choice: { by: 'comparison' },
      tensors: [floats([0.5001, 0.9]), floats([0.5], [])],
    }
    const booleans = (data: number[]): RawTensor => ({
      type: 'bool',
      data: Uint8Array.from(data),
      shape: [data.length],
    })
    expect(compareTensors(booleans([0, 1]), booleans([1, 1]), limit)).toBe('same')
    expect(compareTensors(booleans([1, 0]), booleans([1, 1]), limit)).toBe('gross')
    const rounded: ChosenFrom = {
      choice: { by: 'rounding', to: 'nearest' },
      tensors: [floats([1.5, 100])],
    }
    expect(compareTensors(integers([1, 100]), integers([2, 100]), rounded)).toBe('same')
    expect(compareTensors(integers([2, 90]), integers([2, 100]), rounded)).toBe('different')
  })

  test.each([
    ['nearest', 5.49, 5, 6, 'same'],
    ['nearest', 5.1, 5, 6, 'different'],
    ['nearest', 5.1, 5, 4, 'different'],
    ['down', 4.99, 4, 5, 'same'],
    ['down', 5.01, 5, 4, 'same'],
    ['down', 5.01, 5, 6, 'different'],
    ['up', 5.01, 6, 5, 'same'],
    ['up', 5.99, 6, 5, 'different'],
    ['zero', -4.99, -4, -5, 'same'],
    ['zero', 5.3, 5, 6, 'different'],
    ['zero', 0.5, 0, -1, 'different'],
    ['zero', 0.99, 0, 1, 'same'],
  ] as const)('rounded to %s: %d is %d, and %d is %s', (to, source, right, ours, expected) => {
    const rounded: ChosenFrom = { choice: { by: 'rounding', to }, tensors: [floats([source, 6])] }
    expect(compareTensors(integers([ours, 6]), integers([right, 6]), rounded)).toBe(expected)
  })

  test('of an unknown source count as different, but never as gross', () => {
    expect(compareTensors(integers([9]), integers([1]))).toBe('different')
    expect(compareTensors(integers([1, 2]), integers([1]))).toBe('different')
    const text = (data: string[]): RawTensor => ({ type: 'string', data, shape: [1] })
    expect(compareTensors(text(['a']), text(['b']))).toBe('different')
    expect(compareTensors(text(['a']), text(['a']))).toBe('same')
  })
})

describe('findChoiceSource', () => {
  const node = (kind: string, inputs: string[], outputs: string[], axis?: number): Operation => ({
    kind,
    inputs,
    outputs,
    axis,
  })

  test.each<[string, Operation[], unknown]>([
    [
      'an ArgMax behind operators that keep the order',
      [
        node('ArgMax', ['scores'], ['a'], 2),
        node('Squeeze', ['a', 'axes'], ['b']),
        node('Cast', ['b'], ['y']),
      ],
      { choice: { by: 'position', axis: 2 }, tensors: ['scores'] },
    ],
    [
      'the positions of a TopK',
      [node('TopK', ['scores', 'k'], ['values', 'y'])],
      { choice: { by: 'position', axis: -1 }, tensors: ['scores'] },
    ],
    [
      'a comparison',
      [node('Greater', ['scores', 'limit'], ['y'])],
      { choice: { by: 'comparison' }, tensors: ['scores', 'limit'] },
    ],
    [
      'a cast',
      [node('MatMul', ['a', 'b'], ['c']), node('Cast', ['c'], ['y'])],
      { choice: { by: 'rounding', to: 'zero' }, tensors: ['c'] },
    ],
    [
      'a rounding behind a clip and a cast',
      [
        node('Round', ['a'], ['b']),
        node('Clip', ['b', 'min', 'max'], ['c']),
        node('Cast', ['c'], ['y']),
      ],
      { choice: { by: 'rounding', to: 'nearest' }, tensors: ['a'] },
    ],
    ['nothing known', [node('NonMaxSuppression', ['boxes', 'scores'], ['y'])], undefined],
  ])('finds %s', (_, operations, expected) => {
    expect(findChoiceSource(operations, 'y')).toEqual(expected)
  })
})
