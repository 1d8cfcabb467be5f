/** Programs outside the browser use a tab: the built command, real tabs and the official SDKs. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { EMBEDDER, readTokens } from '../conformance/run.ts'
import { SEER } from '../conformance/seer.ts'
import { checkClients } from '../contract/clients.ts'
import { checkEndpoints, type Traits } from '../contract/wire.ts'
import {
  answers,
  lend,
  startBridge,
  TOKEN,
  type BridgeCommand,
  type LentPage,
} from '../support/bridge-command.ts'
import { ENDLESS, GUIDE } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

let site: Site
let command: BridgeCommand
let page: Page

beforeAll(async () => {
  site = await openSite()
})
afterAll(() => site?.close())

async function open(...args: string[]): Promise<void> {
  command = await startBridge(...args)
  page = await lendTab()
}

async function close(): Promise<void> {
  await page?.close()
  await command?.end()
}

/** Opens a tab that serves and lends itself. */
async function lendTab(reconnect?: boolean): Promise<Page> {
  const tab = await site.open()
  await serveIn(tab)
  await lend(tab, command.url, reconnect)
  return tab
}

/** Sends a request to the command, with its token as the key. */
const send = (path: string, init: RequestInit = {}, { url } = command): Promise<Response> =>
  fetch(url + path, {
    ...init,
    headers: { ...init.headers, authorization: `Bearer ${TOKEN}` },
  })

/** Asks for a message of so many tokens, and resolves with its response. */
const ask = (tokens: number, fields: object = {}, signal?: AbortSignal, { url } = command) => {
  const messages = [{ role: 'user', content: 'What is inorigin?' }]
  const body = JSON.stringify({ model: GUIDE, max_tokens: tokens, messages, ...fields })
  const headers = { 'content-type': 'application/json' }
  return send('/v1/messages', { method: 'POST', headers, body, signal }, { ...command, url })
}

/** Begins an answer that does not end by itself, and resolves when the tab writes it. */
async function beginEndless(signal?: AbortSignal) {
  const response = await ask(1000, { stream: true, ...ENDLESS }, signal)
  const reader = response.body!.getReader()
  await reader.read()
  await answers(page, 1)
  return reader
}

async function expectAnswer(bridge = command): Promise<void> {
  const { usage } = await (await ask(1, {}, undefined, bridge)).json()
  expect(usage.output_tokens).toBe(1)
}

describe('the contract', () => {
  let traits: Traits

  beforeAll(async () => {
    await open('--require-key')
    const { max_input_tokens } = await (await send(`/v1/models/${GUIDE}`)).json()
    traits = { model: GUIDE, contextWindow: max_input_tokens, reasons: true, goesOn: true }
  })
  afterAll(close)

  checkEndpoints(
    () => ({ fetch: send }),
    () => traits,
  )
  describe('with clients', SLOW, () => {
    checkClients(() => ({
      origin: command.url,
      baseURL: `${command.url}/v1`,
      fetch,
      apiKey: TOKEN,
      model: GUIDE,
      embedder: EMBEDDER,
      seer: SEER,
      tokens: readTokens(),
    }))
  })

  test('a client that aborts cancels the answer in the tab', { tags: ['everyday'] }, async () => {
    const abort = new AbortController()
    await beginEndless(abort.signal)
    abort.abort()
    await answers(page, 0)
    await expectAnswer()
  })
})

describe('a tab', SLOW, () => {
  beforeEach(() => open())
  afterEach(close)

  test('is replaced by the next one, and without one the error says so', async () => {
    const second = await lendTab()
    const reader = await beginEndless()
    await page.close()
    const readOn = async () => {
      while (!(await reader.read()).done);
    }
    await expect(readOn()).rejects.toThrow(/terminated/)
    await expectAnswer()
    await second.evaluate(() => (globalThis as unknown as LentPage).bridge.close())
    // A request that reaches the tab while it leaves gets another code.
    const read = async () => {
      const response = await send('/v1/models')
      return [response.status, (await response.json()).error?.code]
    }
    await expect.poll(read).toEqual([503, 'bridge_no_tab'])
    await second.close()
  })

  test('learns that the command ended, in the middle of an answer', async () => {
    await beginEndless()
    expect(await command.end()).toBe(130)
    await page.waitForFunction(() => (globalThis as unknown as LentPage).ended !== undefined)
    const seen = await page.evaluate(() => {
      const { ended, bridge } = globalThis as unknown as LentPage
      return [ended, bridge.state.status, bridge.state.requests]
    })
    expect(seen).toEqual(['bridge_unreachable', 'closed', 0])
  })

  test('connects again to a command with the same port and token', async () => {
    await page.close()
    page = await lendTab(true)
    const becomes = (status: string) =>
      page.waitForFunction(
        (expected) => (globalThis as unknown as LentPage).bridge.state.status === expected,
        status,
      )
    await command.end()
    await becomes('reconnecting')
    command = await startBridge('--port', new URL(command.url).port)
    await becomes('connected')
    await expectAnswer()
  })
})

test('a headless Chromium of the command answers, with the token as the key', SLOW, async () => {
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-bridge-'))
  const headless = await startBridge('--headless', '--require-key', '--profile', profile)
  try {
    await headless.prints('is connected')
    expect((await fetch(`${headless.url}/v1/models`)).status).toBe(401)
    await expectAnswer(headless)
  } finally {
    expect(await headless.end()).toBe(130)
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
})
