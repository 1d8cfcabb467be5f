import { describe, expect, test } from 'vitest'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import { createStopMatcher, partialMatchLength } from '../../../src/generation/stop-sequences.ts'

/** What is shown of a text that arrives in the given pieces, and what ended it. */
function run(
  pieces: readonly string[],
  stops: readonly string[],
): { shown: string; match: string | null } {
  const watch = createStopMatcher(stops)
  let shown = ''
  for (const piece of pieces) {
    const { text, match } = watch.push(piece)
    shown += text
    if (match !== null) return { shown, match }
  }
  return { shown: shown + watch.flush(), match: null }
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
])('%j stopped by %j', (pieces, stops, shown, match) => {
  expect(run(pieces, stops)).toEqual({ shown, match })
})

test('shows at once what cannot be the beginning of a stop text', () => {
  const watch = createStopMatcher(['STOP', '\n\nUser:'])
  expect(watch.push('Hello\n').text).toBe('Hello')
  expect(watch.push('S').text).toBe('\n')
  expect(watch.push('o').text).toBe('So')
  expect(watch.push('S').text).toBe('')
})

describe('whatever the pieces', () => {
  /** The same by looking at one more character at a time. */
  function slowly(text: string, stops: readonly string[]): { shown: string; match: string | null } {
    for (let end = 1; end <= text.length; end += 1) {
      const ended = stops.filter((stop) => text.slice(0, end).endsWith(stop))
      const [longest] = ended.sort((a, b) => b.length - a.length)
      if (longest !== undefined)
        return { shown: text.slice(0, end - longest.length), match: longest }
    }
    return { shown: text, match: null }
  }

  test('the same is shown, and never the beginning of what matched', () => {
    const random = createRandom(3)
    const word = (letters: number): string =>
      Array.from(
        { length: 1 + Math.floor(random() * letters) },
        () => 'ab'[Math.floor(random() * 2)],
      ).join('')
    for (let round = 0; round < 3_000; round += 1) {
      const stops = Array.from({ length: 1 + Math.floor(random() * 3) }, () => word(4))
      const text = word(20)
      const pieces: string[] = []
      for (let from = 0; from < text.length;) {
        const to = from + 1 + Math.floor(random() * 4)
        pieces.push(text.slice(from, to))
        from = to
      }
      expect(run(pieces, stops)).toEqual(slowly(text, stops))
    }
  })
})

describe('The partial match', () => {
  const simply = (text: string, words: readonly string[]): number => {
    let longest = 0
    for (const word of words) {
      for (let length = 0; length < word.length && length <= text.length; length += 1) {
        if (text.endsWith(word.slice(0, length))) longest = Math.max(longest, length)
      }
    }
    return longest
  }

  test('is the same as in the simple way', () => {
    const random = createRandom(5)
    const word = (letters: number): string =>
      Array.from({ length: Math.floor(random() * letters) }, () =>
        'ab'.charAt(Math.floor(random() * 2)),
      ).join('')
    for (let round = 0; round < 3_000; round += 1) {
      const words = Array.from({ length: Math.floor(random() * 4) }, () => word(9))
      const text = word(12)
      expect(partialMatchLength(text, words)).toBe(simply(text, words))
    }
  })
})

describe('Hostile stop sequences take time in proportion to the text', () => {
  const stops = Array.from({ length: 64 }, (_, index) =>
    ['a'.repeat(20_000), 'a'.repeat(20_000 - index)].join('b'),
  )
  const TIMEOUT_MS = 60_000

  test(
    'in one push',
    () => {
      expect(partialMatchLength('a'.repeat(40_000), stops)).toBe(20_000)
      const matcher = createStopMatcher(stops)
      expect(matcher.push('a'.repeat(40_000)).text).toBe('a'.repeat(20_000))
    },
    TIMEOUT_MS,
  )

  test(
    'in many pushes',
    () => {
      const matcher = createStopMatcher(stops)
      for (let index = 0; index < 40_000; index += 1) matcher.push('a')
      expect(matcher.flush()).toBe('a'.repeat(20_000))
    },
    TIMEOUT_MS,
  )
})
