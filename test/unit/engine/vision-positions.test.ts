/** Positions on three axes of text and of rows of images. */
import { expect, test } from 'vitest'
import { createPositions, type Positions } from '../../../src/engine/onnx/decoder/positions.ts'
import { FIRST_IMAGE_ROW } from '../../../src/engine/images.ts'

/** Two images: one of 2 x 3 rows, and one of 4 x 1 rows. */
const IMAGES = [
  { firstRow: FIRST_IMAGE_ROW, grid: { rows: 2, columns: 3 } },
  { firstRow: FIRST_IMAGE_ROW + 6, grid: { rows: 4, columns: 1 } },
]
const locate = (row: number) => (row < FIRST_IMAGE_ROW + 6 ? IMAGES[0] : IMAGES[1])

const rows = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => FIRST_IMAGE_ROW + first + index)
const text = (count: number): number[] => Array<number>(count).fill(7)

const axesOf = (positions: Positions, tokens: readonly number[], past: number): number[][] => {
  const axes = [0, 1, 2].map(() => new BigInt64Array(tokens.length))
  positions.write(tokens, past, axes)
  return axes.map((axis) => Array.from(axis, Number))
}

const WHOLE = [...text(2), ...rows(0, 6), ...text(2), ...rows(6, 4), ...text(1)]
const AXES = [
  [0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 7, 7, 7, 7, 11],
  [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7, 8, 9, 10, 11],
  [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 7, 7, 7, 11],
]

test('text goes on behind the longer side of an image', () => {
  expect(axesOf(createPositions(locate, 0), WHOLE, 0)).toEqual(AXES)
})

test.each([1, 2, 3, 5])('positions do not depend on chunks, here of %i tokens', (size) => {
  const positions = createPositions(locate, 0)
  const axes: number[][] = [[], [], []]
  for (let past = 0; past < WHOLE.length; past += size) {
    const part = axesOf(positions, WHOLE.slice(past, past + size), past)
    part.forEach((numbers, axis) => axes[axis]?.push(...numbers))
  }
  expect(axes).toEqual(AXES)
})

test('a sequence that was cut forgets later images', () => {
  const positions = createPositions(locate, 0)
  axesOf(positions, WHOLE, 0)
  // Text in the place of the second image.
  expect(axesOf(positions, text(3), 10)).toEqual([0, 1, 2].map(() => [7, 8, 9]))
  expect(axesOf(positions, text(8), 1)[0]).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(axesOf(positions, text(1), 9)).toEqual([0, 1, 2].map(() => [9]))
})

test('a fork knows the images of its tokens, and no later ones', () => {
  const positions = createPositions(locate, 0)
  axesOf(positions, WHOLE, 0)
  const fork = positions.fork(9)
  expect(axesOf(fork, text(2), 9)).toEqual([0, 1, 2].map(() => [6, 7]))
  // The other sequence goes on as before.
  expect(axesOf(positions, text(1), 15)).toEqual([0, 1, 2].map(() => [12]))
})

test('a first position moves all others', () => {
  const moved = axesOf(createPositions(locate, 2), WHOLE, 0)
  expect(moved).toEqual(AXES.map((axis) => axis.map((position) => position + 2)))
})

test('rows without places are placed like tokens', () => {
  const positions = createPositions(() => undefined, 0)
  expect(axesOf(positions, [...text(1), ...rows(0, 2), ...text(1)], 0)).toEqual(
    [0, 1, 2].map(() => [0, 1, 2, 3]),
  )
})
