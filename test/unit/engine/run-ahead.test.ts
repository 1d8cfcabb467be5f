/** Runs that begin before the token that they append was read: what they save, and what they must not change. */
import { expect, test } from 'vitest'
import { EVEN, failure, greedy, numbers, openLoop, repeating, textOf } from './fake-decoder.ts'

const PROMPT = numbers(5)

/** Returns how many calls of that kind there were. */
const count = (calls: readonly string[], kind: string): number =>
  calls.filter((call) => call.startsWith(kind)).length

test('a greedy answer takes one step, and each run after it begins ahead', async () => {
  const loop = openLoop({ goesAhead: true })
  const { text } = await loop.run(PROMPT).all()
  expect(text).toBe(textOf(greedy(PROMPT, 10)))
  expect(loop.decoder.calls).toEqual(['forward 5', 'step 1', ...Array(8).fill('ahead 1')])
})

test('no run is wasted at the greatest length', async () => {
  const loop = openLoop({ goesAhead: true, contextWindow: 12 })
  const { ending } = await loop.run(PROMPT, { maxTokens: 100 }).all()
  expect(ending).toEqual({ reason: 'length', completionTokens: 7 })
})

test('the next turn finds the tokens of an answer that ended, and not the one ahead', async () => {
  const loop = openLoop({ goesAhead: true })
  const running = loop.run(PROMPT, { maxTokens: 20 })
  await running.pieces.next()
  await running.pieces.next()
  await running.pieces.next()
  await running.pieces.return({ reason: 'stop', completionTokens: 3 })
  const next = [...PROMPT, ...greedy(PROMPT, 2), 1, 2]
  const again = loop.run(next)
  expect((await again.all()).text).toBe(textOf(greedy(next, 10)))
  expect(again.cached).toBe(7)
})

test('sampled answers wait for each token', async () => {
  const loop = openLoop({ goesAhead: true })
  await loop.run(PROMPT, { seed: 7 }).all()
  expect(count(loop.decoder.calls, 'ahead')).toBe(0)
})

test('answers at once wait for each token, and one that goes on alone does not', async () => {
  const loop = openLoop({ goesAhead: true })
  const other = numbers(4, 20)
  const [long, short] = [loop.run(PROMPT, { maxTokens: 20 }), loop.run(other, { maxTokens: 4 })]
  const texts = await Promise.all([long.all(), short.all()])
  expect(texts.map(({ text }) => text)).toEqual([
    textOf(greedy(PROMPT, 20)),
    textOf(greedy(other, 4)),
  ])
  const firstAhead = loop.decoder.calls.findIndex((call) => call === 'ahead 1')
  expect(firstAhead).toBeGreaterThan(loop.decoder.calls.lastIndexOf('step 2'))
})

test('an answer that comes in between joins the other after its run ahead', async () => {
  const loop = openLoop({ goesAhead: true })
  const first = loop.run(PROMPT, { maxTokens: 20 })
  await first.pieces.next()
  await first.pieces.next()
  const other = numbers(4, 20)
  const second = loop.run(other)
  const [rest, { text }] = await Promise.all([first.all(), second.all()])
  expect(rest.text).toBe(textOf(greedy(PROMPT, 20).slice(2)))
  expect(text).toBe(textOf(greedy(other, 10)))
  expect(count(loop.decoder.calls, 'step 2')).toBeGreaterThan(0)
})

test('the token ahead is one that a constraint allows', async () => {
  const loop = openLoop({ goesAhead: true })
  const { text } = await loop.run(PROMPT, { constraint: EVEN }).all()
  expect(text).toBe(textOf(greedy(PROMPT, 10, (token) => token % 2 === 0)))
  expect(count(loop.decoder.calls, 'ahead')).toBeGreaterThan(5)
  expect(count(loop.decoder.calls, 'truncate')).toBe(0)
})

test('a text that is appended takes the place of the token ahead', async () => {
  const loop = openLoop({ goesAhead: true })
  const steer = (piece: number) => (piece === 3 ? { append: '7 8 ' } : undefined)
  const { text } = await loop.run(PROMPT, { steer }).all()
  const before = greedy(PROMPT, 3)
  const after = greedy([...PROMPT, ...before, 7, 8], 5)
  expect(text).toBe(textOf([...before, 7, 8, ...after]))
  expect(count(loop.decoder.calls, 'truncate 7')).toBe(1)
})

test('drafts go before runs ahead', async () => {
  const logitsFunction = repeating(4)
  const loop = openLoop({ goesAhead: true, drafts: true, logitsFunction })
  const prompt = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
  const { text } = await loop.run(prompt, { maxTokens: 40 }).all()
  expect(text).toBe(textOf(greedy(prompt, 40, undefined, logitsFunction)))
  expect(count(loop.decoder.calls, 'forward 4')).toBeGreaterThan(0)
  expect(count(loop.decoder.calls, 'ahead')).toBeGreaterThan(0)
})

test('a device that is lost during a run ahead costs no token', async () => {
  const loop = openLoop({
    goesAhead: true,
    fail: (call) => (call === 5 ? failure('device_lost') : null),
    reopenOptions: { goesAhead: true },
  })
  const { text } = await loop.run(PROMPT).all()
  expect(text).toBe(textOf(greedy(PROMPT, 10)))
  expect(loop.reopened).toHaveLength(1)
})
