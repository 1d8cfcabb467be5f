import { describe, expect, test } from 'vitest'
import { StopMatcher, partialMatchLength } from '../../../src/generation/stop-sequences.ts'
import { createChance } from '../../support/random.ts'
import { runs } from '../../support/runs.ts'

/** Returns the text that is shown of these pieces, and the stop sequence that ended it. */
function run(pieces: readonly string[], stops: readonly string[]): [string, string | null] {
  const matcher = new StopMatcher(stops)
  let shown = ''
  for (const piece of pieces) {
    const { text, match } = matcher.push(piece)
    shown += text
    if (match !== null) return [shown, match]
  }
  return [shown + matcher.flush(), null]
}

test.each([
  [['Hello END of'], ['END'], 'Hello ', 'END'],
  [['Hel', 'lo E', 'N', 'D of'], ['END'], 'Hello ', 'END'],
  [['EN', 'EN', 'D'], ['END'], 'EN', 'END'],
  [['aa', 'ab'], ['aab'], 'a', 'aab'],
  [['one\n', '\ntwo'], ['\n\n'], 'one', '\n\n'],
  [['no', 'thing'], ['END'], 'nothing', null],
  [['almost EN'], ['END'], 'almost EN', null],
  [['x'], [], 'x', null],
  [['x'], [''], 'x', null],
  // Complete first wins, wherever it began.
  [['abcd'], ['bcd', 'c'], 'ab', 'c'],
  [['abcd'], ['d', 'bc'], 'a', 'bc'],
  // Complete at once: the one that began first.
  [['abcd'], ['c', 'bc'], 'a', 'bc'],
  [['abcd'], ['bc', 'c'], 'a', 'bc'],
  // One that begins another.
  [['ab', 'c'], ['abc', 'ab'], '', 'ab'],
  [['so 👍', '🏽 ok'], ['👍🏽'], 'so ', '👍🏽'],
  [['so 👍', '🏻 ok'], ['👍🏽'], 'so 👍🏻 ok', null],
])('%j with the stop sequences %j', (pieces, stops, shown, match) => {
  expect(run(pieces, stops)).toEqual([shown, match])
})

test('Text that cannot begin a stop sequence is shown at once', () => {
  const matcher = new StopMatcher(['STOP', '\n\nUser:'])
  const shown = ['Hello\n', 'S', 'o', 'S'].map((piece) => matcher.push(piece).text)
  expect(shown).toEqual(['Hello', '\n', 'So', ''])
})

describe('Random texts', () => {
  const chance = createChance(3)
  const word = (length: number): string =>
    Array.from({ length }, () => chance.pick(['a', 'b'])).join('')

  /** Does the same by looking at one more character at a time. */
  function runSlowly(text: string, stops: readonly string[]): [string, string | null] {
    for (let end = 1; end <= text.length; end += 1) {
      const ended = stops.filter((stop) => text.slice(0, end).endsWith(stop))
      const [longest] = ended.sort((a, b) => b.length - a.length)
      if (longest !== undefined) return [text.slice(0, end - longest.length), longest]
    }
    return [text, null]
  }

  test('end at the same place, whatever their pieces', () => {
    for (let round = 0; round < runs(500, 3_000); round += 1) {
      const stops = Array.from({ length: 1 + chance.below(3) }, () => word(1 + chance.below(4)))
      const pieces = Array.from({ length: 1 + chance.below(8) }, () => word(1 + chance.below(4)))
      expect(run(pieces, stops)).toEqual(runSlowly(pieces.join(''), stops))
    }
  })

  test('have the same partial match', () => {
    for (let round = 0; round < runs(500, 3_000); round += 1) {
      const words = Array.from({ length: chance.below(4) }, () => word(chance.below(9)))
      const text = word(chance.below(12))
      const begun = words.flatMap((each) => [...each].map((_, length) => each.slice(0, length)))
      const lengths = begun.filter((each) => text.endsWith(each)).map(({ length }) => length)
      expect(partialMatchLength(text, words)).toBe(Math.max(0, ...lengths))
    }
  })
})

test('Hostile stop sequences take time in proportion to the text', { timeout: 60_000 }, () => {
  const shown = 'a'.repeat(20_000)
  const stops = Array.from({ length: 64 }, (_, index) => `${shown}b${shown.slice(index)}`)
  const text = 'a'.repeat(40_000)
  expect(partialMatchLength(text, stops)).toBe(shown.length)
  const [whole, pieces] = [new StopMatcher(stops), new StopMatcher(stops)]
  expect(whole.push(text).text).toBe(shown)
  for (const letter of text) pieces.push(letter)
  expect(pieces.flush()).toBe(shown)
})
