/** Bundles the service worker of an app: the library's part and the app's own. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { ResolvedConfig, Rollup } from 'vite'
import type { AppFiles } from '../../sw/keep-app.ts'

export interface ServiceWorkerParts {
  /** Path of the app's own script; `null` if there is none. */
  own: string | null
  /** Files of the build to keep; `null` to keep none. */
  keep: AppFiles | null
  /** Folder `dist` of the built package. */
  dist: string
}

export interface BundledScript {
  code: string
  /** Source map as JSON; `null` unless the build has source maps in files. */
  map: string | null
}

/** Prefix of the names of the modules that are written here. */
const VIRTUAL = 'inorigin-service-worker-'

/** Returns one classic script, because service workers of all browsers can run that. */
export async function bundleServiceWorker(
  parts: ServiceWorkerParts,
  { root, mode, logLevel, resolve, build: { sourcemap, minify } }: ResolvedConfig,
): Promise<BundledScript> {
  const { build } = await import('vite')
  const library = join(parts.dist, 'sw/index.js')
  const modules = writeModules(parts)
  const entry = `${VIRTUAL}entry`
  const result = await build({
    configFile: false,
    root,
    mode,
    logLevel: logLevel ?? 'warn',
    publicDir: false,
    define: { 'process.env.NODE_ENV': JSON.stringify(mode) },
    resolve: { alias: [...resolve.alias, { find: 'inorigin/sw', replacement: library }] },
    plugins: [
      {
        name: 'inorigin:service-worker',
        // Vite makes a path of the name of an entry.
        resolveId: (id) => (modules.has(basename(id)) ? `\0${basename(id)}` : undefined),
        load: (id) => modules.get(id.replace(/^\0/, '')),
      },
    ],
    build: {
      write: false,
      copyPublicDir: false,
      reportCompressedSize: false,
      sourcemap,
      minify,
      lib: { entry, formats: ['iife'], name: 'serviceWorker', fileName: () => 'sw.js' },
    },
  })
  return toScript(result)
}

/**
 * Returns the modules of the script by name. Their order is that of their listeners: `attach()` adds
 * headers to pages, so it must come first, and the app's own listeners come before `keepApp()`.
 */
function writeModules({ own, keep }: ServiceWorkerParts): Map<string, string> {
  const isAttached = own !== null && /['"]inorigin\/sw['"]/.test(readFileSync(own, 'utf8'))
  const calls = new Map<string, string>([
    ...(isAttached ? [] : [[`${VIRTUAL}attach`, `attach()`] as const]),
    ...(keep ? [[`${VIRTUAL}keep`, `keepApp(${JSON.stringify(keep)})`] as const] : []),
  ])
  const order = [`${VIRTUAL}attach`, own, `${VIRTUAL}keep`]
  const imports = order.filter((name) => name === own || calls.has(name ?? ''))
  const entry = imports.map((name) => name && `import ${JSON.stringify(name)}`).join('\n')
  const modules = Array.from(calls, ([name, call]): [string, string] => [
    name,
    `import { ${call.split('(', 1)[0]} } from 'inorigin/sw'\n${call}`,
  ])
  return new Map([[`${VIRTUAL}entry`, entry], ...modules])
}

function toScript(result: Awaited<ReturnType<typeof import('vite').build>>): BundledScript {
  const outputs = (Array.isArray(result) ? result : [result]).flatMap((one) =>
    'output' in one ? one.output : [],
  ) as (Rollup.OutputAsset | Rollup.OutputChunk)[]
  const chunk = outputs.find((one) => one.type === 'chunk')
  const map = outputs.find((one) => one.type === 'asset' && one.fileName.endsWith('.map'))
  if (!chunk) throw new Error('The service worker was not bundled.')
  return { code: chunk.code, map: map?.type === 'asset' ? String(map.source) : null }
}
