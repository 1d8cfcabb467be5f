/** The comparison of models and settings, the command palette, and the shortcuts. */
import type { Page } from 'playwright'
import { describe, expect, test } from 'vitest'
import type { Comparison } from '../../demo/compare/result.ts'
import { findAccessibilityProblems } from '../support/axe.ts'
import {
  bodiesOf,
  download,
  overflowOf,
  PHONE,
  scriptAnswers,
  sharePlayground,
  usePlayground,
} from '../support/playground.ts'

async function openCompare(page: Page, prompt: string): Promise<void> {
  await page.getByRole('button', { name: 'Compare' }).click()
  await page.getByRole('dialog', { name: 'Compare' }).waitFor()
  await page.getByLabel('Prompt for all columns').fill(prompt)
}

const column = (page: Page, at: number) => page.getByRole('region', { name: `Column ${at}` })

const choose = (page: Page, at: number, model: string) =>
  column(page, at).getByLabel('Model').selectOption(model)

/** Counts the chats that run at once, in `window.most`. */
function countChats(): void {
  const real = window.fetch
  let running = 0
  Object.assign(window, { most: 0 })
  window.fetch = async (input, init) => {
    const response = await real(input, init)
    if (!String(input).endsWith('/chat/completions') || !response.body) return response
    running += 1
    Object.assign(window, { most: Math.max(running, Reflect.get(window, 'most')) })
    const counted = new TransformStream({ flush: () => void (running -= 1) })
    return new Response(response.body.pipeThrough(counted), response)
  }
}

const mostOf = (page: Page) => page.evaluate(() => Reflect.get(window, 'most') as number)

async function run(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.getByText('Done', { exact: true }).waitFor()
}

async function save(page: Page, format: 'JSON' | 'Markdown'): Promise<string> {
  const { text } = await download(page, page.getByRole('button', { name: `Save as ${format}` }))
  return text
}

describe('with the embedded models', () => {
  const open = usePlayground()

  test('the comparison asks one model with two settings, shows figures, and exports them', async () => {
    const { page, faults } = await open(undefined, { before: countChats })
    await openCompare(page, '')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('Write a prompt first.').waitFor()
    await page.getByLabel('Prompt for all columns').fill('What is inorigin?')
    for (const at of [1, 2]) await choose(page, at, '@inorigin/guide')
    await column(page, 1).getByLabel('Temperature').fill('0')
    await column(page, 2).getByLabel('Max tokens').fill('3')
    await run(page)
    expect(await mostOf(page)).toBe(2)
    expect(await column(page, 2).locator('dd').allInnerTexts()).toEqual([
      '3',
      expect.stringMatching(/^\d+$/),
      expect.stringMatching(/m?s$/),
      expect.stringMatching(/^[\d.]+$/),
      expect.stringMatching(/m?s$/),
      'length',
    ])

    const comparison = JSON.parse(await save(page, 'JSON')) as Comparison
    expect(comparison).toMatchObject({
      prompt: 'What is inorigin?',
      together: true,
      columns: [
        { settings: { model: '@inorigin/guide', temperature: 0 }, finish: 'stop' },
        { settings: { maxTokens: 3 }, completionTokens: 3, finish: 'length' },
      ],
    })
    const [one, two] = comparison.columns
    expect(one?.text).toBe(await page.getByLabel('Answer 1').innerText())
    expect(one?.tokensPerSecond).toBeGreaterThan(0)
    expect(two?.firstText).toBeLessThanOrEqual(two?.end ?? 0)
    expect(await save(page, 'Markdown')).toMatch(/\| Tokens \| \d+ \| 3 \|/)
    expect(faults).toEqual([])
  })

  test(
    'the comparison asks three columns of two models, one after the other',
    { tags: ['slow'] },
    async () => {
      const { page } = await open(undefined, { before: countChats, ...PHONE })
      await page.locator('#model:enabled').waitFor()
      await openCompare(page, 'What is 2 + 3?')
      const add = page.getByRole('button', { name: 'Add a column' })
      await add.click()
      expect(await add.isDisabled()).toBe(true)
      await choose(page, 1, '@inorigin/glance')
      await page.getByRole('button', { name: 'Remove column 2' }).click()
      await add.click()
      await page.getByLabel('Ask together').uncheck()
      for (const at of [2, 3]) await choose(page, at, '@inorigin/guide')
      await run(page)
      expect(await mostOf(page)).toBe(1)
      expect(await overflowOf(page)).toBe(0)
      const { columns } = JSON.parse(await save(page, 'JSON')) as Comparison
      expect(columns.map(({ settings }) => settings.model)).toEqual([
        '@inorigin/glance',
        '@inorigin/guide',
        '@inorigin/guide',
      ])
      expect(columns.every(({ text }) => text !== '')).toBe(true)
    },
  )

  test('the palette opens the panel of a phone by touch', { tags: ['slow'] }, async () => {
    const { page } = await open(undefined, PHONE)
    await page.locator('#model:enabled').waitFor()
    await page.getByRole('button', { name: 'Commands' }).tap()
    await page.getByRole('option', { name: 'Show the settings' }).tap()
    await page.getByLabel('System prompt').waitFor()
    expect(await overflowOf(page)).toBe(0)
  })
})

describe('with answers by a script', () => {
  const shared = sharePlayground({ isScripted: true })

  test(
    'the comparison shows Markdown, anew in each run, and stops',
    { tags: ['slow'] },
    async () => {
      const { page, faults } = shared()
      await openCompare(page, 'Show it.')
      for (const at of [1, 2]) await choose(page, at, '@inorigin/guide')
      for (const word of ['first', 'second']) {
        const text = `A **${word}** word.\n\n- one\n- two`
        await scriptAnswers(page, text, text)
        await run(page)
        for (const at of [1, 2]) {
          const shown = page.getByLabel(`Answer ${at}`)
          expect(await shown.locator('strong').allInnerTexts()).toEqual([word])
          expect(await shown.locator('li').allInnerTexts()).toEqual(['one', 'two'])
        }
      }
      const endless = { text: 'one two', isOpen: true }
      await scriptAnswers(page, endless, endless)
      await page.getByRole('button', { name: 'Run', exact: true }).click()
      for (const at of [1, 2])
        await expect.poll(() => page.getByLabel(`Answer ${at}`).innerText()).toBe('one two')
      await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
      await page.getByRole('dialog').locator('.compare-row').getByText('Stopped').waitFor()
      expect(await page.getByLabel('Answer 2').innerText()).toBe('one two')
      expect(await page.locator('.compare-error').allInnerTexts()).toEqual(['Stopped', 'Stopped'])
      expect(await findAccessibilityProblems(page)).toEqual([])
      expect(faults).toEqual([])
    },
  )

  test('the comparison opens with the last conversation', async () => {
    const { page, ask } = shared()
    await ask('One?')
    await ask('Two?')
    const opener = page.getByRole('button', { name: 'Compare' })
    const prompt = page.getByLabel('Prompt for all columns')
    const isWith = page.getByLabel('With 1 earlier question of the chat')
    await opener.click()
    expect(await prompt.inputValue()).toBe('Two?')
    for (const at of [1, 2]) await choose(page, at, '@inorigin/guide')
    await run(page)
    const earlier = [
      { role: 'user', content: 'One?' },
      { role: 'assistant', content: 'Answer 1.' },
    ]
    const question = { role: 'user', content: 'Two?' }
    const sent = async () => (await bodiesOf(page)).slice(-2).map(({ messages }) => messages)
    expect(await sent()).toEqual([
      [...earlier, question],
      [...earlier, question],
    ])
    const saved = JSON.parse(await save(page, 'JSON')) as Comparison
    expect(saved.history).toEqual([{ question: 'One?', images: [], answer: 'Answer 1.' }])
    await isWith.uncheck()
    await run(page)
    expect(await sent()).toEqual([[question], [question]])

    // A new chat has no question, so that of the last conversation is compared.
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'New chat', exact: true }).click()
    await page.reload()
    await page.getByText('Runs here').waitFor()
    await opener.click()
    expect(await prompt.inputValue()).toBe('Two?')
    expect(await isWith.isChecked()).toBe(true)
  })

  test('the palette finds and runs commands by keyboard, and returns the focus', async () => {
    const { page, faults } = shared()
    await page.getByText('Runs here').waitFor()
    await page.keyboard.press('Control+K')
    const palette = page.getByRole('dialog', { name: 'Commands' })
    await palette.waitFor()
    await page.keyboard.type('zzz')
    await page.getByText('No command has this name.').waitFor()
    await page.getByRole('combobox', { name: 'Find a command' }).fill('show the')
    const options = palette.getByRole('option')
    expect(await options.allInnerTexts()).toHaveLength(5)
    await page.keyboard.press('ArrowDown')
    expect(await options.nth(1).getAttribute('aria-selected')).toBe('true')
    await page.keyboard.press('Enter')
    expect(await palette.count()).toBe(0)
    const tab = page.getByRole('tab', { name: 'Predictors' })
    expect(await tab.getAttribute('aria-selected')).toBe('true')

    await page.keyboard.press('Control+K')
    await palette.waitFor()
    await page.keyboard.press('Control+K')
    await palette.waitFor({ state: 'hidden' })
    expect(faults).toEqual([])
  })

  test('shortcuts run commands, but not while text is written', async () => {
    const { page } = shared()
    await page.getByText('Runs here').waitFor()
    const input = page.getByLabel('Your question')
    await input.focus()
    await page.keyboard.type('a/b?')
    expect(await input.inputValue()).toBe('a/b?')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.keyboard.press('Alt+P')
    const tab = page.getByRole('tab', { name: 'Predictors' })
    expect(await tab.getAttribute('aria-selected')).toBe('true')
    await tab.focus()
    await page.keyboard.press('/')
    expect(await input.evaluate((field) => field.matches(':focus'))).toBe(true)
    await tab.focus()
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'Shortcuts' })
    await help.waitFor()
    expect(await help.innerText()).toMatch(/Ctrl K\s+Find a command/)
    await page.keyboard.press('Alt+T')
    expect(await page.getByRole('dialog').count()).toBe(1)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Alt+T')
    await page.getByRole('dialog', { name: 'Tools' }).waitFor()
  })
})
