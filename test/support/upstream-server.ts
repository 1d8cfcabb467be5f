/** A real HTTP server in the place of an upstream one. It counts every byte that it receives. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'

export interface Received {
  path: string
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
}

export interface UpstreamServer {
  /** Base URL of the API. */
  url: string
  /** Requests that arrived, without those that ask for permission. */
  received: Received[]
  /** Number of connections and of bytes that arrived over them. */
  counts(): { connections: number; bytes: number }
  /** Resolves when the next response is closed. */
  closed(): Promise<void>
  close(): Promise<void>
}

export type Respond = (
  response: ServerResponse,
  request: Received,
  attempt: number,
) => void | Promise<void>

const CORS = { 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' }

/** Starts a server on the loopback interface whose responses `respond` writes. */
export async function startUpstream(respond: Respond): Promise<UpstreamServer> {
  const received: Received[] = []
  const sockets: Socket[] = []
  const closings: Array<() => void> = []
  const server = createServer(async (request, response) => {
    if (request.method === 'OPTIONS') return void response.writeHead(204, CORS).end()
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = JSON.parse(Buffer.concat(pieces).toString()) as Record<string, unknown>
    const one = { path: request.url ?? '', headers: request.headers, body }
    received.push(one)
    response.on('close', () => closings.splice(0).forEach((resolve) => resolve()))
    await respond(response, one, received.length)
  })
  server.on('connection', (socket) => sockets.push(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    received,
    counts: () => ({
      connections: sockets.length,
      bytes: sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    }),
    closed: () => new Promise((resolve) => closings.push(resolve)),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Starts a server that answers by a function like `fetch`, for pages of any origin. */
export const startFetchServer = (
  fetch: (request: Request) => Promise<Response>,
): Promise<UpstreamServer> =>
  startUpstream(async (response, { path, body }) => {
    const aborted = new AbortController()
    response.on('close', () => aborted.abort())
    const request = new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: aborted.signal,
    })
    const { status, headers, body: stream } = await fetch(request)
    response.writeHead(status, { ...CORS, ...Object.fromEntries(headers) })
    const pieces = Readable.fromWeb(stream as NodeStream)
    pieces.on('error', () => response.destroy())
    pieces.pipe(response)
  })

/** Sends chunks as server-sent events. `DONE` is the end marker. */
export function sendEvents(response: ServerResponse, chunks: readonly unknown[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const chunk of chunks)
    response.write(`data: ${chunk === DONE ? DONE : JSON.stringify(chunk)}\n\n`)
}

export const DONE = '[DONE]'

/** Returns a chunk of a completion with that delta. */
export const chunkOf = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason, ...more }],
})
