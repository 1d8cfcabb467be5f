/** The election with the browser's own locks; the rules themselves are tested in Node. */
import { expect, test } from 'vitest'
import { joinElection } from '../../src/host/tab/election.ts'

function candidate(name: string) {
  const log: string[] = []
  const election = joinElection(
    name,
    { onElected: () => log.push('elected'), onDeposed: () => log.push('deposed') },
    navigator.locks,
  )
  return { log, election }
}

test('leads, gives way to a thief, and leads again after it', async () => {
  const name = `test:${crypto.randomUUID()}`
  const one = candidate(name)
  await expect.poll(() => one.log).toEqual(['elected'])
  const two = candidate(name)
  two.election.steal()
  await expect.poll(() => two.log).toEqual(['elected'])
  await expect.poll(() => one.log).toEqual(['elected', 'deposed'])
  two.election.leave()
  await expect.poll(() => one.log).toEqual(['elected', 'deposed', 'elected'])
  expect(two.log).toEqual(['elected', 'deposed'])
  one.election.leave()
  const hasLeft = async () => {
    const { held = [], pending = [] } = await navigator.locks.query()
    return [...held, ...pending].filter((lock) => lock.name === name)
  }
  await expect.poll(hasLeft).toEqual([])
})
