/** Models that a visitor adds to the playground, from a hub on this machine that the page takes for the public one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { createGgufChat } from '../support/gguf-chat.ts'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import {
  give,
  largeEntry,
  openTab,
  send,
  useSitePlayground,
  type SiteOpening,
} from '../support/playground.ts'

const MODELS = join(import.meta.dirname, '../../demo/models')
const GUIDE = join(MODELS, 'guide')
const DRAWING = join(import.meta.dirname, '../../demo/icons/icon-192.png')

let hub: Hub
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inorigin-add-'))
  const files = {
    'Tiny.Q4_1.gguf': createGgufChat(),
    'Tiny.F16.gguf': new Uint8Array(9),
    'model.safetensors': new Uint8Array(2_000_000),
    'all.zip': new Uint8Array(9),
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => hub?.close())

const open = useSitePlayground()

/** Opens the playground, whose requests to the public hub reach one on this machine. */
async function openBesideHub(opening?: SiteOpening) {
  const at = (name: string): string => join(folder, name)
  const commit = 'a'.repeat(40)
  hub = await openHub({
    'me/Guide': repositoryOf(GUIDE, commit),
    'me/Tiny-GGUF': {
      commit,
      files: { 'Tiny.F16.gguf': at('Tiny.F16.gguf'), 'Tiny.Q4_1.gguf': at('Tiny.Q4_1.gguf') },
    },
    'me/Trained': { commit, files: { 'model.safetensors': at('model.safetensors') } },
    'me/Half': { commit, files: { 'onnx/model.onnx': at('all.zip') } },
  })
  const playground = await open(opening)
  const { page } = playground
  await page.locator('#model:enabled').waitFor()
  await page.context().route('https://huggingface.co/**', async (route) => {
    const { pathname, search } = new URL(route.request().url())
    const { range } = route.request().headers()
    const response = await fetch(new URL(pathname + search, hub.url), {
      headers: range ? { range } : {},
    })
    await route.fulfill({
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: Buffer.from(await response.arrayBuffer()),
    })
  })
  return { ...playground, add: (text: string) => add(page, text) }
}

async function openModels(page: Page): Promise<void> {
  if ((await page.locator('.page').count()) > 0) return
  await page.locator('#models-open').click()
  await page.getByRole('searchbox').waitFor()
}

/** What the dialog says of the model that is added. */
const said = (page: Page) => page.locator('#add-models ~ [role=status]')

async function add(page: Page, text: string): Promise<void> {
  await openModels(page)
  await page.getByLabel('Repository of the hub, or an address').fill(text)
  await page.getByRole('button', { name: 'Add', exact: true }).click()
}

const selected = (page: Page) => page.locator('#model').inputValue()

const tagsOf = (page: Page): Promise<string[]> =>
  page
    .locator('#model option')
    .evaluateAll((all) => all.map((one) => (one as HTMLOptionElement).value))

test(
  'a model is added once, whatever its spelling, without a reload, and the draft stays',
  { tags: ['everyday'] },
  async () => {
    const { page, faults, add: addModel } = await openBesideHub()
    const question = 'A long question. '.repeat(40)
    await give(page.locator('#composer'), 'drop', DRAWING, 'image/png')
    await page.locator('#images img').waitFor()
    await page.getByLabel('Your question').fill(question)
    await page.evaluate(() => Object.assign(window, { isSamePage: true }))

    await addModel('me/Guide')
    await said(page)
      .getByText(/^@me\/guide was added: 6\.\d MB to download\. Its license is tiny-1\.0\./)
      .waitFor()
    await expect.poll(() => selected(page)).toBe('@me/guide')
    const spellings = ['ME/guide/', 'https://huggingface.co/me/Guide/tree/main', 'hf.co/me/guide?x']
    for (const spelling of spellings) {
      await addModel(spelling)
      await said(page).getByText('Guide is in the catalog already, as @me/guide.').waitFor()
    }
    expect((await tagsOf(page)).filter((tag) => tag.endsWith('/guide'))).toEqual([
      expect.any(String),
      expect.any(String),
    ])
    expect(await page.locator('.card').filter({ hasText: '@me/guide' }).count()).toBe(1)
    expect(hub.asked.filter((path) => path.startsWith('/api/'))).toHaveLength(2)
    await page.keyboard.press('Escape')
    expect(await page.getByLabel('Your question').inputValue()).toBe(question)
    expect(await page.locator('#images img').count()).toBe(1)
    expect(await page.evaluate(() => 'isSamePage' in window)).toBe(true)
    expect(faults).toEqual([])
  },
)

describe('what the hub has', { tags: ['slow'] }, () => {
  test('of a repository with GGUF files, the one that suits a browser is added, and answers', async () => {
    const { page, ask, answer, add: addModel } = await openBesideHub()
    await addModel('me/Tiny-GGUF')
    await said(page)
      .getByText(/Tiny\.Q4_1\.gguf was chosen of 2 GGUF files/)
      .waitFor()
    await expect.poll(() => selected(page)).toBe('@me/tiny.q4_1')
    await page.keyboard.press('Escape')
    await ask('Hi')
    expect(await answer()).not.toBe('')
  })

  test('a model that cannot be loaded is not listed, and one sentence says why', async () => {
    const { page, add: addModel } = await openBesideHub()
    const before = (await tagsOf(page)).toSorted()
    const expectWords = async (text: string, words: RegExp): Promise<void> => {
      await addModel(text)
      await said(page).getByText(words).waitFor()
      const own = await page.evaluate(() => localStorage.getItem('playground:own-catalog'))
      expect(own ?? '[]').toBe('[]')
    }
    await expectWords('me/Trained', /^me\/Trained has only safetensors files \(2\.0 MB\)/)
    await expectWords('me/Nothing', /^huggingface\.co has no public model me\/Nothing\./)
    // The look-up of the library finds what the list of files does not tell.
    await expectWords(
      'me/Half',
      /^The files of me\/Half on the hub are not exported for browsers\./,
    )
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
    hub.lie = { gated: 'auto' }
    await expectWords('me/Guide', /^me\/Guide is gated: .* Accept them on the hub/)
    hub.lie = { siblings: '<html>' }
    await expectWords('me/Guide', /^huggingface\.co sent no list of files/)
    hub.lie = {}
    hub.refuseWith = 500
    await expectWords('me/Guide', /^huggingface\.co answered with 500\. Try again later\./)
    expect(await findAccessibilityProblems(page)).toEqual([])
    await expect.poll(async () => (await tagsOf(page)).toSorted()).toEqual(before)
    hub.refuseWith = 0
    await page.getByRole('button', { name: 'Try again' }).click()
    await said(page).getByText('@me/guide was added').waitFor()
  })

  test('a repository of the catalog is selected under its shorter tag', async () => {
    const { page, add: addModel } = await openBesideHub()
    const before = (await tagsOf(page)).toSorted()
    await addModel('https://huggingface.co/onnx-community/qwen3-0.6b-onnx')
    await said(page).getByText('Qwen3 0.6B is in the catalog already').waitFor()
    await expect.poll(() => selected(page)).toBe('@onnx-community/qwen3-0.6b')
    await expect.poll(async () => (await tagsOf(page)).toSorted()).toEqual(before)
  })

  test('a page whose models another tab hosts says how the new model is listed', async () => {
    const { page, site } = await openBesideHub()
    const other = await page.context().newPage()
    await other.goto(`${site.url}/?device=wasm`)
    await other.waitForFunction(() => 'inorigin' in window)
    await add(other, 'me/Tiny-GGUF')
    await said(other)
      .getByText(/^@me\/tiny\.q4_1 is in your catalog\. Close the other tabs/)
      .waitFor()
    await page.close()
    await other.reload()
    await expect.poll(() => tagsOf(other)).toContain('@me/tiny.q4_1')
  })

  test('an answer that arrives continues, and a download resumes, while a model is added', async () => {
    let isReleased = false
    const slow = { '/inorigin/models/guide/onnx/model.onnx': () => isReleased }
    const { page, add: addModel } = await openBesideHub({ served: { slow } })
    await send(page, 'Who are you?')
    await page.getByText(/^Downloading Guide · /).waitFor()
    await addModel('me/Tiny-GGUF')
    await said(page).getByText('@me/tiny.q4_1 was added').waitFor()
    isReleased = true
    await page.keyboard.press('Escape')
    await page.locator('.turn > .meta').waitFor()
    expect(await page.locator('.answer').innerText()).not.toBe('')
  })
})

describe('a file in the format of others', { tags: ['slow'] }, () => {
  const NAMES = {
    '.safetensors': 'has the format of safetensors, which browsers cannot load.',
    '.pt': 'has the format of PyTorch, which browsers cannot load.',
    '.zip': 'is an archive. Unpack it',
  }

  /** Drops files of these names, and an image, on an element. */
  const drop = (page: Page, where: string, ...names: string[]): Promise<void> =>
    page.locator(where).evaluate((target, given) => {
      const dataTransfer = new DataTransfer()
      for (const name of given) {
        const type = name.endsWith('.png') ? 'image/png' : ''
        dataTransfer.items.add(new File(['x'], name, { type }))
      }
      target.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer }))
    }, names)

  test('that is dropped anywhere gets one sentence, and the image beside it is taken', async () => {
    const { page, faults } = await open()
    for (const [end, words] of Object.entries(NAMES)) {
      await drop(page, '#composer', `a${end}`, 'drawing.png')
      await page.locator('.notice').getByText(`a${end} ${words}`).waitFor()
    }
    await expect.poll(() => page.locator('#images img').count()).toBe(3)
    await drop(page, '.bar', 'b.safetensors')
    await said(page).getByText(`b.safetensors ${NAMES['.safetensors']}`).waitFor()
    await drop(page, '.drop', 'c.zip', 'drawing.png')
    await said(page).getByText(`c.zip ${NAMES['.zip']}`).waitFor()
    expect(faults).toEqual([])
  })
})

describe('a hub that is down', { tags: ['slow'] }, () => {
  test('leaves every page its own content, and the cards what the catalog states', async () => {
    const entry = { tag: '@me/first', huggingface: 'me/first', host: 'https://127.0.0.1:9/' }
    const { page, site } = await open({ entries: [entry] })
    await page.context().route('https://huggingface.co/**', (route) => route.abort())
    await openModels(page)
    const card = page.locator('.card').filter({ hasText: '@onnx-community/llama-3.2-1b' })
    const text = await card.innerText()
    expect(text).toMatch(/General-purpose chat model/)
    expect(text).toMatch(/Download\s+about 1\.0 GB, estimated/)
    expect(text).toMatch(/Needs\s+about 1\.3 GB of memory; WebGPU or WASM/)
    expect(text).toMatch(/License\s+llama3\.2/)
    expect(text).toMatch(/Languages\s+English, German, French/)
    expect(text).toMatch(/Context\s+32,768 tokens/)
    expect(text).toMatch(/Unverified\s+stated by the catalog/)
    expect(text).toMatch(/(Should fit|Is probably too large) \(estimate\)/)
    await page.keyboard.press('Escape')

    await openTab(page, 'Settings')
    await page.locator('#device-open').click()
    await page.getByRole('heading', { name: 'Log' }).waitFor()
    expect(await page.locator('.page').innerText()).not.toMatch(/hub|cannot be reached/)
    await page.keyboard.press('Escape')
    await page.locator('#compare-open').click()
    await page.getByLabel('Prompt for all columns').waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`${site.url}/bench.html`)
    await page.getByRole('button', { name: 'Start' }).waitFor()
    expect(await page.locator('body').innerText()).not.toMatch(/cannot be reached/)
  })
})

/** Notes for each thread of a probe how many answers are on their way when it starts. Runs in the page. */
function watchProbe(): void {
  const starts: number[] = []
  let answers = 0
  Object.assign(window, { starts })
  const real = window.fetch
  window.fetch = async (input, init) => {
    const isAsked = String(input).includes('/v1/chat/')
    if (isAsked) answers += 1
    const response = await real(input, init)
    if (isAsked)
      void response
        .clone()
        .text()
        .finally(() => (answers -= 1))
    return response
  }
  window.Worker = class extends Worker {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options)
      if (/\/thread-/.test(String(url))) starts.push(answers)
    }
  }
}

describe('the recommended model', { tags: ['slow'] }, () => {
  const speedOf = (page: Page): Promise<string | null> =>
    page.evaluate(() => localStorage.getItem('playground:speed'))

  test('has size, language and an estimate of speed, for which the device is measured once', async () => {
    let isReleased = false
    const slow = { '/inorigin/models/guide/onnx/model.onnx': () => isReleased }
    const options = { locale: 'fr-FR', before: watchProbe }
    const { page, faults } = await open({ served: { slow }, options })
    await send(page, 'Who are you?')
    await page.getByText(/^Downloading Guide · /).waitFor()
    await openModels(page)
    const recommended = page.getByRole('region', { name: 'Recommended for this device' })
    await recommended.getByText(/to download/).waitFor()
    await recommended.getByText('This device is measured for 2 s').waitFor()
    expect(await speedOf(page)).toBe(null)
    isReleased = true
    await recommended.getByText(/ · ~\d+ tokens\/s here \(estimate\)/).waitFor()
    expect(await recommended.innerText()).toMatch(
      /\d [GM]B to download · .*(French|many languages)/,
    )
    const measured = await speedOf(page)
    // Nothing is measured while an answer is on its way.
    const starts = await page.evaluate(() => Reflect.get(window, 'starts') as number[])
    expect(new Set(starts)).toEqual(new Set([0]))
    await page.keyboard.press('Escape')
    await openModels(page)
    await recommended.getByText(/ · ~\d+ tokens\/s here \(estimate\)/).waitFor()
    expect(await speedOf(page)).toBe(measured)
    expect(await findAccessibilityProblems(page)).toEqual([])
    expect(faults).toEqual([])
  })

  test('is offered where the guide does not know, and asked after the question about its download', async () => {
    const { page, ask, answer } = await open({ entries: [largeEntry('@me/large', 650_000_000)] })
    await ask('Write me a poem about the sea.')
    expect(await answer()).toMatch(/don't know/)
    await page.getByRole('button', { name: 'Use Large · 650 MB' }).click()
    const dialog = page.getByRole('dialog', { name: 'Download Large?' })
    expect(await dialog.innerText()).toMatch(/Download\s+650 MB, files of wasm/)
    expect(await dialog.innerText()).toMatch(/Languages\s+English/)
    await dialog.getByRole('button', { name: 'Not now' }).click()
    await page.getByRole('alert').getByText('Large was not downloaded').waitFor()
    expect(await selected(page)).toBe('@me/large')
  })
})
