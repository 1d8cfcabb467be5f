/**
 * A model that MLC really compiled, from its download to its removal, behind the endpoints of a built
 * app: `npm run test:mlc`. It needs a GPU, and a network or copies of the files; see `setting.ts`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { fetchIn } from '../support/answers.ts'
import {
  type Answered,
  CHAT,
  chat,
  type Endpoint,
  holdToContract,
  MESSAGES,
  type Traits,
} from '../support/contract.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'
import { checkGpu, checkNetwork, limitTokens, readSetting } from './setting.ts'

const ROOT = join(import.meta.dirname, '../..')
const TAG = '@test/real'
const HOUR = 3_600_000
const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/catalog.json' })
</script>`

let app: string
let site: StaticServer | undefined
let browser: Browser | undefined
let page: Page
let traits: Traits

beforeAll(async () => {
  const setting = readSetting()
  await checkNetwork(setting)
  app = mkdtempSync(join(tmpdir(), 'inorigin-mlc-real-'))
  writeFileSync(join(app, 'package.json'), '{}\n')
  const init = [join(ROOT, 'dist/cli.js'), 'init', 'public', '--no-guide', '--mlc']
  const { status, stderr } = spawnSync(process.execPath, init, { cwd: app, encoding: 'utf8' })
  if (status !== 0) throw new Error(`inorigin init failed: ${stderr}`)
  const catalog = { version: 1, entries: [{ tag: TAG, mlc: setting.mlc }] }
  site = await serveStatic({
    folders: { ...setting.folders, '/': join(app, 'public') },
    pages: { '/app.html': PAGE, '/catalog.json': JSON.stringify(catalog) },
  })
  browser = await chromium.launch(chromiumLaunch(setting.software ? 'software' : 'hardware'))
  page = await browser.newPage()
  await page.goto(`${site.url}/app.html`)
  const gpu = await checkGpu(page, setting)
  await page.waitForFunction(() => 'server' in globalThis)

  const start = performance.now()
  await page.evaluate(
    async (tag) => (globalThis as unknown as { server: Server }).server.models.load(tag),
    TAG,
  )
  console.info(
    `${JSON.stringify(setting.mlc)} on ${gpu}: loaded in ${((performance.now() - start) / 1000).toFixed(1)} s`,
  )
  const { data } = JSON.parse((await fetchIn(page, '/v1/models')).text) as {
    data: {
      id: string
      max_input_tokens: number
      capabilities?: { thinking?: { supported?: boolean } }
    }[]
  }
  const model = data.find(({ id }) => id === TAG)
  if (!model) throw new Error(`/v1/models does not list ${TAG}.`)
  const reasons = model.capabilities?.thinking?.supported === true
  // Templates that write thoughts leave them out again, so that what was computed is not what follows.
  const goesOn = /^(SmolLM2|Llama-3|Qwen2)/.test(
    typeof setting.mlc === 'string' ? setting.mlc : setting.mlc.model_id,
  )
  traits = { model: TAG, contextWindow: model.max_input_tokens, reasons, goesOn }
}, HOUR)

afterAll(async () => {
  await browser?.close()
  await site?.close()
  if (app) rmSync(app, { recursive: true, force: true })
})

const endpoint: Endpoint = {
  async post(path, body) {
    const { status, headers, text } = await fetchIn(page, path, body)
    return { status, ignored: headers['x-inorigin-ignored'] ?? null, text }
  },
}

holdToContract(
  () => endpoint,
  () => traits,
)

const question = {
  messages: [{ role: 'user', content: 'What is the capital of France? Answer in one word.' }],
}

test('knows what its weights know, in both wire styles', async () => {
  const asked = { model: TAG, ...chat({ ...question, max_tokens: limitTokens(200) }) }
  const completion = JSON.parse(
    (await endpoint.post(CHAT, { ...asked, reasoning_effort: 'none' })).text,
  ) as Answered
  expect(completion.choices[0].message.content).toMatch(/Paris/i)
  const message = JSON.parse(
    (await endpoint.post(MESSAGES, { ...asked, thinking: { type: 'disabled' } })).text,
  ) as Answered
  expect(message.content[0].text).toMatch(/Paris/i)
})

test('an answer that is given up leaves another as it is, and the model free', async () => {
  const body = {
    model: TAG,
    ...chat({
      stream: true,
      max_tokens: 400,
      messages: [{ role: 'user', content: 'Count to a thousand.' }],
    }),
  }
  const other = { model: TAG, ...chat({ ...question, max_tokens: limitTokens(16) }) }
  const [alone, together, took] = await page.evaluate(
    async ([path, long, short]) => {
      const init = (json: unknown, signal?: AbortSignal): RequestInit => ({
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(json),
        ...(signal && { signal }),
      })
      const text = async (): Promise<string> =>
        (await (await fetch(path, init(short))).json()).choices[0].message.content
      const before = await text()
      const giving = new AbortController()
      const reader = (await fetch(path, init(long, giving.signal))).body?.getReader()
      for (let count = 0; count < 4; count += 1) await reader?.read()
      const waiting = text()
      giving.abort()
      const start = performance.now()
      return [before, await waiting, performance.now() - start] as const
    },
    [CHAT, body, other] as const,
  )
  expect(together).toBe(alone)
  expect(took).toBeLessThan(60_000)
})

test('tells how fast it is', async () => {
  const asked = chat({
    max_tokens: limitTokens(128),
    messages: [{ role: 'user', content: 'Tell a long story about a lighthouse.' }],
  })
  const start = performance.now()
  const { usage } = JSON.parse(
    (await endpoint.post(CHAT, { model: TAG, ...asked })).text,
  ) as Answered
  const seconds = (performance.now() - start) / 1000
  console.info(
    `${usage.completion_tokens} tokens in ${seconds.toFixed(2)} s: ${(usage.completion_tokens / seconds).toFixed(1)} a second, prompt included`,
  )
  expect(usage.completion_tokens).toBeGreaterThan(1)
})

test('is unloaded, answers again without a download, and is removed', async () => {
  const stateOf = () =>
    page.evaluate(async (tag) => {
      const { server } = globalThis as unknown as { server: Server }
      return (await server.models.list()).find((one) => one.tag === tag)
    }, TAG)
  const asked = { model: TAG, ...chat({ ...question, max_tokens: 4 }) }
  await page.evaluate(
    (tag) => (globalThis as unknown as { server: Server }).server.models.unload(tag),
    TAG,
  )
  expect(await stateOf()).toMatchObject({ status: 'stored' })
  const fetched: string[] = []
  page.on('request', (request) => fetched.push(request.url()))
  expect((await endpoint.post(CHAT, asked)).status).toBe(200)
  expect(
    fetched.filter((url) => /params_shard|\.wasm$/.test(url) && !url.includes('/ort/')),
  ).toEqual([])
  await page.evaluate(
    (tag) => (globalThis as unknown as { server: Server }).server.models.remove(tag),
    TAG,
  )
  expect(await stateOf()).toMatchObject({ status: 'remote' })
})
