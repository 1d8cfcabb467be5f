/** Ways to workers of predictors: which are lent, and until when. */
import { expect, test } from 'vitest'
import type { ModelInstance } from '../../../src/host/models/model-instance.ts'
import { createDirectPortOpener } from '../../../src/host/models/direct-ports.ts'
import type { Models, ResolvedImplementation } from '../../../src/host/models/models.ts'
import { arrived } from '../../support/arrived.ts'

const resolved = { entry: { type: 'predictor' }, implementation: {} } as ResolvedImplementation

function open({ leaves = false } = {}) {
  const gone = new AbortController()
  const state = { ready: true, opened: 0 }
  const instance = {
    get ready() {
      return state.ready
    },
    ended: gone.signal,
    openDirectPort() {
      state.opened += 1
      return {} as MessagePort
    },
  } as ModelInstance
  let find = (_given: ResolvedImplementation): void => undefined
  const found = new Promise<ResolvedImplementation>((resolve) => (find = resolve))
  const openDirectPort = createDirectPortOpener(
    { find: () => instance } as unknown as Models,
    () => found,
  )
  const caller = new AbortController()
  let told = 0
  const onEvent = () => {
    told += 1
    if (leaves) caller.abort()
  }
  const { signal } = caller
  const ended = openDirectPort('@a/b', undefined, { key: null, signal, onEvent }).then(
    () => 'over',
    (error: Error) => error.message,
  )
  const soon = () => Promise.race([ended, arrived().then(() => 'lent')])
  return { state, gone, caller, ended, soon, find: () => find(resolved), told: () => told }
}

test('a way is lent until its worker ends, which is told, or until the asker leaves', async () => {
  const [one, two] = [open(), open()]
  one.find()
  two.find()
  expect([await one.soon(), await two.soon(), one.told(), one.state.opened]).toEqual([
    'lent',
    'lent',
    1,
    1,
  ])
  one.gone.abort(new Error('It was unloaded.'))
  two.caller.abort()
  expect([await one.ended, await two.ended]).toEqual(['It was unloaded.', 'over'])
})

test('nothing is lent of what is not in memory, nor to who left before it was found', async () => {
  const [one, two] = [open(), open()]
  one.state.ready = false
  one.find()
  two.caller.abort()
  two.find()
  expect([await one.soon(), await two.soon()]).toEqual(['over', 'over'])
  expect([one.state.opened, two.state.opened, one.told(), two.told()]).toEqual([0, 0, 0, 0])
})

test('a worker that ended before its way was lent is told of at once', async () => {
  const one = open()
  one.gone.abort(new Error('It crashed.'))
  one.find()
  expect(await one.soon()).toBe('It crashed.')
})

test('who leaves while the way is told waits for nothing', async () => {
  const one = open({ leaves: true })
  one.find()
  expect(await one.soon()).toBe('over')
})
