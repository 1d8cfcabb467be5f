/** The playground around its chat: what the address chooses, the predictors, phones, themes. */
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { hostileAnswer, missingScript, refusedWorker } from '../support/fakes.ts'
import {
  usePlayground,
  type PlaygroundOptions,
  type PlaygroundWindow,
} from '../support/playground.ts'
import { openSite } from '../support/site.ts'

const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }

const openAt = usePlayground()
const open = (query = '', options?: PlaygroundOptions) =>
  openAt(`${inject('demo')}${query}`, options)

describe('the address', () => {
  test.each(['wasm', 'webgpu'])(
    '?device=%s chooses where models run',
    { tags: ['slow'] },
    async (device) => {
      const { page } = await open(`?device=${device}`)
      const label = device === 'webgpu' ? /on WebGPU: google swiftshader \(software\)/ : /on WASM/
      await page.getByText(label).waitFor()
      const states = await page.evaluate(() => (window as PlaygroundWindow).inorigin?.models.list())
      expect(states?.find(({ tag }) => tag === '@inorigin/guide')?.device).toBe(device)
    },
  )

  test('an unknown device is said to be one', async () => {
    const { page } = await open('?device=abacus')
    const said = page.getByRole('status').filter({ hasText: 'Unknown device "abacus"' })
    await said.waitFor()
    await page.getByText('Runs here').waitFor()
    await said.getByRole('button', { name: 'Dismiss' }).click()
    expect(await said.count()).toBe(0)
  })

  test('something that is no address of a catalog is said to be that', async () => {
    const { page } = await open('?catalog=javascript:alert(1)')
    await page.getByText('is not the address of a catalog').waitFor()
    expect(await page.locator('dialog').isVisible()).toBe(false)
  })

  describe('?catalog=', () => {
    let foreign: HttpServer
    let url: string
    let requests = 0

    beforeAll(async () => {
      foreign = createServer((_request, response) => {
        requests += 1
        response.setHeader('access-control-allow-origin', '*')
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(foreignCatalog()))
      })
      await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve))
      url = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}/catalog.json`
    })

    afterAll(() => {
      foreign.close()
      foreign.closeAllConnections()
    })

    test(
      'asks first, naming it, and does without it unless told otherwise',
      { tags: ['slow'] },
      async () => {
        const { page } = await open(`?catalog=${encodeURIComponent(url)}`)
        const dialog = page.getByRole('dialog')
        await dialog.waitFor()
        expect(await dialog.innerText()).toContain(url)
        expect(await page.evaluate(() => 'inorigin' in window)).toBe(false)
        await page.keyboard.press('Escape')
        await page.waitForFunction(() => 'inorigin' in window)
        await page.getByText('Runs here').waitFor()
        expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe(
          '@inorigin/guide',
        )
        expect(requests).toBe(0)
      },
    )

    test(
      'loads it with consent, and does not download a large model unasked',
      { tags: ['slow'] },
      async () => {
        const { page } = await open(`?catalog=${encodeURIComponent(url)}`)
        await page.getByRole('button', { name: 'Load this catalog' }).click()
        await page.getByText('Large: 912 MB to download with your first question.').waitFor()
        expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe(
          '@someone/large',
        )
        expect(requests).toBeGreaterThan(0)
      },
    )
  })
})

describe('the page', () => {
  test('says why the server could not start, and what to do', async () => {
    const { page } = await open('', { before: missingScript })
    const notice = page.getByRole('alert')
    await notice.waitFor()
    expect(await notice.innerText()).toMatch(
      /could not start .*no service worker script.*inorigin init/s,
    )
    expect(await notice.getByRole('button', { name: 'Try again' }).isVisible()).toBe(true)
  })

  test(
    'answers without a service worker, and says what that means',
    { tags: ['slow'] },
    async () => {
      const { page, ask, answer } = await open('', { before: refusedWorker })
      await page.getByText('This browser allows no service worker here').waitFor()
      await ask('Who are you?')
      expect(await answer()).not.toBe('')
    },
  )

  test('answers where Playwright blocks service workers', { tags: ['slow'] }, async () => {
    const { page, ask, answer } = await open('', { serviceWorkers: 'block' })
    await page.getByText('This browser allows no service worker here').waitFor()
    await ask('Who are you?')
    expect(await answer()).not.toBe('')
  })

  test('is isolated, so that WASM uses threads', async () => {
    const { page } = await open()
    await page.getByText('Runs here').waitFor()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByText(/^up to \d+ threads$/).waitFor()
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
  })

  test('names a digit that is drawn', async () => {
    const { page, faults } = await open()
    await page.getByRole('tab', { name: 'Predictors' }).click()
    const box = await page.locator('#pad').boundingBox()
    if (!box) throw new Error('There is nothing to draw on.')
    const at = (x: number, y: number) => [box.x + box.width * x, box.y + box.height * y] as const
    await page.mouse.move(...at(0.5, 0.15))
    await page.mouse.down()
    await page.mouse.move(...at(0.5, 0.85), { steps: 12 })
    await page.mouse.up()
    await page.getByText(/^One, \d+ %/).waitFor()
    expect(await page.locator('.scores .best').innerText()).toMatch(/^1\b/)
    expect(faults).toEqual([])
  })

  test(
    'finds the edges of a picture as its parameters say, and of one that is chosen',
    { tags: ['slow'] },
    async () => {
      const { page, faults } = await open()
      await page.getByRole('tab', { name: 'Predictors' }).click()
      const said = page.locator('#edges-said')
      /** Mean brightness of what came out. */
      const light = () =>
        page.locator('#edges-out').evaluate((canvas: HTMLCanvasElement) => {
          const context = canvas.getContext('2d')!
          const { data } = context.getImageData(0, 0, canvas.width, canvas.height)
          return data.reduce((sum, byte, at) => (at % 4 === 3 ? sum : sum + byte), 0) / data.length
        })
      const changed = async (before: number) => {
        await expect.poll(light).not.toBe(before)
        return light()
      }
      expect(await light()).toBe(0)
      await page.getByRole('button', { name: 'Find edges' }).click()
      const plain = await changed(0)
      expect(await said.innerText()).toMatch(/^320 × 240 · .* on WASM$/)
      await page.getByLabel('Strength').fill('8')
      expect(await changed(plain)).toBeGreaterThan(1.5 * plain)
      await page.locator('#edges-mode').selectOption('outline')
      // On the picture itself.
      await expect.poll(light).toBeGreaterThan(3 * plain)
      const choose = page.getByLabel('Another picture')
      await choose.setInputFiles({
        name: 'dot.png',
        mimeType: 'image/png',
        buffer: Buffer.from(DOT, 'base64'),
      })
      await page.getByText(/^1 × 1 · /).waitFor()
      await choose.setInputFiles({
        name: 'a.txt',
        mimeType: 'text/plain',
        buffer: Buffer.from('no'),
      })
      await page.getByText('This browser cannot read a.txt as an image.').waitFor()
      expect(faults).toEqual([])
    },
  )

  test(
    'ranks sentences by their embeddings, and shows them as text',
    { tags: ['slow'] },
    async () => {
      const { page, faults } = await open()
      await page.getByRole('tab', { name: 'Predictors' }).click()
      const attack = '<img src=x onerror="stolen=1"> is about tractors'
      await page
        .getByLabel('Others')
        .fill(`The soup needs more salt\n\n${attack}\nI forgot my login credentials`)
      await page.getByRole('button', { name: 'Compare' }).click()
      await page.getByText(/^4 vectors of 128 numbers · \d+ tokens · /).waitFor()
      const rows = page.getByRole('list', { name: 'Similarity' }).getByRole('listitem')
      expect(await rows.count()).toBe(3)
      expect(await rows.first().innerText()).toMatch(/^I forgot my login credentials\s+\d+ %$/)
      expect(await rows.locator('img').count()).toBe(0)
      expect(await rows.getByText(attack).isVisible()).toBe(true)
      await page.getByLabel('A sentence').fill('word '.repeat(9000))
      await page.getByRole('button', { name: 'Compare' }).click()
      await page.getByText(/^input\[0\] is too long: /).waitFor()
      expect(faults.filter((fault) => !fault.includes('400'))).toEqual([])
    },
  )

  test('offers only models that chat', { tags: ['slow'] }, async () => {
    const { page } = await open()
    await page.getByText('Runs here').waitFor()
    const offered = await page
      .getByRole('combobox', { name: 'Model' })
      .locator('option')
      .evaluateAll((options) => options.map((option) => (option as HTMLOptionElement).value))
    expect(offered[0]).toBe('@inorigin/guide')
    expect(offered).not.toContain('@inorigin/embed')
  })

  test('fits a phone, and opens its panel over the chat', { tags: ['slow'] }, async () => {
    const { page } = await open('', { ...PHONE, before: hostileAnswer })
    const overflow = () =>
      page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    expect(await overflow()).toBe(0)
    await page.getByRole('button', { name: 'What is inorigin?' }).tap()
    await page.locator('.meta').waitFor()
    expect(await overflow()).toBe(0)
    const opener = page.getByRole('button', { name: 'Wire, predictors and settings' })
    await opener.tap()
    expect(await page.locator('#events').isVisible()).toBe(true)
    expect(
      await page.getByRole('tab', { name: 'Wire' }).evaluate((tab) => tab.matches(':focus')),
    ).toBe(true)
    for (const tab of ['Predictors', 'Settings', 'Wire']) {
      await page.getByRole('tab', { name: tab }).tap()
      expect(await overflow()).toBe(0)
    }
    await page.keyboard.press('Escape')
    await page.locator('#events').waitFor({ state: 'hidden' })
    expect(await opener.evaluate((button) => button.matches(':focus'))).toBe(true)
  })

  test('shows an error card in full at 390 pixels', { tags: ['slow'] }, async () => {
    const file = '/inorigin/models/guide/onnx/model.onnx'
    const site = await openSite({ pages: { [file]: 'This is not a model.' } })
    try {
      const viewport = { width: 390, height: 844 }
      const { page, ask } = await openAt(`${site.url}/`, { viewport, isMobile: true })
      await page.getByLabel('Your question').click()
      await page.getByText('@inorigin/guide could not be loaded.').waitFor()
      // Both name the address of the file, which has no place to break at.
      for (let round = 0; round < 5; round += 1) await ask('What is inorigin?')
      const card = page.getByRole('alert').last()
      expect(await card.innerText()).toContain(file)
      expect(edge(await card.boundingBox(), 'x', 'width')).toBeLessThanOrEqual(viewport.width)
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(viewport.width)
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

  test('is dark where the system is, and remembers another wish', { tags: ['slow'] }, async () => {
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

  test('names everything that can be operated', { tags: ['slow'] }, async () => {
    const { page } = await open('', { before: hostileAnswer })
    const nameless = await page.evaluate(() =>
      [
        ...document.querySelectorAll<HTMLElement>(
          'button, input, select, textarea, canvas, [role=meter]',
        ),
      ]
        .filter((element) => {
          const labels =
            'labels' in element ? (element.labels as NodeListOf<HTMLElement> | null) : null
          const texts = [element.ariaLabel, labels?.[0]?.textContent, element.textContent]
          const named = element.hasAttribute('aria-labelledby')
          return !named && texts.every((text) => !text?.trim())
        })
        .map((element) => element.outerHTML),
    )
    expect(nameless).toEqual([])
  })
})

type Box = Record<'x' | 'y' | 'width' | 'height', number>

/** Returns the right or the bottom edge of a box. */
function edge(box: Box | null, start: 'x' | 'y', size: 'width' | 'height'): number {
  if (!box) throw new Error('The element is not shown.')
  return box[start] + box[size]
}

/** A picture of one pixel. */
const DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'

function foreignCatalog(): unknown {
  const resource = { type: 'onnx', url: 'model.onnx', name: 'onnx/model.onnx', bytes: 912_000_000 }
  const implementation = {
    id: 'wasm',
    engine: 'onnx',
    device: 'wasm',
    resources: [{ ...resource, sha256: '0'.repeat(64) }],
  }
  const model = {
    type: 'model',
    tag: '@someone/large',
    name: 'Large',
    created: '2026-01-01T00:00:00Z',
  }
  const limits = { maxInputTokens: 2048, maxOutputTokens: 512 }
  return { version: 1, entries: [{ ...model, ...limits, implementations: [implementation] }] }
}
