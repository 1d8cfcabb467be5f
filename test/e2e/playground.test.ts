/** The main way through the built playground, in one page: with the embedded models, and nothing cached. */
import type { Browser } from 'playwright'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { openBrowser } from '../support/browser.ts'
import { HOSTILE_ANSWERS } from '../support/hostile-answers.ts'
import {
  chooseStyle,
  expectAnswers,
  openHistory,
  openPlayground,
  openTab,
  scriptAnswers,
  scriptedFetch,
  send,
  toolButton,
  type Playground,
} from '../support/playground.ts'
import type { ScriptedWindow } from '../support/scripted-fetch.ts'

const EVERYDAY = { tags: ['everyday'] }

let browser: Browser
let playground: Playground

beforeAll(async () => {
  browser = await openBrowser()
  playground = await openPlayground(browser, inject('demo'))
})

afterAll(() => browser?.close())

async function beginChat(): Promise<void> {
  const { page } = playground
  // The first visit has nothing to leave.
  if (await page.locator('.turn').count()) await toolButton(page, 'New chat').click()
  await page.locator('#welcome').waitFor()
}

const requestCode = async () => (await playground.page.locator('#request').textContent()) ?? ''

/** Returns the body of a request that is shown as code, by running the code with a `fetch` that only looks. */
function bodyOf(code: string): Record<string, unknown> {
  const request = code.slice(0, code.indexOf('const reader')).replace('await ', '')
  const look = (_url: string, init: { body: string }) => init.body
  return JSON.parse(new Function('fetch', `${request}\nreturn response`)(look))
}

describe('with the embedded models', () => {
  beforeEach(async () => {
    playground.faults.length = 0
    await beginChat()
  })

  test(
    'streams the first answer with nothing cached and breaks no rule of its policy',
    EVERYDAY,
    async () => {
      const { page, ask, answer, faults } = playground
      await ask('Who are you?')
      expect(await answer()).not.toBe('')
      const meta = await page.locator('.meta').innerText()
      expect(meta).toMatch(/^\d+ tokens? .*first token after/)
      const events = (await page.locator('#events').textContent()) ?? ''
      expect(events).toMatch(/^(: |data: )/)
      expect(events.match(/"delta":\{"content":/g)?.length).toBeGreaterThan(1)
      expect(events.endsWith('data: [DONE]\n\n')).toBe(true)
      expect(await page.locator('#loading').isHidden()).toBe(true)
      expect(faults).toEqual([])
    },
  )

  test('keeps the conversation when the API style is switched', { tags: ['slow'] }, async () => {
    const { page, ask, answer, faults } = playground
    await ask('Who are you?')
    const first = await answer()
    await chooseStyle(page, 'Messages')
    await ask('What is 2 + 3?')
    const second = await answer()
    expect(await page.locator('.meta').last().innerText()).toMatch(/^\d+ token/)
    const events = (await page.locator('#events').textContent()) ?? ''
    expect(events).toContain('event: content_block_delta')
    expect(events).toMatch(/event: message_stop\ndata: .*\n\n$/)
    const code = await requestCode()
    expect(code).toContain("fetch('/v1/messages'")
    const body = bodyOf(code)
    const conversation = [
      { role: 'user', content: 'Who are you?' },
      { role: 'assistant', content: first },
      { role: 'user', content: 'What is 2 + 3?' },
    ]
    expect(body['messages']).toEqual(conversation)
    expect(body['max_tokens']).toBeGreaterThan(0)

    await chooseStyle(page, 'Responses')
    await ask('What is inorigin?')
    expect(await answer()).not.toBe('')
    expect(await page.locator('.meta').last().innerText()).toMatch(/^\d+ token.*prompt of/)
    const responseEvents = (await page.locator('#events').textContent()) ?? ''
    expect(responseEvents).toContain('event: response.output_text.delta')
    expect(responseEvents).toContain('event: response.completed')
    expect(bodyOf(await requestCode())['input']).toEqual([
      ...conversation,
      { role: 'assistant', content: second },
      { role: 'user', content: 'What is inorigin?' },
    ])
    expect(faults).toEqual([])
    await chooseStyle(page, 'Chat')
  })

  test('names a digit that is drawn', async () => {
    const { page, faults } = playground
    await openTab(page, 'Predictors')
    const box = await page.locator('#pad').boundingBox()
    if (!box) throw new Error('There is nothing to draw on.')
    const at = (x: number, y: number) => [box.x + box.width * x, box.y + box.height * y] as const
    await page.mouse.move(...at(0.5, 0.15))
    await page.mouse.down()
    await page.mouse.move(...at(0.5, 0.85), { steps: 12 })
    await page.mouse.up()
    await page.getByText(/^One, \d+ %/).waitFor()
    expect(await page.locator('.scores .best').innerText()).toMatch(/^1\b/)
    expect(faults).toEqual([])
    await openTab(page, 'Requests')
  })

  test('writes, tries and calls a tool of the user, and answers', EVERYDAY, async () => {
    const { page, answer, faults } = playground
    await page.getByRole('button', { name: 'Tools: none' }).click()
    const dialog = page.getByRole('dialog', { name: 'Tools' })
    await dialog.getByText('New tool').click()
    await dialog.getByLabel('Name').fill('get current weather')
    await dialog.getByText('A name has 1 to 64 letters').waitFor()
    await dialog.getByLabel('Name').fill('get_current_weather')
    const description = 'Get the current weather in a location'
    await dialog.getByLabel('Description for the model').fill(description)
    const schema = dialog.getByLabel('Parameters, as JSON Schema')
    await schema.fill('{"type": "object", "properties": {"location": {"type": "text"}}}')
    await dialog.getByText('This is not a JSON Schema').waitFor()
    const location = { type: 'string', description: 'The city' }
    const parameters = { type: 'object', properties: { location }, required: ['location'] }
    await schema.fill(JSON.stringify(parameters))
    await dialog
      .getByLabel('JavaScript with the variable args')
      .fill('console.log(args.location)\nreturn { degrees: 12 }')
    await dialog.getByLabel('Arguments to try it with').fill('{"location": 3}')
    await dialog.getByText('"location": ').waitFor()
    await dialog.getByLabel('Arguments to try it with').fill('{"location": "Oslo"}')
    await dialog.getByRole('button', { name: 'Try it' }).click()
    await dialog.getByText('Oslo\n{"degrees":12}').waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    const box = dialog.getByRole('checkbox', { name: 'get_current_weather' })
    expect(await box.isChecked()).toBe(true)
    await dialog.getByLabel('First request').selectOption('must call a tool')
    await dialog.getByRole('button', { name: 'Close' }).click()

    await send(page, "What's it like outside in Lisbon?")
    const card = page.getByRole('region', { name: 'Call of get_current_weather' })
    await card.getByText('It waits for you').waitFor()
    expect(await card.getByLabel('Arguments').innerText()).toContain('Lisbon')
    expect(await findAccessibilityProblems(page)).toEqual([])
    await card.getByRole('button', { name: 'Run' }).click()
    await page.locator('.turn > .meta').waitFor()
    expect(await card.getByLabel('Result').innerText()).toBe('Lisbon\n{"degrees":12}')
    expect(await answer()).not.toBe('')
    expect(await requestCode()).toMatch(/role: 'tool',\s+tool_call_id: 'call_/)
    expect(faults).toEqual([])
    await page.getByRole('button', { name: 'Tools: 1' }).click()
    await box.uncheck()
    await dialog.getByRole('button', { name: 'Close' }).click()
  })

  test('names the shapes in the picture of a suggested question', { tags: ['slow'] }, async () => {
    const { page, answer, faults } = playground
    await page.getByRole('button', { name: 'What is in this picture?' }).click()
    await page.locator('.turn > .meta').waitFor()
    expect(await page.locator('.turn .gallery img').count()).toBe(1)
    const said = await answer()
    for (const shape of ['red circle', 'blue square', 'yellow star']) expect(said).toContain(shape)
    expect(faults).toEqual([])
  })
})

describe('with answers by a script', () => {
  beforeEach(async () => {
    const { page, faults } = playground
    faults.length = 0
    await beginChat()
    await page.reload()
    await page.evaluate(await scriptedFetch())
  })

  test('stops in the middle of an answer, by Escape, and keeps what came', EVERYDAY, async () => {
    const { page } = playground
    await scriptAnswers(page, { text: 'one two', isOpen: true })
    await send(page, 'Count.')
    await expectAnswers(page, 'one two')
    await page.keyboard.press('Escape')
    await page.locator('.meta').waitFor()
    expect(await page.locator('.meta').innerText()).toMatch(/^stopped/)
    await expectAnswers(page, 'one two')
    expect(await page.evaluate(() => (window as unknown as ScriptedWindow).aborted)).toBe(1)
  })

  test('shows headings, lists, tables, code and formulas, and breaks no rule', async () => {
    const { page, ask, faults } = playground
    await scriptAnswers(
      page,
      '## A title\n\nText with **bold** and `code`.\n\n1. one\n2. two\n\n| a | b |\n|--:|---|\n' +
        '| 1 | 2 |\n\n```js\nconst a = "b" // c\n```\n\n$$\n\\frac{1}{x^2}\n$$\n\n[a](https://x.test/)',
    )
    await ask('Show all.')
    const answer = page.locator('.answer')
    expect(await answer.getByRole('heading', { name: 'A title' }).isVisible()).toBe(true)
    expect(await answer.locator('strong').innerText()).toBe('bold')
    expect(await answer.locator('ol > li').allInnerTexts()).toEqual(['one', 'two'])
    expect(await answer.locator('td.align-right').innerText()).toBe('1')
    expect(await answer.locator('pre .hljs-keyword').innerText()).toBe('const')
    expect(await answer.locator('math mfrac > *').count()).toBe(2)
    const box = await answer.locator('math').boundingBox()
    expect(box?.height).toBeGreaterThan(20)
    const link = answer.getByRole('link', { name: 'a', exact: true })
    expect(await link.getAttribute('rel')).toContain('noopener')
    expect(faults).toEqual([])
  })

  test('shows what a model writes as text', EVERYDAY, async () => {
    const { page, ask, answer, faults } = playground
    const text = '<img src=x onerror="stolen=1"> <script>stolen=1</script> <b>bold</b>'
    await scriptAnswers(page, text, HOSTILE_ANSWERS.slice(0, 20).join('\n\n'))
    await ask('Attack.')
    expect(await answer()).toBe(text)
    expect(await page.locator('#events').textContent()).toContain('onerror')
    expect(await page.locator('#events :not(.piece)').count()).toBe(0)
    await ask('Attack again.')
    const dangers = 'script, iframe, img, svg, style, link, form, object, [onerror], [onload]'
    expect(await page.locator('.answer').locator(dangers).count()).toBe(0)
    expect(await page.evaluate(() => Reflect.get(window, 'stolen'))).toBeUndefined()
    expect(faults).toEqual([])
  })

  test('keeps a chat across a reload, and "New chat" keeps the old one', EVERYDAY, async () => {
    const { page, ask, faults } = playground
    const questions = () => page.locator('.question').allInnerTexts()
    await ask('One?')
    await ask('Two?')
    await page.reload()
    await expect.poll(questions).toEqual(['One?', 'Two?'])
    await expectAnswers(page, 'Answer 1.', 'Answer 2.')
    await expect.poll(() => page.locator('.meta').count()).toBe(2)
    await toolButton(page, 'New chat').click()
    expect(await page.locator('.turn').count()).toBe(0)
    expect(await page.getByRole('heading', { level: 1 }).isVisible()).toBe(true)
    await page.evaluate(await scriptedFetch())
    await ask('Another?')
    const [body] = await page.evaluate(() => (window as unknown as ScriptedWindow).bodies)
    expect(body?.['messages']).toEqual([{ role: 'user', content: 'Another?' }])
    await page.reload()
    await expect.poll(questions).toEqual(['Another?'])
    await openHistory(page)
    const history = page.getByRole('complementary', { name: 'History' })
    const titles = await history.locator('.conversations .open').allInnerTexts()
    expect(titles.slice(0, 2)).toEqual(['Another?', 'One?'])
    await history.getByRole('button', { name: 'One?', exact: true }).click()
    await expect.poll(questions).toEqual(['One?', 'Two?'])
    expect(faults).toEqual([])
  })
})
