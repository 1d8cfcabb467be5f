/**
 * The life of a service worker in a browser without debugger and driver, since either keeps it alive.
 * The browser gets an address only, and the page reports to the server what it saw.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { checkMessageStream } from './anthropic-grammar.ts'
import { checkChatStream } from './openai-grammar.ts'
import { serveStatic } from './static.ts'

/** Longer than the 30 s after which browsers stop a service worker that hears nothing. */
const LOADING = 45_000

const PAGE = `<!doctype html><meta charset="utf-8"><title>lifetime</title>
<script type="module">
  import { serve } from './inorigin/index.js'
  const report = (what) => fetch('/report', { method: 'POST', body: JSON.stringify(what) })
  const ask = (path, body) =>
    fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: '@inorigin/guide', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8, ...body,
      }),
    })
  const timed = async (work) => {
    const start = performance.now()
    const text = await (await work).text()
    return { text, milliseconds: performance.now() - start }
  }
  try {
    await serve()
    const [chat, message, plain] = await Promise.all([
      timed(ask('/v1/chat/completions', { stream: true })),
      timed(ask('/v1/messages', { stream: true })),
      timed(ask('/v1/chat/completions', {})),
    ])
    await new Promise((resolve) => setTimeout(resolve, 35_000))
    const idle = await timed(ask('/v1/messages', {}))
    await report({ chat, message, plain, idle })
  } catch (error) {
    await report({ error: String(error) })
  }
</script>`

interface Seen {
  error?: string
  chat: { text: string; milliseconds: number }
  message: { text: string; milliseconds: number }
  plain: { text: string; milliseconds: number }
  idle: { text: string; milliseconds: number }
}

/** Command-line arguments of a browser for a profile folder and the address of the first page. */
export type BrowserArgs = (profile: string, url: string) => string[]

/**
 * Checks that streams of more than 40 s arrive whole, and that an idle service worker answers again.
 * `command` is the path of a browser. Takes about 85 s, most of it the 30 s for which browsers wait.
 */
export async function checkLifetime(command: string, argsFor: BrowserArgs): Promise<void> {
  checkReport(await watch(command, argsFor))
}

/** Opens the page in a browser of its own and returns its report. */
async function watch(command: string, argsFor: BrowserArgs): Promise<Seen> {
  const server = await serveStatic({
    folders: { '/': 'dist-demo' },
    pages: { '/lifetime.html': PAGE },
    slow: { '/inorigin/models/guide/onnx/model.onnx': LOADING },
  })
  const closeBrowser = launch(command, argsFor, `${server.url}/lifetime.html`)
  try {
    await expect.poll(() => server.reports.length, { timeout: 200_000, interval: 500 }).toBe(1)
    return JSON.parse(server.reports[0] ?? '') as Seen
  } finally {
    await closeBrowser()
    await server.close()
  }
}

/** Starts a browser with a new profile. Returns a function that ends it. */
export function launch(command: string, argsFor: BrowserArgs, url: string): () => Promise<void> {
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
  const browser = spawn(command, argsFor(profile, url), { stdio: 'ignore' })
  const ended = new Promise((resolve) => browser.once('exit', resolve))
  return async () => {
    browser.kill('SIGKILL')
    await ended
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

function checkReport(seen: Seen): void {
  expect(seen.error).toBeUndefined()
  for (const { milliseconds } of [seen.chat, seen.message, seen.plain]) {
    expect(milliseconds).toBeGreaterThan(LOADING - 5_000)
  }
  const { content } = checkChatStream(seen.chat.text)
  expect(content).not.toBe('')
  expect(seen.chat.text).toContain(': ')
  expect(checkMessageStream(seen.message.text).text).toBe(content)
  expect(seen.message.text).toContain('event: ping')
  expect(JSON.parse(seen.plain.text).choices[0].message.content).toBe(content)
  expect(JSON.parse(seen.idle.text).content[0].text).toBe(content)
}
