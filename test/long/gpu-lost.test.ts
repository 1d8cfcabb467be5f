/**
 * A GPU process that crashes in the middle of an answer. On a GPU of software the self-test and the
 * shaders take minutes beside other tests; `test/browser/engine/run-lost.test.ts` covers the rest.
 */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import { wear } from '../support/masks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

/** A greedy answer that is long enough to be interrupted; `texts` in the page grows as it comes. */
function begin(page: Page): Promise<void> {
  return page.evaluate(async () => {
    const state = { texts: [] as string[], end: '' }
    Object.assign(globalThis, { state })
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: '@inorigin/guide',
        temperature: 0,
        max_tokens: 48,
        // Forbids the guide's end token.
        logit_bias: { 2034: -100 },
        stream: true,
        messages: [{ role: 'user', content: 'What is inorigin?' }],
      }),
    })
    void (async () => {
      const decoder = new TextDecoder()
      const reader = response.body?.getReader()
      for (let rest = ''; ;) {
        const { value, done } = (await reader?.read()) ?? { done: true, value: undefined }
        if (done) break
        const frames = (rest + decoder.decode(value, { stream: true })).split('\n\n')
        rest = frames.pop() ?? ''
        for (const frame of frames.filter((one) => one.startsWith('data: '))) {
          const data = frame.slice('data: '.length)
          if (data === '[DONE]') state.end = 'done'
          else if ('error' in JSON.parse(data)) state.end = JSON.parse(data).error.message
          else state.texts.push(JSON.parse(data).choices[0]?.delta.content ?? '')
        }
      }
      state.end ||= 'cut'
    })()
  })
}

interface State {
  texts: string[]
  end: string
}

const stateOf = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { state: State }).state)

async function end(page: Page): Promise<State> {
  await page.waitForFunction(() => (globalThis as unknown as { state: State }).state.end !== '')
  return stateOf(page)
}

test('the stream goes on when the GPU process dies, and has each token that WASM writes', async () => {
  site = await openSite({ ownBrowser: true })
  const plain = await site.open('/blank.html', await site.browser.newContext())
  await serveIn(plain, { device: 'wasm' })
  await begin(plain)
  const whole = await end(plain)
  expect(whole.end).toBe('done')
  await plain.context().close()

  // The self-test takes this GPU of software minutes beside other tests. It fails with the adapter's features
  // and passes without them, so that none of them means one self-test in place of two.
  wear(site, { features: [] })
  const page = await site.open()
  page.setDefaultTimeout(300_000)
  await serveIn(page, { device: 'webgpu' })
  const session = await site.browser.newBrowserCDPSession()
  const gpuProcess = async () => {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    return processInfo.find(({ type }) => type === 'GPU')?.id
  }
  const first = await gpuProcess()
  expect(first).toBeGreaterThan(0)
  await begin(page)
  await page.waitForFunction(
    () => (globalThis as unknown as { state: State }).state.texts.join('').length > 8,
  )
  // The headless shell ignores chrome://gpucrash.
  await session.send('Browser.crashGpuProcess')
  await expect.poll(gpuProcess).not.toBe(first)
  expect((await stateOf(page)).end).toBe('')
  const after = await end(page)
  expect(after.end).toBe('done')
  expect(after.texts.join('')).toBe(whole.texts.join(''))
}, 600_000)
