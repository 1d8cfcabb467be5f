import { afterEach, describe, expect, test, vi } from 'vitest'
import { joinElection, type Election } from '../../../src/host/tab/election.ts'
import { createLocks } from '../../support/locks.ts'

interface Tab extends Election {
  log: string[]
}

function open(locks: LockManager, name = 'host'): Tab {
  const log: string[] = []
  const candidate = { onElected: () => log.push('elected'), onDeposed: () => log.push('deposed') }
  return Object.assign(Object.create(joinElection(name, candidate, locks)) as Election, { log })
}

const settle = () => new Promise((resolve) => setTimeout(resolve))

afterEach(() => vi.useRealTimers())

describe('joinElection', () => {
  test('the first tab is elected, the second waits', async () => {
    const locks = createLocks()
    const [one, two] = [open(locks), open(locks)]
    await settle()
    expect([one.isLeader, two.isLeader]).toEqual([true, false])
    expect([one.log, two.log]).toEqual([['elected'], []])
  })

  test('the next in line is elected when the leader leaves', async () => {
    const locks = createLocks()
    const [one, two, three] = [open(locks), open(locks), open(locks)]
    await settle()
    one.leave()
    await settle()
    expect(one.log).toEqual(['elected', 'deposed'])
    expect([two.isLeader, three.isLeader]).toEqual([true, false])
  })

  test('a tab that left before its turn is never elected', async () => {
    const locks = createLocks()
    const [one, two, three] = [open(locks), open(locks), open(locks)]
    await settle()
    two.leave()
    one.leave()
    await settle()
    expect([two.log, three.log]).toEqual([[], ['elected']])
  })

  test('a stolen leader is deposed and stands again behind the thief', async () => {
    const locks = createLocks()
    const [one, two] = [open(locks), open(locks)]
    await settle()
    two.steal()
    await settle()
    expect(one.log).toEqual(['elected', 'deposed'])
    expect([one.isLeader, two.isLeader]).toEqual([false, true])
    two.leave()
    await settle()
    expect(one.log).toEqual(['elected', 'deposed', 'elected'])
  })

  test('a thief that leaves is not elected again by the place it queued for before', async () => {
    const locks = createLocks()
    const [one, two] = [open(locks), open(locks)]
    await settle()
    two.steal()
    await settle()
    two.leave()
    one.leave()
    await settle()
    expect(two.log).toEqual(['elected', 'deposed'])
  })

  test('a leader does not steal from itself', async () => {
    const one = open(createLocks())
    await settle()
    one.steal()
    await settle()
    expect(one.log).toEqual(['elected'])
  })

  test('one tab steals at most once a minute', async () => {
    const locks = createLocks()
    const [one, two] = [open(locks), open(locks)]
    await settle()
    two.steal()
    await settle()
    one.steal()
    await settle()
    expect(one.isLeader).toBe(true)
    two.steal()
    await settle()
    expect(two.isLeader).toBe(false)
    const later = performance.now() + 61_000
    vi.spyOn(performance, 'now').mockReturnValue(later)
    two.steal()
    await settle()
    expect(two.isLeader).toBe(true)
    vi.restoreAllMocks()
  })

  test('a tab that leaves while it is elected does not keep the lock', async () => {
    const locks = createLocks()
    const failing: Election = joinElection(
      'host',
      { onElected: () => failing.leave(), onDeposed: () => {} },
      locks,
    )
    const two = open(locks)
    await settle()
    expect([failing.isLeader, two.isLeader]).toEqual([false, true])
  })

  test('servers of different names do not compete', async () => {
    const locks = createLocks()
    const [one, two] = [open(locks, 'a'), open(locks, 'b')]
    await settle()
    expect([one.isLeader, two.isLeader]).toEqual([true, true])
  })
})
