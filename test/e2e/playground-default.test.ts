/** Which model answers a visitor who has chosen none, with the real files. */
import { chromium } from 'playwright'
import { expect, inject, test } from 'vitest'
import { SMOLLM2_SYSTEM } from '../../demo/smollm2.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { ask, openPlayground, openTab, usePlayground, visit } from '../support/playground.ts'

/** Resolves with `true` in a page whose library is kept as a whole. */
async function isKept(): Promise<boolean> {
  const names = await caches.keys()
  const keys = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()))
  return keys.flat().some(({ url }) => /\/files\.json\?[^?]*=complete$/.test(url))
}

const open = usePlayground({ isNew: true })

test(
  'SmolLM2 answers a new visitor, and without a network later',
  { tags: ['everyday'] },
  async () => {
    // The browser that the tests share runs wasm of short-lived pages, which is slow for a model of this size.
    const browser = await chromium.launch(chromiumLaunch())
    try {
      const { page, answer, faults } = await openPlayground(browser, inject('demo'), {
        isNew: true,
      })
      page.setDefaultTimeout(280_000)
      const strip = page.locator('#loading-text')
      await expect.poll(() => strip.innerText()).toContain("from this page's own server")
      await ask(page, 'What is the capital of France?')
      expect(await answer()).toBe('The capital of France is Paris.')
      await openTab(page, 'Requests')
      expect(await page.locator('#requests-last').textContent()).toContain(SMOLLM2_SYSTEM)
      expect(await page.locator('#model').inputValue()).toBe('@huggingfacetb/smollm2-135m')
      // It does not know inorigin, but the guide does.
      await ask(page, 'Why does the Anthropic SDK not want /v1 at the end?')
      expect(await answer()).toContain('/v1')
      expect(await page.locator('.sources a').first().getAttribute('href')).toBe(
        'site/docs/sdks.html',
      )
      expect(await page.locator('#model').inputValue()).toBe('@huggingfacetb/smollm2-135m')
      await expect.poll(() => page.evaluate(isKept)).toBe(true)
      await page.context().setOffline(true)
      await visit(page, inject('demo'))
      // The conversation is shown again.
      await page.locator('.turn > .meta').last().waitFor()
      await ask(page, 'What is the capital of Japan?')
      expect(await answer()).toContain('Tokyo')
      expect(faults).toEqual([])
    } finally {
      await browser.close()
    }
  },
)

/** Runs in a page before its scripts: the device downloads nothing large. */
const savesData = (): void =>
  void Object.defineProperty(navigator, 'connection', { value: { saveData: true } })

test(
  'on such a device, the guide answers what the documentation has, and SmolLM2 is offered for the rest',
  { tags: ['everyday'] },
  async () => {
    const { page, answer, faults } = await open(inject('demo'), { before: savesData })
    await ask(page, 'What is inorigin?')
    expect(await answer()).toContain('inference server')
    const links = page.locator('.sources a')
    for (const path of await links.evaluateAll((all) =>
      all.map((link) => link.getAttribute('href')),
    ))
      expect((await page.request.get(new URL(path ?? '', inject('demo')).href)).status()).toBe(200)
    expect(await links.count()).toBeGreaterThan(0)

    await ask(page, 'Write me a poem about the sea.')
    const problem = page.locator('.turn').last().locator('.problem')
    expect(await problem.innerText()).toContain('the guide was not asked')
    await expect
      .poll(() => problem.getByRole('button').allInnerTexts())
      .toEqual(['Use Qwen3 0.6B · about 600 MB', 'Use SmolLM2 135M', 'Ask the guide'])
    await problem.getByRole('button', { name: 'Ask the guide' }).click()
    await expect.poll(() => page.locator('.turn > .meta').count()).toBe(2)
    expect(await answer()).toContain("don't know")
    expect(faults).toEqual([])
  },
)

test.each([
  ['saves data', savesData],
  ['has little memory', () => Object.defineProperty(navigator, 'deviceMemory', { value: 2 })],
  [
    'has little storage',
    () => {
      navigator.storage.estimate = async () => ({ quota: 500e6, usage: 200e6 })
    },
  ],
])(
  'the guide answers on a device that %s, and SmolLM2 is offered',
  { tags: ['everyday'] },
  async (_, before) => {
    const { page } = await open(inject('demo'), { before })
    const offer = page.getByRole('button', { name: 'Use SmolLM2 135M' })
    await offer.waitFor()
    const chosen = page.locator('#model')
    expect(await chosen.inputValue()).toBe('@inorigin/guide')
    await offer.click()
    expect(await chosen.inputValue()).toBe('@huggingfacetb/smollm2-135m')
    await expect
      .poll(() => page.evaluate(() => localStorage.getItem('playground:model')))
      .toBe('@huggingfacetb/smollm2-135m')
  },
)
