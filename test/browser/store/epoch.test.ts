/** The epoch of hosts: after an election, the writes of the earlier host are rejected. */
import { expect, test } from 'vitest'
import { putDeviceFact } from '../../../src/store/device-facts.ts'
import { raiseEpoch, runFencedWrite } from '../../../src/store/epoch.ts'
import type { Database } from '../../../src/store/database.ts'
import { freshDatabase } from './fixture.ts'

const PIN = { tag: '@acme/tiny', since: '2026-01-01T00:00:00Z' } as const

const pin = (database: Database, epoch: number) =>
  runFencedWrite(database, epoch, ['pins'], (transaction) =>
    transaction.objectStore('pins').put(PIN),
  )
const pins = (database: Database) => database.use((connection) => connection.getAll('pins'))

test('each host raises the epoch by one, also when several begin at once', async () => {
  const database = freshDatabase()
  const epochs = await Promise.all([1, 2, 3].map(() => raiseEpoch(database)))
  expect(epochs.toSorted()).toEqual([1, 2, 3])
})

test('only the host of the highest epoch can write', async () => {
  const database = freshDatabase()
  const earlier = await raiseEpoch(database)
  const later = await raiseEpoch(database)
  await expect(pin(database, earlier)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'host_replaced',
  })
  expect(await pins(database)).toEqual([])
  await pin(database, later)
  expect(await pins(database)).toEqual([PIN])
})

test('a write that was waiting when the epoch was raised is rejected', async () => {
  const database = freshDatabase()
  const earlier = await raiseEpoch(database)
  const raised = raiseEpoch(database)
  const written = pin(database, earlier)
  await expect(written).rejects.toMatchObject({ code: 'host_replaced' })
  await raised
})

test('an epoch of another type, which no version has written, counts as none', async () => {
  const database = freshDatabase()
  await putDeviceFact(database, 'epoch', 'x')
  expect(await raiseEpoch(database)).toBe(1)
})
