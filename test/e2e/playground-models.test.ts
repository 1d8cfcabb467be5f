/**
 * Models in the playground: cards, downloads, files and models of the visitor, the device, and the playground as an
 * app.
 *
 * @module-tag slow
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright'
import { afterEach, describe, expect, test } from 'vitest'
import type { TraceEvent } from '../../src/index.ts'
import type { Catalog, Implementation } from '../../src/catalog/schema.ts'
import { findAccessibilityProblems } from '../support/axe.ts'
import { CARD, createGgufChat } from '../support/gguf-chat.ts'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { untilKept } from '../support/offline.ts'
import {
  chooseStyle,
  largeEntry,
  openTab,
  overflowOf,
  send,
  useSitePlayground,
  type Playground,
  type PlaygroundWindow,
  type SiteOpening,
} from '../support/playground.ts'
import type { Site } from '../support/site.ts'

const MODELS = join(import.meta.dirname, '../../demo/models')
const GUIDE = join(MODELS, 'guide')
const MODEL = '/inorigin/models/guide/onnx/model.onnx'

let hub: Hub | undefined

afterEach(async () => {
  await hub?.close()
  hub = undefined
})

const open = useSitePlayground()

/** Opens a hub that has the guide and does not answer yet. */
async function openRefusingHub(): Promise<Hub> {
  hub = await openHub({ 'me/guide': repositoryOf(GUIDE, 'a'.repeat(40)) })
  hub.refuseWith = 503
  return hub
}

async function openDevice(page: Page): Promise<void> {
  await openTab(page, 'Settings')
  await page.getByRole('button', { name: 'All about this device' }).click()
  await page.getByRole('heading', { name: 'Log' }).waitFor()
}

/** Notes in a page what its answers wait for, in `window.phases`. */
function notePhases(): void {
  const phases: string[] = []
  Object.assign(window, { phases })
  new MutationObserver(() => {
    const words = document.querySelector('.wait')?.textContent
    if (words && words !== phases.at(-1)) phases.push(words)
  }).observe(document, { subtree: true, childList: true, characterData: true })
}

/** Value beside a name in a list of facts. */
const factOf = (page: Page, name: string) =>
  page.locator('.page dt', { hasText: new RegExp(`^${name}$`) }).locator('+ dd')

/** Row of the guide in the table of the models in memory. */
const guideRow = (page: Page) =>
  page
    .locator('section')
    .filter({ has: page.getByRole('heading', { name: 'Host' }) })
    .getByRole('row')
    .filter({ hasText: '@inorigin/guide' })

const modelOf = (page: Page) => page.locator('#model').inputValue()

describe('the page of models', () => {
  type Opened = Playground & { site: Site }

  async function openModels(opening?: SiteOpening): Promise<Opened> {
    const opened = await open(opening)
    await openPage(opened.page)
    return opened
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

  test('a card has size, abilities and fit, and loads, pins, checks and deletes its model', async () => {
    const { page, faults } = await openModels()
    const card = cardOf(page, 'Guide')
    expect(await card.innerText()).toMatch(/text\s+tools\s+reasoning\s+JSON Schema/)
    expect(await card.innerText()).toMatch(/Download\s+6\.5 MB/)
    expect(await card.innerText()).toContain('Answers questions about inorigin in English')
    await card.getByText('8.1 MB of memory; WebGPU or WASM').waitFor()
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

    const shown = page.locator('.card:visible')
    const all = await shown.count()
    await page.getByRole('searchbox').fill('qwen3 reasoning')
    await page.getByText(`3 of ${all} entries of the catalog`).waitFor()
    const names = ['Qwen3 0.6B', 'Qwen3 1.7B', 'Qwen3.5 0.8B']
    expect(await shown.getByRole('heading').allInnerTexts()).toEqual(names)
    expect(faults).toEqual([])
  })

  test('a download is paused, resumed and canceled at its card, also after the page was closed', async () => {
    const { page } = await openModels({ served: { slow: { [MODEL]: () => false } } })
    const card = cardOf(page, 'Guide')
    await press(card, 'Download')
    await card.getByText(/^Downloading Guide · /).waitFor()
    await page.keyboard.press('Escape')
    await page.locator('.page').waitFor({ state: 'detached' })
    await openPage(page)
    await press(card, 'Pause')
    await card.getByText(/, paused$/).waitFor()
    await press(card, 'Resume')
    await card.getByText(/^Downloading Guide · /).waitFor()
    await press(card, 'Cancel')
    await card.getByRole('button', { name: /^Download/ }).waitFor()
    expect(await card.getByText('Stored').count()).toBe(0)
  })

  test('a model of a hub is looked up on demand, and an error of the hub is shown in short', async () => {
    const refusing = await openRefusingHub()
    const entry = { tag: '@me/guide', huggingface: 'me/guide', host: refusing.url, name: 'Mine' }
    const { page } = await openModels({ entries: [entry] })
    const card = cardOf(page, 'Mine')
    expect(await card.innerText()).toContain('not looked up yet')
    expect(await card.innerText()).toMatch(/Unverified\s+stated by the catalog/)
    await card.getByText('Look up its size and fit').click()
    await card.getByText('The hub of @me/guide cannot be reached now.').waitFor()
    refusing.refuseWith = 0
    await card.locator('summary').click()
    await card.locator('summary').click()
    await card.getByText(/, chosen/).waitFor()
    await card.getByText('tiny-1.0').waitFor()
    expect(await card.innerText()).toMatch(/Download\s+6\.\d MB/)
    expect(await card.innerText()).not.toContain('Unverified')
    expect(refusing.asked.some((path) => path.endsWith('.onnx'))).toBe(false)

    await press(card, 'Remove from my catalog')
    await card.waitFor({ state: 'detached' })
    expect(await page.locator('option[value="@me/guide"]').count()).toBe(0)
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

  test('a stored model whose files changed in the catalog has an update', async () => {
    const text = readFileSync(join(GUIDE, 'generation_config.json'), 'utf8')
    const first = { url: '/first.json', text }
    const second = { url: '/second.json', text: `${text} ` }
    const pages = { '/first.json': first.text, '/second.json': second.text }
    const { page, site } = await openModels({ served: { pages }, entries: [guideWith(first)] })
    const card = cardOf(page, 'Mine')
    await press(card, 'Download')
    await card.getByText('in memory').waitFor()
    expect(await card.innerText()).not.toMatch(/update/i)

    const entries = JSON.stringify([guideWith(second)])
    await page.evaluate((own) => localStorage.setItem('playground:own-catalog', own), entries)
    await page.reload()
    await page.waitForFunction(() => 'inorigin' in window)
    await openPage(page)
    expect(await card.innerText()).toMatch(/update available: the next load downloads/)
    await press(card, 'Update')
    await card.getByText('in memory').waitFor()
    expect(await card.innerText()).not.toMatch(/update/i)
    expect(site.requests.filter((request) => request === 'GET /second.json')).toHaveLength(1)
  })

  test('files, folders and addresses become models of the visitor, and answer', async () => {
    const { page, site, ask, answer } = await openModels()
    const buffer = readFileSync(join(MODELS, 'digits/model.onnx'))
    const file = { name: 'Digit.onnx', mimeType: 'application/octet-stream', buffer }
    await page.getByLabel('Files of a model').setInputFiles(file)
    await page.getByText('@me/digit was added.').waitFor()
    const imported = page.locator('.card').filter({ hasText: '@me/digit' })
    expect(await imported.innerText()).toMatch(/predictor[^]*pinned/)

    await page.getByLabel('A folder of a model').setInputFiles(GUIDE)
    await page.getByText('@me/guide was added.').waitFor()
    const card = page.locator('.card').filter({ hasText: '@me/guide' })
    await press(card, 'Use in chat')
    await page.locator('.page').waitFor({ state: 'detached' })
    expect(await modelOf(page)).toBe('@me/guide')
    await ask('Who are you?')
    expect(await answer()).not.toBe('')
    expect(site.requests.some((request) => request.endsWith(MODEL))).toBe(false)

    await openPage(page)
    const input = page.getByLabel('Repository of the hub, or an address')
    await input.fill('neither')
    await page.keyboard.press('Enter')
    await page.getByText('"neither" is neither owner/name nor an address.').waitFor()
    await input.fill(`${site.url}/inorigin/models/digits/model.onnx`)
    await page.keyboard.press('Enter')
    await page.getByText('@me/model was added.').waitFor()
  })
})

test('a GGUF file that is dropped on the chat becomes a model with a card', async () => {
  const { page, ask, answer, faults } = await open()
  const bytes = Buffer.from(createGgufChat()).toString('base64')
  await page.evaluate((content) => {
    const file = Uint8Array.from(atob(content), (byte) => byte.charCodeAt(0))
    const dataTransfer = new DataTransfer()
    dataTransfer.items.add(new File([file], 'Tiny.Q4_1.gguf'))
    const options = { bubbles: true, cancelable: true, dataTransfer }
    document.querySelector('#composer')?.dispatchEvent(new DragEvent('drop', options))
  }, bytes)
  await page.getByText('@me/tiny.q4_1 was added.').waitFor()
  const card = page.locator('.card').filter({ hasText: '@me/tiny.q4_1' })
  await card.getByRole('heading', { name: CARD.name }).waitFor()
  const text = await card.innerText()
  expect(text).toMatch(/License\s+apache-2\.0/)
  expect(text).toMatch(/Parameters\s+0\.1M/)
  expect(text).toMatch(/Quantization\s+Q4_1/)
  expect(text).toMatch(/Download\s+\d+(\.\d)? kB/)
  await card.getByRole('button', { name: /^Use in chat/ }).click()
  await page.locator('.page').waitFor({ state: 'detached' })
  await ask('Hi')
  expect(await answer()).not.toBe('')
  expect(faults).toEqual([])
})

describe('downloads', () => {
  const strip = (page: Page) => page.locator('#loading')

  const button = (page: Page, name: string) =>
    strip(page).getByRole('button', { name, exact: true })

  /** Resolves with the tags that are stored at the moment when the strip shows the words. */
  const storedAt = (page: Page, words: string): Promise<string[]> =>
    page.evaluate(
      (awaited) =>
        new Promise((resolve, reject) => {
          const loading = document.querySelector('#loading')!
          const observer = new MutationObserver(() => {
            if (!loading.textContent.includes(awaited)) return
            observer.disconnect()
            const { inorigin } = window as PlaygroundWindow
            inorigin!.storage.list().then((tags) => resolve(tags.map(({ tag }) => tag)), reject)
          })
          observer.observe(loading, { childList: true, subtree: true })
        }),
      words,
    )

  test('a visit downloads neither model nor runtime before the visitor touches the composer', async () => {
    const { page, site } = await open()
    await page.getByText('Guide: 6.5 MB to download with your first question.').waitFor()
    // The host keeps its scripts when it is idle, and this one comes late in their order.
    await expect
      .poll(() =>
        page.evaluate(async () => {
          const assets = await (window as PlaygroundWindow).inorigin?.storage.assets()
          return assets?.some(({ url }) => url.endsWith('/worker.js'))
        }),
      )
      .toBe(true)
    const isLarge = (request: string) => request.endsWith('.wasm') || request.endsWith(MODEL)
    expect(site.requests.filter(isLarge)).toEqual([])
    await page.getByLabel('Your question').click()
    await strip(page).waitFor({ state: 'hidden' })
    expect(site.requests.filter(isLarge).length).toBeGreaterThan(1)
  })

  test('a download has users, is paused, resumed, and canceled after Stop', async () => {
    let isReleased = false
    const { page, ask, answer, faults } = await open({
      served: { slow: { [MODEL]: () => isReleased } },
      options: { before: notePhases },
    })
    await page.getByLabel('Your question').click()
    await button(page, 'Pause').click()
    await page.getByText(/^The download of Guide is paused at /).waitFor()
    await button(page, 'Resume').click()
    await button(page, 'Pause').waitFor()
    expect(await page.locator('#model').isEnabled()).toBe(true)

    await send(page, 'Who are you?')
    await page.getByText(/^Downloading Guide · /).waitFor()
    await page.getByText(/^Loading Guide, .* of 6\.5 MB$/).waitFor()
    await openDevice(page)
    const row = guideRow(page)
    await expect.poll(() => row.innerText()).toMatch(/loading\s+wasm\s+6\.5 MB\s+8\.1 MB\s+[1-9]$/)
    // It closes the page of the device, and does not stop the answer behind it.
    await page.keyboard.press('Escape')
    await page.locator('.page').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText(/^The answer was stopped\. Downloading Guide/).waitFor()
    const left = storedAt(page, 'The download of Guide was canceled.')
    await button(page, 'Cancel download').click()
    expect(await left).toEqual([])
    isReleased = true
    await ask('Who are you?')
    expect(await answer()).not.toBe('')
    const phases = await page.evaluate(() => Reflect.get(window, 'phases') as string[])
    const last = phases.slice(phases.lastIndexOf('Choosing a model'))
    expect(last.filter((words) => !words.startsWith('Loading'))).toEqual([
      'Choosing a model',
      'Reading your question',
      'Preparing Guide',
      'Reading your question',
    ])
    expect(last.some((words) => /^Loading Guide, .* of 6\.5 MB$/.test(words))).toBe(true)
    await openDevice(page)
    await expect.poll(() => row.innerText()).toMatch(/loaded\s+wasm\s+6\.5 MB\s+8\.1 MB\s+0$/)
    expect(faults).toEqual([])
  })

  test('the name of a model is whole at any width', async () => {
    const name = 'Large-1.5B-Instruct-with-a-long-name-q4f16_1'
    const { page } = await open({ entries: [{ ...largeEntry('@me/large'), name }] })
    const shown = page.locator('#model-name')
    for (const tag of ['@inorigin/guide', '@me/large']) {
      await page.locator('#model').selectOption(tag)
      if (tag === '@me/large') await page.getByRole('button', { name: 'Not now' }).click()
      for (const width of [320, 390, 800, 1100, 1440]) {
        await page.setViewportSize({ width, height: 844 })
        expect(await shown.innerText()).toContain(tag === '@me/large' ? name : 'Guide')
        const isCut = await shown.evaluate((element) => {
          const { right, bottom } = element.getBoundingClientRect()
          const next = document.querySelector('.gap')?.getBoundingClientRect()
          const bar = document.querySelector('.bar')?.getBoundingClientRect()
          return (
            element.scrollWidth > element.clientWidth ||
            right > (next?.left ?? 0) ||
            bottom > (bar?.bottom ?? 0)
          )
        })
        expect(isCut, `${tag} at ${width} pixels`).toBe(false)
        expect(await overflowOf(page)).toBe(0)
      }
    }
  })

  test('a large model is downloaded only with consent, and stays chosen across a reload', async () => {
    const { page } = await open({ entries: [largeEntry('@me/large')] })
    await chooseStyle(page, 'Messages')
    await page.locator('#model').selectOption('@me/large')
    const dialog = page.getByRole('dialog', { name: 'Download Large?' })
    await dialog.waitFor()
    const text = await dialog.innerText()
    expect(text).toMatch(/Download\s+912 MB/)
    expect(text).toMatch(/Memory\s+more than 912 MB/)
    expect(text).toMatch(/License\s+not stated/)
    expect(text).toMatch(/Context\s+2,048 tokens/)
    expect(text).toMatch(/This device\s+runs it on WASM: /)
    expect(text).toMatch(/Free storage\s+\S+ [kMGT]B/)
    expect(await findAccessibilityProblems(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.reload()
    // It is not asked for again, because nobody has chosen it in this visit.
    await page.getByText('Large: 912 MB to download with your first question.').waitFor()
    expect(await modelOf(page)).toBe('@me/large')
    expect(await page.getByRole('radio', { name: 'Messages' }).isChecked()).toBe(true)
    expect(await page.getByRole('dialog').count()).toBe(0)

    // A question without consent sends nothing, and offers the guide.
    await send(page, 'Hello')
    await dialog.getByRole('button', { name: 'Not now' }).click()
    const problem = page.getByRole('alert')
    expect(await problem.innerText()).toMatch(/Large was not downloaded, so nothing was asked/)
    await problem.getByRole('button', { name: 'Use the guide' }).click()
    expect(await modelOf(page)).toBe('@inorigin/guide')
    const stored = await page.evaluate(() => (window as PlaygroundWindow).inorigin?.storage.list())
    expect(stored?.map(({ tag }) => tag)).not.toContain('@me/large')
  })

  test('an error of a hub is shown once, in short, and the hub is asked again later', async () => {
    const refusing = await openRefusingHub()
    const entries = [{ tag: '@me/guide', huggingface: 'me/guide', host: refusing.url }]
    const { page, ask, answer } = await open({ entries })
    await page.locator('#model').selectOption('@me/guide')
    const words = 'The hub of guide cannot be reached now. Try again later.'
    await strip(page).getByText(words).waitFor()
    await ask('Hello')
    expect(await page.getByText('cannot be reached').count()).toBe(1)
    expect(await page.getByRole('alert').innerText()).toContain(words)
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
    expect(await findAccessibilityProblems(page)).toEqual([])

    refusing.refuseWith = 0
    await page.getByRole('alert').getByRole('button', { name: 'Ask again' }).click()
    await page.locator('.turn > .meta').waitFor()
    expect(await answer()).not.toBe('')
  })
})

test('the page of the device has the adapter, threads, storage, host, loaded models and the log', async () => {
  const permissions = ['clipboard-read', 'clipboard-write']
  const { page, ask, faults } = await open({ options: { permissions } })
  await ask('Who are you?')
  await openDevice(page)
  expect(await factOf(page, 'Adapter').innerText()).toMatch(/swiftshader/)
  expect(await factOf(page, 'Kind').innerText()).toBe('software on the processor')
  expect(await factOf(page, 'WASM threads').innerText()).toMatch(/^\d+ of \d+ logical/)
  expect(await factOf(page, 'Models').innerText()).toBe('6.5 MB')
  expect(await factOf(page, 'Hosting tab').innerText()).toBe('this tab')
  await page.getByText(/^Limits of the adapter: \d+$/).click()
  expect(await factOf(page, 'maxBufferSize').innerText()).toMatch(/^\d+(,\d{3})+$/)
  expect(await guideRow(page).innerText()).toMatch(
    /@inorigin\/guide\s+loaded\s+wasm\s+6\.5 MB\s+8\.1 MB\s+0/,
  )

  await page.evaluate(() =>
    (window as PlaygroundWindow).inorigin?.predict('@inorigin/digits', {
      image: new ImageData(28, 28),
    }),
  )
  const log = page.getByRole('region', { name: 'Log' })
  await log.getByText(/^predict, /).waitFor()
  await page.getByRole('button', { name: 'Copy as JSON' }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const copied = await page.evaluate(() => navigator.clipboard.readText())
  expect((JSON.parse(copied) as TraceEvent[]).map(({ type }) => type)).toEqual(
    expect.arrayContaining(['request', 'choice', 'load', 'response']),
  )
  expect(await findAccessibilityProblems(page)).toEqual([])
  expect(faults).toEqual([])

  const other = await page.context().newPage()
  await other.goto(page.url())
  await other.waitForFunction(() => 'inorigin' in window)
  await openDevice(other)
  expect(await factOf(other, 'Hosting tab').innerText()).toBe('another tab')
})

test('the manifest makes the playground installable, and its icons have their sizes', async () => {
  const { page, site } = await open()
  const session = await page.context().newCDPSession(page)
  const { errors, data } = await session.send('Page.getAppManifest')
  expect(errors).toEqual([])
  const { icons, start_url } = JSON.parse(data ?? '{}') as {
    icons: { src: string; sizes: string }[]
    start_url: string
  }
  expect(new URL(start_url, `${site.url}/manifest.webmanifest`).pathname).toBe('/')
  const sizes = await page.evaluate(
    (sources) =>
      Promise.all(
        sources.map(async (src) => {
          const image = Object.assign(new Image(), { src })
          await image.decode()
          return `${image.naturalWidth}x${image.naturalHeight}`
        }),
      ),
    icons.map(({ src }) => src),
  )
  expect(sizes).toEqual(icons.map((icon) => icon.sizes))
  expect(sizes).toContain('512x512')
})

test('the playground opens again and answers after its web server has ended', async () => {
  const { page, site, ask, answer } = await open()
  await ask('Who are you?')
  await untilKept(site, page)
  // The page keeps its own files by itself.
  await expect
    .poll(() => page.evaluate(async () => (await caches.match('./')) !== undefined))
    .toBe(true)
  await site.endServer()
  await page.reload()
  await ask('What is 2 + 3?')
  expect(await answer()).not.toBe('')
  // The pages, whose code is loaded when they are opened, are there, too.
  await page.locator('#models-open').click()
  await page.getByText(/^\d+ of \d+ entries of the catalog$/).waitFor()
})
