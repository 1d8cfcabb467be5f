/** The comparison of models and settings, the command palette, and the shortcuts. */
import { readFileSync } from 'node:fs'
import { text as readText } from 'node:stream/consumers'
import type { Page } from 'playwright'
import { describe, expect, test } from 'vitest'
import type { Comparison } from '../../demo/compare/result.ts'
import { findAccessibilityProblems } from '../support/axe.ts'
import { endlessAnswer, scriptedAnswers } from '../support/fakes.ts'
import { scriptAnswers, usePlayground, type PlaygroundOptions } from '../support/playground.ts'
import { openSite } from '../support/site.ts'

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

const openAt = usePlayground()
const open = (options?: PlaygroundOptions, url?: string) => openAt(url, options)

async function openCompare(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Side by side' }).click()
  await page.getByRole('dialog', { name: 'Compare' }).waitFor()
}

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

async function download(page: Page, name: string): Promise<string> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name }).click(),
  ])
  return readText(await file.createReadStream())
}

/** The guide under a second tag, so that there are two models to compare. */
function secondGuide(): string {
  const catalog = JSON.parse(readFileSync('dist-demo/inorigin/models/catalog.json', 'utf8'))
  const guide = catalog.entries.find(({ tag }: { tag: string }) => tag === '@inorigin/guide')
  for (const { resources } of guide.implementations) {
    for (const resource of resources) resource.url = `/inorigin/models/${resource.url}`
  }
  const entries = [{ ...guide, tag: '@test/second', name: 'Second' }]
  return JSON.stringify({ version: catalog.version, entries })
}

describe('the comparison', () => {
  test('asks one model with two settings, shows figures, and exports them', async () => {
    const { page, faults } = await open({ before: countChats })
    await openCompare(page)
    const prompt = page.getByLabel('Prompt for all columns')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('Write a prompt first.').waitFor()
    await prompt.fill('What is inorigin?')
    const [first, second] = [1, 2].map((at) => page.getByRole('region', { name: `Column ${at}` }))
    if (!first || !second) throw new Error('There are two columns.')
    for (const column of [first, second])
      await column.getByLabel('Model').selectOption('@inorigin/guide')
    await first.getByLabel('Temperature').fill('0')
    await second.getByLabel('Max tokens').fill('3')
    await run(page)
    expect(await mostOf(page)).toBe(2)
    expect(await second.locator('dd').allInnerTexts()).toEqual([
      '3',
      expect.stringMatching(/^\d+$/),
      expect.stringMatching(/m?s$/),
      expect.stringMatching(/^[\d.]+$/),
      expect.stringMatching(/m?s$/),
      'length',
    ])
    expect(await findAccessibilityProblems(page)).toEqual([])

    const comparison = JSON.parse(await download(page, 'Save as JSON')) as Comparison
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
    const markdown = await download(page, 'Save as Markdown')
    expect(markdown).toContain('> What is inorigin?')
    expect(markdown).toMatch(/\| Settings \| temperature 0 \| maxTokens 3 \|/)
    expect(markdown).toMatch(/\| Tokens \| \d+ \| 3 \|/)
    expect(markdown).toContain(one?.text)
    expect(faults).toEqual([])
  })

  test('shows the answers as Markdown, anew in each run', { tags: ['slow'] }, async () => {
    const { page, faults } = await open({ before: scriptedAnswers })
    await openCompare(page)
    await page.getByLabel('Prompt for all columns').fill('Show it.')
    for (const word of ['first', 'second']) {
      const answer = { deltas: [{ content: `A **${word}** word.\n\n- one\n- two` }] }
      await scriptAnswers(page, answer, answer)
      await run(page)
      for (const at of [1, 2]) {
        const shown = page.getByLabel(`Answer ${at}`)
        expect(await shown.locator('strong').allInnerTexts()).toEqual([word])
        expect(await shown.locator('li').allInnerTexts()).toEqual(['one', 'two'])
      }
    }
    expect(faults).toEqual([])
  })

  test('asks three columns of two models, one after the other', { tags: ['slow'] }, async () => {
    const site = await openSite({ pages: {} })
    try {
      site.pages['/second.json'] = secondGuide()
      const url = `${site.url}/?catalog=/second.json`
      const { page } = await open({ before: countChats, ...PHONE }, url)
      await page.getByRole('button', { name: 'Load this catalog' }).click()
      await page.getByText('Runs here').waitFor()
      await openCompare(page)
      await page.getByRole('button', { name: 'Add a column' }).click()
      expect(await page.getByRole('button', { name: 'Add a column' }).isDisabled()).toBe(true)
      await page.getByLabel('Prompt for all columns').fill('What is 2 + 3?')
      await page
        .getByRole('region', { name: 'Column 1' })
        .getByLabel('Model')
        .selectOption('Second')
      for (const at of [2, 3]) {
        const column = page.getByRole('region', { name: `Column ${at}` })
        await column.getByLabel('Model').selectOption('@inorigin/guide')
      }
      await page.getByRole('button', { name: 'Remove column 2' }).click()
      await page.getByRole('button', { name: 'Add a column' }).click()
      await page.getByLabel('Ask together').uncheck()
      const third = page.getByRole('region', { name: 'Column 3' })
      await third.getByLabel('Model').selectOption('@inorigin/guide')
      await run(page)
      expect(await mostOf(page)).toBe(1)
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - window.innerWidth,
      )
      expect(overflow).toBe(0)
      const { columns } = JSON.parse(await download(page, 'Save as JSON')) as Comparison
      expect(columns.map(({ settings }) => settings.model)).toEqual([
        '@test/second',
        '@inorigin/guide',
        '@inorigin/guide',
      ])
      expect(columns.every(({ text }) => text !== '')).toBe(true)
    } finally {
      await site.close()
    }
  })

  test('stops, keeps what came, and says what a model refuses', { tags: ['slow'] }, async () => {
    const { page } = await open({ before: endlessAnswer, colorScheme: 'dark' })
    await openCompare(page)
    await page.getByLabel('Prompt for all columns').fill('Count.')
    for (const select of await page.getByRole('dialog').getByLabel('Model').all())
      await select.selectOption('@inorigin/guide')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    for (const at of [1, 2])
      await expect.poll(() => page.getByLabel(`Answer ${at}`).innerText()).toBe('one two')
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('dialog').locator('.compare-row').getByText('Stopped').waitFor()
    expect(await page.getByLabel('Answer 2').innerText()).toBe('one two')
    expect(await page.locator('.compare-error').allInnerTexts()).toEqual(['Stopped', 'Stopped'])
    expect(await findAccessibilityProblems(page)).toEqual([])
  })
})

describe('the palette', () => {
  test(
    'finds and runs commands by keyboard, and returns the focus',
    { tags: ['slow'] },
    async () => {
      const { page, faults } = await open()
      await page.getByText('Runs here').waitFor()
      await page.keyboard.press('Control+K')
      const palette = page.getByRole('dialog', { name: 'Commands' })
      await palette.waitFor()
      expect(await findAccessibilityProblems(page)).toEqual([])
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
    },
  )

  test('shortcuts run commands, but not while text is written', { tags: ['slow'] }, async () => {
    const { page } = await open()
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
    expect(await findAccessibilityProblems(page)).toEqual([])
    await page.keyboard.press('Alt+T')
    expect(await page.getByRole('dialog').count()).toBe(1)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Alt+T')
    await page.getByRole('dialog', { name: 'Tools' }).waitFor()
  })

  test('opens the panel of a phone by touch', { tags: ['slow'] }, async () => {
    const { page } = await open(PHONE)
    await page.getByText('Runs here').waitFor()
    await page.getByRole('button', { name: 'Commands' }).tap()
    await page.getByRole('option', { name: 'Show the settings' }).tap()
    await page.getByLabel('System prompt').waitFor()
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - window.innerWidth,
    )
    expect(overflow).toBe(0)
  })
})
