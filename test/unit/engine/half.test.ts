import { expect, test } from 'vitest'
import { fromHalf, toHalf } from '../../../src/values/half.ts'

test('every half survives the way to a number and back', () => {
  const halves = Array.from({ length: 0x10000 }, (_, bits) => bits)
  const changed = halves.filter(
    (bits) => !Object.is(fromHalf(toHalf(fromHalf(bits))), fromHalf(bits)),
  )
  expect(changed).toEqual([])
})

test.each([
  [1, 0x3c00],
  [-2, 0xc000],
  [65504, 0x7bff],
  [65519.99, 0x7bff],
  [65520, 0x7c00],
  [1e9, 0x7c00],
  [-Infinity, 0xfc00],
  [2 ** -24, 0x0001],
  [2 ** -25, 0x0000],
  [1.5 * 2 ** -25, 0x0001],
  [2 ** -14, 0x0400],
  [-1e-30, 0x8000],
  [0.1, 0x2e66],
])('%f is %i', (value, bits) => {
  expect(toHalf(value)).toBe(bits)
})

test('between two halves the nearer is taken, and the even one of two equally near', () => {
  const step = 2 ** -10
  expect(fromHalf(toHalf(1 + step * 0.49))).toBe(1)
  expect(fromHalf(toHalf(1 + step * 0.51))).toBe(1 + step)
  expect(fromHalf(toHalf(1 + step * 0.5))).toBe(1)
  expect(fromHalf(toHalf(1 + step * 1.5))).toBe(1 + 2 * step)
  expect(fromHalf(toHalf(2 - step * 0.25))).toBe(2)
})
