/** Starts without a network: the web server fails after the first visit. */
import { describe, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { fetchIn } from '../support/requests.ts'
import { serveIn } from '../support/site.ts'
import type { Tab } from '../support/tabs.ts'
import { ENGINES, GUIDE, useEngine } from './setting.ts'

/** Key of the mark that says that a version is kept as a whole. */
const COMPLETE = '/inorigin/files.json?inorigin=complete'

async function ask(page: Tab): Promise<string> {
  const messages = [{ role: 'user', content: 'What is inorigin?' }]
  const body = { model: GUIDE, messages, max_tokens: 8, temperature: 0 }
  const { status, text } = await fetchIn(page, '/v1/chat/completions', body)
  return status === 200 ? JSON.parse(text).choices[0].message.content : `${status} ${text}`
}

describe.each(ENGINES)('$name', (engine) => {
  const { open, openSite, serve } = useEngine(engine)

  test('a host starts and answers while the server fails', async () => {
    const site = await openSite()
    const first = await serve()
    const second = await open()
    const text = await ask(first)
    expect(text).not.toMatch(/^\d{3} /)
    const isKept = () =>
      first.evaluate(async (key) => (await caches.match(key)) !== undefined, COMPLETE)
    await expect.poll(isKept).toBe(true)
    site.answerAll({ status: 502, html: '<!doctype html>' })
    await first.evaluate(() => (globalThis as unknown as { server: Server }).server.close())
    await first.close()
    await serveIn(second, { device: 'wasm' })
    expect(await ask(second)).toBe(text)
  })
})
