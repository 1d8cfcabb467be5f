import { expect, test } from 'vitest'
import { type Expression, isNothing } from '../../../src/engine/schema/expression.ts'
import { matches as matchesWithin } from '../../../src/engine/schema/match.ts'
import { integers, numbers } from '../../../src/engine/schema/numbers.ts'
import { type Chance, createChance } from '../../support/random.ts'
import { createStepBudget } from '../../../src/engine/schema/step-budget.ts'

const matches = (expression: Expression, text: string): boolean =>
  matchesWithin(expression, text, createStepBudget())

const BOUNDS = [
  0, 1, -1, 0.5, -0.5, 1.5, 2.25, 10, 99, 100, 0.1, 0.30000000000000004, 1e-7, 123456.789,
  9007199254740991, 1e18, -10, -99.5, -1e-3, 3, 7,
]
const TEXTS = [
  '0',
  '0.0',
  '1',
  '1.0',
  '-1',
  '0.5',
  '-0.5',
  '0.50',
  '1.5',
  '1.49',
  '1.51',
  '2.25',
  '2.249',
  '2.2500',
  '2.26',
  '10',
  '9.99',
  '10.01',
  '99',
  '100',
  '101',
  '100.5',
  '0.1',
  '0.10',
  '0.09',
  '0.11',
  '3',
  '7',
  '6.999',
  '7.001',
  '123456.789',
  '123456.79',
  '123456.7889',
  '-10',
  '-9.9',
  '-99.5',
  '-99.51',
  '-99.49',
  '-0.001',
  '-0.0011',
  '0.3',
  '0.31',
  '0.300000001',
  '0.0000001',
  '0.00000011',
  '9007199254740991',
  '9007199254740992',
  '1000000000000000',
  '1000000000000000000',
  '01',
  '-',
  '.5',
  '1.',
  '+1',
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
          if (matches(whole, text) !== integer)
            wrong.push(`integer ${text} in ${JSON.stringify(bounds)}`)
        }
      }
    }
  }
  expect(wrong).toEqual([])
})

test('What is read as a bound that is out stays out', () => {
  const below = (max: number) => numbers({ min: -Infinity, max, above: false, below: true })
  expect(matches(below(3), '2.9999')).toBe(true)
  for (const [max, text] of [
    [3, `2.${'9'.repeat(20)}`],
    [2 ** 53 - 1, '9007199254740990.9'],
  ] as const) {
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

/** One of the texts. */
function draw(expression: Expression, chance: Chance): string {
  const { below } = chance
  switch (expression.type) {
    case 'text':
      return expression.text
    case 'set': {
      const [first, last] = expression.set[below(expression.set.length)] as [number, number]
      return String.fromCodePoint(first + below(last - first + 1))
    }
    case 'sequence':
      return expression.parts.map((part) => draw(part, chance)).join('')
    case 'choice':
      return draw(expression.parts[below(expression.parts.length)] as Expression, chance)
    case 'repeat': {
      const { part, min, max } = expression
      return Array.from({ length: min + below(max - min + 1) }, () => draw(part, chance)).join('')
    }
    default:
      throw new Error(expression.type)
  }
}

test('However small or great the bounds, there are numbers and all are between them', () => {
  const chance = createChance(8)
  const size = (): number => {
    const exponent = chance.below(632) - 323
    const near = chance.often(0.5) ? chance.below(5) - 2 : 0
    return Number(`${1 + chance.below(chance.often(0.5) ? 9 : 999_999)}e${exponent - near}`)
  }
  const bound = (): number => (chance.often(0.5) ? size() : -size())
  for (let round = 0; round < 800; round += 1) {
    const one = bound()
    const other = chance.pick([
      bound(),
      one * 10,
      one * 1.5,
      one * (1 + 2 ** -50),
      0,
      one,
      Infinity,
      -Infinity,
    ])
    const [min, max] = [Math.min(one, other), Math.max(one, other)]
    if (!Number.isFinite(one) || Number.isNaN(other)) continue
    // Others are refused before.
    const sharp = [min, max].every(
      (each) => each === 0 || (Math.abs(each) > 1e-307 && Math.abs(each) <= 2 ** 53),
    )
    const open = sharp && min < max && chance.often(0.5)
    const bounds = { min, max, above: open && min > -Infinity, below: open && max < Infinity }
    const what = JSON.stringify([String(min), String(max), open])
    const decimals = numbers(bounds)
    if (!open || max - min > Math.abs(max) * 1e-13) expect(isNothing(decimals), what).toBe(false)
    const whole = integers(bounds)
    if (max >= 2 ** 60 && min < max / 2) expect(isNothing(whole), what).toBe(false)
    for (const made of [decimals, whole]) {
      for (let each = 0; each < 5 && !isNothing(made); each += 1) {
        const text = draw(made, chance)
        const value = Number(text)
        const inside = open ? value > min && value < max : value >= min && value <= max
        expect(inside && Number.isFinite(value), `${text} in ${what}`).toBe(true)
        if (made === whole) expect(text).toMatch(/^-?\d+$/)
      }
    }
  }
})
