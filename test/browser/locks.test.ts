/** The browser's own locks: work that runs in one tab at a time, and the election. */
import { describe, expect, test, vi } from 'vitest'
import { Election } from '../../src/host/tab/page.ts'
import { runExclusive } from '../../src/store/exclusive.ts'
import { never } from './store/fixture.ts'

const fresh = () => `test:${crypto.randomUUID()}`

/** Resolves with the locks of that name: those that are held, and requests that wait. */
async function locksOf(name: string): Promise<{ held: number; pending: number }> {
  const { held = [], pending = [] } = await navigator.locks.query()
  const count = (locks: readonly LockInfo[]) => locks.filter((lock) => lock.name === name).length
  return { held: count(held), pending: count(pending) }
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}

describe('exclusive work', () => {
  test('runs one at a time, in order', async () => {
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

  test('gives its lock back when it fails', async () => {
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
    await expect.poll(() => locksOf(name)).toEqual({ held: 1, pending: 1 })
    waiter.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    holder.abort(new Error('done'))
    await expect(held).rejects.toThrow('done')
    // A browser gives a lock back in its own time.
    await expect.poll(() => locksOf(name)).toEqual({ held: 0, pending: 0 })
  })

  test('waits for a holder that answers, however long it takes', async () => {
    const name = fresh()
    let finish = (_who: string): void => undefined
    const work = new Promise<string>((resolve) => (finish = resolve))
    const held = runExclusive(name, { signal: never() }, () => work)
    const waiting = runExclusive(
      name,
      { signal: never(), pingIntervalMs: 40 },
      async () => 'waiter',
    )
    // Ten pings without an answer would end its lock.
    const channel = new BroadcastChannel(name)
    const pings = vi.fn<(event: MessageEvent) => void>()
    channel.addEventListener('message', (event) => event.data === 'there?' && pings(event))
    await vi.waitFor(() => expect(pings.mock.calls.length).toBeGreaterThan(12), 20_000)
    channel.close()
    finish('holder')
    expect(await held).toBe('holder')
    expect(await waiting).toBe('waiter')
  })

  test('takes the lock from a silent holder', async () => {
    const name = fresh()
    // What a frozen tab looks like from outside: the lock is held and nobody answers.
    const frozen = navigator.locks
      .request(name, () => new Promise(() => undefined))
      .catch((thrown: unknown) => thrown)
    await expect.poll(() => locksOf(name)).toEqual({ held: 1, pending: 0 })
    expect(
      await runExclusive(name, { signal: never(), pingIntervalMs: 20 }, async () => 'new'),
    ).toBe('new')
    expect(await frozen).toHaveProperty('name', 'AbortError')
  })

  test('is aborted when its lock is stolen', async () => {
    const name = fresh()
    let aborted = false
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const old = runExclusive(name, { signal: never() }, async (signal) => {
      begin()
      await untilAborted(signal).catch(() => undefined)
      aborted = true
    })
    const replaced = old.catch((thrown: unknown) => thrown)
    await begun
    await navigator.locks.request(name, { steal: true }, async () => undefined)
    expect(await replaced).toMatchObject({ kind: 'aborted', code: 'download_replaced' })
    expect(aborted).toBe(true)
  })
})

function join(name: string) {
  const log: string[] = []
  const election = new Election(
    name,
    { onElected: () => log.push('elected'), onDeposed: () => log.push('deposed') },
    navigator.locks,
  )
  return { log, election }
}

test('a candidate leads, gives way to one that steals, and leads again after it', async () => {
  const name = fresh()
  const one = join(name)
  await expect.poll(() => one.log).toEqual(['elected'])
  const two = join(name)
  two.election.steal()
  await expect.poll(() => two.log).toEqual(['elected'])
  await expect.poll(() => one.log).toEqual(['elected', 'deposed'])
  two.election.leave()
  await expect.poll(() => one.log).toEqual(['elected', 'deposed', 'elected'])
  expect(two.log).toEqual(['elected', 'deposed'])
  one.election.leave()
  await expect.poll(() => locksOf(name)).toEqual({ held: 0, pending: 0 })
})
