import { build } from 'vite'

/** A classic script that sets `sdks` to the official SDKs, as somebody else's bundler would make it. */
export async function bundleSdks(): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      minify: false,
      lib: {
        entry: new URL('./sdks-entry.ts', import.meta.url).pathname,
        formats: ['iife'],
        name: 'sdks',
        fileName: 'sdks',
      },
    },
  })
  const [first] = Array.isArray(result) ? result : [result]
  if (!first || !('output' in first)) throw new Error('Vite gave no bundle of the SDKs.')
  return first.output[0].code
}
