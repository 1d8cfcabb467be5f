/** The small page that lends itself, with the library's files, as the command serves them. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { InoriginError } from '../../error.ts'
import { collectLibraryFiles, INORIGIN_FOLDER } from '../library-files.ts'
import { type Content, readContent } from '../write-file.ts'

const TYPES: Readonly<Record<string, string>> = {
  '': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
}

/** The page uses its own origin, its WebSocket, and the hub that models come from. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "frame-src 'self'",
  "connect-src 'self' https: ws://127.0.0.1:* ws://localhost:*",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Isolation gives WASM its threads. No page of another origin may embed or read the files. */
const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-cache',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const HTML = `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>inorigin bridge</title>
  <h1>inorigin bridge</h1>
  <p id="state" role="status">Starting.</p>
  <button id="stop" disabled>Stop lending this tab</button>
  <script type="module" src="/bridge-page.js"></script>
</html>
`

/** Finds the files of the package at `dist`. Throws `unavailable` if it is incomplete. */
export function openPageFiles(dist: string, runtime: string) {
  const library = collectLibraryFiles({ guide: true, mlc: true, webgpu: true, dist, runtime })
  const files = new Map<string, Content>([
    ['/', { text: HTML }],
    ['/sw.js', { from: join(dist, 'sw.js') }],
    ['/bridge-page.js', { from: join(dist, 'bridge-page.js') }],
  ])
  for (const [name, content] of library) files.set(`/${INORIGIN_FOLDER}/${name}`, content)
  return {
    /** Answers a request for a file. Throws `not_found` or `method_not_allowed`. */
    send({ method }: IncomingMessage, response: ServerResponse, path: string) {
      const content = files.get(decodePath(path))
      if (!content) throw new InoriginError('not_found', 'The bridge has no such file. Use /v1.')
      if (method !== 'GET' && method !== 'HEAD')
        throw new InoriginError('method_not_allowed', 'Files are only read. Use GET.')
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
      response.writeHead(200, HEADERS).end(method === 'HEAD' ? null : readContent(content))
    },
  }
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
