import { expect, test } from 'vitest'
import type { PredictionRecord } from '../../../src/store/db.ts'
import { getDeviceFact, putDeviceFact, putFactOfGroup } from '../../../src/store/device-facts.ts'
import type { Database } from '../../../src/store/database.ts'
import {
  findPredictionById,
  findPredictionByKey,
  findPredictionByResource,
  putPrediction,
  touchPrediction,
} from '../../../src/store/prediction-records.ts'
import { freshDatabase } from './fixture.ts'

const HOUR = 3_600_000

function prediction(id: string, changes: Partial<PredictionRecord> = {}): PredictionRecord {
  return {
    id,
    tag: '@acme/digits',
    clientId: id,
    configurationId: '',
    deviceId: 'dev',
    configuration: `conf_${id}`,
    implementation: 'wasm',
    resources: [{ type: 'onnx', name: 'm.onnx', sha256: id }],
    entry: {},
    created: new Date(0).toISOString(),
    ...changes,
  }
}

const ids = (database: Database) =>
  database.use((connection) => connection.getAllKeys('predictions'))

test('no more are kept than there is room for; those in use stay', async () => {
  const database = freshDatabase()
  for (let index = 0; index < 20; index += 1) {
    await putPrediction(database, prediction(`pred_${10 + index}`, { lastUsed: index }), 20)
  }
  await touchPrediction(database, (await findPredictionById(database, 'pred_10'))!)
  await putPrediction(database, prediction('pred_00'), 20)
  // Two at once, so that not each new one has to look for the oldest.
  const left = await ids(database)
  expect(left).toHaveLength(19)
  expect(left).toContain('pred_00')
  expect(left).toContain('pred_10')
  expect(left).not.toContain('pred_11')
  expect(left).not.toContain('pred_12')
})

test('a use is noted, but not over and over', async () => {
  const database = freshDatabase()
  const lastUsed = Date.now() - HOUR
  await putPrediction(database, prediction('pred_1', { lastUsed }))
  const read = async () => (await findPredictionById(database, 'pred_1'))!
  await touchPrediction(database, await read())
  const noted = (await read()).lastUsed ?? 0
  expect(noted).toBeGreaterThan(lastUsed)
  await touchPrediction(database, { ...(await read()), clientId: 'changed' })
  expect((await read()).clientId).toBe('pred_1')
})

test('one is found by a file, if it says where that is from', async () => {
  const database = freshDatabase()
  const resources = [{ type: 'onnx' as const, name: 'm.onnx', sha256: 'shared' }]
  await putPrediction(database, prediction('pred_1', { resources, entry: undefined }))
  expect(await findPredictionByResource(database, 'shared')).toBeUndefined()
  await putPrediction(database, prediction('pred_2', { resources }))
  expect((await findPredictionByResource(database, 'shared'))?.id).toBe('pred_2')
  expect(await findPredictionByResource(database, 'none')).toBeUndefined()
})

test('a clock that was ahead does not hide what is given since', async () => {
  const database = freshDatabase()
  const asker = { tag: '@a/b', clientId: 'app', configurationId: '' } as const
  await putPrediction(
    database,
    prediction('ahead', { ...asker, created: '2999-01-01T00:00:00.000Z' }),
  )
  await putPrediction(
    database,
    prediction('since', { ...asker, created: new Date().toISOString() }),
  )
  expect((await findPredictionByKey(database, asker))?.id).toBe('since')
})

test('facts of one kind are trimmed, the one in hand and other kinds are not', async () => {
  const database = freshDatabase()
  for (const subject of ['speed a', 'speed b', 'speed c', 'speed', 'gpu a']) {
    await putDeviceFact(database, subject, subject)
  }
  // By age and not by name: the oldest go.
  const ages = ['speed a', 'speed c', 'speed b']
  const lastUse = (fact: unknown) => ages.indexOf(String(fact))
  const group = { prefix: 'speed ', maxFacts: 2, getLastUsed: lastUse }
  await putFactOfGroup(database, group, 'speed a', 'speed a')
  const isText = (value: unknown): value is string => typeof value === 'string'
  const found = async (subject: string) => (await getDeviceFact(database, subject, isText)) ?? null
  expect(await Promise.all(['speed a', 'speed b', 'speed c', 'speed', 'gpu a'].map(found))).toEqual(
    ['speed a', 'speed b', null, 'speed', 'gpu a'],
  )
})
