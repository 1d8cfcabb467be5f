/** The limits of `inorigin bridge`: requests, tabs and connections, over real HTTP and WebSockets. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { SUBPROTOCOL } from '../../../src/bridge/protocol.ts'
import { ask, openBridge, TOKEN, type OpenBridge } from '../../support/bridge.ts'

let bridge: OpenBridge
const sockets: Socket[] = []
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  bridge = await openBridge({})
})
afterEach(async () => {
  vi.useRealTimers()
  for (const socket of sockets.splice(0)) socket.destroy()
  await bridge.server.close()
})

const models = () => `${bridge.server.url}/v1/models`

test('at most 64 requests are open, and the next one is told when to come back', async () => {
  const waiting: Array<() => void> = []
  let areWaiting = (): void => undefined
  const full = new Promise<void>((resolve) => (areWaiting = resolve))
  await bridge.lend(
    () =>
      new Promise((resolve) => {
        waiting.push(() => resolve(new Response('ok')))
        if (waiting.length === 64) areWaiting()
      }),
  )
  const answers = Array.from({ length: 64 }, () => ask(models(), {}))
  await full
  const refused = await ask(models(), {})
  expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
  expect(refused.text).toContain('"code":"queue_full"')
  for (const end of waiting.splice(0)) end()
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(64).fill(200))
  const next = ask(models(), {})
  await expect.poll(() => waiting.length).toBe(1)
  waiting[0]?.()
  expect((await next).status).toBe(200)
})

test('at most 16 tabs are connected, and one that leaves makes room', async () => {
  const lend = () => bridge.lend(() => new Response('ok'))
  const tabs = await Promise.all(Array.from({ length: 16 }, lend))
  await expect(lend()).rejects.toMatchObject({
    code: 'bridge_unreachable',
    message: expect.stringContaining('More than 16 tabs'),
  })
  tabs[0]?.close()
  await tabs[0]?.closed
  expect((await lend()).state.status).toBe('connected')
})

test('a connection with the token that says nothing is closed after 10 s', async () => {
  const socket = new WebSocket(`${bridge.server.url.replace('http', 'ws')}/bridge`, [
    SUBPROTOCOL,
    `token.${TOKEN}`,
  ])
  const closed = once(socket, 'close')
  await once(socket, 'open')
  await vi.advanceTimersByTimeAsync(10_000)
  expect((await closed)[0]).toBe(4408)
})

test('at most 256 connections are open, and the next one is closed at once', async () => {
  const port = Number(new URL(bridge.server.url).port)
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }
  for (let count = 0; count < 256; count += 1) await open()
  const last = await open()
  last.on('error', () => undefined)
  await once(last, 'close')
  expect(sockets.filter(({ closed }) => closed)).toEqual([last])
})
