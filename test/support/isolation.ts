/** An app that asks for isolation, on a web server that sends no headers for it. */
import { readFileSync } from 'node:fs'

/** Path of a page that calls `serve()` at once and leaves the server as `server`. */
export const APP = '/app.html'

/** The page, with these options of `serve()`. */
export function appPage(options: object): string {
  const given = JSON.stringify({ device: 'wasm', ...options })
  return `<!doctype html><meta charset="utf-8"><title>app</title>
<script type="module">
  import { serve } from '/inorigin/index.js'
  globalThis.server = await serve(${given})
</script>`
}

/** Path of the script of the model workers, and the script: it reports the threads that it starts. */
export function reportingWorker(): Record<string, string> {
  const path = '/inorigin/model-worker.js'
  const script = readFileSync(`dist-demo${path}`, 'utf8')
  const report = `
globalThis.Worker = class extends Worker {
  constructor(...given) {
    super(...given)
    void fetch('/report', { method: 'POST', body: 'thread' })
  }
}
`
  return { [path]: script + report }
}
