/** A server of another origin that speaks chat completions: inorigin's own handler over HTTP. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import type { Host } from '../../src/types/index.ts'
import { handle } from '../../src/wire/handler.ts'

export interface ChatServer {
  /** Base URL of the API. */
  url: string
  /** Headers of the requests that arrived, without those that ask for permission. */
  headers: Array<Record<string, unknown>>
  /** Number of connections that were opened. */
  connections(): number
  /** Resolves when the next response is closed. */
  closed(): Promise<void>
  close(): Promise<void>
}

const CORS = { 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' }

export async function startChatServer(host: Host): Promise<ChatServer> {
  const headers: ChatServer['headers'] = []
  const closings: Array<() => void> = []
  let connections = 0
  const server = createServer(async (request, response) => {
    if (request.method === 'OPTIONS') return void response.writeHead(204, CORS).end()
    headers.push({ ...request.headers })
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const aborted = new AbortController()
    response.on('close', () => {
      aborted.abort()
      closings.splice(0).forEach((resolve) => resolve())
    })
    const asked = new Request(`http://localhost${request.url}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.concat(pieces),
      signal: aborted.signal,
    })
    const answered = await handle(asked, host)
    response.writeHead(answered.status, { ...CORS, ...Object.fromEntries(answered.headers) })
    const body = Readable.fromWeb(answered.body as NodeStream)
    body.on('error', () => response.destroy())
    body.pipe(response)
  })
  server.on('connection', () => (connections += 1))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    headers,
    connections: () => connections,
    closed: () => new Promise((resolve) => closings.push(resolve)),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
