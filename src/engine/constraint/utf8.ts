/** Converts sets of characters into the bytes of their UTF-8 encoding. */
import { memoize } from '../../values/memoize.ts'
import type { Characters } from '../schema/characters.ts'

/** Bytes at one position, as ranges. */
export type Bytes = readonly (readonly [first: number, last: number])[]

/** Returns the ways to write a character of the set. Each is a sequence of byte sets. */
export const utf8 = memoize(writeSet, new WeakMap())

function writeSet(set: Characters): readonly (readonly Bytes[])[] {
  const ascii: [number, number][] = []
  const longer: Bytes[][] = []
  for (const [first, last] of set) {
    let from = first
    for (const end of [0x7f, 0x7ff, 0xffff, 0x10ffff]) {
      if (from > end || from > last) continue
      const to = Math.min(last, end)
      if (end === 0x7f) ascii.push([from, to])
      else longer.push(...between(encode(from), encode(to)))
      from = to + 1
    }
  }
  return ascii.length > 0 ? [[ascii], ...longer] : longer
}

function between(low: readonly number[], high: readonly number[]): Bytes[][] {
  const [a = 0, ...lows] = low
  const [b = 0, ...highs] = high
  if (lows.length === 0) return [[[[a, b]]]]
  if (a === b) return between(lows, highs).map((rest) => [[[a, a]], ...rest])
  const sequences: Bytes[][] = []
  let [first, last] = [a, b]
  if (lows.some((byte) => byte !== 0x80)) {
    const top = lows.map(() => 0xbf)
    sequences.push(...between(lows, top).map((rest) => [[[a, a] as const], ...rest]))
    first += 1
  }
  const tail: Bytes[][] = []
  if (highs.some((byte) => byte !== 0xbf)) {
    const bottom = highs.map(() => 0x80)
    tail.push(...between(bottom, highs).map((rest) => [[[b, b] as const], ...rest]))
    last -= 1
  }
  if (first <= last) {
    sequences.push([[[first, last]], ...lows.map((): Bytes => [[0x80, 0xbf]])])
  }
  return [...sequences, ...tail]
}

function encode(code: number): number[] {
  if (code < 0x80) return [code]
  const tail = (shift: number): number => 0x80 | ((code >> shift) & 0x3f)
  if (code < 0x800) return [0xc0 | (code >> 6), tail(0)]
  if (code < 0x10000) return [0xe0 | (code >> 12), tail(6), tail(0)]
  return [0xf0 | (code >> 18), tail(12), tail(6), tail(0)]
}
