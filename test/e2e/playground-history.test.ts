/** The playground's history: conversations that survive reloads, tabs, files and links. */
import type { Page } from 'playwright'
import { describe, expect, inject, test } from 'vitest'
import { makePatient } from '../support/browser.ts'
import {
  ask as askIn,
  download,
  expectAnswers,
  openHistory,
  scriptAnswers,
  send,
  toolButton,
  usePlayground,
} from '../support/playground.ts'

const open = usePlayground({ isScripted: true })

const questions = (page: Page) => page.locator('.question').allInnerTexts()
/** A button of the history. Those of the chat beside it have the same names. */
const inHistory = (page: Page, name: string) =>
  page.locator('#history').getByRole('button', { name, exact: true })
const titles = (page: Page) => page.locator('.conversations .open').allInnerTexts()

/** Opens the history and the options of its first conversation. */
async function openOptions(page: Page): Promise<void> {
  await openHistory(page)
  await page.locator('.options').first().click()
}

async function deleteIn(page: Page, name = 'Delete'): Promise<void> {
  await openOptions(page)
  await inHistory(page, name).click()
  await inHistory(page, `${name} for good?`).click()
}

const expectNothingStored = (page: Page) =>
  page.getByText('No conversation is stored yet.').waitFor()

test('searches, renames, and deletes conversations for good', { tags: ['slow'] }, async () => {
  const { page, ask } = await open()
  for (const question of ['Apples?', 'Pears?']) {
    await ask(question)
    await toolButton(page, 'New chat').click()
  }
  await openHistory(page)
  await page.getByLabel('Search the history').fill('answer PEARS')
  await expect.poll(() => titles(page)).toEqual(['Pears?'])
  await inHistory(page, 'Options of Pears?').click()
  await inHistory(page, 'Rename').click()
  await page.getByLabel('New title').fill('Fruit')
  await page.keyboard.press('Enter')
  await expect.poll(() => titles(page)).toEqual(['Fruit'])
  await page.getByLabel('Search the history').fill('')
  await expect.poll(() => titles(page)).toEqual(['Fruit', 'Apples?'])
  await inHistory(page, 'Options of Fruit').click()
  await inHistory(page, 'Delete').click()
  expect(await titles(page)).toEqual(['Fruit', 'Apples?'])
  await inHistory(page, 'Delete for good?').click()
  await expect.poll(() => titles(page)).toEqual(['Apples?'])
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

describe('two tabs', { tags: ['slow'] }, () => {
  /** Opens a conversation in two tabs. */
  async function openTwice(): Promise<[first: Page, second: Page]> {
    const { page, ask } = await open()
    await ask('Start?')
    const id = await page.evaluate(() => sessionStorage.getItem('playground:conversation'))
    const second = makePatient(await page.context().newPage())
    await second.addInitScript(
      (kept) => sessionStorage.setItem('playground:conversation', String(kept)),
      id,
    )
    await second.goto(inject('demo'))
    await expect.poll(() => questions(second)).toEqual(['Start?'])
    await expect.poll(() => second.locator('.turn > .meta').count()).toBe(1)
    return [page, second]
  }

  /** Asks for an answer that ends only when it is stopped. */
  async function askEndlessly(page: Page, question: string): Promise<void> {
    await scriptAnswers(page, { text: 'Half', isOpen: true })
    await send(page, question)
    await page.locator('.answer', { hasText: 'Half' }).waitFor()
  }

  test('keep what both have asked, one after the other', async () => {
    const [first, second] = await openTwice()
    await askIn(second, 'In the second?')
    await expect.poll(() => questions(first)).toEqual(['Start?', 'In the second?'])
    await expect.poll(() => first.locator('.turn > .meta').count()).toBe(2)
    await askIn(first, 'In the first?')
    await expect
      .poll(() => questions(second))
      .toEqual(['Start?', 'In the second?', 'In the first?'])
  })

  test('keep what both have asked at the same time', async () => {
    const [first, second] = await openTwice()
    await askEndlessly(second, 'In the second?')
    await expect.poll(() => questions(first)).toEqual(['Start?', 'In the second?'])
    await first.getByText('no answer yet').waitFor()
    await askIn(first, 'In the first?')
    await second.keyboard.press('Escape')
    const all = ['Start?', 'In the second?', 'In the first?']
    await expect.poll(() => questions(second)).toEqual(all)
    await expect.poll(() => first.locator('.answer').allInnerTexts()).toContain('Half')
    await first.reload()
    await expect.poll(() => questions(first)).toEqual(all)
  })

  test('do not bring back what the other one has deleted', async () => {
    const [first, second] = await openTwice()
    await askEndlessly(second, 'In the second?')
    await deleteIn(first)
    await expectNothingStored(first)
    await second.keyboard.press('Escape')
    await second.locator('.turn > .meta', { hasText: 'stopped' }).waitFor()
    await first.reload()
    await openHistory(first)
    await expectNothingStored(first)
    expect(await titles(first)).toEqual([])
  })

  test('show a new chat where the other one deletes theirs', async () => {
    const [first, second] = await openTwice()
    await deleteIn(second)
    await expect.poll(() => questions(first)).toEqual([])
    await first.reload()
    await openHistory(first)
    await expectNothingStored(first)
  })
})

test('exports a conversation, and imports it with its branches', { tags: ['slow'] }, async () => {
  const { page, ask } = await open()
  await ask('One?')
  await toolButton(page, 'Regenerate').click()
  await page.getByText('2 / 2').waitFor()
  await toolButton(page, 'Regenerate').waitFor()
  await openOptions(page)
  const markdown = await download(page, inHistory(page, 'Markdown'))
  expect(markdown.name).toBe('One.md')
  expect(markdown.text).toContain('# One?\n\n> One?\n\nAnswer 2.')
  const json = await download(page, inHistory(page, 'Export all'))
  await deleteIn(page, 'Delete all')
  await expectNothingStored(page)
  const input = page.getByLabel('File to import')
  const file = (text: string) => ({
    name: 'a.json',
    mimeType: 'application/json',
    buffer: Buffer.from(text),
  })
  await input.setInputFiles(file('{"a":1}'))
  await page.getByText('The file is not an export of this playground: format is wrong.').waitFor()
  expect(await titles(page)).toEqual([])
  await input.setInputFiles(file(json.text))
  await page.getByText('1 conversation is imported.').waitFor()
  await expect.poll(() => titles(page)).toEqual(['One?'])
  await inHistory(page, 'One?').click()
  await page.getByText('2 / 2').waitFor()
})

test('a link carries a conversation, and no server sees it', { tags: ['slow'] }, async () => {
  const permissions = ['clipboard-read', 'clipboard-write']
  const { page, ask, close } = await open(undefined, { permissions })
  await ask('Shared?')
  await openOptions(page)
  await inHistory(page, 'Copy link').click()
  await page.getByText('The link is copied.').waitFor()
  const link = await page.evaluate(() => navigator.clipboard.readText())
  await close()
  const other = await open(link)
  const seen: string[] = []
  other.page.on('request', (request) => seen.push(request.url()))
  await expect.poll(() => questions(other.page)).toEqual(['Shared?'])
  await expectAnswers(other.page, 'Answer 1.')
  expect(new URL(other.page.url()).hash).toBe('')
  await other.page.reload()
  await expect.poll(() => questions(other.page)).toEqual(['Shared?'])
  expect(seen.filter((url) => url.includes('chat='))).toEqual([])
  await other.page.goto(`${inject('demo')}#chat=damaged`)
  await other.page.reload()
  await other.page.getByText('The link holds no conversation that can be read').waitFor()
})
