import { expect, test } from 'vitest'
import { withHeartbeat } from '../../../src/host/heartbeat.ts'

test('beats in every silent interval and passes events on in order', async () => {
  let goOn = (): void => undefined
  const silence = new Promise<void>((resolve) => (goOn = resolve))
  async function* events() {
    yield 'a'
    await silence
    yield 'b'
  }
  const seen: unknown[] = []
  const start = performance.now()
  for await (const event of withHeartbeat(events(), 20)) {
    seen.push(event)
    if (seen.length === 4) goOn()
  }
  const beats = seen.slice(1, -1)
  expect([seen[0], seen.at(-1)]).toEqual(['a', 'b'])
  expect(beats.length).toBeGreaterThanOrEqual(3)
  // A timer may be a millisecond early.
  expect(performance.now() - start).toBeGreaterThan(3 * 19)
  expect(beats.every((beat) => (beat as { type: string }).type === 'heartbeat')).toBe(true)
})

test('an error passes through', async () => {
  async function* events() {
    yield 'a'
    throw new Error('broken')
  }
  const seen: unknown[] = []
  const read = async () => {
    for await (const event of withHeartbeat(events(), 20)) seen.push(event)
  }
  await expect(read()).rejects.toThrow('broken')
  expect(seen).toEqual(['a'])
})

test('leaving early ends the source', async () => {
  let ended = false
  async function* events() {
    try {
      for (;;) yield 'a'
    } finally {
      ended = true
    }
  }
  for await (const _event of withHeartbeat(events(), 20)) break
  expect(ended).toBe(true)
})
