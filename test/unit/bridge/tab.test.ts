/** A tab that breaks the protocol or does not react, over a real WebSocket. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { encodePiece, MAX_PIECE_BYTES, WINDOW_BYTES } from '../../../src/bridge/protocol.ts'
import { createTab, type Tab } from '../../../src/cli/bridge/tab.ts'

const CAPABILITY = { gpu: 'none', gpuBufferBytes: 0, memoryBytes: 0, threads: 1 } as const
const REQUEST = { method: 'GET', path: '/v1/models', headers: [], body: new Uint8Array() }

let server: WebSocketServer
let page: WebSocket
let tab: Tab
/** Types of the messages that the page received. */
let received: string[]
beforeEach(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const connected = once(server, 'connection') as Promise<[WebSocket]>
  page = new WebSocket(`ws://127.0.0.1:${port}`)
  received = []
  page.on('message', (data) => received.push(JSON.parse(String(data)).type))
  const [socket] = await connected
  await once(page, 'open')
  const times = { pingIntervalMs: 50, pongTimeoutMs: 2_000 }
  tab = createTab(socket, { capability: CAPABILITY, origin: 'https://app.example' }, times)
})
afterEach(() => {
  page.terminate()
  server.close()
})

const { signal } = new AbortController()
const send = (message: object) => page.send(JSON.stringify(message))

test('a page that does not react loses its requests and its connection', async () => {
  const response = tab.request(REQUEST, signal)
  await expect(response).rejects.toMatchObject({ code: 'bridge_tab_gone', retryAfter: 1 })
  expect(received.toSorted()).toEqual(['ping', 'request'])
  await expect(tab.request(REQUEST, signal)).rejects.toMatchObject({ code: 'bridge_tab_gone' })
  await tab.closed
})

test('a page that reacts is asked again and keeps its requests', async () => {
  const pings = new Promise<void>((resolve) => {
    page.on('message', (data) => {
      if (JSON.parse(String(data)).type === 'ping') send({ type: 'pong' })
      if (received.filter((type) => type === 'ping').length >= 3) resolve()
    })
  })
  const asked = tab.request(REQUEST, signal)
  await pings
  send({ type: 'response', id: 1, status: 204, headers: [] })
  send({ type: 'end', id: 1 })
  expect(await asked).toMatchObject({ status: 204, headers: [] })
})

test('a page that sends more than its credit loses its connection', async () => {
  const asked = tab.request(REQUEST, signal)
  send({ type: 'response', id: 1, status: 200, headers: [] })
  const { body } = await asked
  // Half of a window is read ahead for the client, and gives credit again.
  for (let sent = 0; sent <= 2 * WINDOW_BYTES; sent += MAX_PIECE_BYTES) {
    page.send(encodePiece(1, new Uint8Array(MAX_PIECE_BYTES)))
  }
  const [code] = (await once(page, 'close')) as [number]
  expect(code).toBe(4400)
  await expect(body.getReader().closed).rejects.toMatchObject({ code: 'bridge_tab_gone' })
})

test('an end without a response is an error', async () => {
  const asked = tab.request(REQUEST, signal)
  send({ type: 'end', id: 1 })
  await expect(asked).rejects.toMatchObject({ kind: 'internal' })
})

test.each(['no JSON', '{"type":"hello"}', '{"type":"unknown"}', '{"type":"end","id":0}'])(
  'an invalid message closes the connection: %s',
  async (text) => {
    page.send(text)
    const [code] = (await once(page, 'close')) as [number]
    expect(code).toBe(4400)
  },
)
