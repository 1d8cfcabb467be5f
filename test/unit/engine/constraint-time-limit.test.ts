/** The time that one answer's constraint may take. */
import { afterEach, expect, test, vi } from 'vitest'
import type { Matcher } from '../../../src/engine/constraint/types.ts'
import { limitTime } from '../../../src/engine/constraint/time-limit.ts'

afterEach(() => vi.restoreAllMocks())

/** A matcher whose every call takes so many milliseconds of a clock of its own. */
function slowMatcher(milliseconds: number): Matcher {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const pass = () => void (now += milliseconds)
  return {
    mask: async () => (pass(), new Int32Array(1)),
    forced: () => (pass(), ''),
    canExtend: () => (pass(), true),
    accept: () => (pass(), true),
    close: () => undefined,
  }
}

/** Tokens until the matcher gives up; `count` where it does not. */
async function tokensOf(matcher: Matcher, count: number): Promise<number> {
  for (let token = 0; token < count; token += 1) {
    try {
      await matcher.mask()
      matcher.accept(token)
    } catch (error) {
      expect(error).toMatchObject({ kind: 'invalid_request', code: 'constraint_too_slow' })
      return token
    }
  }
  return count
}

test('a constraint that takes two seconds at each token ends its answer', async () => {
  expect(await tokensOf(limitTime(slowMatcher(1_000)), 1_000)).toBeLessThan(20)
})

test('one that takes no longer than each token adds never does, however long the answer', async () => {
  expect(await tokensOf(limitTime(slowMatcher(250)), 10_000)).toBe(10_000)
})

test('a first mask that takes long is allowed for', async () => {
  const matcher = limitTime(slowMatcher(9_000))
  await matcher.mask()
  expect(matcher.accept(1)).toBe(true)
  expect(() => matcher.forced()).toThrow('takes too long at each token')
})

test('a computer that sleeps during a token does not end the answer', async () => {
  const matcher = slowMatcher(1)
  const limited = limitTime(matcher)
  expect(await tokensOf(limited, 10)).toBe(10)
  vi.mocked(performance.now).mockReturnValueOnce(0).mockReturnValueOnce(45_000)
  await limited.mask()
  vi.mocked(performance.now).mockReturnValue(45_000)
  expect(await tokensOf(limited, 10)).toBe(10)
})
