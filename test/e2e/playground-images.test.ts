/** Images in the playground's chat: chosen, pasted and dropped; shown, removed, and sent. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { fakeCamera } from '../support/fakes.ts'
import { usePlayground, type Playground, type PlaygroundOptions } from '../support/playground.ts'

const FILE = join(import.meta.dirname, '../models/vision/wide.png')
const DATA = readFileSync(FILE).toString('base64')

const openAt = usePlayground()
const open = (options?: PlaygroundOptions) => openAt(undefined, options)

/** Records the bodies of chats in `window.bodies`, and answers them as a model that takes images. */
function recordBodies(): void {
  const real = window.fetch
  const bodies: unknown[] = []
  Object.assign(window, { bodies })
  const chunk = { choices: [{ index: 0, delta: { content: 'Seen.' }, finish_reason: 'stop' }] }
  window.fetch = async (input, init) => {
    if (String(input).endsWith('/models')) {
      const text = await (await real(input, init)).text()
      const images = '"image_input":{"supported":true}'
      return new Response(text.replaceAll('"image_input":{"supported":false}', images))
    }
    if (!String(input).endsWith('/chat/completions')) return real(input, init)
    bodies.push(JSON.parse(String(init?.body)))
    return new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)
  }
}

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

/** Fires an event that carries the file, as a paste or a drop does. */
const transfer = ({ page }: Playground, type: 'paste' | 'drop', mediaType = 'image/png') =>
  page.locator('#input').evaluate(
    (target, [name, data, media]) => {
      const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
      const files = new DataTransfer()
      files.items.add(new File([bytes], `${name}.png`, { type: media }))
      const init = { bubbles: true, cancelable: true }
      const event =
        name === 'paste'
          ? new ClipboardEvent(name, { ...init, clipboardData: files })
          : new DragEvent(name, { ...init, dataTransfer: files })
      target.dispatchEvent(event)
    },
    [type, DATA, mediaType] as const,
  )

test('an image is chosen, pasted and dropped, shown, removed, and sent again later', async () => {
  const opened = await open({ before: recordBodies })
  const { page, ask, faults } = opened
  const images = page.getByRole('list', { name: 'Images to send' }).locator('img')
  await page.locator('#image-file').setInputFiles(FILE)
  await images.nth(0).waitFor()
  await transfer(opened, 'paste')
  await images.nth(1).waitFor()
  await transfer(opened, 'drop')
  await images.nth(2).waitFor()
  await page.getByRole('button', { name: 'Remove paste.png' }).click()
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
  expect(await page.evaluate(() => Reflect.get(window, 'bodies'))).toMatchObject([
    { messages: [question] },
    {
      messages: [
        question,
        { role: 'assistant', content: 'Seen.' },
        { role: 'user', content: 'And now?' },
      ],
    },
  ])
  // The request that is shown has no megabytes of base64.
  const code = (await page.locator('#request').textContent()) ?? ''
  expect(code).toContain('data:image/png;base64,')
  expect(code).not.toContain(DATA)
  expect(faults).toEqual([])
})

test(
  'a picture of the camera is taken, and the camera is turned off',
  { tags: ['slow'] },
  async () => {
    const { page, ask, faults } = await open({ before: recordBodies })
    await page.evaluate(fakeCamera)
    await page.getByRole('button', { name: 'Use the camera' }).click()
    const dialog = page.getByRole('dialog', { name: 'Camera' })
    await dialog.getByText('The picture stays in this page.').waitFor()
    expect(await findAccessibilityProblems(page)).toEqual([])
    expect(await page.evaluate(() => Reflect.get(window, 'cameraState')())).toBe('live')
    await dialog.getByRole('button', { name: 'Take the picture' }).click()
    await page.locator('#images img').waitFor()
    expect(await page.evaluate(() => Reflect.get(window, 'cameraState')())).toBe('ended')
    await ask('What is this?')
    const bodies = await page.evaluate(() => JSON.stringify(Reflect.get(window, 'bodies')))
    expect(bodies).toContain('data:image/jpeg;base64,')
    expect(faults).toEqual([])
  },
)

const SWITCHED = 'Guide takes no images, so Glance answers from now on.'

test('a picture that is dropped first is answered by the model that sees, which is said', async () => {
  const opened = await open()
  const { page, faults } = opened
  await page
    .getByRole('combobox', { name: 'Model' })
    .locator('option')
    .nth(1)
    .waitFor({ state: 'attached' })
  expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe('@inorigin/guide')
  await transfer(opened, 'drop')
  await page.locator('.notice', { hasText: SWITCHED }).waitFor()
  expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe('@inorigin/glance')
  await page.locator('#images img').waitFor()
  // Nobody has to think of a question, and typing replaces it.
  expect(await page.getByLabel('Your question').inputValue()).toBe('What is in this picture?')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.turn > .meta').waitFor()
  expect(await page.locator('.turn .gallery img').count()).toBe(1)
  expect(await page.locator('.answer').innerText()).not.toBe('')
  expect(faults).toEqual([])
})

test('a suggested question brings its picture, whose shapes are named', async () => {
  const { page, answer, faults } = await open()
  await page.getByRole('button', { name: 'What is in this picture?' }).click()
  await page.locator('.turn > .meta').waitFor()
  expect(await page.locator('.turn .gallery img').count()).toBe(1)
  const said = await answer()
  for (const shape of ['red circle', 'blue square', 'yellow star']) expect(said).toContain(shape)
  expect(faults).toEqual([])
})

test('without a model that sees, an image is refused', async () => {
  const opened = await open({ before: hideGlance })
  const say = 'Guide takes no images. Choose another model for them.'
  await transfer(opened, 'paste')
  await opened.page.locator('.notice', { hasText: say }).waitFor()
  expect(await opened.page.locator('#images img').count()).toBe(0)
  expect(await opened.page.getByLabel('Your question').inputValue()).toBe('')
})

test('a file that is no image is named, and not added', async () => {
  const opened = await open({ before: recordBodies })
  await transfer(opened, 'drop', 'application/pdf')
  await opened.page.locator('.notice', { hasText: 'drop.png is not an image' }).waitFor()
  expect(await opened.page.locator('#images img').count()).toBe(0)
})
