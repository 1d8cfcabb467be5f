/** The playground's history: conversations that survive reloads, tabs, files and links. */
import type { Page } from 'playwright'
import { describe, expect, inject, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { makePatient } from '../support/browser.ts'
import { scriptedAnswers, type ScriptedWindow } from '../support/fakes.ts'
import { usePlayground } from '../support/playground.ts'

const open = usePlayground({ before: scriptedAnswers })

const tool = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const questions = (page: Page) => page.locator('.question').allInnerTexts()
/** A button of the history. Those of the chat behind it have the same names. */
const inHistory = (page: Page, name: string) =>
  page.locator('dialog.history').getByRole('button', { name, exact: true })
const titles = (page: Page) => page.locator('.conversations .open').allInnerTexts()

async function openHistory(page: Page): Promise<void> {
  await tool(page, 'History').click()
  await page.getByRole('dialog').waitFor()
}

/** Returns the text of the file that a click offers. */
async function download(page: Page, name: string): Promise<{ name: string; text: string }> {
  const offered = page.waitForEvent('download')
  await inHistory(page, name).click()
  const file = await offered
  const parts: Buffer[] = []
  for await (const part of await file.createReadStream()) parts.push(part as Buffer)
  return { name: file.suggestedFilename(), text: Buffer.concat(parts).toString() }
}

test('a chat survives a reload, and "New chat" keeps the old one', async () => {
  const { page, ask, faults } = await open()
  await ask('One?')
  await ask('Two?')
  await page.reload()
  await expect.poll(() => questions(page)).toEqual(['One?', 'Two?'])
  await expect
    .poll(() => page.locator('.answer').allInnerTexts())
    .toEqual(['Answer 1.', 'Answer 2.'])
  await expect.poll(() => page.locator('.meta').count()).toBe(2)
  await tool(page, 'New chat').click()
  await ask('Another?')
  await page.reload()
  await expect.poll(() => questions(page)).toEqual(['Another?'])
  await openHistory(page)
  await expect.poll(() => titles(page)).toEqual(['Another?', 'One?'])
  await inHistory(page, 'One?').click()
  await expect.poll(() => questions(page)).toEqual(['One?', 'Two?'])
  expect(faults).toEqual([])
})

test('conversations are searched, renamed, and deleted for good', { tags: ['slow'] }, async () => {
  const { page, ask } = await open()
  for (const question of ['Apples?', 'Pears?']) {
    await ask(question)
    await tool(page, 'New chat').click()
  }
  await openHistory(page)
  await page.getByLabel('Search the history').fill('answer PEARS')
  await expect.poll(() => titles(page)).toEqual(['Pears?'])
  await inHistory(page, 'Rename').click()
  await page.getByLabel('New title').fill('Fruit')
  await page.keyboard.press('Enter')
  await expect.poll(() => titles(page)).toEqual(['Fruit'])
  await page.getByLabel('Search the history').fill('')
  await expect.poll(() => titles(page)).toEqual(['Fruit', 'Apples?'])
  await inHistory(page, 'Delete').first().click()
  expect(await titles(page)).toEqual(['Fruit', 'Apples?'])
  await inHistory(page, 'Delete for good?').click()
  await expect.poll(() => titles(page)).toEqual(['Apples?'])
  await page.keyboard.press('Escape')
  await page.reload()
  await openHistory(page)
  await expect.poll(() => titles(page)).toEqual(['Apples?'])
  const stored = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const opening = indexedDB.open('playground')
        opening.addEventListener('success', () => {
          const all = opening.result
            .transaction('conversations')
            .objectStore('conversations')
            .getAll()
          all.addEventListener('success', () => resolve(JSON.stringify(all.result)))
        })
      }),
  )
  expect(stored).toContain('Apples?')
  expect(stored).not.toContain('Pears?')
})

describe('two tabs', () => {
  /** Opens another tab on the conversation of the first one. */
  async function duplicate(first: Page): Promise<Page> {
    const id = await first.evaluate(() => sessionStorage.getItem('playground:conversation'))
    const second = makePatient(await first.context().newPage())
    await second.addInitScript(scriptedAnswers)
    await second.addInitScript(
      (kept) => sessionStorage.setItem('playground:conversation', String(kept)),
      id,
    )
    await second.goto(inject('demo'))
    await expect.poll(() => questions(second)).toEqual(['Start?'])
    await expect.poll(() => second.locator('.turn > .meta').count()).toBe(1)
    return second
  }

  async function askIn(page: Page, question: string): Promise<void> {
    const ended = page.locator('.turn > .meta')
    const count = await ended.count()
    await page.getByLabel('Your question').fill(question)
    await page.keyboard.press('Enter')
    await ended.nth(count).waitFor()
  }

  test('that change one conversation keep what both have asked', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await ask('Start?')
    const second = await duplicate(page)
    await askIn(second, 'In the second?')
    await expect.poll(() => questions(page)).toEqual(['Start?', 'In the second?'])
    await expect.poll(() => page.locator('.turn > .meta').count()).toBe(2)
    await askIn(page, 'In the first?')
    await expect
      .poll(() => questions(second))
      .toEqual(['Start?', 'In the second?', 'In the first?'])
  })

  /** Asks for an answer that ends only when it is stopped. */
  async function askEndlessly(page: Page, question: string): Promise<void> {
    await page.evaluate(() => {
      const { script } = window as unknown as ScriptedWindow
      script.push({ deltas: [{ content: 'Half' }], isOpen: true })
    })
    await page.getByLabel('Your question').fill(question)
    await page.keyboard.press('Enter')
    await page.locator('.answer', { hasText: 'Half' }).waitFor()
  }

  test('that answer at the same time keep what both have asked', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await ask('Start?')
    const second = await duplicate(page)
    await askEndlessly(second, 'In the second?')
    await expect.poll(() => questions(page)).toEqual(['Start?', 'In the second?'])
    await page.getByText('no answer yet').waitFor()
    await askIn(page, 'In the first?')
    await second.keyboard.press('Escape')
    const all = ['Start?', 'In the second?', 'In the first?']
    await expect.poll(() => questions(second)).toEqual(all)
    await expect.poll(() => page.locator('.answer').allInnerTexts()).toContain('Half')
    await page.reload()
    await expect.poll(() => questions(page)).toEqual(all)
  })

  test('do not bring back what the other one has deleted', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await ask('Start?')
    const second = await duplicate(page)
    await askEndlessly(second, 'In the second?')
    await openHistory(page)
    await inHistory(page, 'Delete').click()
    await inHistory(page, 'Delete for good?').click()
    await page.getByText('No conversation is stored yet.').waitFor()
    await second.keyboard.press('Escape')
    await second.locator('.turn > .meta', { hasText: 'stopped' }).waitFor()
    await page.reload()
    await openHistory(page)
    await page.getByText('No conversation is stored yet.').waitFor()
    expect(await titles(page)).toEqual([])
  })

  test('show a new chat where the other one deletes theirs', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await ask('Start?')
    const second = await duplicate(page)
    await openHistory(second)
    await inHistory(second, 'Delete').click()
    await inHistory(second, 'Delete for good?').click()
    await expect.poll(() => questions(page)).toEqual([])
    await page.reload()
    await openHistory(page)
    await page.getByText('No conversation is stored yet.').waitFor()
  })
})

describe('files', () => {
  test(
    'a conversation is exported, deleted, and imported with its branches',
    { tags: ['slow'] },
    async () => {
      const { page, ask } = await open()
      await ask('One?')
      await tool(page, 'Regenerate').click()
      await page.getByText('2 / 2').waitFor()
      await tool(page, 'Regenerate').waitFor()
      await openHistory(page)
      const markdown = await download(page, 'Markdown')
      expect(markdown.name).toBe('One.md')
      expect(markdown.text).toContain('# One?\n\n> One?\n\nAnswer 2.')
      const json = await download(page, 'Export all')
      await inHistory(page, 'Delete all').click()
      await inHistory(page, 'Delete all for good?').click()
      await page.getByText('No conversation is stored yet.').waitFor()
      const file = { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from(json.text) }
      await page.getByLabel('File to import').setInputFiles(file)
      await page.getByText('1 conversation is imported.').waitFor()
      await expect.poll(() => titles(page)).toEqual(['One?'])
      await inHistory(page, 'One?').click()
      await page.getByText('2 / 2').waitFor()
    },
  )

  test('what is no export is refused, and nothing of it is stored', async () => {
    const { page } = await open()
    await openHistory(page)
    const files = [
      ['hello', 'The file is not JSON'],
      ['{"a":1}', 'The file is no export of this playground: format is wrong.'],
      [
        JSON.stringify(fileWith({ images: ['https://attacker.test/a.png'] })),
        'conversations.0.turns.0.images.0 is wrong.',
      ],
      [JSON.stringify(fileWith({ question: 7 })), 'turns.0.question is wrong.'],
    ] as const
    for (const [text, said] of files) {
      const file = { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from(text) }
      await page.getByLabel('File to import').setInputFiles(file)
      await page.getByRole('status').filter({ hasText: said }).waitFor()
      expect(await titles(page)).toEqual([])
    }
  })
})

/** A file of one turn, with these fields. */
function fileWith(fields: object): object {
  const times = { created: 1, changed: 1 }
  const turn = { id: 'b', parent: null, ...times, question: 'Q', images: [], ...fields }
  const conversation = { id: 'a', title: 'T', ...times, turns: [turn], chosen: {}, deleted: [] }
  return { format: 'inorigin-playground', version: 1, conversations: [conversation] }
}

describe('a link', () => {
  test(
    'carries a conversation to another browser, and no server sees it',
    { tags: ['slow'] },
    async () => {
      const permissions = ['clipboard-read', 'clipboard-write']
      const { page, ask, close } = await open(undefined, { permissions })
      await ask('Shared?')
      await openHistory(page)
      await inHistory(page, 'Copy link').click()
      await page.getByText('The link is copied.').waitFor()
      const link = await page.evaluate(() => navigator.clipboard.readText())
      await close()
      const other = await open(link)
      const seen: string[] = []
      other.page.on('request', (request) => seen.push(request.url()))
      await expect.poll(() => questions(other.page)).toEqual(['Shared?'])
      await expect.poll(() => other.page.locator('.answer').innerText()).toBe('Answer 1.')
      expect(new URL(other.page.url()).hash).toBe('')
      await other.page.reload()
      await expect.poll(() => questions(other.page)).toEqual(['Shared?'])
      expect(seen.filter((url) => url.includes('chat='))).toEqual([])
    },
  )

  test('that is damaged says so', { tags: ['slow'] }, async () => {
    const { page } = await open(`${inject('demo')}#chat=damaged`)
    await page.getByText('The link holds no conversation that can be read').waitFor()
    expect(await questions(page)).toEqual([])
  })
})

test.each(['light', 'dark'] as const)(
  'axe-core finds nothing in a history of 390 pixels in the %s',
  { tags: ['slow'] },
  async (colorScheme) => {
    const viewport = { width: 390, height: 844 }
    const { page, ask } = await open(undefined, { viewport, colorScheme })
    await ask('One?')
    await openHistory(page)
    await expect.poll(() => titles(page)).toEqual(['One?'])
    expect(await findAccessibilityProblems(page, 'dialog.history')).toEqual([])
    const box = await page.getByRole('dialog').boundingBox()
    expect(box?.width).toBeLessThanOrEqual(390)
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
  },
)
