/** A server of model files whose connections break. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Catalog, ModelEntry } from '../../src/index.ts'

export interface DownloadServer {
  /** A catalog with `@soak/guide`: the embedded model in other files, which this server has. */
  catalog: Catalog
  /** Bytes after which the connections of the next requests break, in order. */
  cuts: number[]
  close(): Promise<void>
}

const MODELS = join(import.meta.dirname, '../../demo/models')
/** An empty `doc_string`: one more field of the file, so that its digest is another one. */
const DOC_STRING = Buffer.from([0x32, 0])

export async function openDownloadServer(): Promise<DownloadServer> {
  const files = new Map<string, Buffer>()
  const cuts: number[] = []
  const server = createServer((request, response) => {
    const file = files.get(request.url ?? '')
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('access-control-expose-headers', 'content-range')
    if (!file) return void response.writeHead(404).end()
    const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0)
    const body = file.subarray(start)
    if (start > 0)
      response.setHeader('content-range', `bytes ${start}-${file.length - 1}/${file.length}`)
    response.setHeader('content-length', body.length)
    response.writeHead(start > 0 ? 206 : 200)
    const cut = request.url?.endsWith('.onnx') ? cuts.shift() : undefined
    if (cut === undefined || cut >= body.length) return void response.end(body)
    response.write(body.subarray(0, cut), () => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  return {
    catalog: createCatalog(url, files),
    cuts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Copies the entry of the embedded model, and puts its files into the map by their path. */
function createCatalog(server: string, files: Map<string, Buffer>): Catalog {
  const { entries } = JSON.parse(readFileSync(join(MODELS, 'catalog.json'), 'utf8')) as Catalog
  const guide = entries.find(({ tag }) => tag === '@inorigin/guide') as ModelEntry
  const implementations = guide.implementations.map((implementation) => ({
    ...implementation,
    resources: implementation.resources.map((resource) => {
      const path = `/${resource.url}`
      const content = readFileSync(join(MODELS, resource.url))
      const file = resource.type === 'onnx' ? Buffer.concat([content, DOC_STRING]) : content
      files.set(path, file)
      const sha256 = createHash('sha256').update(file).digest('hex')
      return { ...resource, url: server + path, bytes: file.length, sha256 }
    }),
  }))
  return { version: 1, entries: [{ ...guide, tag: '@soak/guide', implementations }] }
}
