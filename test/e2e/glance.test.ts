/** The embedded model that sees, asked about drawings. `conformance.test.ts` shows it one in all styles. */
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineDrawings, type Drawing, type Drawings } from '../support/drawings.ts'
import { CHAT, fetchIn } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

interface InPage {
  drawings: Drawings
}

/** Tokens of a picture: one tile of 64 squares and 80 letters. */
const ROWS = 144

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite()
  page = await site.open()
  await serveIn(page, { device: 'wasm' })
  await page.evaluate(defineDrawings)
})

afterAll(() => site?.close())

const draw = (name: keyof Drawings): Promise<Drawing> =>
  page.evaluate((which) => (globalThis as unknown as InPage).drawings[which](), name)

const percent = { type: 'integer', minimum: 0, maximum: 100 }
const CLICK = {
  name: 'click',
  description: 'Clicks a place in the picture. x and y are percent of its width and height.',
  parameters: { type: 'object', properties: { x: percent, y: percent }, required: ['x', 'y'] },
}

/** Asks about a picture, and resolves with the text and the arguments of the calls. */
async function ask(url: string, question: string, tools: object[] = []) {
  const content = [
    { type: 'image_url', image_url: { url } },
    { type: 'text', text: question },
  ]
  const body = {
    model: '@inorigin/glance',
    messages: [{ role: 'user', content }],
    temperature: 0,
    max_tokens: 60,
    ...(tools.length > 0 && { tools }),
  }
  const { choices, usage } = JSON.parse((await fetchIn(page, CHAT, body)).text)
  const [{ message }] = choices
  const calls: { function: { arguments: string } }[] = message.tool_calls ?? []
  return {
    text: message.content,
    clicks: calls.map((call) => JSON.parse(call.function.arguments)),
    cachedTokens: usage.prompt_tokens_details.cached_tokens,
  }
}

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

test.each(QUESTIONS)('%s: %s', async (name, question, expected) => {
  const { url } = await draw(name)
  const { text, clicks } = await ask(url, question)
  expect(text).toMatch(expected)
  expect(clicks).toEqual([])
})

test.each(['Click the button.', 'Press Save.'])(
  'the button of a drawn dialog is clicked where it is: %s',
  async (question) => {
    const { url, buttons } = await draw('dialog')
    const { clicks } = await ask(url, question, [{ type: 'function', function: CLICK }])
    expect(clicks).toHaveLength(1)
    const { x, y } = clicks[0]
    const { left, top, right, bottom } = buttons!['Save']!
    const isInside = x > left && x < right && y > top && y < bottom
    expect(isInside, `${x}, ${y} is not on the button`).toBe(true)
  },
)

test('a second question about a picture finds it in the prefix cache', async () => {
  const { url } = await draw('shapes')
  const first = await ask(url, 'What do you see?')
  expect(first.text).not.toBe('')
  const second = await ask(url, 'Is there a red circle?')
  expect(second.cachedTokens).toBeGreaterThanOrEqual(ROWS)
})
