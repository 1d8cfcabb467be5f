import { expect, test } from 'vitest'
import { createModelStore, type ModelView } from '../../../src/extras/store.ts'
import { createTestServer } from '../../../src/extras/testing/server.ts'
import { InoriginError } from '../../../src/error.ts'

const tag = '@me/chat'

/** A store of a test server whose loads wait for `allow` or `fail`. */
function open() {
  const gate = { allow: () => {}, fail: (_error: Error) => {} }
  const load = () =>
    new Promise<void>((resolve, reject) => Object.assign(gate, { allow: resolve, fail: reject }))
  const allow = () => gate.allow()
  const fail = (error: Error) => gate.fail(error)
  const server = createTestServer({
    models: [{ tag, name: 'Chat', bytes: 10, answers: () => 'Hi', load }],
  })
  const store = createModelStore(async () => server)
  const until = (check: (view: ModelView) => boolean) =>
    new Promise<ModelView>((resolve) => {
      const look = () => {
        if (!check(store.view(tag))) return
        unsubscribe()
        resolve(store.view(tag))
      }
      const unsubscribe = store.subscribe(look)
      look()
    })
  const state = (wanted: ModelView['state']) => until((view) => view.state === wanted)
  return { server, store, until, state, allow, fail }
}

test('a load has states and progress, and snapshots change only with their content', async () => {
  const { store, state, until, allow } = open()
  expect(store.view(tag)).toMatchObject({ state: 'unknown', name: tag })
  expect(store.view(tag)).toBe(store.view(tag))
  await store.open()
  const listed = await state('remote')
  expect(listed).toMatchObject({ name: 'Chat', bytes: 10, device: 'wasm', progress: null })
  const before = store.getSnapshot()
  expect(store.getSnapshot()).toBe(before)

  const loading = store.load(tag)
  const half = await until(({ progress }) => progress?.loadedBytes === 5)
  expect(half.state).toBe('loading')
  allow()
  await loading
  expect(await state('loaded')).toMatchObject({ progress: null, error: null })
  expect(before.models[tag]).toBe(listed)
  await store.unload(tag)
  await state('stored')
  store.close()
})

test('a load that a request started is followed, paused, resumed and canceled', async () => {
  const { server, store, state, allow } = open()
  await store.open()
  const ask = () =>
    server.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: tag, messages: [{ role: 'user', content: 'Hi' }] }),
    })
  const asked = ask().then((response) => response.text())
  await state('loading')
  await store.pause(tag)
  expect(await asked).toContain('load_paused')
  expect(await state('paused')).toMatchObject({ progress: null, error: null })

  const resumed = store.load(tag)
  await state('loading')
  await store.cancel(tag)
  await resumed
  expect(await state('remote')).toMatchObject({ error: null })

  const answered = ask()
  await state('loading')
  allow()
  expect(await (await answered).json()).toMatchObject({ choices: [{ message: { content: 'Hi' } }] })
  await state('loaded')
  store.close()
})

test('a failed load is an error of its view, which the next load clears', async () => {
  const { store, state, fail, allow } = open()
  const loading = store.load(tag)
  await state('loading')
  fail(new InoriginError('unavailable', 'No space.', { code: 'storage_full' }))
  await loading
  expect(store.view(tag)).toMatchObject({ state: 'remote', error: { code: 'storage_full' } })
  const again = store.load(tag)
  await state('loading')
  expect(store.view(tag).error).toBeNull()
  allow()
  await again
  await store.load('@me/none')
  expect(store.view('@me/none')).toMatchObject({ state: 'unknown', error: { kind: 'not_found' } })
  store.close()
})

test('a server that does not open is an error, and the next call tries again', async () => {
  let attempts = 0
  const store = createModelStore(async () => {
    attempts += 1
    if (attempts === 1) throw new InoriginError('unavailable', 'Not here.')
    return createTestServer()
  })
  await store.open()
  expect(store.getSnapshot()).toMatchObject({ server: null, error: { message: 'Not here.' } })
  await store.open()
  expect(store.getSnapshot()).toMatchObject({ server: {}, error: null })
  await store.open()
  expect(attempts).toBe(2)
  store.close()
})
