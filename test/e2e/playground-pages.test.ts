/** What holds for every page of the playground, and what its address, its start and its frame do. */
import { readFileSync } from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { startBridge, TOKEN, type BridgeCommand } from '../support/bridge-command.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import {
  largeEntry,
  openTab,
  overflowOf,
  PHONE,
  usePlayground,
  type PlaygroundOptions,
  type PlaygroundWindow,
} from '../support/playground.ts'
import { missingScript, openPlaygroundPage, PLAYGROUND_PAGES } from '../support/playground-pages.ts'
import { openSite } from '../support/site.ts'

const DEMO = join(import.meta.dirname, '../../dist-demo')

/** Bytes of script, as it is before it is compressed. */
const MAX_FIRST_SCRIPT_BYTES = 100_000

const SLOW = { tags: ['slow'] }

const openAt = usePlayground()
const open = (query = '', options?: PlaygroundOptions) =>
  openAt(`${inject('demo')}${query}`, options)

const modelOf = (page: Page) => page.getByRole('combobox', { name: 'Model' }).inputValue()

describe('every page', () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await openBrowser()
  })

  afterAll(() => browser?.close())

  describe.each([
    { width: 1280, height: 800, colorScheme: 'light' },
    { width: 390, height: 844, colorScheme: 'dark' },
  ] as const)('at $width pixels, $colorScheme', ({ width, height, colorScheme }) => {
    test.each(PLAYGROUND_PAGES)(
      'the page "$name" has no finding of axe and no overflow',
      SLOW,
      async (given) => {
        const context = await browser.newContext({ viewport: { width, height }, colorScheme })
        try {
          const page = makePatient(await context.newPage())
          await openPlaygroundPage(page, inject('demo'), given)
          expect(await findAccessibilityProblems(page)).toEqual([])
          expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
          expect(await page.locator('h1').filter({ visible: true }).count()).toBeGreaterThan(0)
        } finally {
          await context.close()
        }
      },
    )
  })

  test('the selection is visible with the colors of the system only', async () => {
    const context = await browser.newContext({ forcedColors: 'active' })
    try {
      const page = makePatient(await context.newPage())
      await page.goto(inject('demo'))
      const background = (selector: string): Promise<string> =>
        page.locator(selector).evaluate((found) => getComputedStyle(found).backgroundColor)
      expect(await background('#tab-requests')).not.toBe(await background('#tab-settings'))
      const style = '#style input:checked + span'
      expect(await background(style)).not.toBe(
        await background('#style input:not(:checked) + span >> nth=0'),
      )
    } finally {
      await context.close()
    }
  })

  test('the first paint needs less than 100 kB of script', () => {
    const html = readFileSync(join(DEMO, 'index.html'), 'utf8')
    const scripts = Array.from(
      html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g),
      ([, path]) => path,
    )
    expect(scripts.length).toBeGreaterThan(0)
    const bytes = scripts.map((path = '') => readFileSync(join(DEMO, path)).length)
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(MAX_FIRST_SCRIPT_BYTES)
  })
})

describe('the address', () => {
  test.each(['wasm', 'webgpu'])('?device=%s chooses where models run', SLOW, async (device) => {
    const { page } = await open(`?device=${device}`)
    const label = device === 'webgpu' ? /on WebGPU: google swiftshader \(software\)/ : /on WASM/
    await page.getByText(label).waitFor()
    const states = await page.evaluate(() => (window as PlaygroundWindow).inorigin?.models.list())
    expect(states?.find(({ tag }) => tag === '@inorigin/guide')?.device).toBe(device)
  })

  test('an unknown device and a wrong address of a catalog are named', async () => {
    const { page } = await open('?device=abacus&catalog=javascript:alert(1)')
    const said = page.getByRole('status').filter({ hasText: 'Unknown device "abacus"' })
    await said.waitFor()
    await page.getByText('is not the address of a catalog').waitFor()
    expect(await page.locator('dialog').isVisible()).toBe(false)
    await page.getByText('Runs here').waitFor()
    await said.getByRole('button', { name: 'Dismiss' }).click()
    expect(await said.count()).toBe(0)
  })

  describe('?catalog=', SLOW, () => {
    let foreign: HttpServer
    let url: string
    let requests = 0

    beforeAll(async () => {
      foreign = createServer((_request, response) => {
        requests += 1
        response.setHeader('access-control-allow-origin', '*')
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ version: 1, entries: [largeEntry('@someone/large')] }))
      })
      await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve))
      url = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}/catalog.json`
    })

    afterAll(() => {
      foreign.close()
      foreign.closeAllConnections()
    })

    test('is named in a question first, and nothing is loaded without consent', async () => {
      const { page } = await open(`?catalog=${encodeURIComponent(url)}`)
      const dialog = page.getByRole('dialog')
      await dialog.waitFor()
      expect(await dialog.innerText()).toContain(url)
      expect(await page.evaluate(() => 'inorigin' in window)).toBe(false)
      await page.keyboard.press('Escape')
      await page.waitForFunction(() => 'inorigin' in window)
      await page.getByText('Runs here').waitFor()
      expect(await modelOf(page)).toBe('@inorigin/guide')
      expect(requests).toBe(0)
    })

    test('is loaded with consent, and a large model of it only after another question', async () => {
      const { page } = await open(`?catalog=${encodeURIComponent(url)}`)
      await page.getByRole('button', { name: 'Load this catalog' }).click()
      await page.getByText('Large: 912 MB to download with your first question.').waitFor()
      expect(await modelOf(page)).toBe('@someone/large')
      expect(requests).toBeGreaterThan(0)
    })
  })
})

/** A browser that refuses service workers, as in a private window. Runs in the page. */
function refusedWorker(): void {
  const refusal = new DOMException('The operation is insecure.', 'SecurityError')
  navigator.serviceWorker.register = () => Promise.reject(refusal)
}

describe('the start', () => {
  test('says why the server could not start, and what to do', async () => {
    const { page } = await open('', { before: missingScript })
    const notice = page.getByRole('alert')
    await notice.waitFor()
    expect(await notice.innerText()).toMatch(
      /could not start .*no service worker script.*inorigin init/s,
    )
    expect(await notice.getByRole('button', { name: 'Try again' }).isVisible()).toBe(true)
  })

  test.each<[string, PlaygroundOptions]>([
    ['that the browser refuses', { before: refusedWorker }],
    ['that Playwright blocks', { serviceWorkers: 'block' }],
  ])('does without a service worker %s, and says so', SLOW, async (_how, options) => {
    const { page, ask, answer } = await open('', options)
    await page.getByText('This browser allows no service worker here').waitFor()
    await ask('Who are you?')
    expect(await answer()).not.toBe('')
  })

  test('isolates the page for threads, and says what the embedded models can do', async () => {
    const { page } = await open()
    await page.getByText('Runs here').waitFor()
    await openTab(page, 'Settings')
    await page.getByText(/^up to \d+ threads$/).waitFor()
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
    const said = (await page.locator('#welcome').innerText()).replaceAll(/\s+/g, ' ')
    expect(said).toContain('the guide answers questions about inorigin')
    expect(said).toContain('Glance says what a simple drawing shows')
    const models = page.getByRole('combobox', { name: 'Model' }).locator('option')
    const offered = await models.evaluateAll((options) =>
      options.map((option) => (option as HTMLOptionElement).value),
    )
    expect(offered).toEqual(
      expect.arrayContaining(['@inorigin/guide', '@huggingfacetb/smollm2-135m']),
    )
    expect(offered).not.toContain('@inorigin/embed')
    // axe-core asks for the names of the other controls.
    expect(await page.locator('canvas:not([aria-label], [aria-labelledby])').count()).toBe(0)
  })
})

describe('the frame', SLOW, () => {
  test('opens its panel over the chat of a phone', async () => {
    const { page } = await open('', { ...PHONE, viewport: { width: 360, height: 740 } })
    await page.getByRole('button', { name: 'What is inorigin?' }).tap()
    await page.locator('.meta').waitFor()
    expect(await overflowOf(page)).toBe(0)
    const opener = page.getByRole('button', { name: 'Requests and settings' })
    await opener.tap()
    expect(await page.locator('#events').isVisible()).toBe(true)
    const requests = page.getByRole('tab', { name: 'Requests' })
    expect(await requests.evaluate((tab) => tab.matches(':focus'))).toBe(true)
    for (const tab of ['Predictors', 'Settings', 'Requests']) {
      await page.getByRole('tab', { name: tab }).tap()
      expect(await overflowOf(page)).toBe(0)
    }
    await page.keyboard.press('Escape')
    await page.locator('#events').waitFor({ state: 'hidden' })
    expect(await opener.evaluate((button) => button.matches(':focus'))).toBe(true)
  })

  test('shows an error card in full at 390 pixels', async () => {
    const file = '/inorigin/models/guide/onnx/model.onnx'
    const site = await openSite({ pages: { [file]: 'This is not a model.' } })
    try {
      const { page, ask } = await openAt(`${site.url}/`, { ...PHONE, hasTouch: false })
      await page.getByLabel('Your question').click()
      await page.getByText('Guide could not be loaded.').waitFor()
      // Both name the address of the file, which has no place to break at.
      for (let round = 0; round < 5; round += 1) await ask('What is inorigin?')
      const card = page.getByRole('alert').last()
      expect(await card.innerText()).toContain(file)
      const { width } = PHONE.viewport
      expect(edge(await card.boundingBox(), 'x', 'width')).toBeLessThanOrEqual(width)
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
      const hidden = async (): Promise<number> => {
        const scroll = await page.locator('#scroll').boundingBox()
        return edge(await card.boundingBox(), 'y', 'height') - edge(scroll, 'y', 'height')
      }
      await expect.poll(hidden).toBeLessThanOrEqual(0)
      // The strip below grows when another load fails after the question.
      await page.locator('#loading').evaluate((strip: HTMLElement) => {
        strip.hidden = false
        const text = strip.querySelector('p')
        if (text) text.textContent = String(text.textContent).repeat(3)
      })
      await expect.poll(hidden).toBeLessThanOrEqual(0)
    } finally {
      await site.close()
    }
  })

  test('the requests are closed at first, and stay as they were left', async () => {
    const { page } = await open()
    const requests = page.getByRole('tab', { name: 'Requests' })
    expect(await requests.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Requests and settings' }).click()
    expect(await requests.getAttribute('aria-selected')).toBe('true')
    await page.getByText('POST /v1/chat/completions').waitFor()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.reload()
    await page.getByLabel('System prompt').waitFor()
    await page.getByText(/^up to \d+ threads$/).waitFor()
    await page.locator('#panel-close').click()
    await page.reload()
    expect(await requests.isVisible()).toBe(false)
  })

  test('the history is beside the chat and stays as it was left, and is over it on a phone', async () => {
    const { page, ask, faults } = await open()
    const side = page.getByRole('complementary', { name: 'History' })
    const opener = page.getByRole('button', { name: 'History', exact: true })
    const shown = side.locator('[aria-current]')
    await ask('Who are you?')
    await expect.poll(() => shown.allInnerTexts()).toEqual(['Who are you?'])
    await side.getByRole('button', { name: 'New chat' }).click()
    expect(await page.locator('.turn').count()).toBe(0)
    expect(await shown.count()).toBe(0)
    await opener.click()
    expect(await side.isVisible()).toBe(false)
    await page.reload()
    expect(await opener.getAttribute('aria-expanded')).toBe('false')

    await page.setViewportSize(PHONE.viewport)
    await page.getByLabel('Your question').fill('A draft')
    await opener.click()
    await side.getByRole('button', { name: 'Who are you?', exact: true }).click()
    await page.locator('.turn > .meta').waitFor()
    expect(await side.isVisible()).toBe(false)
    expect(await page.getByLabel('Your question').inputValue()).toBe('A draft')
    await opener.click()
    await page.keyboard.press('Escape')
    expect(await side.isVisible()).toBe(false)
    expect(await opener.evaluate((button) => button.matches(':focus'))).toBe(true)
    expect(faults).toEqual([])
  })

  test('the chat speaks of no path, its row of buttons is low, and an image is in its question', async () => {
    const { page } = await open('', PHONE)
    await page.getByRole('button', { name: 'What is in this picture?' }).tap()
    await page.locator('.turn > .meta').waitFor()
    for (const text of await page.locator('.bar, .chat').allInnerTexts())
      expect(text).not.toContain('/v1')
    const row = await page.locator('.under').boundingBox()
    expect(row?.height).toBeLessThanOrEqual(60)
    const bubble = page.locator('.pictured', { hasText: 'What is in this picture?' })
    expect(await bubble.locator('img').count()).toBe(1)
  })

  test('is dark where the system is, and remembers another wish', async () => {
    const { page } = await open('', { colorScheme: 'dark' })
    const isDark = () =>
      page.evaluate(() => {
        const [, red = '255'] =
          /rgb\((\d+)/.exec(getComputedStyle(document.body).backgroundColor) ?? []
        return Number(red) < 64
      })
    expect(await isDark()).toBe(true)
    await page.getByRole('button', { name: 'Light theme' }).click()
    expect(await isDark()).toBe(false)
    await page.reload()
    expect(await isDark()).toBe(false)
    await page.getByRole('button', { name: 'Dark theme' }).click()
    expect(await isDark()).toBe(true)
  })
})

type Box = Record<'x' | 'y' | 'width' | 'height', number>

/** Returns the right or the bottom edge of a box. */
function edge(box: Box | null, start: 'x' | 'y', size: 'width' | 'height'): number {
  if (!box) throw new Error('The element is not shown.')
  return box[start] + box[size]
}

describe('the bridge', () => {
  let command: BridgeCommand | undefined

  afterEach(() => command?.end())

  test('is lent the tab with the right token only, until the user stops', async () => {
    command = await startBridge()
    const { url } = command
    const complete = async () => {
      const messages = [{ role: 'user', content: 'What is inorigin?' }]
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: '@inorigin/guide', messages, max_tokens: 2 }),
      })
      return response.status
    }
    const { page, faults } = await open()
    await openTab(page, 'Settings')
    await page.getByLabel('Address', { exact: true }).fill(url)
    const lend = async (token: string) => {
      await page.getByLabel('Token', { exact: true }).fill(token)
      await page.getByRole('button', { name: 'Lend this tab' }).click()
    }
    await lend('wrong')
    await page.getByText('Wrong token.').waitFor()
    expect(await complete()).toBe(503)
    expect(await page.locator('#lent').isVisible()).toBe(false)
    await lend(TOKEN)
    await page.getByText('This tab is lent.').waitFor()
    expect(await page.locator('#lent').textContent()).toBe('Lent (0)')
    expect(await complete()).toBe(200)
    await page.getByText('It answers 0 requests now, and answered 1 before.').waitFor()
    await page.getByRole('button', { name: 'Stop lending' }).click()
    await page.getByText('This tab is not lent anymore. It answered 1 request.').waitFor()
    expect(await page.locator('#lent').isVisible()).toBe(false)
    await expect.poll(complete).toBe(503)
    expect(faults).toEqual([])
  })
})
