import { expect, test } from 'vitest'
import { type Interpolation, PlaneScaler } from '../../../src/values/interpolate.ts'

const PLANE = Float32Array.of(1, 2, 4, 8, 16, 32)

// What torch.nn.functional.interpolate returns for the plane of 3 x 2 numbers.
test.each<[Interpolation, [number, number], number[]]>([
  ['bilinear', [5, 3], [1, 1.4, 2, 3.2, 4, 4.5, 6.3, 9, 14.4, 18, 8, 11.2, 16, 25.6, 32]],
  ['bilinear', [2, 1], [5.625, 15.75]],
  [
    'bicubic',
    [5, 3],
    [
      0.35469, 0.4881, 0.78472, 1.29322, 1.64478, 4.068, 5.598, 9, 14.832, 18.864, 7.78131,
      10.70791, 17.21528, 28.37078, 36.08322,
    ],
  ],
  ['bicubic', [2, 1], [5.20312, 16.11914]],
])('A plane is scaled as PyTorch does: %s to %j', (by, to, expected) => {
  const scaler = new PlaneScaler(by, [3, 2], to)
  const rows = Array.from({ length: to[1] }, (_, y) => {
    const row = new Float32Array(to[0])
    scaler.writeRow(PLANE, y, row)
    return [...row]
  })
  expect(rows.flat()).toEqual(expected.map((each) => expect.closeTo(each, 4)))
})
