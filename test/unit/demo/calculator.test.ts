import { expect, test } from 'vitest'
import { calculate } from '../../../demo/tools/calculator.ts'

test.each([
  ['27 + 15', 42],
  ['12 * (3 + 4)', 84],
  ['2 ^ 3 ^ 2', 512],
  ['-2 ** 2', -4],
  ['2 ^ -1', 0.5],
  ['10 - 4 - 3', 3],
  ['64 / 4 / 2', 8],
  ['17 % 5', 2],
  ['1e3 + .5', 1000.5],
  ['SQRT(16) + max(1, 2, 3)', 7],
  ['2 × 3 ÷ 4 − 1', 0.5],
  ['cos(pi)', -1],
  ['ln(e) ', 1],
  ['--3', 3],
])('%s is %d', (expression, value) => {
  expect(calculate(expression)).toBeCloseTo(value, 12)
})

test.each([
  ['', 'ends too early'],
  ['1 +', 'ends too early'],
  ['2 2', 'Unexpected "2" at position 3'],
  ['(1', 'ends too early'],
  ['1)', 'Unexpected ")" at position 2'],
  ['alert(1)', 'Unexpected "alert" at position 1'],
  ['constructor', 'Unexpected "constructor" at position 1'],
  ['1 ; 2', 'Unexpected ";" at position 2'],
  ['1 / 0', 'not a number'],
  ['sqrt(-1)', 'not a number'],
  [`${'('.repeat(5000)}1`, 'nested over 100 levels'],
])('%s is refused', (expression, message) => {
  expect(() => calculate(expression)).toThrow(message)
})
