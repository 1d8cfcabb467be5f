/** How many stored responses are kept, for how long, and for whom. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { withAuthorization } from '../../../src/host/requests/middleware.ts'
import { ResponseStore } from '../../../src/host/requests/response-store.ts'
import type { Caller, StoredResponse } from '../../../src/types/index.ts'

const callerOf = (key: string | null): Caller => ({ key, signal: new AbortController().signal })
const ANN = callerOf('ann')
const BEA = callerOf('bea')
const NOBODY = callerOf(null)

/** A response whose text has so many characters. */
const responseOf = (id: string, length = 5): StoredResponse => ({
  id: `resp_${id}`,
  body: { id: `resp_${id}` },
  input: [{ id: `in_${id}`, text: 'Hi' }],
  output: [{ id: `msg_${id}`, text: 'x'.repeat(length) }],
})

function open(limits?: { responses: number; bytes: number }) {
  const host = new ResponseStore(limits && { limits }).methods
  return {
    host,
    store: (id: string, caller = ANN, length = 5) =>
      host.storeResponse(responseOf(id, length), caller),
    /** Ids of those that are kept. Reading an item counts as a use. */
    async kept(ids: string, caller = ANN) {
      const items = await host.getStoredItems(
        [...ids].map((id) => `msg_${id}`),
        caller,
      )
      return [...ids].filter((_, index) => items[index] !== null).join('')
    },
  }
}

it('returns them as they were stored, as a whole or an item of the output', async () => {
  const { host, store } = open()
  await store('a')
  expect(await host.getStoredResponse('resp_a', ANN)).toEqual(responseOf('a'))
  const items = await host.getStoredItems(['msg_a', 'in_a', 'msg_b'], ANN)
  expect(items).toEqual([{ id: 'msg_a', text: 'xxxxx' }, null, null])
})

it.each([
  ['another key', BEA],
  ['no key', NOBODY],
])('hides them from %s', async (_, other) => {
  const { host, store, kept } = open()
  await store('a')
  expect(await host.getStoredResponse('resp_a', other)).toBeNull()
  expect(await kept('a', other)).toBe('')
  expect(await host.deleteStoredResponse('resp_a', other)).toBe(false)
  expect(await host.getStoredResponse('resp_a', ANN)).not.toBeNull()
})

it('deletes them with their items', async () => {
  const { host, store, kept } = open()
  await store('a')
  expect(await host.deleteStoredResponse('resp_a', ANN)).toBe(true)
  expect(await host.deleteStoredResponse('resp_a', ANN)).toBe(false)
  expect(await kept('a')).toBe('')
})

describe('its limits', () => {
  it('keep the responses that were used last', async () => {
    const { host, store, kept } = open({ responses: 2, bytes: 1e6 })
    await store('a')
    await store('b')
    await kept('a')
    await store('c')
    expect(await host.getStoredResponse('resp_b', ANN)).toBeNull()
    expect(await kept('abc')).toBe('ac')
  })

  it('evict those of the key that has the most, never those of one that has less', async () => {
    const { store, kept } = open({ responses: 4, bytes: 1e6 })
    for (const id of 'xy') await store(id, BEA)
    for (const id of 'abcde') await store(id)
    expect([await kept('xy', BEA), await kept('abcde')]).toEqual(['xy', 'de'])
    await store('n', NOBODY)
    expect([await kept('xy', BEA), await kept('de')]).toEqual(['y', 'de'])
  })

  it('are in bytes, too, of which each key may use a part', async () => {
    const { host, store, kept } = open({ responses: 100, bytes: 5000 })
    expect(await store('x', BEA, 900)).toBe(true)
    for (const id of 'abc') expect(await store(id)).toBe(true)
    // There is room for it only at the cost of a key that has less, so nothing is evicted.
    expect(await store('d', ANN, 1500)).toBe(false)
    expect(await kept('abcd')).toBe('abc')
    expect(await store('e', ANN, 1100)).toBe(true)
    expect([await kept('abce'), await kept('x', BEA)]).toEqual(['bce', 'x'])
    expect(await host.getStoredResponse('resp_d', ANN)).toBeNull()
  })

  it('evict nothing for a response that is larger than all, or for one stored again', async () => {
    const { store, kept } = open({ responses: 100, bytes: 5000 })
    for (const id of 'abc') await store(id, ANN, 900)
    expect(await kept('abc')).toBe('bc')
    expect(await store('d', ANN, 3000)).toBe(false)
    for (let count = 0; count < 9; count += 1) await store('c', ANN, 900)
    expect(await kept('abcd')).toBe('bc')
  })
})

it('rejects callers without a valid key', async () => {
  const host = withAuthorization(() => {
    throw new InoriginError('authentication', 'No.')
  })(new ResponseStore().methods)
  for (const work of [
    host.storeResponse(responseOf('a'), ANN),
    host.getStoredResponse('resp_a', ANN),
    host.getStoredItems(['msg_a'], ANN),
    host.deleteStoredResponse('resp_a', ANN),
  ])
    await expect(work).rejects.toThrow('No.')
})

it('reports changes, and begins with the responses of an earlier store', async () => {
  const changes: unknown[] = []
  const store = new ResponseStore({
    limits: { responses: 2, bytes: 1e6 },
    onStored: ({ response, key }) => changes.push(['stored', response.id, key]),
    onRemoved: (ids) => changes.push(['removed', ids]),
  })
  const { methods } = store
  for (const id of ['a', 'b', 'c']) await methods.storeResponse(responseOf(id), ANN)
  await methods.deleteStoredResponse('resp_c', BEA)
  await methods.deleteStoredResponse('resp_c', ANN)
  await methods.storeResponse(responseOf('d', 5e6), ANN)
  expect(changes).toEqual([
    ['stored', 'resp_a', 'ann'],
    ['stored', 'resp_b', 'ann'],
    ['stored', 'resp_c', 'ann'],
    ['removed', ['resp_a']],
    ['removed', ['resp_c']],
  ])

  const next = new ResponseStore({ initial: store.list() }).methods
  expect(await next.getStoredResponse('resp_b', ANN)).toEqual(responseOf('b'))
  expect(await next.getStoredResponse('resp_b', BEA)).toBeNull()
  expect(await next.getStoredItems(['msg_b'], ANN)).toEqual([{ id: 'msg_b', text: 'xxxxx' }])
})
