/** A plain static file server, as a user's own would be, with a few pages of the test's own. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { extname, join, normalize } from 'node:path'
import type { AddressInfo } from 'node:net'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

type Headers = Readonly<Record<string, string>>

export interface StaticOptions {
  /** Folders by the path they are served under, such as `{ '/': 'dist-demo' }`; the first match wins. */
  folders: Readonly<Record<string, string>>
  /** Bodies by path; `.html` and `.js` names give their type. */
  pages?: Readonly<Record<string, string>>
  /** Paths that are redirected, and where to. */
  redirects?: Readonly<Record<string, string>>
  /** Headers of all responses, or of those to a path. */
  headers?: Headers | ((pathname: string) => Headers)
  /** `true` to let browsers ask whether what they have is still current. Default: `false`. */
  hasEtags?: boolean
  /**
   * Milliseconds that a file takes, by path: it is sent in even pieces over that time. Or what its last
   * piece waits for.
   */
  slow?: Readonly<Record<string, number | (() => boolean)>>
}

/** Status and page of a proxy whose server is down, or of a captive portal; or a wait for the answer. */
export type Outage = { status: number; html: string } | Promise<unknown>

export interface StaticServer {
  /** Without a trailing slash. */
  url: string
  /** Requests in order: method and path. */
  requests: string[]
  /** Bodies posted to `/report`. */
  reports: string[]
  /** The test's own pages; what is changed here is served from then on. */
  pages: Record<string, string>
  /** Answers all requests but reports like this from now on, or when the promise resolves; `null`: as before. */
  answerAll(how: Outage | null): void
  close(): Promise<void>
}

/** Serves on a free port of this machine. `POST /report` keeps its body for the test. */
export async function serveStatic(options: StaticOptions): Promise<StaticServer> {
  const requests: string[] = []
  const reports: string[] = []
  const pages = { ...options.pages }
  let outage: Outage | null = null
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    requests.push(`${request.method} ${pathname}`)
    const { headers = {} } = options
    const own = typeof headers === 'function' ? headers(pathname) : headers
    for (const [name, value] of Object.entries(own)) response.setHeader(name, value)
    if (request.method === 'POST' && pathname === '/report') {
      let body = ''
      request.on('data', (piece: Buffer) => (body += piece.toString()))
      request.on('end', () => {
        reports.push(body)
        response.end('ok')
      })
      return
    }
    if (outage instanceof Promise) await outage
    else if (outage) {
      response.writeHead(outage.status, { 'content-type': 'text/html' }).end(outage.html)
      return
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') return end(response, 405)
    const target = options.redirects?.[pathname]
    if (target !== undefined) return response.writeHead(302, { location: target }).end()
    const page = pages[pathname]
    const slow = options.slow?.[pathname]
    if (slow !== undefined) return void trickle(response, fileOf(pathname, options.folders), slow)
    const path = page === undefined ? fileOf(pathname, options.folders) : undefined
    if (options.hasEtags && isCurrent(request, response, page ?? stampOf(path))) return
    if (page === undefined) return sendFile(response, path)
    response.setHeader('content-type', typeOf(pathname))
    response.end(page)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://localhost:${port}`,
    requests,
    reports,
    pages,
    answerAll(how) {
      outage = how
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function fileOf(pathname: string, folders: StaticOptions['folders']): string | undefined {
  for (const [prefix, folder] of Object.entries(folders)) {
    if (!pathname.startsWith(prefix)) continue
    const path = decodeURIComponent(pathname.slice(prefix.length)) || 'index.html'
    return join(folder, normalize(`/${path}`))
  }
  return undefined
}

/** Returns a text that changes whenever the file does. */
function stampOf(path: string | undefined): string {
  const stat = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })
  return `${path} ${stat?.size} ${stat?.mtimeMs}`
}

/** Adds an ETag for the content. Answers with 304 and returns `true` if the browser has it. */
function isCurrent(request: IncomingMessage, response: ServerResponse, content: string): boolean {
  const etag = `"${createHash('sha256').update(content).digest('hex')}"`
  response.setHeader('etag', etag)
  if (request.headers['if-none-match'] !== etag) return false
  response.writeHead(304).end()
  return true
}

function sendFile(response: ServerResponse, path: string | undefined): void {
  const stat = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })
  if (path === undefined || !stat?.isFile()) return end(response, 404)
  // A test may send a wrong type.
  if (!response.hasHeader('content-type')) response.setHeader('content-type', typeOf(path))
  response.setHeader('content-length', stat.size)
  createReadStream(path).pipe(response)
}

async function trickle(
  response: ServerResponse,
  path: string | undefined,
  slow: number | (() => boolean),
): Promise<void> {
  if (path === undefined) return end(response, 404)
  const bytes = readFileSync(path)
  response.setHeader('content-type', typeOf(path))
  response.setHeader('content-length', bytes.length)
  const pieces = typeof slow === 'number' ? Math.ceil(slow / PAUSE) : 4
  const size = Math.ceil(bytes.length / pieces)
  for (let start = 0; start < bytes.length; start += size) {
    const isLast = start + size >= bytes.length
    const waits = isLast && typeof slow === 'function' ? slow : () => true
    while (!waits() && !response.destroyed) await pause()
    response.write(bytes.subarray(start, start + size))
    await pause()
  }
  response.end()
}

/** Milliseconds between two pieces. */
const PAUSE = 250

// oxlint-disable-next-line tests/no-fixed-wait -- This is the pace of a slow server.
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE))

function typeOf(path: string): string {
  return TYPES[extname(path)] ?? 'application/octet-stream'
}

function end(response: ServerResponse, status: number): void {
  response.statusCode = status
  response.end(`${status}`)
}
