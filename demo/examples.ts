import type { Point } from './pad.ts'

/** Strokes of each handwritten digit, as `x,y` points from 0 to 100. A slash separates strokes. */
const DIGITS: readonly string[] = [
  '50,14 34,20 26,38 26,62 34,80 50,87 66,80 74,62 74,38 66,20 50,14',
  '36,32 54,14 54,14 54,87',
  '28,34 32,20 48,13 64,18 70,32 62,48 44,66 27,86 27,86 74,86',
  '28,22 44,13 62,17 68,30 60,43 46,48 46,48 64,53 72,67 64,82 46,88 27,80',
  '58,13 24,62 24,62 78,62 / 62,40 62,88',
  '70,14 36,14 36,14 32,45 32,45 50,40 66,47 72,64 62,82 44,88 27,80',
  '64,14 44,26 31,48 28,68 36,84 52,88 68,80 72,64 62,52 46,52 32,62',
  '26,15 74,15 74,15 58,42 46,66 42,88',
  '66,24 52,14 36,20 34,36 50,48 66,60 70,76 54,88 36,84 30,70 38,56 54,46 66,36 66,24',
  '70,32 60,16 42,14 30,26 32,42 46,50 62,44 70,32 70,32 68,60 58,88',
]

/** Returns the strokes of a random digit, which vary a little. */
export function exampleDigit(): Point[][] {
  const code = DIGITS[Math.floor(Math.random() * DIGITS.length)] ?? ''
  const vary = (range: number): number => (Math.random() * 2 - 1) * range
  const [turn, slant, size, right, down] = [
    vary(0.1),
    vary(0.12),
    0.85 + vary(0.12),
    vary(0.06),
    vary(0.05),
  ]
  const [cos, sin] = [Math.cos(turn) * size, Math.sin(turn) * size]
  return code.split('/').map((stroke) =>
    stroke
      .trim()
      .split(' ')
      .map((pair): Point => {
        const [column = 50, row = 50] = pair.split(',').map(Number)
        const y = row / 100 - 0.5
        const x = column / 100 - 0.5 - slant * y
        return [0.5 + right + cos * x - sin * y, 0.5 + down + sin * x + cos * y]
      }),
  )
}
