/** Vite plugins for the two servers of the playground. */
import { existsSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { build, type Plugin } from 'vite'
import { listRuntimeFiles } from '../../src/cli/library-files.ts'
import { readContent } from '../../src/cli/write-file.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
}

/** The policy that an app needs, at its strictest. Catalogs and the bridge may be elsewhere. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "connect-src 'self' https: http://localhost:* http://127.0.0.1:* ws://localhost:* ws://127.0.0.1:*",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "manifest-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The document in which the playground runs code has a policy of its own, and is framed. */
const FRAMED = { path: '/sandbox.html', policy: "frame-ancestors 'self'" }

/** Firefox frames it in an isolated page only with both of these headers. */
function sendFramed(response: ServerResponse): void {
  response.setHeader('content-security-policy', FRAMED.policy)
  response.setHeader('cross-origin-embedder-policy', 'require-corp')
  response.setHeader('cross-origin-resource-policy', 'cross-origin')
}

/** Every answer of the preview server but the documentation carries the policy: workers obey that of their own script. */
export function strictPolicy(): Plugin {
  return {
    name: 'inorigin:policy',
    configurePreviewServer(server) {
      server.middlewares.use((request, response, next) => {
        // The documentation has inline styles and scripts of its generator, and no models.
        if (request.url?.startsWith('/site/')) return next()
        const isFramed = request.url?.split('?', 1)[0] === FRAMED.path
        if (isFramed) sendFramed(response)
        else response.setHeader('content-security-policy', POLICY)
        response.setHeader('x-content-type-options', 'nosniff')
        next()
      })
    },
  }
}

export interface DevPaths {
  /** Sources of the scripts in `inorigin/`, by file name. */
  scripts: Readonly<Record<string, string>>
  /** Source of the service worker script, which keeps no page here, so that none is stale. */
  sw: string
  /** Folders in `inorigin/` whose files are served as they are, by name. */
  folders: Readonly<Record<string, string>>
  /** Files in `inorigin/` that are served as they are, by name. */
  files: Readonly<Record<string, string>>
  /** Folder of onnxruntime-web's builds, which are `inorigin/ort/`. */
  runtime: string
}

/**
 * While developing: what `inorigin init` would have put beside the page, made from the sources at each
 * request, so that a reload shows a change.
 */
export function devFolder({ scripts, sw, folders, files, runtime }: DevPaths): Plugin {
  async function answer(path: string, response: ServerResponse): Promise<boolean> {
    if (path === '/playground-sw.js') return send(response, await bundle(sw))
    const [top, name = '', ...rest] = path.replace(/^\/inorigin\//, './').split('/')
    if (top !== '.') return false
    const script = scripts[name]
    if (script) return send(response, `export * from '/@fs/${script}'\n`)
    const file = files[name] ?? join(folders[name] ?? '', ...rest)
    const isThere = (name in files || name in folders) && existsSync(file)
    const content = name === 'ort' ? listRuntimeFiles(runtime, true).get(rest.join('/')) : undefined
    if (!content && !isThere) return false
    response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream')
    response.end(readContent(content ?? { from: file }))
    return true
  }
  return {
    name: 'inorigin:dev-folder',
    apply: 'serve',
    configureServer(server) {
      server.middlewares.use((request, response, next) => {
        const { pathname } = new URL(request.url ?? '/', 'http://localhost')
        answer(decodeURIComponent(pathname), response).then((done) => done || next(), next)
      })
    },
  }
}

function send(response: ServerResponse, script: string): true {
  response.setHeader('content-type', 'text/javascript')
  response.end(script)
  return true
}

/** One classic script: service workers import nothing later. */
async function bundle(entry: string): Promise<string> {
  const results = await build({
    configFile: false,
    logLevel: 'warn',
    build: { write: false, minify: false, lib: { entry, formats: ['iife'], name: 'inorigin' } },
  })
  const [result] = Array.isArray(results) ? results : [results]
  if (!result || !('output' in result)) throw new Error(`${entry} was not bundled.`)
  return result.output[0].code
}
