/** Passes one HTTP request of a client to a tab, and its response back. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import { MAX_BODY_BYTES } from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'
import { assertKey, type GuardOptions } from './guard.ts'
import type { Tabs } from './tabs.ts'

/** Maximum number of bytes of request bodies that wait for the status of a tab, of all clients. */
const MAX_WAITING_BYTES = 4 * MAX_BODY_BYTES

/** Maximum number of requests that are open at once. A tab queues fewer. */
const MAX_OPEN_REQUESTS = 64

/** Headers that reach the tab. Others, such as cookies, are not for it. */
const PASSED_HEADERS = [
  'accept',
  'anthropic-beta',
  'anthropic-version',
  'authorization',
  'content-type',
  'if-range',
  'range',
  'x-api-key',
  'x-inorigin-route',
]

/** Headers that carry an API key. */
const KEY_HEADERS = ['authorization', 'x-api-key']

/** Headers of a response that are about a connection of its own. */
const CONNECTION_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade']

export interface Relay {
  /**
   * Passes a request for the path, with its query. Resolves when the response was sent. Rejects before
   * the first byte was sent, or if the client left, or if the tab was closed in the middle.
   */
  pass(path: string, request: IncomingMessage, response: ServerResponse): Promise<void>
}

export function createRelay(tabs: Tabs, guard: GuardOptions): Relay {
  const memory: Memory = { waitingBytes: 0 }
  let openRequests = 0

  async function passToTab(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const headers = pickHeaders(request)
    assertKey(headers, guard)
    // The key was for the bridge. An app with keys of its own would refuse it.
    if (guard.requireKey) for (const name of KEY_HEADERS) headers.delete(name)
    const left = new AbortController()
    response.once('close', () => left.abort())
    const { method = 'GET' } = request
    const answer = await withBody(request, memory, (body) =>
      tabs.request({ method, path, headers: [...headers], body }, left.signal),
    )
    response.writeHead(answer.status, answer.headers.filter(isPassedBack).flat())
    response.flushHeaders()
    await pipeline(Readable.fromWeb(answer.body as NodeStream), response)
  }
  return {
    async pass(path, request, response) {
      if (openRequests >= MAX_OPEN_REQUESTS) throw fullError(`${MAX_OPEN_REQUESTS} requests`)
      openRequests += 1
      await passToTab(path, request, response).finally(() => (openRequests -= 1))
    },
  }
}

const isPassedBack = ([name]: readonly [string, string]): boolean =>
  !CONNECTION_HEADERS.includes(name)

function pickHeaders({ headers }: IncomingMessage): Headers {
  const picked = new Headers()
  for (const name of PASSED_HEADERS) {
    const value = headers[name]
    if (typeof value === 'string') picked.set(name, value)
  }
  return picked
}

interface Memory {
  /** Bytes of all bodies that are kept, because another tab may have to answer. */
  waitingBytes: number
}

/** Reads the body and keeps it until the work has settled. */
async function withBody<T>(
  request: IncomingMessage,
  memory: Memory,
  work: (body: Uint8Array) => Promise<T>,
): Promise<T> {
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    if (Number(request.headers['content-length']) > MAX_BODY_BYTES) throw tooLargeError()
    for await (const piece of request as AsyncIterable<Uint8Array>) {
      length += piece.byteLength
      memory.waitingBytes += piece.byteLength
      if (length > MAX_BODY_BYTES) throw tooLargeError()
      if (memory.waitingBytes > MAX_WAITING_BYTES) throw fullError(`${MAX_WAITING_BYTES} bytes`)
      pieces.push(piece)
    }
    return await work(Buffer.concat(pieces))
  } finally {
    memory.waitingBytes -= length
  }
}

function tooLargeError(): InoriginError {
  const message = `The body is larger than ${MAX_BODY_BYTES} bytes. Send less at once.`
  return new InoriginError('too_large', message, { code: 'request_too_large' })
}

function fullError(what: string): InoriginError {
  const message = `The bridge already has ${what}. Retry after 1 s.`
  return new InoriginError('rate_limit', message, { code: 'queue_full', retryAfter: 1 })
}
