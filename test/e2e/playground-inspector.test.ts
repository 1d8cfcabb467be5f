/**
 * The inspector: code that runs, the time line, headers, usage, replay, and the other style.
 *
 * @module-tag slow
 */
import { execFileSync } from 'node:child_process'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { usePlayground } from '../support/playground.ts'
import { bundleSdks } from '../support/sdks.ts'
import { openSite, type Site } from '../support/site.ts'

let site: Site

beforeAll(async () => {
  site = await openSite({ pages: { '/sdks.js': await bundleSdks() } })
})

afterAll(() => site?.close())

const openAt = usePlayground()
const open = (before?: () => void) => openAt(`${site.url}/?device=wasm`, { before })

const codeOf = async (page: Page): Promise<string> =>
  (await page.locator('#request').textContent()) ?? ''

const IMPORTS = [
  ["import OpenAI from 'openai'", 'const { OpenAI } = sdks'],
  ["import Anthropic from '@anthropic-ai/sdk'", 'const { Anthropic } = sdks'],
  [
    "import { createOpenAICompatible } from '@ai-sdk/openai-compatible'",
    'const { createOpenAICompatible } = sdks',
  ],
  ["import { streamText } from 'ai'", 'const { streamText } = sdks'],
] as const

/** Runs the code that the inspector shows, in its page. Resolves with what it logs. */
async function runCode(page: Page, kind: string): Promise<string> {
  await page.locator('#code-kind').selectOption({ label: kind })
  let code = await codeOf(page)
  for (const [from, to] of IMPORTS) code = code.replace(from, to)
  expect(code).not.toContain('import ')
  // A debugger's script is not subject to the policy of the page.
  const logged = `const said = []; const console = { log: (text) => said.push(text) }; ${code}`
  return page.evaluate(`(async () => { ${logged}; return said.join('') })()`)
}

/** Answers two chats with heartbeats in the middle, and counts them in `window.asked`. */
function slowAnswer(): void {
  const real = window.fetch
  let asked = 0
  const chunk = (delta: object, rest: object = {}) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`
  const usage = { prompt_tokens: 1234, completion_tokens: 2, total_tokens: 1236 }
  const parts = [
    chunk({ role: 'assistant' }),
    ': heartbeat\n\n',
    chunk({ content: 'One ' }),
    ': heartbeat\n\n',
    chunk({ content: 'two.' }),
    `data: ${JSON.stringify({ choices: [], usage })}\n\n`,
    'data: [DONE]\n\n',
  ]
  window.fetch = async (input, init) => {
    if (!String(input).endsWith('/chat/completions')) return real(input, init)
    asked += 1
    Object.assign(window, { asked })
    const rest = [...parts]
    const body = new ReadableStream({
      pull(controller) {
        const part = rest.shift()
        if (part === undefined) controller.close()
        else controller.enqueue(new TextEncoder().encode(part))
      },
    })
    return new Response(body, { headers: { 'x-request-id': 'req_of_the_test' } })
  }
}

test('the code for each client runs as it is, and gets the answer of the chat', async () => {
  const { page, ask, answer, faults } = await open()
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByLabel('Temperature').fill('0')
  await page.getByLabel('System prompt').fill("Don't be long.")
  await page.getByRole('tab', { name: 'Wire' }).click()
  await ask('What is 27 + 15?')
  const expected = await answer()
  expect(expected).toMatch(/\w/)
  // An SDK tries `eval`, which the policy forbids, and does without it.
  expect(faults).toEqual([])
  await page.addScriptTag({ url: '/sdks.js' })
  for (const kind of ['OpenAI SDK', 'Anthropic SDK', 'AI SDK']) {
    expect(await runCode(page, kind), kind).toBe(expected)
  }

  // From the other style, too.
  await page.getByLabel('/v1/messages').check()
  await page.getByRole('button', { name: 'New chat' }).click()
  await ask('What is 27 + 15?')
  expect(await codeOf(page)).toContain('provider(')
  expect(await runCode(page, 'OpenAI SDK')).toBe(expected)
  expect(await runCode(page, 'Anthropic SDK')).toBe(expected)
})

test('the command for curl has the request, whatever it contains', async () => {
  const { page, ask } = await open(slowAnswer)
  const question = `It's "quoted" $HOME \`id\` \\n`
  await ask(question)
  await page.locator('#code-kind').selectOption('curl')
  const command = `curl() { for each; do printf '%s\\0' "$each"; done; }\n${await codeOf(page)}`
  const words = execFileSync('sh', ['-c', command], { encoding: 'utf8' }).split('\0')
  expect(words.slice(0, 4)).toEqual([
    '--no-buffer',
    'http://127.0.0.1:11435/v1/chat/completions',
    '-H',
    'content-type: application/json',
  ])
  expect(JSON.parse(words[words.indexOf('-d') + 1] ?? '')).toMatchObject({
    model: '@inorigin/guide',
    messages: [{ role: 'user', content: question }],
    stream: true,
  })
  // The choice stays for the next visit.
  await page.reload()
  expect(await page.locator('#code-kind').inputValue()).toBe('curl')
})

test('the time line, headers and usage tell what arrived; the request is replayed', async () => {
  const { page, ask, faults } = await open(slowAnswer)
  await ask('Count.')
  await page.locator('summary', { hasText: 'Time line' }).click()
  await page.getByText(/^7 events · 2 with text · 2 heartbeats · longest gap /).waitFor()
  const rows = page.getByRole('region', { name: 'Time line of events' }).locator('tbody tr')
  const kinds = await rows.evaluateAll((all) => all.map(({ className }) => className))
  expect(kinds).toEqual(['event', 'heartbeat', 'token', 'heartbeat', 'token', 'event', 'event'])
  expect(await rows.nth(2).innerText()).toMatch(/ms\s+.*ms\s+"One "/)

  await page.locator('summary', { hasText: 'Headers and usage' }).click()
  const wire = page.locator('#wire')
  await wire.getByText('req_of_the_test').waitFor()
  expect(await wire.innerText()).toMatch(/prompt_tokens\s+1,234/)

  await page.getByRole('button', { name: 'Replay' }).click()
  await page.waitForFunction(() => Reflect.get(window, 'asked') === 2)
  await page.getByText(/^7 events · /).waitFor()
  // A replayed request adds no turn to the chat.
  expect(await page.locator('.turn').count()).toBe(1)
  expect(await findAccessibilityProblems(page)).toEqual([])
  expect(faults).toEqual([])
})

test('the same request is shown in the other style, as a difference', async () => {
  const { page, ask } = await open(slowAnswer)
  await ask('Count.')
  await page.locator('summary', { hasText: 'The same request as /v1/messages' }).click()
  const lines = page.getByRole('region', { name: 'Request in the other style' })
  const text = await lines.innerText()
  expect(text).toContain('- POST /v1/chat/completions')
  expect(text).toContain('+ POST /v1/messages')
  expect(text).toMatch(/\+ anthropic-version: /)
  expect(text).toMatch(/\+ {3}"max_tokens": \d+/)
  expect(text).toMatch(/^ {4}"model": "@inorigin\/guide",$/m)
})
