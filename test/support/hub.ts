/**
 * A hub on this machine: folders as repositories, answered in the form that the public one answers in.
 * Written from the hub's public API description.
 */
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { AnyPage } from './any-page.ts'
import { CHAT, fetchIn } from './requests.ts'

export interface Repository {
  /** Path within the repository by the file it is. */
  files: Readonly<Record<string, string>>
  /** The commit that `main` is at. */
  commit: string
}

export interface Hub {
  /** With a trailing slash. */
  url: string
  /** Paths that were asked for. */
  asked: string[]
  repositories: Record<string, Repository>
  /** Answers everything with this status from now on; 0: as usual. */
  refuseWith: number
  /** Says this of a repository besides, or instead. */
  lie: object
  /** Sends other bytes for this path. */
  damaged: string | null
  close(): Promise<void>
}

/** Metadata of a card in the form of the hub's API; the license is one that the hub does not list. */
const CARD = {
  license: 'other',
  license_name: 'tiny-1.0',
  license_link: 'LICENSE',
  language: ['en', 'pt-BR', 'multilingual', 'code', 'en'],
  base_model: ['me/base'],
}

/** Files above this are kept apart, with their SHA-256 known. */
const LARGE = 10_000

export async function openHub(repositories: Record<string, Repository>): Promise<Hub> {
  const server = createServer((request, response) => answer(hub, request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const hub: Hub = {
    url: `http://127.0.0.1:${port}/`,
    asked: [],
    repositories,
    refuseWith: 0,
    lie: {},
    damaged: null,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
  return hub
}

/** All files below a folder, as a repository. */
export function repositoryOf(
  folder: string,
  commit: string,
  rename = (path: string) => path,
): Repository {
  const files: Record<string, string> = {}
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (statSync(join(folder, path)).isFile()) files[rename(path)] = join(folder, path)
  }
  return { files, commit }
}

/** Asks a model in four tokens. Resolves with the status, and the text or the error of the response. */
export async function askModel(
  page: AnyPage,
  model: string,
): Promise<[status: number, text: string]> {
  const messages = [{ role: 'user', content: 'Hello' }]
  const body = { model, temperature: 0, max_tokens: 4, messages }
  const { status, text } = await fetchIn(page, CHAT, body)
  const { error, choices } = JSON.parse(text)
  return [status, error ? `${error.code}: ${error.message}` : choices[0].message.content]
}

function answer(hub: Hub, request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', hub.url)
  if (request.method === 'GET') hub.asked.push(pathname)
  response.setHeader('access-control-allow-origin', '*')
  response.setHeader('access-control-allow-headers', '*')
  response.setHeader('access-control-expose-headers', '*')
  if (request.method === 'OPTIONS') return void response.writeHead(204).end()
  if (hub.refuseWith > 0) return void response.writeHead(hub.refuseWith).end('no')
  const listed = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/([^/]+)$/.exec(pathname)
  const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(pathname)
  const [, name = '', revision = '', path] = listed ?? file ?? []
  const repository = hub.repositories[name]
  const known = repository && ['main', repository.commit].includes(revision)
  if (!known) return void response.writeHead(404).end('{"error":"Repository not found"}')
  if (path === undefined) {
    response.setHeader('content-type', 'application/json')
    return void response.end(JSON.stringify({ ...listing(name, repository), ...hub.lie }))
  }
  const source = repository.files[path]
  if (source === undefined) return void response.writeHead(404).end('Entry not found')
  send(readFileSync(source), path === hub.damaged, request, response)
}

function listing(id: string, { files, commit }: Repository): object {
  const siblings = Object.entries(files).map(([rfilename, source]) => {
    const bytes = readFileSync(source)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const blobId = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
    const lfs =
      bytes.length > LARGE ? { lfs: { sha256, size: bytes.length, pointerSize: 130 } } : {}
    return { rfilename, size: bytes.length, blobId, ...lfs }
  })
  const createdAt = '2025-04-29T10:00:00.000Z'
  return { id, sha: commit, createdAt, private: false, gated: false, cardData: CARD, siblings }
}

function send(
  bytes: Buffer,
  damaged: boolean,
  { headers }: IncomingMessage,
  response: ServerResponse,
): void {
  const body = damaged ? Buffer.from(bytes.map((byte) => byte ^ 1)) : bytes
  const [, from] = /^bytes=(\d+)-/.exec(headers.range ?? '') ?? []
  const start = Number(from ?? 0)
  response.setHeader('accept-ranges', 'bytes')
  response.setHeader('etag', `"${createHash('sha256').update(bytes).digest('hex')}"`)
  if (from !== undefined) {
    response.setHeader('content-range', `bytes ${start}-${body.length - 1}/${body.length}`)
  }
  response.writeHead(from === undefined ? 200 : 206, { 'content-length': body.length - start })
  response.end(body.subarray(start))
}
