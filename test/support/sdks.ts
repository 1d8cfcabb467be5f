import { build } from 'vite'

/** A classic script that sets `sdks` to the official SDKs, as somebody else's bundler would make it. */
export const bundleSdks = (): Promise<string> => bundleScript('./sdks-entry.ts', 'sdks')

/** A classic script that sets `name` to the exports of the entry, a path relative to this folder. */
export async function bundleScript(entry: string, name: string): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
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
