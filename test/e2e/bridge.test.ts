/** Programs outside the browser use a tab: the built command, real tabs, curl and the official SDKs. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, streamText } from 'ai'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import type { Page } from 'playwright'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { MAX_BODY_BYTES } from '../../src/bridge/protocol.ts'
import { startBridge, TOKEN, type BridgeCommand } from '../support/bridge-command.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { ENDLESS } from '../support/streamed.ts'

interface InPage {
  server: import('../../src/index.ts').Server
  bridge: import('../../src/index.ts').Bridge
  /** Code of the error that the bridge ended with. */
  ended: string
}

const GUIDE = '@inorigin/guide'
const messages = [{ role: 'user' as const, content: 'What is inorigin?' }]

let site: Site
let command: BridgeCommand
let page: Page
beforeAll(async () => {
  site = await openSite()
})
afterAll(() => site?.close())
beforeEach(async () => {
  command = await startBridge()
  page = await lendTab()
})
afterEach(async () => {
  await page?.close()
  await command?.end()
})

/** Opens a tab that serves and lends itself. */
async function lendTab(reconnect = false): Promise<Page> {
  const tab = await site.open()
  await serveIn(tab)
  await tab.evaluate(
    async ([url, token, lasts]) => {
      const kept = globalThis as unknown as InPage
      kept.bridge = await kept.server.bridge(url, { token, reconnect: lasts })
      kept.bridge.closed.catch(({ code }: { code: string }) => (kept.ended = code))
    },
    [command.url, TOKEN, reconnect] as const,
  )
  return tab
}

/** Resolves when the tab answers that many requests at the moment. */
const answers = (tab: Page, count: number) =>
  tab.waitForFunction(
    (expected) => (globalThis as unknown as InPage).bridge.state.requests === expected,
    count,
  )

const openai = () => new OpenAI({ baseURL: `${command.url}/v1`, apiKey: 'none', maxRetries: 0 })

/** Begins an answer that does not end by itself. */
const beginEndless = (signal?: AbortSignal) =>
  fetch(`${command.url}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: GUIDE, max_tokens: 1000, stream: true, messages, ...ENDLESS }),
    signal,
  })

test('openai in Node: text, stream, a forced tool and JSON', async () => {
  const client = openai()
  const ids: string[] = []
  for await (const model of client.models.list()) ids.push(model.id)
  expect(ids).toContain(GUIDE)
  const request = { model: GUIDE, messages, temperature: 0 }
  const plain = await client.chat.completions.create(request)
  let text = ''
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? ''
  }
  expect(text).toMatch(/\w/)
  expect(text).toBe(plain.choices[0]?.message.content)

  const schema = {
    type: 'object',
    properties: { yes: { type: 'boolean' } },
    required: ['yes'],
    additionalProperties: false,
  }
  const called = await client.chat.completions.create({
    ...request,
    tools: [{ type: 'function', function: { name: 'answer', parameters: schema } }],
    tool_choice: { type: 'function', function: { name: 'answer' } },
  })
  const [call] = called.choices[0]?.message.tool_calls ?? []
  expect(call?.type === 'function' && JSON.parse(call.function.arguments)).toEqual({
    yes: expect.any(Boolean),
  })
  const json = await client.chat.completions.create({
    ...request,
    response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } },
  })
  expect(JSON.parse(json.choices[0]?.message.content ?? '')).toEqual({ yes: expect.any(Boolean) })
})

test('anthropic in Node: text, stream and errors', async () => {
  const client = new Anthropic({ baseURL: command.url, apiKey: 'none', maxRetries: 0 })
  const request = { model: GUIDE, messages, temperature: 0, max_tokens: 20 }
  const plain = await client.messages.create(request)
  const streamed = await client.messages.stream(request).finalMessage()
  expect(streamed.content).toEqual(plain.content)
  expect(plain.usage.output_tokens).toBe(20)
  const failed = client.messages.create({ ...request, model: 'unknown' })
  await expect(failed).rejects.toMatchObject({
    status: 404,
    error: { error: { code: 'model_not_found' } },
  })
})

test('the AI SDK in Node: text and a stream', { tags: ['slow'] }, async () => {
  const provider = createOpenAICompatible({ name: 'tab', baseURL: `${command.url}/v1` })
  const request = { model: provider(GUIDE), prompt: 'What is inorigin?', temperature: 0 }
  const { text } = await generateText(request)
  expect(text).toMatch(/\w/)
  let streamed = ''
  for await (const part of streamText(request).textStream) streamed += part
  expect(streamed).toBe(text)
})

test('curl: a stream, and what is refused', { tags: ['slow'] }, async () => {
  const run = promisify(execFile)
  const curl = async (...args: string[]) => (await run('curl', ['-sS', ...args])).stdout
  const url = `${command.url}/v1/chat/completions`
  const json = ['-H', 'content-type: application/json']
  const body = JSON.stringify({ model: GUIDE, messages, stream: true, max_tokens: 5 })
  expect(await curl('-N', url, ...json, '-d', body)).toMatch(/(^|\n)data: \{.*data: \[DONE\]\s*$/s)

  const status = ['-o', join(tmpdir(), 'bridge-refused'), '-w', '%{http_code}']
  const models = `${command.url}/v1/models`
  expect(await curl(...status, '-H', 'host: evil.example', models)).toBe('403')
  expect(await curl(...status, '-H', 'origin: https://evil.example', models)).toBe('403')
  const tooLong = `content-length: ${MAX_BODY_BYTES + 1}`
  expect(await curl(...status, '-m', '30', '-X', 'POST', '-H', tooLong, url)).toBe('413')
  // The tab's own checks apply to what gets through.
  expect(await curl(...status, url, '-d', 'model=x')).toBe('400')
})

test('a client that aborts cancels the answer in the tab', { tags: ['slow'] }, async () => {
  const abort = new AbortController()
  const response = await beginEndless(abort.signal)
  await response.body?.getReader().read()
  await answers(page, 1)
  abort.abort()
  await answers(page, 0)
  const next = await openai().chat.completions.create({ model: GUIDE, messages, max_tokens: 1 })
  expect(next.usage?.completion_tokens).toBe(1)
})

test('the next tab takes over, and without one the error says so', { tags: ['slow'] }, async () => {
  const second = await lendTab()
  const response = await beginEndless()
  const reader = response.body?.getReader()
  await reader?.read()
  await answers(page, 1)
  await page.close()
  const readOn = async () => {
    while (!(await reader?.read())?.done);
  }
  await expect(readOn()).rejects.toThrow(/terminated/)
  const next = await openai().chat.completions.create({ model: GUIDE, messages, max_tokens: 1 })
  expect(next.usage?.completion_tokens).toBe(1)
  await second.evaluate(() => (globalThis as unknown as InPage).bridge.close())
  // A request that reaches the tab while it leaves gets another code.
  const readCode = async () => (await (await fetch(`${command.url}/v1/models`)).json()).error?.code
  await expect.poll(readCode).toBe('bridge_no_tab')
  const refused = openai().models.list()
  await expect(refused).rejects.toMatchObject({ status: 503, code: 'bridge_no_tab' })
  await second.close()
})

test('a wrong token is refused in the page', { tags: ['slow'] }, async () => {
  const code = await page.evaluate(
    (url) =>
      (globalThis as unknown as InPage).server.bridge(url, { token: 'wrong' }).then(
        () => 'lent',
        (error: { code: string }) => error.code,
      ),
    command.url,
  )
  expect(code).toBe('bridge_refused')
})

test(
  'the tab learns that the command ended, in the middle of an answer',
  { tags: ['slow'] },
  async () => {
    const response = await beginEndless()
    const reader = response.body?.getReader()
    await reader?.read()
    await answers(page, 1)
    expect(await command.end()).toBe(130)
    await page.waitForFunction(() => (globalThis as unknown as InPage).ended !== undefined)
    const seen = await page.evaluate(() => {
      const { ended, bridge } = globalThis as unknown as InPage
      return [ended, bridge.state.status, bridge.state.requests]
    })
    expect(seen).toEqual(['bridge_unreachable', 'closed', 0])
    command = await startBridge()
  },
)

test(
  'a tab connects again to a command with the same port and token',
  { tags: ['slow'] },
  async () => {
    await page.close()
    page = await lendTab(true)
    const becomes = (status: string) =>
      page.waitForFunction(
        (expected) => (globalThis as unknown as InPage).bridge.state.status === expected,
        status,
      )
    await command.end()
    await becomes('reconnecting')
    command = await startBridge('--port', new URL(command.url).port)
    await becomes('connected')
    const next = await openai().chat.completions.create({ model: GUIDE, messages, max_tokens: 1 })
    expect(next.usage?.completion_tokens).toBe(1)
  },
)

test(
  'a headless Chromium of the command answers, with the token as the key',
  { tags: ['slow'] },
  async () => {
    const profile = mkdtempSync(join(tmpdir(), 'inorigin-bridge-'))
    const headless = await startBridge('--headless', '--require-key', '--profile', profile)
    try {
      await headless.prints('is connected')
      expect((await fetch(`${headless.url}/v1/models`)).status).toBe(401)
      const client = new OpenAI({ baseURL: `${headless.url}/v1`, apiKey: TOKEN, maxRetries: 0 })
      const answered = await client.chat.completions.create({
        model: GUIDE,
        messages,
        max_tokens: 3,
      })
      expect(answered.usage?.completion_tokens).toBe(3)
    } finally {
      expect(await headless.end()).toBe(130)
      rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
    }
  },
)
