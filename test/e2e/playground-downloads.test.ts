/**
 * Downloads of the playground: nothing unasked, sizes first, pause, resume and cancel.
 *
 * @module-tag slow
 */
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { useSitePlayground, type PlaygroundWindow } from '../support/playground.ts'

const MODEL = '/inorigin/models/guide/onnx/model.onnx'
const GUIDE = join(import.meta.dirname, '../../demo/models/guide')

let hub: Hub | undefined

afterEach(async () => {
  await hub?.close()
  hub = undefined
})

const open = useSitePlayground()

const strip = (page: Page) => page.locator('#loading')

const button = (page: Page, name: string) => strip(page).getByRole('button', { name, exact: true })

const stored = (page: Page): Promise<string[]> =>
  page.evaluate(async () => {
    const tags = await (window as PlaygroundWindow).inorigin?.storage.list()
    return tags?.map(({ tag }) => tag) ?? []
  })

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

/** A model of 912 MB whose file is nowhere. */
function largeEntry(): object {
  const resource = { type: 'onnx', url: 'https://127.0.0.1:9/model.onnx', name: 'onnx/model.onnx' }
  const implementation = {
    id: 'wasm',
    engine: 'onnx',
    device: 'wasm',
    resources: [{ ...resource, bytes: 912_000_000, sha256: '0'.repeat(64) }],
  }
  const about = { type: 'model', tag: '@me/large', name: 'Large', created: '2026-01-01T00:00:00Z' }
  const limits = { maxInputTokens: 2048, maxOutputTokens: 512 }
  return { ...about, ...limits, implementations: [implementation] }
}

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

test('a download is paused, resumed, and canceled after Stop, beside a picker that works', async () => {
  let isReleased = false
  const { page, ask, answer, faults } = await open({
    served: { slow: { [MODEL]: () => isReleased } },
  })
  await page.getByLabel('Your question').click()
  await button(page, 'Pause').click()
  await page.getByText(/^The download of guide is paused at /).waitFor()
  await button(page, 'Resume').click()
  await button(page, 'Pause').waitFor()
  expect(await page.locator('#model').isEnabled()).toBe(true)

  await page.getByLabel('Your question').fill('Who are you?')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText(/^The answer was stopped\. Downloading guide/).waitFor()
  const left = storedAt(page, 'The download of guide was canceled.')
  await button(page, 'Cancel download').click()
  expect(await left).toEqual([])
  isReleased = true
  await ask('Who are you?')
  expect(await answer()).not.toBe('')
  expect(faults).toEqual([])
})

test('a large model is downloaded only after a question with its size and fit', async () => {
  const { page } = await open({ entries: [largeEntry()] })
  await page.locator('#model').selectOption('@me/large')
  const dialog = page.getByRole('dialog', { name: 'Download Large?' })
  await dialog.waitFor()
  const text = await dialog.innerText()
  expect(text).toMatch(/Download\s+912 MB/)
  expect(text).toMatch(/Memory\s+more than 912 MB/)
  expect(text).toMatch(/This device\s+runs it on WASM: /)
  expect(text).toMatch(/Free storage\s+\S+ [kMGT]B/)
  expect(await findAccessibilityProblems(page)).toEqual([])
  await page.keyboard.press('Escape')
  await page.getByText('Large: 912 MB to download with your first question.').waitFor()

  // A question without consent sends nothing, and offers the guide.
  await page.getByLabel('Your question').fill('Hello')
  await page.keyboard.press('Enter')
  await dialog.getByRole('button', { name: 'Not now' }).click()
  const problem = page.getByRole('alert')
  expect(await problem.innerText()).toMatch(/Large was not downloaded, so nothing was asked/)
  await problem.getByRole('button', { name: 'Use the guide' }).click()
  expect(await page.locator('#model').inputValue()).toBe('@inorigin/guide')
  expect(await stored(page)).not.toContain('@me/large')
})

test('a hub that is down is said once, in short, with a way back; it is looked up again later', async () => {
  hub = await openHub({ 'me/guide': repositoryOf(GUIDE, 'a'.repeat(40)) })
  hub.refuseWith = 503
  const entries = [{ tag: '@me/guide', huggingface: 'me/guide', host: hub.url }]
  const { page, ask, answer } = await open({ entries })
  await page.locator('#model').selectOption('@me/guide')
  const words = 'The hub that has guide cannot be reached now. Try again later.'
  await strip(page).getByText(words).waitFor()
  await ask('Hello')
  expect(await page.getByText('cannot be reached').count()).toBe(1)
  expect(await page.getByRole('alert').innerText()).toContain(words)
  expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
  expect(await findAccessibilityProblems(page)).toEqual([])

  hub.refuseWith = 0
  await page.getByRole('alert').getByRole('button', { name: 'Ask again' }).click()
  await page.locator('.turn > .meta').waitFor()
  expect(await answer()).not.toBe('')
})

test('the model and the wire style that were chosen survive a reload', async () => {
  const { page } = await open({ entries: [largeEntry()] })
  await page.locator('#model').selectOption('@me/large')
  await page.getByRole('dialog', { name: 'Download Large?' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByLabel('/v1/messages').check()
  await page.reload()
  // It is not asked for again, because nobody has chosen it in this visit.
  await page.getByText('Large: 912 MB to download with your first question.').waitFor()
  expect(await page.locator('#model').inputValue()).toBe('@me/large')
  expect(await page.getByLabel('/v1/messages').isChecked()).toBe(true)
  expect(await page.getByRole('dialog').count()).toBe(0)
})
