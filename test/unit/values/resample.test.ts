import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  type Pixels,
  type Region,
  resample,
  type ResampleFilter,
} from '../../../src/values/resample.ts'

interface Fixture {
  source: [number, number]
  target: [number, number]
  region: Region | null
  /** The pixels that Pillow computed, in base64, by filter. */
  scaled: Record<ResampleFilter, string>
}

const file = new URL('../../models/resample/fixtures.json', import.meta.url)
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Fixture[] }

/** The image that `resample.py` makes. */
function noise([width, height]: [number, number]): Pixels {
  const rgba = new Uint8ClampedArray(width * height * 4).fill(255)
  let state = 12345n
  for (let at = 0; at < width * height * 3; at++) {
    state = (state * 1103515245n + 12345n) % 2n ** 31n
    const hard = Math.floor(at / 7) % 3 === 0 ? 255 : 0
    rgba[Math.floor(at / 3) * 4 + (at % 3)] = at % 5 === 0 ? hard : Number(state >> 23n)
  }
  return { rgba, width, height }
}

const withoutAlpha = ({ rgba }: Pixels): number[] => [...rgba].filter((_, at) => at % 4 !== 3)

const runs = cases.flatMap((fixture) =>
  Object.entries(fixture.scaled).map(([filter, scaled]) => ({
    ...fixture,
    filter: filter as ResampleFilter,
    scaled,
  })),
)

test.each(runs)(
  'Pillow computes the same from $source to $target with $filter, region $region',
  ({ source, target, region, filter, scaled }) => {
    const image = resample(noise(source), ...target, filter, region ?? undefined)
    const expected = [...Buffer.from(scaled, 'base64')]
    const differences = withoutAlpha(image).map((value, at) =>
      Math.abs(value - (expected[at] ?? NaN)),
    )
    expect(differences).toHaveLength(expected.length)
    expect(Math.max(...differences)).toBe(0)
  },
)

test('An image of the same size is a copy', () => {
  const image = noise([4, 3])
  const copy = resample(image, 4, 3, 'bicubic')
  expect(copy).toEqual(image)
  expect(copy.rgba).not.toBe(image.rgba)
})
