import { expect, test } from 'vitest'
import { drawWeights, transpose } from '../../bench/models/weights.ts'
import { defaultFormat } from '../../bench/default-format.ts'

test('weights are the same for the same name', () => {
  const draw = (name: string) => drawWeights(name, 'normal', 8, 8)
  expect(draw('q0')).toEqual(draw('q0'))
  expect(draw('q0')).not.toEqual(draw('q1'))
})

test('the end token of a head has no score', () => {
  const head = drawWeights('head', 'head', 4, 3)
  expect([2, 5, 8, 11].map((index) => head[index])).toEqual([0, 0, 0, 0])
  expect(head[0]).not.toBe(0)
})

test('transposing swaps rows and columns', () => {
  const turned = transpose(Float32Array.of(1, 2, 3, 4, 5, 6), 2, 3)
  expect([...turned]).toEqual([1, 4, 2, 5, 3, 6])
})

test('the default format is the one that the catalog chooses of those there are', () => {
  expect(defaultFormat(['fp32', 'uint8', 'q4'])).toBe('q4')
  expect(() => defaultFormat([])).toThrow('chooses none')
})
