import { describe, expect, test } from 'vitest'
import type { Implementation } from '../../../src/catalog/schema.ts'
import { suggestSmaller } from '../../../src/catalog/suggest-smaller.ts'
import { InoriginError } from '../../../src/error.ts'
import { HASH, model, predictor } from './entries.ts'

const of = (id: string, ...sizes: number[]): Implementation => ({
  id,
  engine: 'onnx',
  device: 'webgpu',
  resources: sizes.map((bytes, index) => ({
    type: 'onnx',
    url: `${id}/${index}`,
    name: `onnx/${index}.onnx`,
    bytes,
    sha256: HASH,
  })),
})
const entry = (tag: string, ...implementations: Implementation[]) => model({ tag, implementations })

const error = new InoriginError('unavailable', 'No memory.', { code: 'out_of_memory' })

/** What the error of a model that was too large tells programs. */
const smallerThan = (...failed: FailedIn): unknown =>
  suggestSmaller(error, ...failed).details?.['smaller']
type FailedIn = Parameters<typeof suggestSmaller> extends [unknown, ...infer Rest] ? Rest : never

const big = of('fp32', 2e9, 1e9)
const half = of('q4f16', 0.9e9)
const quarter = of('q4', 1.2e9)

describe('the next smaller choice', () => {
  test('is another implementation of the tag, the largest that is smaller', () => {
    const entries = [entry('@a/big', half, big, quarter), entry('@a/other', of('x', 2e9))]
    expect(smallerThan(entries, '@a/big', big)).toEqual({
      tag: '@a/big',
      implementation: 'q4',
      bytes: 1.2e9,
    })
    expect(smallerThan(entries, '@a/big', quarter)).toMatchObject({ implementation: 'q4f16' })
  })

  test('is else another model, by its smallest implementation', () => {
    const entries = [
      entry('@a/big', half),
      entry('@a/small', of('x', 3e8), of('y', 2e8)),
      entry('@a/tiny', of('x', 1e6)),
      entry('@a/unknown'),
      entry('@a/empty', of('x', 0)),
      predictor({ implementations: [of('x', 5e8)] }),
    ]
    expect(smallerThan(entries, '@a/big', half)).toEqual({ tag: '@a/small', bytes: 2e8 })
    expect(smallerThan(entries, '@a/tiny', of('x', 1e6))).toBeNull()
  })
})

describe('among models of MLC', () => {
  const compiled = (
    id: string,
    memory: number,
    sizes: number[] = [],
    features?: string[],
  ): Implementation => ({
    ...of(id, ...sizes),
    engine: 'mlc',
    requires: { memory, ...(features && { features }) },
  })
  const halves = compiled('q4f16', 4e8, [], ['shader-f16'])
  const wide = compiled('q4f32', 6e8, [5e8])
  const entries = [
    entry('@a/big', halves, wide),
    entry('@a/small', compiled('q4f32', 3e8)),
    entry('@a/onnx', of('x', 1e8)),
  ]

  test('those that were not looked up count by the memory that they need', () => {
    expect(smallerThan(entries, '@a/big', wide)).toEqual({
      tag: '@a/big',
      implementation: 'q4f16',
      bytes: null,
    })
    expect(suggestSmaller(error, entries, '@a/big', wide).message).toMatch(
      /@a\/big \(500 MB\)\. Use its implementation q4f16 \(needs 400 MB of memory\)/,
    )
  })

  test('none is named that the device cannot run', () => {
    const fits = ({ requires }: Implementation) => !requires?.features
    expect(smallerThan(entries, '@a/big', wide, fits)).toEqual({ tag: '@a/small', bytes: null })
    expect(suggestSmaller(error, entries, '@a/big', wide, fits).message).toContain(
      'Use @a/small (needs 300 MB of memory)',
    )
    expect(smallerThan(entries, '@a/small', compiled('q4f32', 3e8), fits)).toEqual({
      tag: '@a/onnx',
      bytes: 1e8,
    })
  })
})

describe('the message', () => {
  test('names it', () => {
    const entries = [entry('@a/big', big, half), entry('@a/small', of('x', 2.5e8))]
    const named = suggestSmaller(error, entries, '@a/big', big)
    expect(named).toMatchObject({
      kind: 'unavailable',
      code: 'out_of_memory',
      cause: error,
      message: expect.stringMatching(/@a\/big \(3 GB\)\. Use its implementation q4f16 \(900 MB\)/),
      details: { smaller: { implementation: 'q4f16' } },
    })
    expect(suggestSmaller(error, entries, '@a/big', half).message).toContain(
      'Use @a/small (250 MB)',
    )
    expect(suggestSmaller(error, entries, '@a/small', of('x', 2.5e8)).message).toContain(
      'nothing smaller',
    )
  })

  test('of another error stays what it is', () => {
    const other = new InoriginError('unavailable', 'Gone.', { code: 'device_lost' })
    expect(suggestSmaller(other, [], '@a/big', big)).toBe(other)
  })
})
