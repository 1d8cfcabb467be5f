/** The scheduler while images of a prompt are encoded. */
import { afterEach, expect, test, vi } from 'vitest'
import { fakeEngine, greedy, textOf, type Engine } from './run-fakes.ts'

let engine: Engine | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await engine?.close()
})

/** Stands for an image in a prompt. */
const IMAGE = 7
const SEEING = [IMAGE, ...Array.from({ length: 11 }, (_, index) => 20 + index)]

/** An image that is encoded in so many parts. */
function parts(count: number): (tokens: readonly number[]) => boolean {
  let left = count
  return (tokens) => {
    if (!tokens.includes(IMAGE) || left === 0) return false
    left -= 1
    return true
  }
}

test('other answers get tokens between two parts of an image', async () => {
  engine = fakeEngine({ encodes: parts(4) })
  const { calls } = engine.decoder
  const other = engine.run([1, 2, 3], { maxTokens: 30 })
  await other.pieces.next()
  const begin = calls.length
  const seeing = engine.run(SEEING, { maxTokens: 3 })
  const [{ text }] = await Promise.all([seeing.all(), other.all()])
  expect(text).toBe(textOf(greedy(SEEING, 3)))
  const done = calls.slice(begin)
  const encoded = done.flatMap((call, at) => (call === 'encode' ? [at] : []))
  // Four parts, and the question whether there is another, for each of the two chunks.
  expect(encoded).toHaveLength(6)
  for (let part = 1; part < 4; part += 1) {
    const between = done.slice((encoded[part - 1] ?? 0) + 1, encoded[part])
    expect(between.some((call) => call.startsWith('step') || call.startsWith('forward'))).toBe(true)
  }
})

test('an aborted request encodes no other part', async () => {
  const aborting = new AbortController()
  let encoded = 0
  engine = fakeEngine({
    encodes: () => {
      encoded += 1
      aborting.abort()
      return true
    },
  })
  const seeing = engine.run(SEEING, { maxTokens: 3, signal: aborting.signal })
  await expect(seeing.all()).rejects.toMatchObject({ kind: 'aborted' })
  await engine.close()
  expect(encoded).toBe(1)
})
