import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { parseSync } from 'vite'

/** What must stay small: kilobytes (1,000 bytes) after gzip, of a script and all that it imports at once. */
export const BUDGETS = [
  { name: 'service worker', file: 'sw.js', limit: 40 },
  { name: 'page client', file: 'index.js', limit: 18 },
  { name: 'model store', file: 'store.js', limit: 3 },
  { name: 'React hooks', file: 'react.js', limit: 4 },
  { name: 'test server', file: 'testing.js', limit: 65 },
  { name: 'Prompt API', file: 'language-model.js', limit: 18 },
  { name: 'own service worker', file: 'sw/index.js', limit: 55 },
  { name: 'host worker', file: 'worker.js', limit: 127 },
  { name: 'Vite plugin', file: 'vite.js', limit: 15 },
  { name: 'list of MLC models', file: 'catalogs/mlc.js', limit: 8 },
] as const

export interface Size {
  name: string
  file: string
  /** Kilobytes after gzip. */
  size: number
  limit: number
}

/** The sizes of what `BUDGETS` lists, in the built package at `dist`. */
export function sizes(dist: string): Size[] {
  return BUDGETS.map(({ name, file, limit }) => {
    const bytes = withStaticImports(join(dist, file)).map(
      (path) => gzipSync(readFileSync(path)).length,
    )
    return { name, file, limit, size: bytes.reduce((sum, length) => sum + length, 0) / 1000 }
  })
}

export function sizeReport(dist: string): string {
  return sizes(dist)
    .map(({ name, file, size, limit }) => {
      const verdict = size > limit ? 'TOO LARGE' : 'ok'
      return `${name} (${file}): ${size.toFixed(1)} kB gzip of ${limit} kB allowed, ${verdict}`
    })
    .join('\n')
}

/** The script and what a browser loads before it runs. */
function withStaticImports(entry: string): string[] {
  const found = new Set([entry])
  for (const path of found) {
    const { module } = parseSync(basename(path), readFileSync(path, 'utf8'))
    const requests = [
      ...module.staticImports.map((item) => item.moduleRequest.value),
      ...module.staticExports.flatMap((item) =>
        item.entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []),
      ),
    ]
    for (const request of requests) {
      if (request.startsWith('.')) found.add(join(dirname(path), request))
    }
  }
  return [...found]
}
