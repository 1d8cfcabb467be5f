import type { Tensor } from 'onnxruntime-web'
import { beforeEach, expect, test } from 'vitest'
import { createStateHistory } from '../../../src/engine/onnx/decoder/states.ts'

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

const history = () => createStateHistory(() => [state()])

beforeEach(() => alive.clear())

test('goes back to where it was marked, and to the beginning', () => {
  const one = history()
  one.advance([state()], 5)
  const five = one.current
  one.save()
  one.advance([state()], 9)
  expect([12, 9, 8, 5, 4].map((length) => one.restorableLength(length))).toEqual([9, 9, 5, 5, 0])
  one.restore(5)
  expect(one.current).toBe(five)
  expect(one.restorableLength(9)).toBe(5)
  one.restore(0)
  expect(one.restorableLength(7)).toBe(0)
  one.close()
  expect(alive.size).toBe(0)
})

test('forks share what neither changes, and free it with the last', () => {
  const one = history()
  one.advance([state()], 5)
  one.save()
  one.advance([state()], 9)
  const bytes = one.bytes
  const other = one.fork(5)
  expect(alive.size).toBe(2)
  one.close()
  expect(alive.size).toBe(1)
  other.advance([state()], 6)
  expect(other.restorableLength(5)).toBe(5)
  expect(other.bytes).toBe(bytes)
  other.close()
  expect(alive.size).toBe(0)
})

test('keeps a bounded number of marks, the first and the latest among them', () => {
  const one = history()
  for (const length of [3, 10, 11, 20, 30, 40, 50, 60, 70, 80, 90]) {
    one.advance([state()], length)
    one.save()
  }
  expect(alive.size).toBe(8)
  expect(one.restorableLength(9)).toBe(3)
  expect(one.restorableLength(12)).toBeLessThan(11)
  expect(one.restorableLength(89)).toBe(80)
  expect(one.restorableLength(90)).toBe(90)
  one.close()
  expect(alive.size).toBe(0)
})
