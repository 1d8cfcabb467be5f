import { expect, test } from 'vitest'
import { createRecentInputs } from '../../../src/host/choice/recent-inputs.ts'
import { predictor } from '../catalog/entries.ts'

const [one] = predictor().implementations
const entryOf = (tag: `@${string}/${string}`) =>
  predictor({ tag, implementations: one ? [one, { ...one, id: 'other' }] : [] })

test('keeps a copy of the first inputs, until they have been measured', () => {
  const inputs = createRecentInputs()
  const entry = entryOf('@me/one')
  const data = Float32Array.of(1, 2)
  inputs.keep(entry, { x: { data, shape: [2] } })
  data[0] = 9
  inputs.keep(entry, { x: 'later' })
  expect(inputs.find('@me/one')).toEqual({ x: { data: Float32Array.of(1, 2), shape: [2] } })
  inputs.finish('@me/one')
  inputs.keep(entry, { x: 'later' })
  expect(inputs.find('@me/one')).toBeUndefined()
})

test('keeps nothing large, nothing of a single implementation, and only four of them', () => {
  const inputs = createRecentInputs()
  inputs.keep(entryOf('@me/large'), { x: new Uint8Array(2 ** 24 + 1) })
  inputs.keep(entryOf('@me/large'), { x: Array.from({ length: 200_000 }, () => 1) })
  inputs.keep(entryOf('@me/large'), { x: new Blob([new Uint8Array(2 ** 24 + 1)]) })
  expect(inputs.find('@me/large')).toBeUndefined()
  inputs.keep(predictor({ tag: '@me/single' }), { x: 1 })
  expect(inputs.find('@me/single')).toBeUndefined()
  const tags = ['@me/a', '@me/b', '@me/c', '@me/d', '@me/e'] as const
  for (const tag of tags) inputs.keep(entryOf(tag), { x: 1 })
  expect(tags.map((tag) => inputs.find(tag) !== undefined)).toEqual([false, true, true, true, true])
})
