import type { Tensor } from 'onnxruntime-web'
import { beforeEach, expect, test } from 'vitest'
import { createHistory } from '../../../src/engine/onnx/decoder/states.ts'

const alive = new Set<Tensor>()

/** A state of four numbers, which is missed until it is disposed of. */
function state(): Tensor {
  const tensor = {
    type: 'float32',
    dims: [4],
    dispose: () => alive.delete(tensor),
  } as unknown as Tensor
  alive.add(tensor)
  return tensor
}

const history = () => createHistory(() => [state()])

beforeEach(() => alive.clear())

test('goes back to where it was marked, and to the beginning', () => {
  const one = history()
  one.advance([state()], 5)
  const five = one.now
  one.mark()
  one.advance([state()], 9)
  expect([12, 9, 8, 5, 4].map((length) => one.reach(length))).toEqual([9, 9, 5, 5, 0])
  one.cut(5)
  expect(one.now).toBe(five)
  expect(one.reach(9)).toBe(5)
  one.cut(0)
  expect(one.reach(7)).toBe(0)
  one.close()
  expect(alive.size).toBe(0)
})

test('forks share what neither changes, and free it with the last', () => {
  const one = history()
  one.advance([state()], 5)
  one.mark()
  one.advance([state()], 9)
  const bytes = one.bytes
  const other = one.fork(5)
  expect(alive.size).toBe(2)
  one.close()
  expect(alive.size).toBe(1)
  other.advance([state()], 6)
  expect(other.reach(5)).toBe(5)
  expect(other.bytes).toBe(bytes)
  other.close()
  expect(alive.size).toBe(0)
})

test('keeps a bounded number of marks, the first and the latest among them', () => {
  const one = history()
  for (const length of [3, 10, 11, 20, 30, 40, 50, 60, 70, 80, 90]) {
    one.advance([state()], length)
    one.mark()
  }
  expect(alive.size).toBe(8)
  expect(one.reach(9)).toBe(3)
  expect(one.reach(12)).toBeLessThan(11)
  expect(one.reach(89)).toBe(80)
  expect(one.reach(90)).toBe(90)
  one.close()
  expect(alive.size).toBe(0)
})
