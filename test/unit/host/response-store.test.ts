/** How much of responses is kept, for how long, and for whom. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { createResponseStore } from '../../../src/host/requests/response-store.ts'
import type { Caller, StoredResponse } from '../../../src/types/index.ts'

const callerOf = (key: string | null): Caller => ({ key, signal: new AbortController().signal })
const ANN = callerOf('ann')
const BEA = callerOf('bea')

const responseOf = (id: string, text = 'Hello'): StoredResponse => ({
  id: `resp_${id}`,
  body: { id: `resp_${id}` },
  input: [{ id: `in_${id}`, text: 'Hi' }],
  output: [{ id: `msg_${id}`, text }],
})

const open = (limits?: { responses: number; bytes: number }) =>
  createResponseStore(() => {}, { limits }).methods

it('are given again as they were kept, as a whole or an item of what was answered', async () => {
  const host = open()
  await host.storeResponse(responseOf('a'), ANN)
  expect(await host.getStoredResponse('resp_a', ANN)).toEqual(responseOf('a'))
  expect(await host.getStoredItems(['msg_a', 'in_a', 'msg_b'], ANN)).toEqual([
    { id: 'msg_a', text: 'Hello' },
    null,
    null,
  ])
})

it.each([
  ['another key', BEA],
  ['none', callerOf(null)],
])('are not there for %s', async (_, other) => {
  const host = open()
  await host.storeResponse(responseOf('a'), ANN)
  expect(await host.getStoredResponse('resp_a', other)).toBeNull()
  expect(await host.getStoredItems(['msg_a'], other)).toEqual([null])
  expect(await host.deleteStoredResponse('resp_a', other)).toBe(false)
  expect(await host.getStoredResponse('resp_a', ANN)).not.toBeNull()
})

it('are forgotten when told so, with their items', async () => {
  const host = open()
  await host.storeResponse(responseOf('a'), ANN)
  expect(await host.deleteStoredResponse('resp_a', ANN)).toBe(true)
  expect(await host.deleteStoredResponse('resp_a', ANN)).toBe(false)
  expect(await host.getStoredItems(['msg_a'], ANN)).toEqual([null])
})

it('are so many at most, those that were used last', async () => {
  const host = open({ responses: 2, bytes: 1e6 })
  await host.storeResponse(responseOf('a'), ANN)
  await host.storeResponse(responseOf('b'), ANN)
  await host.getStoredItems(['msg_a'], ANN)
  await host.storeResponse(responseOf('c'), ANN)
  expect(await host.getStoredResponse('resp_b', ANN)).toBeNull()
  expect(await host.getStoredItems(['msg_a', 'msg_b', 'msg_c'], ANN)).toEqual([
    { id: 'msg_a', text: 'Hello' },
    null,
    { id: 'msg_c', text: 'Hello' },
  ])
})

describe('of several keys', () => {
  /** Whether each of these is still kept. */
  const areStored = async (host: ReturnType<typeof open>, ids: string, caller: Caller) =>
    (
      await host.getStoredItems(
        [...ids].map((id) => `msg_${id}`),
        caller,
      )
    ).map(Boolean)

  it('push out those of the key that has the most, never those of one that has less', async () => {
    const host = open({ responses: 4, bytes: 1e6 })
    for (const id of 'xy') await host.storeResponse(responseOf(id), BEA)
    for (const id of 'abcde') await host.storeResponse(responseOf(id), ANN)
    expect(await areStored(host, 'xy', BEA)).toEqual([true, true])
    expect(await areStored(host, 'abcde', ANN)).toEqual([false, false, false, true, true])
    await host.storeResponse(responseOf('n'), callerOf(null))
    expect(await areStored(host, 'xy', BEA)).toEqual([false, true])
    expect(await areStored(host, 'de', ANN)).toEqual([true, true])
  })

  it('are measured in bytes too', async () => {
    const host = open({ responses: 100, bytes: 5000 })
    const long = (id: string, length: number) => responseOf(id, 'x'.repeat(length))
    expect(await host.storeResponse(long('x', 900), BEA)).toBe(true)
    for (const id of 'abc') expect(await host.storeResponse(responseOf(id), ANN)).toBe(true)
    // There is room for it only at the cost of who has less: nobody loses anything by it.
    expect(await host.storeResponse(long('d', 1500), ANN)).toBe(false)
    expect(await areStored(host, 'abcd', ANN)).toEqual([true, true, true, false])
    expect(await host.storeResponse(long('e', 1100), ANN)).toBe(true)
    expect(await areStored(host, 'abce', ANN)).toEqual([false, true, true, true])
    expect(await areStored(host, 'x', BEA)).toEqual([true])
  })
})

it('have so many bytes at most', async () => {
  const host = open({ responses: 100, bytes: 5000 })
  for (const id of ['a', 'b', 'c']) await host.storeResponse(responseOf(id, 'x'.repeat(900)), ANN)
  expect(await host.getStoredItems(['msg_a'], ANN)).toEqual([null])
  expect((await host.getStoredItems(['msg_b', 'msg_c'], ANN)).every(Boolean)).toBe(true)
  // Larger than all: it is not kept, and nothing is forgotten for it.
  expect(await host.storeResponse(responseOf('d', 'x'.repeat(3000)), ANN)).toBe(false)
  expect(await host.getStoredResponse('resp_d', ANN)).toBeNull()
  expect((await host.getStoredItems(['msg_b', 'msg_c'], ANN)).every(Boolean)).toBe(true)
})

it('count once when they are kept again', async () => {
  const host = open({ responses: 100, bytes: 5000 })
  await host.storeResponse(responseOf('a', 'x'.repeat(900)), ANN)
  for (let n = 0; n < 9; n += 1) await host.storeResponse(responseOf('b', 'x'.repeat(900)), ANN)
  expect((await host.getStoredItems(['msg_a', 'msg_b'], ANN)).every(Boolean)).toBe(true)
})

it('are nothing to whoever has no good key', async () => {
  const host = createResponseStore(() => {
    throw new InoriginError('authentication', 'No.')
  }).methods
  await expect(host.storeResponse(responseOf('a'), ANN)).rejects.toThrow('No.')
  await expect(host.getStoredResponse('resp_a', ANN)).rejects.toThrow('No.')
  await expect(host.getStoredItems(['msg_a'], ANN)).rejects.toThrow('No.')
  await expect(host.deleteStoredResponse('resp_a', ANN)).rejects.toThrow('No.')
})

it('report what changes, and begin with those of an earlier store', async () => {
  const changes: unknown[] = []
  const limits = { responses: 2, bytes: 1e6 }
  const { methods, list } = createResponseStore(() => {}, {
    limits,
    onStored: ({ response, key }) => changes.push(['stored', response.id, key]),
    onRemoved: (ids) => changes.push(['removed', ids]),
  })
  for (const id of ['a', 'b', 'c']) await methods.storeResponse(responseOf(id), ANN)
  await methods.deleteStoredResponse('resp_c', BEA)
  await methods.deleteStoredResponse('resp_c', ANN)
  await methods.storeResponse(responseOf('d', 'long '.repeat(1e6)), ANN)
  expect(changes).toEqual([
    ['stored', 'resp_a', 'ann'],
    ['stored', 'resp_b', 'ann'],
    ['stored', 'resp_c', 'ann'],
    ['removed', ['resp_a']],
    ['removed', ['resp_c']],
  ])

  const next = createResponseStore(() => {}, { initial: list() }).methods
  expect(await next.getStoredResponse('resp_b', ANN)).toEqual(responseOf('b'))
  expect(await next.getStoredResponse('resp_b', BEA)).toBeNull()
  expect(await next.getStoredItems(['msg_b'], ANN)).toEqual([{ id: 'msg_b', text: 'Hello' }])
})
