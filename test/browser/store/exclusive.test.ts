import { expect, test, vi } from 'vitest'
import { runExclusive } from '../../../src/store/exclusive.ts'
import { never } from './fixture.ts'

const fresh = () => `test:${crypto.randomUUID()}`
/** Resolves when the holder has been asked that many times whether it is alive. */
function questions(name: string, count: number): Promise<void> {
  const channel = new BroadcastChannel(name)
  let asked = 0
  return new Promise((resolve) => {
    channel.addEventListener('message', ({ data }) => {
      if (data !== 'there?' || ++asked < count) return
      channel.close()
      resolve()
    })
  })
}

/** Resolves when that many requests for the lock are waiting. */
const queued = (name: string, count: number) =>
  vi.waitFor(async () => {
    const { pending = [] } = await navigator.locks.query()
    expect(pending.filter((lock) => lock.name === name)).toHaveLength(count)
  }, 20_000)

test('runs one at a time, in the order asked', async () => {
  const name = fresh()
  const events: string[] = []
  const work = (who: string) => async () => {
    events.push(`${who} begins`)
    await new Promise((resolve) => setTimeout(resolve))
    events.push(`${who} ends`)
    return who
  }
  const results = await Promise.all(
    ['a', 'b', 'c'].map((who) => runExclusive(name, { signal: never() }, work(who))),
  )
  expect(results).toEqual(['a', 'b', 'c'])
  expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

test('hands on its turn when the work fails', async () => {
  const name = fresh()
  const failing = runExclusive(name, { signal: never() }, () => Promise.reject(new Error('no')))
  const next = runExclusive(name, { signal: never() }, async () => 'next')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('next')
})

test('leaves the queue when it is aborted', async () => {
  const name = fresh()
  const holder = new AbortController()
  const held = runExclusive(name, { signal: holder.signal }, untilAborted)
  const waiter = new AbortController()
  const waiting = runExclusive(name, { signal: waiter.signal }, async () => 'never')
  await queued(name, 1)
  waiter.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  holder.abort(new Error('done'))
  await expect(held).rejects.toThrow('done')
  // A browser gives a lock back in its own time.
  const names = async () => (await navigator.locks.query()).held?.map((lock) => lock.name)
  await expect.poll(names).not.toContain(name)
})

test('waits for a holder that answers, however long it takes', async () => {
  const name = fresh()
  let finish = (_who: string): void => undefined
  const work = new Promise<string>((resolve) => (finish = resolve))
  const held = runExclusive(name, { signal: never() }, () => work)
  const waiting = runExclusive(name, { signal: never(), pingIntervalMs: 100 }, async () => 'waiter')
  await questions(name, 15)
  finish('holder')
  expect(await held).toBe('holder')
  expect(await waiting).toBe('waiter')
})

test('passes over a holder that is silent', async () => {
  const name = fresh()
  // What a frozen tab looks like from outside: the lock is held and nobody answers.
  const frozen = navigator.locks
    .request(name, () => new Promise(() => undefined))
    .catch((thrown: unknown) => thrown)
  await vi.waitFor(async () => {
    const { held = [] } = await navigator.locks.query()
    expect(held.map((lock) => lock.name)).toContain(name)
  }, 20_000)
  expect(await runExclusive(name, { signal: never(), pingIntervalMs: 20 }, async () => 'new')).toBe(
    'new',
  )
  expect(await frozen).toHaveProperty('name', 'AbortError')
})

test('the one that was passed over is told, and its work aborted', async () => {
  const name = fresh()
  let aborted = false
  let begin = (): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const old = runExclusive(name, { signal: never() }, async (signal) => {
    begin()
    await untilAborted(signal).catch(() => undefined)
    aborted = true
  })
  const told = old.catch((thrown: unknown) => thrown)
  await begun
  await navigator.locks.request(name, { steal: true }, async () => undefined)
  expect(await told).toMatchObject({ kind: 'aborted', code: 'download_replaced' })
  expect(aborted).toBe(true)
})

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}
