/** The bench's own scripts for pages and workers, from the sources. */
import { join } from 'node:path'
import { build, type LogLevel } from 'vite'

/**
 * Builds these scripts of this folder into a folder that has nothing else: `{ page: 'page.ts' }` becomes
 * `page.js`. What `logLevel` says is shown; default: `warn`.
 */
export async function buildScripts(
  outDir: string,
  scripts: Readonly<Record<string, string>>,
  logLevel: LogLevel = 'warn',
): Promise<void> {
  const entry = Object.fromEntries(
    Object.entries(scripts).map(([name, file]) => [name, join(import.meta.dirname, file)]),
  )
  await build({
    configFile: false,
    logLevel,
    resolve: {
      conditions: ['onnxruntime-web-use-extern-wasm', 'browser', 'module', 'import', 'default'],
    },
    build: { outDir, emptyOutDir: true, lib: { entry, formats: ['es'] } },
  })
}
