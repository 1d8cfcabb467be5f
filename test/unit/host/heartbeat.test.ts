import { expect, test } from 'vitest'
import { withHeartbeat } from '../../../src/host/heartbeat.ts'

const after = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

test('beats in every silent interval and passes events on in order', async () => {
  async function* events() {
    yield 'a'
    await after(70)
    yield 'b'
  }
  const seen: unknown[] = []
  for await (const event of withHeartbeat(events(), 20)) seen.push(event)
  const beats = seen.slice(1, -1)
  expect([seen[0], seen.at(-1)]).toEqual(['a', 'b'])
  expect(beats.length).toBeGreaterThanOrEqual(2)
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
