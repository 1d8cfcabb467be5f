/** A file server that fails as it is told to, one fault for each request. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
// oxlint-disable-next-line no-restricted-imports -- These are the delays of a slow server.
import { setTimeout as wait } from 'node:timers/promises'
import { contentOf, type Fault, type Seen } from './content.ts'

export interface FaultServer {
  /** With a trailing slash. */
  url: string
  close(): Promise<void>
}

/** Bytes that are written at once, unless the file's address says otherwise. */
const PIECE = 4096

/** Files that were asked for lately: long ones take a while to be made up. */
const contents = new Map<string, Uint8Array<ArrayBuffer>>()

export async function openFaults(): Promise<FaultServer> {
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
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function fileOf(seed: number, bytes: number): Uint8Array<ArrayBuffer> {
  const key = `${seed} ${bytes}`
  const content = contents.get(key) ?? contentOf(seed, bytes)
  contents.delete(key)
  contents.set(key, content)
  if (contents.size > 4) contents.delete([...contents.keys()][0] ?? '')
  return content
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
  const number = (name: string) => Number(url.searchParams.get(name) ?? 0)
  const pieceBytes = number('piece') || PIECE
  const file = partOf(url, fileOf(number('seed'), number('bytes')))
  const [, first = '0', final] =
    (!fault.ignoreRange && /^bytes=(\d+)-(\d*)$/.exec(range ?? '')) || []
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
  if (fault.redirect) {
    response.writeHead(302, { location: request.url ?? '/' }).end()
    return
  }
  if (fault.html) {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>App')
    return
  }
  const from = Math.max(0, start + (fault.shift ?? 0))
  const body = Buffer.concat([file.subarray(from, end), Buffer.alloc(fault.extra ?? 0)])
  const { corrupt = -1 } = fault
  if (corrupt >= from && corrupt < end) body[corrupt - from] = (body[corrupt - from] ?? 0) ^ 0xff
  log.status = partial ? 206 : 200
  response.setHeader('content-type', 'application/octet-stream')
  response.setHeader('etag', fault.etag ?? '"one"')
  const contentRange = fault.contentRange ?? `bytes ${start}-${end - 1}/${file.length}`
  if (partial && contentRange) response.setHeader('content-range', contentRange)
  if (fault.end === undefined && !fault.extra) response.setHeader('content-length', body.length)
  response.writeHead(log.status)
  response.flushHeaders()

  const last = Math.min(body.length, fault.cut ?? fault.end ?? fault.stall ?? body.length)
  for (let at = 0; at < last; at += pieceBytes) {
    const piece = body.subarray(at, Math.min(at + pieceBytes, last))
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
