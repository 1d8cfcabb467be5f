/**
 * The page of models: cards, fit, downloads, files, and models that the visitor adds.
 *
 * @module-tag slow
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import type { Catalog, Implementation } from '../../src/catalog/schema.ts'
import { findAccessibilityProblems } from '../support/axe.ts'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { useSitePlayground, type Playground, type SiteOpening } from '../support/playground.ts'
import type { Site } from '../support/site.ts'

const MODELS = join(import.meta.dirname, '../../demo/models')
const FILE = '/inorigin/models/guide/onnx/model.onnx'
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

let hub: Hub | undefined
let playground: (Playground & { site: Site }) | undefined

afterEach(async () => {
  await hub?.close()
  hub = undefined
})

const openSitePlayground = useSitePlayground()

/** Opens the page of models, on WASM. */
async function open(opening?: SiteOpening): Promise<Page> {
  playground = await openSitePlayground(opening)
  await openPage(playground.page)
  return playground.page
}

async function openPage(page: Page): Promise<void> {
  await page.locator('#models-open').click()
  // The search comes together with the cards.
  await page.getByRole('searchbox').waitFor()
}

const cardOf = (page: Page, name: string): Locator =>
  page.locator('.card').filter({ has: page.getByRole('heading', { name, exact: true }) })

const press = (card: Locator, label: string): Promise<void> =>
  card.getByRole('button', { name: new RegExp(`^${label}`) }).click()

test('a card tells size, abilities and fit, and its model is loaded, pinned, checked and deleted', async () => {
  const page = await open()
  const card = cardOf(page, 'Guide')
  expect(await card.innerText()).toMatch(/text\s+tools\s+reasoning\s+JSON Schema/)
  expect(await card.innerText()).toMatch(/Download\s+6\.5 MB/)
  await card.getByText('Fits: runs on WASM. Why').click()
  await card.getByText(/^fp32-wasm, chosen/).waitFor()
  await card.getByText(/^fp32-webgpu/).waitFor()

  await press(card, 'Download')
  await card.getByText('in memory').waitFor()
  const here = page.getByRole('region', { name: 'On this device' })
  await here.getByRole('heading', { name: 'Guide', exact: true }).waitFor()
  await press(card, 'Pin')
  await card.getByText('in memory, pinned').waitFor()
  await press(card, 'Unpin')
  await press(card, 'Unload')
  await card.getByText('on this device', { exact: true }).waitFor()
  await press(card, 'Check files')
  await card.getByText('All files are intact.').waitFor()
  await press(card, 'Delete')
  await card.getByText('not downloaded').waitFor()
  expect(await here.isVisible()).toBe(false)
  expect(playground?.faults).toEqual([])
})

test('a download is paused, resumed and canceled at its card, after the page was closed, too', async () => {
  const page = await open({ served: { slow: { [FILE]: () => false } } })
  const card = cardOf(page, 'Guide')
  await press(card, 'Download')
  await card.getByText(/^Downloading guide · /).waitFor()
  await page.keyboard.press('Escape')
  await page.locator('.page').waitFor({ state: 'detached' })
  await openPage(page)
  await press(card, 'Pause')
  await card.getByText(/, paused$/).waitFor()
  await press(card, 'Resume')
  await card.getByText(/^Downloading guide · /).waitFor()
  await press(card, 'Cancel')
  await card.getByRole('button', { name: /^Download/ }).waitFor()
  expect(await card.getByText('Stored').count()).toBe(0)
})

test('a search narrows the cards by name and ability', async () => {
  const page = await open()
  const shown = page.locator('.card:visible')
  const all = await shown.count()
  await page.getByRole('searchbox').fill('qwen3 reasoning')
  await page.getByText(`3 of ${all} entries of the catalog`).waitFor()
  const names = ['Qwen3 0.6B', 'Qwen3 1.7B', 'Qwen3.5 0.8B']
  expect(await shown.getByRole('heading').allInnerTexts()).toEqual(names)
})

test('a model of a hub is looked up on demand; a hub that is down is said in short', async () => {
  hub = await openHub({ 'me/guide': repositoryOf(join(MODELS, 'guide'), 'a'.repeat(40)) })
  hub.refuseWith = 503
  const entry = { tag: '@me/guide', huggingface: 'me/guide', host: hub.url, name: 'Mine' }
  const page = await open({ entries: [entry] })
  const card = cardOf(page, 'Mine')
  expect(await card.innerText()).toContain('not looked up yet')
  await card.getByText('Look up its size and fit').click()
  await card.getByText('The hub that has @me/guide cannot be reached now.').waitFor()
  hub.refuseWith = 0
  await card.locator('summary').click()
  await card.locator('summary').click()
  await card.getByText(/, chosen/).waitFor()
  expect(hub.asked.some((path) => path.endsWith('.onnx'))).toBe(false)

  await press(card, 'Remove from my catalog')
  await page.waitForFunction(() => 'inorigin' in window && !document.querySelector('.page'))
  await openPage(page)
  expect(await card.count()).toBe(0)
})

/** Entry of the guide under a tag of the visitor, with this file as its settings. */
function guideWith(settings: { url: string; text: string }): object {
  const { entries } = JSON.parse(readFileSync(join(MODELS, 'catalog.json'), 'utf8')) as Catalog
  const guide = entries.find(({ tag }) => tag === '@inorigin/guide') as Catalog['entries'][number]
  const [{ id, engine, device, resources }] = guide.implementations.filter(
    (one) => one.device === 'wasm',
  ) as [Implementation]
  const sha256 = createHash('sha256').update(settings.text).digest('hex')
  const changed = { url: settings.url, bytes: settings.text.length, sha256 }
  const files = resources.map((file) => ({
    ...file,
    url: `/inorigin/models/${file.url}`,
    ...(file.name === 'generation_config.json' && changed),
  }))
  const implementations = [{ id, engine, device, resources: files }]
  return { ...guide, tag: '@me/guide', name: 'Mine', implementations }
}

test('a stored model whose files changed in the catalog is said to have an update', async () => {
  const text = readFileSync(join(MODELS, 'guide/generation_config.json'), 'utf8')
  const first = { url: '/first.json', text }
  const second = { url: '/second.json', text: `${text} ` }
  const pages = { '/first.json': first.text, '/second.json': second.text }
  const page = await open({ served: { pages }, entries: [guideWith(first)] })
  const card = cardOf(page, 'Mine')
  await press(card, 'Download')
  await card.getByText('in memory').waitFor()
  expect(await card.innerText()).not.toMatch(/update/i)

  await page.evaluate(
    (entries) => {
      localStorage.setItem('playground:own-catalog', entries)
    },
    JSON.stringify([guideWith(second)]),
  )
  await page.reload()
  await page.waitForFunction(() => 'inorigin' in window)
  await openPage(page)
  expect(await card.innerText()).toMatch(/update available: the next load downloads/)
  await press(card, 'Update')
  await card.getByText('in memory').waitFor()
  expect(await card.innerText()).not.toMatch(/update/i)
  expect(
    playground?.site.requests.filter((request) => request === 'GET /second.json'),
  ).toHaveLength(1)
})

test('files and folders become models of the visitor, and answer', async () => {
  const page = await open()
  await page.getByLabel('Files of a model').setInputFiles(join(MODELS, 'digits/model.onnx'))
  await page.getByText('@me/model was added.').waitFor()
  const imported = page.locator('.card').filter({ hasText: '@me/model' })
  expect(await imported.innerText()).toMatch(/predictor[^]*pinned/)

  await page.getByLabel('A folder of a model').setInputFiles(join(MODELS, 'guide'))
  await page.getByText('@me/guide was added.').waitFor()
  const card = page.locator('.card').filter({ hasText: '@me/guide' })
  await press(card, 'Use in chat')
  await page.locator('.page').waitFor({ state: 'detached' })
  expect(await page.locator('#model').inputValue()).toBe('@me/guide')
  await playground?.ask('Who are you?')
  expect(await playground?.answer()).not.toBe('')
  expect(playground?.site.requests.some((request) => request.endsWith(FILE))).toBe(false)
})

test('a model is added by the address of its file, and a wrong name is said to be one', async () => {
  const page = await open()
  const input = page.getByLabel('Repository of the hub, or an address')
  await input.fill('neither')
  await page.keyboard.press('Enter')
  await page.getByText('"neither" is neither owner/name nor an address.').waitFor()
  await input.fill(`${playground?.site.url}/inorigin/models/digits/model.onnx`)
  await page.keyboard.press('Enter')
  await page.getByText('@me/model was added.').waitFor()
  await input.fill('https://huggingface.co/Some-Owner/Some.Model/tree/main')
  await page.keyboard.press('Enter')
  // The page loads again, with the model in its catalog.
  const added = page.locator('option[value="@some-owner/some.model"]')
  await added.waitFor({ state: 'attached' })
  expect(await added.innerText()).toBe('Some.Model')
})

test('the page has no finding of axe, light and dark, and fits a phone', async () => {
  const page = await open({ options: { ...PHONE, colorScheme: 'dark' } })
  expect(await findAccessibilityProblems(page)).toEqual([])
  await page.emulateMedia({ colorScheme: 'light' })
  expect(await findAccessibilityProblems(page)).toEqual([])
  const width = await page.locator('.page-body').evaluate((body) => body.scrollWidth)
  expect(width).toBeLessThanOrEqual(PHONE.viewport.width)
  expect(playground?.faults).toEqual([])
})
