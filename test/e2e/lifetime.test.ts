/**
 * The life of the service worker where it can fail: no debugger and no driver attached, since either
 * keeps it alive. The browser is only given an address; the page tells the server what it saw.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chromiumArgs, ensureChromium } from '../setup/chromium.ts'
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { serveStatic } from '../support/static.ts'

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

/** Opens the page in a browser of its own and waits for its report. */
async function watch(command: string, argsFor: (profile: string, url: string) => string[]): Promise<Seen> {
  const server = await serveStatic({
    folders: { '/': 'dist-demo' },
    pages: { '/lifetime.html': PAGE },
    slow: { '/inorigin/models/guide/onnx/model.onnx': LOADING },
  })
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
  const browser = spawn(command, argsFor(profile, `${server.url}/lifetime.html`), { stdio: 'ignore' })
  try {
    await expect.poll(() => server.reports.length, { timeout: 200_000, interval: 500 }).toBe(1)
    return JSON.parse(server.reports[0] ?? '') as Seen
  } finally {
    const ended = new Promise((resolve) => browser.once('exit', resolve))
    browser.kill('SIGKILL')
    await ended
    await server.close()
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

function check(seen: Seen): void {
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
  expect(seen.idle.milliseconds).toBeLessThan(10_000)
}

function firefox(): string | undefined {
  const names = [process.env['FIREFOX_PATH'], 'firefox-esr', 'firefox']
  return names.find((name) => name && spawnSync(name, ['--version']).status === 0)
}

test.concurrent('Chromium: streams longer than 40 s, then an idle worker', { timeout: 240_000 }, async () => {
  const args = [...chromiumArgs(), '--headless', '--no-first-run']
  check(await watch(ensureChromium(), (profile, url) => [...args, `--user-data-dir=${profile}`, url]))
})

test.concurrent('Firefox: streams longer than 40 s, then an idle worker', { timeout: 240_000 }, async ({ skip }) => {
  const command = firefox()
  if (!command) return skip('Firefox is not installed; FIREFOX_PATH or firefox-esr on the path would do.')
  check(
    await watch(command, (profile, url) => {
      const quiet = 'user_pref("browser.shell.checkDefaultBrowser", false);\n'
      writeFileSync(join(profile, 'user.js'), quiet)
      return ['--headless', '--no-remote', '--profile', profile, url]
    }),
  )
})
