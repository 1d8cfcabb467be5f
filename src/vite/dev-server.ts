/** Serves the library's files while developing, from where they are installed. */
import { existsSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Connect } from 'vite'
import { FILE_LIST, INORIGIN_FOLDER } from '../cli/library-files.ts'
import { type Content, readContent } from '../cli/write-file.ts'

export interface DevFiles {
  /** Path that the app is served at, with slashes at both ends. */
  base: string
  /** Files of `inorigin/` by name. */
  library: ReadonlyMap<string, Content>
  /** Path of the folder with the app's own models; `null` if Vite serves it anyway. */
  models: string | null
  /** Resolves with the service worker script, or with `undefined` if something else serves it. */
  serviceWorker: () => Promise<Content | undefined>
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.wasm': 'application/wasm',
}

/** Answers requests for the library's files; others go on to Vite. */
export function serveLibrary(files: DevFiles): Connect.NextHandleFunction {
  return (request, response, next) => {
    const [path = ''] = (request.originalUrl ?? request.url ?? '').split('?', 1)
    findContent(files, path).then((content) => {
      if (content === undefined) return next()
      // The list makes service workers keep files, which would be stale after an update.
      if (content === null) return response.writeHead(404).end()
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
      response.setHeader('cache-control', 'no-cache')
      response.end(readContent(content))
    }, next)
  }
}

/** Resolves with `undefined` for a file of the app, and with `null` for one that must be missing. */
async function findContent(files: DevFiles, path: string): Promise<Content | null | undefined> {
  const { base, library, models, serviceWorker } = files
  if (path === `${base}sw.js`) return serviceWorker()
  const folder = `${base}${INORIGIN_FOLDER}/`
  if (!path.startsWith(folder)) return undefined
  const name = decodeURIComponent(path.slice(folder.length))
  if (name === FILE_LIST) return null
  const own = models && !name.split('/').includes('..') && join(models, INORIGIN_FOLDER, name)
  const isOwn = own && existsSync(own) && statSync(own).isFile()
  return library.get(name) ?? (isOwn ? { from: own } : undefined)
}
