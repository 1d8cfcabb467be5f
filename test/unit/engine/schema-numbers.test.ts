import { expect, test } from 'vitest'
import { matches } from '../../../src/engine/schema/match.ts'
import { integers, numbers } from '../../../src/engine/schema/numbers.ts'

const BOUNDS = [
  0, 1, -1, 0.5, -0.5, 1.5, 2.25, 10, 99, 100, 0.1, 0.30000000000000004, 1e-7, 123456.789, 9007199254740991,
  1e18, -10, -99.5, -1e-3, 3, 7,
]
const TEXTS = [
  '0', '0.0', '1', '1.0', '-1', '0.5', '-0.5', '0.50', '1.5', '1.49', '1.51', '2.25', '2.249', '2.2500', '2.26',
  '10', '9.99', '10.01', '99', '100', '101', '100.5', '0.1', '0.10', '0.09', '0.11', '3', '7', '6.999', '7.001',
  '123456.789', '123456.79', '123456.7889', '-10', '-9.9', '-99.5', '-99.51', '-99.49', '-0.001', '-0.0011',
  '0.3', '0.31', '0.300000001', '0.0000001', '0.00000011', '9007199254740991', '9007199254740992',
  '1000000000000000', '1000000000000000000', '01', '-', '.5', '1.', '+1',
]

test('Between bounds are exactly the numbers between them', () => {
  const wrong: string[] = []
  for (const min of [-Infinity, ...BOUNDS]) {
    for (const max of [...BOUNDS, Infinity].filter((each) => each >= min)) {
      if (min === -Infinity && max === Infinity) continue
      for (const open of [false, true]) {
        const bounds = { min, max, above: open && min > -Infinity, below: open && max < Infinity }
        const [decimal, whole] = [numbers(bounds), integers(bounds)]
        for (const text of TEXTS) {
          const value = Number(text)
          const inside = open ? value > min && value < max : value >= min && value <= max
          const right = inside && /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)
          if (matches(decimal, text) !== right) wrong.push(`${text} in ${JSON.stringify(bounds)}`)
          const integer = right && !text.includes('.')
          if (matches(whole, text) !== integer) wrong.push(`integer ${text} in ${JSON.stringify(bounds)}`)
        }
      }
    }
  }
  expect(wrong).toEqual([])
})

test('What is read as a bound that is out stays out', () => {
  const below = (max: number) => numbers({ min: -Infinity, max, above: false, below: true })
  expect(matches(below(3), '2.9999')).toBe(true)
  for (const [max, text] of [[3, `2.${'9'.repeat(20)}`], [2 ** 53 - 1, '9007199254740990.9']] as const) {
    expect(Number(text)).toBe(max)
    expect(matches(below(max), text)).toBe(false)
  }
  const above = numbers({ min: -3, max: Infinity, above: true, below: false })
  expect(matches(above, '-2.9999')).toBe(true)
  expect(matches(above, `-2.${'9'.repeat(20)}`)).toBe(false)
})

test('Without bounds a number stays finite and an integer a safe text', () => {
  const anything = { min: -Infinity, max: Infinity, above: false, below: false }
  for (const text of ['0', '-0', '-1.5e-10', '1E+99', '12345678901234567890', '0.1']) {
    expect(matches(numbers(anything), text), text).toBe(true)
  }
  for (const text of ['1e999', '01', '1.', '.1', 'NaN', '1e', '9'.repeat(400)]) {
    expect(matches(numbers(anything), text), text).toBe(false)
  }
  expect(matches(integers(anything), '-0')).toBe(false)
  expect(matches(integers(anything), '1.0')).toBe(false)
  expect(matches(integers(anything), '-9007199254740993')).toBe(true)
})
