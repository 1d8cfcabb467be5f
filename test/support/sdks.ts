import { join } from 'node:path'
import { build, type Plugin } from 'vite'

/** A classic script that sets `sdks` to the official SDKs, as somebody else's bundler would make it. */
export const bundleSdks = (): Promise<string> => bundleScript('./sdks-entry.ts', 'sdks')

/** Resolves packages as a file in the folder would, which has a `node_modules` of its own. */
const packagesOf = (folder: string): Plugin => ({
  name: 'packages-of-folder',
  enforce: 'pre',
  async resolveId(source, importer, options) {
    if (!importer || importer.startsWith(folder) || /^[./\0]/.test(source)) return null
    return this.resolve(source, join(folder, 'package.json'), { ...options, skipSelf: true })
  },
})

/**
 * A classic script that sets `name` to the exports of the entry, a path relative to this folder.
 * `packages` is a folder whose packages it has in place of those of the repository.
 */
export async function bundleScript(
  entry: string,
  name: string,
  packages?: string,
): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    plugins: packages === undefined ? [] : [packagesOf(packages)],
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      write: false,
      minify: false,
      lib: {
        entry: new URL(entry, import.meta.url).pathname,
        formats: ['iife'],
        name,
        fileName: name,
      },
    },
  })
  const [first] = Array.isArray(result) ? result : [result]
  if (!first || !('output' in first)) throw new Error(`Vite gave no bundle of ${entry}.`)
  return first.output[0].code
}
