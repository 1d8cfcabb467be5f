/** Several tabs of an origin: which one hosts, and what happens when it goes. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { askGuide, beginStream, streamEnd, streamHas } from '../support/requests.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { serveIn } from '../support/site.ts'
import { ENGINES, GUIDE, useEngine } from './setting.ts'

const HOST_SCRIPT = '/inorigin/worker.js'

/** Reports each start of a host worker to the web server. */
const REPORTING_HOST = {
  [HOST_SCRIPT]: `${readFileSync(`dist-demo${HOST_SCRIPT}`, 'utf8')}
fetch('/report', { method: 'POST', body: 'host' })`,
}

/** A sampled answer that is as long as its limit: the end token of the guide is forbidden. */
const LONG = {
  messages: [{ role: 'user', content: 'Tell me all about inorigin.' }],
  seed: 7,
  temperature: 1,
  max_tokens: 600,
  logit_bias: { 2034: -100 },
}

describe.each(ENGINES)('$name', (engine) => {
  const { open, openSite, serve } = useEngine(engine)

  test('two tabs share one host, and a tab that never calls serve() is served', async () => {
    const site = await openSite({ pages: REPORTING_HOST })
    const one = await serve()
    const two = await serve()
    const text = await askGuide(one)
    expect(text).not.toMatch(/^\d{3} /)
    expect(await askGuide(two)).toBe(text)
    expect(await askGuide(await open())).toBe(text)
    expect(site.reports).toEqual(['host'])
  })

  test('the host is closed: another tab takes over, and the next request is answered', async () => {
    const site = await openSite({ pages: REPORTING_HOST })
    const one = await serve()
    const two = await serve()
    const text = await askGuide(two)
    await one.close()
    await expect.poll(() => askGuide(two), { timeout: 60_000 }).toBe(text)
    expect(site.reports).toEqual(['host', 'host'])
  })

  test('the host is closed in the middle of a stream, which goes on with the same text', async () => {
    const site = await openSite({ pages: REPORTING_HOST })
    const hosts = [await serve(), await serve()]
    const asker = await open()
    const stream = (name: string) => beginStream(asker, name, GUIDE, LONG, '/v1/chat/completions')
    await stream('whole')
    const whole = checkChatStream((await streamEnd(asker, 'whole')).text)
    expect(whole).toMatchObject({ error: null, finishReason: 'length' })

    await stream('moved')
    await streamHas(asker, 'moved', '"delta":{"content":"')
    await hosts[0]!.close()
    const moved = checkChatStream((await streamEnd(asker, 'moved')).text)
    expect(moved).toMatchObject({ error: null, finishReason: 'length', content: whole.content })
    expect(site.reports).toEqual(['host', 'host'])
  })

  test('a page is reloaded, and is served without another reload', async () => {
    const page = await serve()
    const text = await askGuide(page)
    await page.reload()
    await serveIn(page, { device: 'wasm' })
    expect(await askGuide(page)).toBe(text)
  })

  test('the host goes to another page and back, and its requests are answered', async () => {
    await openSite()
    const page = await serve()
    const text = await askGuide(page)
    await page.leave(() => location.assign(location.href.replace('blank.html', 'blank.html?other')))
    expect(await page.evaluate(() => location.search)).toBe('?other')
    await page.leave(() => history.back())
    // Its first document, from the back/forward cache, or loaded again.
    if (!(await page.evaluate(() => 'server' in globalThis))) {
      await serveIn(page, { device: 'wasm' })
    }
    await expect.poll(() => askGuide(page), { timeout: 60_000 }).toBe(text)
  })
})
