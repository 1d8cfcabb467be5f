/** The embedded model that sees, asked about drawings by the official SDKs, in all wire styles. */
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineDrawings, type Drawing, type Drawings } from '../support/drawings.ts'
import { bundleSdks } from '../support/sdks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

interface InPage {
  server: import('../../src/index.ts').Server
  sdks: typeof import('../support/sdks-entry.ts')
  drawings: Drawings
  clients: Record<string, (asked: Asked) => Promise<Outcome>>
}

interface Asked {
  /** Data URL of the picture. */
  url: string
  question: string
  /** Offers the tool `click`. */
  canClick: boolean
}

interface Outcome {
  text: string
  /** Arguments of the calls of `click`. */
  clicks: unknown[]
  cachedTokens: number
}

const CLIENTS = ['chat completions', 'responses', 'messages'] as const

/** Tokens of a picture: one tile of 64 squares and 80 letters. */
const ROWS = 144

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite({ pages: { '/sdks.js': await bundleSdks() } })
  page = await site.open()
  await serveIn(page, { device: 'wasm' })
  await page.addScriptTag({ url: '/sdks.js' })
  await page.evaluate(defineDrawings)
  await page.evaluate(defineClients)
})

afterAll(() => site?.close())

/** Sets `clients` in the page: each asks one question about a picture. */
function defineClients(): void {
  const { server, sdks } = globalThis as unknown as InPage
  const model = '@inorigin/glance'
  const options = { apiKey: 'none', dangerouslyAllowBrowser: true, maxRetries: 0 }
  const openai = new sdks.OpenAI({ baseURL: server.baseURL, ...options })
  const anthropic = new sdks.Anthropic({ baseURL: server.origin, ...options })
  const percent = { type: 'integer', minimum: 0, maximum: 100 }
  const name = 'click'
  const description = 'Clicks a place in the picture. x and y are percent of its width and height.'
  const schema = {
    type: 'object' as const,
    properties: { x: percent, y: percent },
    required: ['x', 'y'],
  }
  const clients: InPage['clients'] = {
    async 'chat completions'({ url, question, canClick }) {
      const tool = {
        type: 'function' as const,
        function: { name, description, parameters: schema },
      }
      const content = [
        { type: 'image_url' as const, image_url: { url } },
        { type: 'text' as const, text: question },
      ]
      const { choices, usage } = await openai.chat.completions.create({
        model,
        messages: [{ role: 'user', content }],
        temperature: 0,
        max_completion_tokens: 60,
        ...(canClick && { tools: [tool] }),
      })
      const calls = choices[0]?.message.tool_calls ?? []
      return {
        text: choices[0]?.message.content ?? '',
        clicks: calls.map(
          (call) => call.type === 'function' && JSON.parse(call.function.arguments),
        ),
        cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      }
    },
    async responses({ url, question, canClick }) {
      const tool = {
        type: 'function' as const,
        name,
        description,
        parameters: schema,
        strict: false,
      }
      const content = [
        { type: 'input_image' as const, image_url: url, detail: 'auto' as const },
        { type: 'input_text' as const, text: question },
      ]
      const {
        output,
        output_text: text,
        usage,
      } = await openai.responses.create({
        model,
        input: [{ role: 'user', content }],
        temperature: 0,
        max_output_tokens: 60,
        ...(canClick && { tools: [tool] }),
      })
      const calls = output.filter((item) => item.type === 'function_call')
      return {
        text,
        clicks: calls.map((call) => JSON.parse(call.arguments)),
        cachedTokens: usage?.input_tokens_details.cached_tokens ?? 0,
      }
    },
    async messages({ url, question, canClick }) {
      const data = url.slice(url.indexOf(',') + 1)
      const source = { type: 'base64' as const, media_type: 'image/png' as const, data }
      const content = [
        { type: 'image' as const, source },
        { type: 'text' as const, text: question },
      ]
      // The SDK's types no longer have the temperature, which the endpoint takes.
      const body = {
        model,
        messages: [{ role: 'user' as const, content }],
        temperature: 0,
        max_tokens: 60,
        ...(canClick && { tools: [{ name, description, input_schema: schema }] }),
      }
      const { content: blocks, usage } = await anthropic.messages.create(body)
      return {
        text: blocks.map((block) => (block.type === 'text' ? block.text : '')).join(''),
        clicks: blocks.flatMap((block) => (block.type === 'tool_use' ? [block.input] : [])),
        cachedTokens: usage.cache_read_input_tokens ?? 0,
      }
    },
  }
  Object.assign(globalThis, { clients })
}

const draw = (name: keyof Drawings): Promise<Drawing> =>
  page.evaluate((which) => (globalThis as unknown as InPage).drawings[which](), name)

const ask = (client: string, asked: Asked): Promise<Outcome> =>
  page.evaluate(([which, given]) => (globalThis as unknown as InPage).clients[which]!(given), [
    client,
    asked,
  ] as const)

const QUESTIONS: readonly (readonly [keyof Drawings, string, RegExp])[] = [
  ['shapes', 'What color is the circle?', /\bred\b/i],
  ['shapes', 'What shape is green?', /triangle/i],
  ['stars', 'How many stars are there?', /\b3\b/],
  ['shapes', 'Where is the circle?', /top left/],
  ['shapes', 'Is there a square?', /\bno\b/i],
  ['word', 'What color is the text?', /black/],
  ['word', 'What does it say?', /\bHELLO\b/],
  ['line', 'What does it say?', /\bPluto 58\b/],
  ['price', 'How much does it cost?', /\$12\.80/],
  ['chart', 'Which bar is the largest?', /\bB\b/],
  ['chart', 'Which bar is the smallest?', /\bA\b/],
  ['chart', 'How many bars are there?', /\b3\b/],
  ['chart', 'What are the labels of the bars?', /\bA, B and C\b/],
  ['dialog', 'What do you see?', /dialog/],
  ['dialog', 'What is the title?', /\bQuestion\b/],
  ['choice', 'Which buttons are there?', /\bCancel and Delete\b/],
  ['wide', 'Which shape is red?', /circle/],
  ['wide', 'What shape is green?', /square/],
  ['wide', 'Where is the circle?', /right/],
  ['high', 'Which shape is this?', /circle/],
  ['high', 'What color is the circle?', /blue/],
  ['banner', 'How much does it cost?', /\$7\.50/],
  ['full', 'What is the title?', /\bDisk full\b/],
  ['full', 'What does the dialog say?', /\bDelete files\b/],
  ['texture', 'What is in this picture?', /simple pictures/],
]

describe.each(CLIENTS)('%s', (client) => {
  test.each(QUESTIONS)('%s: %s', async (name, question, expected) => {
    const { url } = await draw(name)
    const { text, clicks } = await ask(client, { url, question, canClick: false })
    expect(text).toMatch(expected)
    expect(clicks).toEqual([])
  })

  test.each(['Click the button.', 'Press Save.'])(
    'the button of a drawn dialog is clicked where it is: %s',
    async (question) => {
      const { url, buttons } = await draw('dialog')
      const { clicks } = await ask(client, { url, question, canClick: true })
      expect(clicks).toHaveLength(1)
      const { x, y } = clicks[0] as { x: number; y: number }
      const { left, top, right, bottom } = buttons!['Save']!
      const isInside = x > left && x < right && y > top && y < bottom
      expect(isInside, `${x}, ${y} is not on the button`).toBe(true)
    },
  )

  test('a second question about a picture finds it in the prefix cache', async () => {
    const { url } = await draw('shapes')
    const first = await ask(client, { url, question: 'What do you see?', canClick: false })
    expect(first.text).not.toBe('')
    const question = 'Is there a red circle?'
    const second = await ask(client, { url, question, canClick: false })
    expect(second.cachedTokens).toBeGreaterThanOrEqual(ROWS)
  })
})
