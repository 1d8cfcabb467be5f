/** Images in the playground's chat: chosen, pasted and dropped; shown, removed, and sent. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import {
  bodiesOf,
  cameraState,
  fakeCamera,
  give,
  usePlayground,
  type Playground,
  type PlaygroundOptions,
} from '../support/playground.ts'

const FILE = join(import.meta.dirname, '../models/vision/wide.png')
const DATA = readFileSync(FILE).toString('base64')
const SWITCHED = 'Guide takes no images, so Glance answers from now on.'

const openAt = usePlayground()

/** Opens the playground, and waits for the listing of models. */
async function open(options?: PlaygroundOptions): Promise<Playground> {
  const opened = await openAt(undefined, options)
  await opened.page.locator('#model:enabled').waitFor()
  return opened
}

const transfer = ({ page }: Playground, how: 'paste' | 'drop', mediaType = 'image/png') =>
  give(page.locator('#input'), how, FILE, mediaType)

/** Removes the embedded model that sees from the listing, as `--no-guide` does. */
function hideGlance(): void {
  const real = window.fetch
  window.fetch = async (input, init) => {
    const response = await real(input, init)
    if (!String(input).endsWith('/models')) return response
    const body = (await response.json()) as { data: { id: string }[] }
    const data = body.data.filter(({ id }) => id !== '@inorigin/glance')
    return Response.json({ ...body, data })
  }
}

test('an image is chosen, pasted and dropped, shown, removed, and sent again later', async () => {
  const opened = await open({ isScripted: true })
  const { page, ask, faults } = opened
  const images = page.getByRole('list', { name: 'Images to send' }).locator('img')
  await page.locator('#image-file').setInputFiles(FILE)
  await images.nth(0).waitFor()
  await transfer(opened, 'paste')
  await images.nth(1).waitFor()
  await transfer(opened, 'drop')
  await images.nth(2).waitFor()
  await page.getByRole('button', { name: 'Remove paste.file' }).click()
  expect(await images.count()).toBe(2)

  await ask('What is this?')
  expect(await images.count()).toBe(0)
  expect(await page.locator('.turn .gallery img').count()).toBe(2)
  await ask('And now?')
  const part = { type: 'image_url', image_url: { url: `data:image/png;base64,${DATA}` } }
  const question = {
    role: 'user',
    content: [part, part, { type: 'text', text: 'What is this?' }],
  }
  const answer = { role: 'assistant', content: 'Answer 1.' }
  expect(await bodiesOf(page)).toMatchObject([
    { messages: [question] },
    { messages: [question, answer, { role: 'user', content: 'And now?' }] },
  ])
  expect(faults).toEqual([])
})

test(
  'a picture of the camera is taken, and the camera is turned off',
  { tags: ['slow'] },
  async () => {
    const { page, ask, faults } = await open({ isScripted: true })
    await page.evaluate(fakeCamera)
    await page.getByRole('button', { name: 'Use the camera' }).click()
    const dialog = page.getByRole('dialog', { name: 'Camera' })
    await dialog.getByText('The picture stays in this page.').waitFor()
    expect(await findAccessibilityProblems(page)).toEqual([])
    expect(await cameraState(page)).toBe('live')
    await dialog.getByRole('button', { name: 'Take the picture' }).click()
    await page.locator('#images img').waitFor()
    expect(await cameraState(page)).toBe('ended')
    await ask('What is this?')
    expect(JSON.stringify(await bodiesOf(page))).toContain('data:image/jpeg;base64,')
    expect(faults).toEqual([])
  },
)

test('a dropped picture is answered by the model that sees, and a notice says so', async () => {
  const opened = await open()
  const { page, faults } = opened
  const model = page.getByRole('combobox', { name: 'Model' })
  expect(await model.inputValue()).toBe('@inorigin/guide')
  await transfer(opened, 'drop', 'application/pdf')
  await page.locator('.notice', { hasText: 'drop.file is not an image' }).waitFor()
  expect(await page.locator('#images img').count()).toBe(0)
  await transfer(opened, 'drop')
  await page.locator('.notice', { hasText: SWITCHED }).waitFor()
  expect(await model.inputValue()).toBe('@inorigin/glance')
  await page.locator('#images img').waitFor()
  // Nobody has to think of a question, and typing replaces it.
  expect(await page.getByLabel('Your question').inputValue()).toBe('What is in this picture?')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.turn > .meta').waitFor()
  expect(await page.locator('.turn .gallery img').count()).toBe(1)
  expect(await page.locator('.answer').innerText()).not.toBe('')
  expect(faults).toEqual([])
})

test('without a model that sees, an image is refused', async () => {
  const opened = await open({ before: hideGlance })
  const { page } = opened
  await transfer(opened, 'paste')
  const say = 'Guide takes no images. Choose another model for them.'
  await page.locator('.notice', { hasText: say }).waitFor()
  expect(await page.locator('#images img').count()).toBe(0)
  expect(await page.getByLabel('Your question').inputValue()).toBe('')
})
