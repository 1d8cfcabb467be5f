/**
 * Runs once before the browser tests: a file server on another origin that fails as it is told to.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { TestProject } from 'vitest/node'
import { contentOf, type Fault, type Seen } from '../support/content.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the fault server, with a trailing slash. */
    faults: string
  }
}

const PIECE = 4096

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const requests = new Map<string, Seen[]>()
  const server = createServer((request, response) => {
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('access-control-expose-headers', 'content-range, etag, retry-after')
    const url = new URL(request.url ?? '/', 'http://localhost')
    const [, route, name = ''] = url.pathname.split('/')
    const id = name.replace(/\.\d+$/, '')
    const seen = requests.get(id) ?? []
    requests.set(id, seen)
    if (route === 'seen') return void response.end(JSON.stringify(seen))
    const { method } = request
    if (route !== 'file' || method !== 'GET') return void response.writeHead(405).end()
    void answer(request, response, url, seen)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  project.provide('faults', `http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  seen: Seen[],
): Promise<void> {
  const faults = JSON.parse(url.searchParams.get('faults') ?? '[]') as Fault[]
  const range = request.headers.range ?? null
  const { next, lost } = turnOf(faults, seen, range)
  const fault = faults[next] ?? {}
  const [seed, bytes] = ['seed', 'bytes'].map((name) => Number(url.searchParams.get(name)))
  const file = partOf(url, contentOf(seed ?? 0, bytes ?? 0))
  const [, first = '0', final] = (!fault.ignoreRange && /^bytes=(\d+)-(\d*)$/.exec(range ?? '')) || []
  const start = Number(first)
  const end = final && !fault.ignoreEnd ? Number(final) + 1 : file.length
  const partial = range !== null && !fault.ignoreRange
  const log: Seen = { range, status: 200, sent: 0, fault: next }
  seen.push(log)

  if (fault.status || (partial && start >= file.length)) {
    log.status = fault.status ?? 416
    if (fault.retryAfter) response.setHeader('retry-after', fault.retryAfter)
    response.writeHead(log.status).end('no')
    return
  }
  if (fault.html) {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>App')
    return
  }
  if (fault.corrupt !== undefined) file[fault.corrupt] = (file[fault.corrupt] ?? 0) ^ 0xff
  const body = Buffer.concat([
    file.subarray(start + (fault.shift ?? 0), end),
    Buffer.alloc(fault.extra ?? 0),
  ])
  log.status = partial ? 206 : 200
  response.setHeader('content-type', 'application/octet-stream')
  response.setHeader('etag', fault.etag ?? '"one"')
  const contentRange = fault.contentRange ?? `bytes ${start}-${end - 1}/${file.length}`
  if (partial && contentRange) response.setHeader('content-range', contentRange)
  if (fault.end === undefined && !fault.extra) response.setHeader('content-length', body.length)
  response.writeHead(log.status)
  response.flushHeaders()

  const last = Math.min(body.length, fault.cut ?? fault.end ?? fault.stall ?? body.length)
  for (let at = 0; at < last; at += PIECE) {
    const piece = body.subarray(at, Math.min(at + PIECE, last))
    await new Promise((resolve) => response.write(piece, resolve))
    log.sent += piece.length
    if (fault.slow) await wait(fault.slow)
    if (response.destroyed) return
  }
  if (fault.stall !== undefined) return
  if (fault.cut === undefined) return void response.end()
  // A browser drops what it has not handed out yet when the connection breaks.
  await wait(40 * 2 ** lost)
  response.destroy()
}

/** All of the content, or the part that the path ends with the number of. */
function partOf(url: URL, content: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const index = /\.(\d+)$/.exec(url.pathname)?.[1]
  if (index === undefined) return content
  const partBytes = Number(url.searchParams.get('partBytes'))
  return content.slice(Number(index) * partBytes, (Number(index) + 1) * partBytes)
}

/** Which fault a request meets, and how often that one was in vain before. */
function turnOf(
  faults: readonly Fault[],
  seen: readonly Seen[],
  range: string | null,
): { next: number; lost: number } {
  const last = seen.at(-1)?.fault ?? -1
  const again = range === null && faults[last]?.sure
  const lost = seen.filter(({ fault }) => fault === last).length
  return again ? { next: last, lost } : { next: last + 1, lost: 0 }
}
