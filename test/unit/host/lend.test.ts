/** Ways to workers of predictors: which are lent, and until when. */
import { expect, test } from 'vitest'
import type { Hosted } from '../../../src/host/hosted.ts'
import type { Given } from '../../../src/host/kept.ts'
import { createLender } from '../../../src/host/lend.ts'
import type { Models } from '../../../src/host/models.ts'
import { arrived } from '../../support/arrived.ts'

const given = { entry: { type: 'predictor' }, implementation: {} } as Given

function open({ leaves = false } = {}) {
  const gone = new AbortController()
  const state = { ready: true, lent: 0 }
  const hosted = {
    get ready() {
      return state.ready
    },
    link: { endSignal: gone.signal },
    lend() {
      state.lent += 1
      return {} as MessagePort
    },
  } as Hosted
  let find = (_given: Given): void => undefined
  const found = new Promise<Given>((resolve) => (find = resolve))
  const lend = createLender({ find: () => hosted } as unknown as Models, () => found)
  const asker = new AbortController()
  let told = 0
  const tell = () => {
    told += 1
    if (leaves) asker.abort()
  }
  const ended = lend('@a/b', undefined, asker.signal, tell).then(
    () => 'over',
    (error: Error) => error.message,
  )
  const soon = () => Promise.race([ended, arrived().then(() => 'lent')])
  return { state, gone, asker, ended, soon, find: () => find(given), told: () => told }
}

test('a way is lent until its worker ends, which is told, or until the asker leaves', async () => {
  const [one, two] = [open(), open()]
  one.find()
  two.find()
  expect([await one.soon(), await two.soon(), one.told(), one.state.lent]).toEqual([
    'lent',
    'lent',
    1,
    1,
  ])
  one.gone.abort(new Error('It was unloaded.'))
  two.asker.abort()
  expect([await one.ended, await two.ended]).toEqual(['It was unloaded.', 'over'])
})

test('nothing is lent of what is not in memory, nor to who left before it was found', async () => {
  const [one, two] = [open(), open()]
  one.state.ready = false
  one.find()
  two.asker.abort()
  two.find()
  expect([await one.soon(), await two.soon()]).toEqual(['over', 'over'])
  expect([one.state.lent, two.state.lent, one.told(), two.told()]).toEqual([0, 0, 0, 0])
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
