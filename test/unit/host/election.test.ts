/** Which tab computes: the election by a lock that tabs wait for, steal and release. */
import { expect, test, vi } from 'vitest'
import { Election } from '../../../src/host/tab/page.ts'
import { createLocks } from '../../support/locks.ts'

type Tab = Election & { log: string[] }

/** Tabs that join the elections of these names in turn. */
async function open(...names: string[]): Promise<Tab[]> {
  const locks = createLocks()
  const tabs = names.map((name) => {
    const log: string[] = []
    const candidate = { onElected: () => log.push('elected'), onDeposed: () => log.push('deposed') }
    return Object.assign(new Election(name, candidate, locks), { log })
  })
  await settle()
  return tabs
}

const settle = () => new Promise((resolve) => setTimeout(resolve))

async function steal(tab: Tab): Promise<void> {
  tab.steal()
  await settle()
}

async function leave(...tabs: Tab[]): Promise<void> {
  for (const tab of tabs) tab.leave()
  await settle()
}

const leaders = (tabs: Tab[]) => tabs.map(({ isLeader }) => isLeader)
const logs = (tabs: Tab[]) => tabs.map(({ log }) => log.join(' '))

test('the first tab is elected, and when it leaves the next one', async () => {
  const tabs = await open('host', 'host', 'host')
  expect([leaders(tabs), logs(tabs)]).toEqual([
    [true, false, false],
    ['elected', '', ''],
  ])
  await leave(tabs[0]!)
  expect([leaders(tabs), logs(tabs)]).toEqual([
    [false, true, false],
    ['elected deposed', 'elected', ''],
  ])
})

test('a tab that left before its turn is never elected', async () => {
  const tabs = await open('host', 'host', 'host')
  await leave(tabs[1]!, tabs[0]!)
  expect(logs(tabs)).toEqual(['elected deposed', '', 'elected'])
})

test('a leader whose lock is stolen is deposed, and waits behind the thief', async () => {
  const tabs = await open('host', 'host')
  await steal(tabs[1]!)
  expect([leaders(tabs), logs(tabs)]).toEqual([
    [false, true],
    ['elected deposed', 'elected'],
  ])
  await leave(tabs[1]!)
  expect(logs(tabs)).toEqual(['elected deposed elected', 'elected deposed'])
  // The thief had waited before it stole, and is not elected by that request.
  await leave(tabs[0]!)
  expect(tabs[1]?.log).toEqual(['elected', 'deposed'])
})

test('a leader does not steal from itself', async () => {
  const [one] = await open('host')
  await steal(one!)
  expect(one?.log).toEqual(['elected'])
})

test('a tab steals at most once a minute', async () => {
  const [one, two] = await open('host', 'host')
  await steal(two!)
  await steal(one!)
  expect(one?.isLeader).toBe(true)
  await steal(two!)
  expect(two?.isLeader).toBe(false)
  const later = performance.now() + 61_000
  vi.spyOn(performance, 'now').mockReturnValue(later)
  await steal(two!)
  expect(two?.isLeader).toBe(true)
  vi.restoreAllMocks()
})

test('a tab that leaves while it is elected does not keep the lock', async () => {
  const locks = createLocks()
  const candidate = { onElected: () => leaving.leave(), onDeposed: () => {} }
  const leaving: Election = new Election('host', candidate, locks)
  const next = new Election('host', { onElected: () => {}, onDeposed: () => {} }, locks)
  await settle()
  expect([leaving.isLeader, next.isLeader]).toEqual([false, true])
})

test('servers of different names do not compete', async () => {
  expect(leaders(await open('a', 'b'))).toEqual([true, true])
})
