/** `node .ci/build/run.mjs script.ts [arguments]` runs TypeScript, as `node script.js [arguments]` would. */
import { resolve } from 'node:path'
import { runnerImport } from 'vite'

// The script finds its arguments where scripts look for them.
process.argv.splice(1, 1)
await runnerImport(resolve(process.argv[1] ?? ''), { root: process.cwd() })
