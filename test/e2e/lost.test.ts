/**
 * A GPU that goes away in the middle of an answer.
 *
 * @module-tag slow
 */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

/** A greedy answer of 16 tokens; `texts` in the page grows as it comes. */
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
        max_tokens: 16,
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

  const page = await site.open()
  // A GPU made of software takes its time, above all for the shaders of the self-test. The whole test took
  // 63 s when little else ran, and more than 100 s for the first text beside the other tests.
  page.setDefaultTimeout(200_000)
  await serveIn(page, { device: 'webgpu' })
  await begin(page)
  await page.waitForFunction(
    () => (globalThis as unknown as { state: State }).state.texts.join('').length > 8,
  )
  const crash = await site.context.newPage()
  // Its tab never finishes loading.
  await crash.goto('chrome://gpucrash', { timeout: 2_000 }).catch(() => undefined)
  const before = await stateOf(page)
  expect(before.end).toBe('')
  const after = await end(page)
  expect(after.end).toBe('done')
  expect(after.texts.join('')).toBe(whole.texts.join(''))
}, 480_000)
