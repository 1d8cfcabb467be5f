/**
 * A GPU process that crashes in the middle of an answer. On a GPU of software the self-test and the
 * shaders take minutes beside other tests; `test/browser/engine/trust.test.ts` covers the rest.
 */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import { wear } from '../support/masks.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { beginStream, readStream, streamEnd, streamHas } from '../support/requests.ts'

let site: Site

afterEach(() => site?.close())

/** A greedy answer that is long enough to be interrupted. The bias forbids the guide's end token. */
const LONG = {
  messages: [{ role: 'user', content: 'What is inorigin?' }],
  temperature: 0,
  max_tokens: 48,
  logit_bias: { 2034: -100 },
}

const begin = (page: Page): Promise<void> =>
  beginStream(page, 'chat', '@inorigin/guide', LONG, '/v1/chat/completions')

const read = async (page: Page) => checkChatStream((await streamEnd(page, 'chat')).text)

test('the stream goes on when the GPU process dies, and has each token that WASM writes', async () => {
  site = await openSite({ ownBrowser: true })
  const plain = await site.open('/blank.html', await site.browser.newContext())
  await serveIn(plain, { device: 'wasm' })
  await begin(plain)
  const whole = await read(plain)
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
  await streamHas(page, 'chat', '"delta":{"content":"')
  // The headless shell ignores chrome://gpucrash.
  await session.send('Browser.crashGpuProcess')
  await expect.poll(gpuProcess).not.toBe(first)
  expect((await readStream(page, 'chat')).end).toBeUndefined()
  expect(await read(page)).toMatchObject({ error: null, content: whole.content })
}, 600_000)
