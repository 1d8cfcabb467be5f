/** Bundles modules of the documentation as an app's own tool does, with the package left outside. */
import { join } from 'node:path'
import { build, type Plugin } from 'vite'
import { ROOT } from './blocks.ts'

/** Entry points that `dist-demo` has at these paths. */
const SERVED: Readonly<Record<string, string>> = { inorigin: '/inorigin/index.js' }

/** Folder of the modules that fragments import. */
const CONTEXT = join(import.meta.dirname, 'context')

const leavePackage: Plugin = {
  name: 'docs-code:package',
  enforce: 'pre',
  resolveId(id) {
    if (id in SERVED) return { id: SERVED[id] as string, external: 'absolute' }
    // The list of files with side effects in package.json does not name these.
    if (id.startsWith(CONTEXT)) return { id, moduleSideEffects: true }
    const file = /^inorigin\/(\w+)$/.exec(id)?.[1]
    return file === undefined ? null : `${ROOT}/dist/${file}.js`
  },
}

/** Resolves with the scripts by the path they are served under: `/docs-code/<name>.js`, and chunks. */
export async function bundleModules(
  entries: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const result = await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [leavePackage],
    build: {
      write: false,
      minify: false,
      target: 'esnext',
      rolldownOptions: {
        input: { ...entries },
        preserveEntrySignatures: 'strict',
        output: {
          entryFileNames: 'docs-code/[name].js',
          chunkFileNames: 'docs-code/[name]-[hash].js',
        },
      },
    },
  })
  const [first] = Array.isArray(result) ? result : [result]
  if (!first || !('output' in first)) throw new Error('Vite gave no bundle of the documentation.')
  return Object.fromEntries(
    first.output.flatMap((part) =>
      part.type === 'chunk' ? [[`/${part.fileName}`, part.code]] : [],
    ),
  )
}
