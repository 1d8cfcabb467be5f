/** `useChat` of the AI SDK without a backend: over a transport in the page, and over a route. */
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { bundleScript } from '../support/sdks.ts'
import type { Chat, mountChat } from '../support/chat/page.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

interface InPage {
  server: Server
  chat: Chat
  chatPage: { mountChat: typeof mountChat }
}

let site: Site

beforeAll(async () => {
  const [page, worker] = [
    await bundleScript('./chat/page.ts', 'chatPage'),
    await bundleScript('./chat/worker.ts', 'chatWorker'),
  ]
  site = await openSite({ pages: { '/chat.js': page, '/chat-sw.js': worker } })
})

afterAll(() => site?.close())

/** Opens a chat of its own: `direct` in the page, otherwise over the route. */
async function openChat(isDirect: boolean): Promise<Page> {
  const context = await site.browser.newContext()
  const page = await site.open(undefined, context)
  await serveIn(page, isDirect ? {} : { worker: '/chat-sw.js' })
  await page.addScriptTag({ url: '/chat.js' })
  await page.evaluate((direct) => {
    const { chatPage, server } = globalThis as unknown as InPage
    chatPage.mountChat(direct ? server : undefined)
  }, isDirect)
  await page.waitForFunction(() => 'chat' in globalThis)
  return page
}

const send = (page: Page, text: string) =>
  page.evaluate((given) => {
    const { chat } = globalThis as unknown as InPage
    void chat.sendMessage({ text: given })
  }, text)

/** Waits for a part of the last message in that state, and returns it. */
async function untilTool(page: Page, state: string): Promise<Record<string, unknown>> {
  const found = await page.waitForFunction((wanted) => {
    const { chat } = globalThis as unknown as InPage
    if (chat.error) throw chat.error
    const parts = chat.messages.at(-1)?.parts ?? []
    return parts.find((part) => 'state' in part && part.state === wanted && part.type !== 'text')
  }, state)
  return (await found.jsonValue()) as unknown as Record<string, unknown>
}

const answer = (page: Page, approved: boolean) =>
  page.evaluate((given) => {
    const { chat } = globalThis as unknown as InPage
    const part = chat.messages
      .at(-1)
      ?.parts.find((one) => 'approval' in one && one.approval !== undefined)
    const id = part && 'approval' in part ? part.approval?.id : undefined
    if (id === undefined) throw new Error('No tool asks for approval.')
    void chat.addToolApprovalResponse({ id, approved: given })
  }, approved)

/** Waits until the answer is complete, and returns its text. */
async function untilText(page: Page): Promise<string> {
  const found = await page.waitForFunction(() => {
    const { chat } = globalThis as unknown as InPage
    if (chat.error) throw chat.error
    if (chat.status !== 'ready') return null
    const parts = chat.messages.at(-1)?.parts ?? []
    return parts.map((part) => (part.type === 'text' ? part.text : '')).join('') || null
  })
  return (await found.jsonValue()) ?? ''
}

describe.each([
  ['a transport in the page', true],
  ['POST /api/chat of the service worker', false],
])('%s', (_name, isDirect) => {
  test.each([
    ['calls a tool after the approval', true, 'output-available'],
    ['does not call a tool that the user denied', false, 'output-denied'],
  ])('%s, and answers', async (_what, isApproved, state) => {
    const page = await openChat(isDirect)
    await send(page, 'Is it warm in Oslo?')
    const requested = await untilTool(page, 'approval-requested')
    expect(requested).toMatchObject({ type: 'tool-weather', input: { city: expect.any(String) } })
    await answer(page, isApproved)
    const done = await untilTool(page, state)
    if (isApproved) expect(done).toMatchObject({ output: { degrees: 12 } })
    expect(await untilText(page)).toMatch(/\w/)
    await page.context().close()
  })
})

test('an error of the route has the body of the other errors', async () => {
  const page = await openChat(false)
  const seen = await page.evaluate(async () => {
    const response = await fetch('/api/chat', { method: 'POST', body: 'no JSON' })
    return { status: response.status, body: (await response.json()) as unknown }
  })
  expect(seen).toMatchObject({ status: 500, body: { error: { type: 'api_error' } } })
  await page.context().close()
})
