import { describe, expect, test } from 'vitest'
import type { Implementation } from '../../../src/catalog/schema.ts'
import { suggestSmaller } from '../../../src/catalog/memory-bytes.ts'
import { InoriginError } from '../../../src/error.ts'
import { HASH, model, predictor } from './entries.ts'

const of = (id: string, ...sizes: number[]): Implementation => ({
  id,
  engine: 'onnx',
  device: 'webgpu',
  resources: sizes.map((bytes, index) => {
    const name = `onnx/${index}.onnx`
    return { type: 'onnx', url: `${id}/${index}`, name, bytes, sha256: HASH }
  }),
})
const entry = (tag: string, ...implementations: Implementation[]) => model({ tag, implementations })

const error = new InoriginError('unavailable', 'No memory.', { code: 'out_of_memory' })

type Failure = Parameters<typeof suggestSmaller> extends [unknown, ...infer Rest] ? Rest : never
const suggest = (...failure: Failure) => {
  const { message, details } = suggestSmaller(error, ...failure)
  return { message, smaller: details?.['smaller'] }
}

const big = of('fp32', 2e9, 1e9)
const half = of('q4f16', 0.9e9)
const quarter = of('q4', 1.2e9)

test('The largest smaller implementation of the tag is suggested', () => {
  const entries = [entry('@a/big', half, big, quarter), entry('@a/other', of('x', 2e9))]
  const smaller = { tag: '@a/big', implementation: 'q4', bytes: 1.2e9 }
  expect(suggest(entries, '@a/big', big).smaller).toEqual(smaller)
  expect(suggest(entries, '@a/big', quarter)).toMatchObject({
    smaller: { implementation: 'q4f16' },
  })
})

test('Else another model is suggested, by its smallest implementation', () => {
  const entries = [
    entry('@a/big', half),
    entry('@a/small', of('x', 3e8), of('y', 2e8)),
    entry('@a/tiny', of('x', 1e6)),
    entry('@a/unknown'),
    entry('@a/empty', of('x', 0)),
    predictor({ implementations: [of('x', 5e8)] }),
  ]
  expect(suggest(entries, '@a/big', half).smaller).toEqual({ tag: '@a/small', bytes: 2e8 })
  expect(suggest(entries, '@a/tiny', of('x', 1e6)).smaller).toBeNull()
})

describe('Among models of MLC', () => {
  const compiled = (id: string, memory: number, sizes: number[], features?: string[]) => {
    const requires = { memory, ...(features && { features }) }
    return { ...of(id, ...sizes), engine: 'mlc', requires } as const
  }
  const halves = compiled('q4f16', 4e8, [], ['shader-f16'])
  const wide = compiled('q4f32', 6e8, [5e8])
  const small = compiled('q4f32', 3e8, [])
  const entries = [
    entry('@a/big', halves, wide),
    entry('@a/small', small),
    entry('@a/onnx', of('x', 1e8)),
  ]

  test('those that were not resolved are compared by the memory that they need', () => {
    const { smaller, message } = suggest(entries, '@a/big', wide)
    expect(smaller).toEqual({ tag: '@a/big', implementation: 'q4f16', bytes: null })
    expect(message).toMatch(
      /@a\/big \(500 MB\)\. Use its implementation q4f16 \(needs 400 MB of memory\)/,
    )
  })

  test('only those that the device can run are suggested', () => {
    const fits = ({ requires }: Implementation) => !requires?.features
    const { smaller, message } = suggest(entries, '@a/big', wide, fits)
    expect(smaller).toEqual({ tag: '@a/small', bytes: null })
    expect(message).toContain('Use @a/small (needs 300 MB of memory)')
    const next = suggest(entries, '@a/small', small, fits)
    expect(next.smaller).toEqual({ tag: '@a/onnx', bytes: 1e8 })
  })
})

test('The message names the suggestion', () => {
  const entries = [entry('@a/big', big, half), entry('@a/small', of('x', 2.5e8))]
  expect(suggestSmaller(error, entries, '@a/big', big)).toMatchObject({
    kind: 'unavailable',
    code: 'out_of_memory',
    cause: error,
    message: expect.stringMatching(/@a\/big \(3 GB\)\. Use its implementation q4f16 \(900 MB\)/),
    details: { smaller: { implementation: 'q4f16' } },
  })
  expect(suggest(entries, '@a/big', half).message).toContain('Use @a/small (250 MB)')
  const smallest = suggest(entries, '@a/small', of('x', 2.5e8))
  expect(smallest.message).toContain('nothing smaller')
})

test('Another error stays as it is', () => {
  const other = new InoriginError('unavailable', 'Gone.', { code: 'device_lost' })
  expect(suggestSmaller(other, [], '@a/big', big)).toBe(other)
})
