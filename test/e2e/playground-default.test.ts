/** Which model answers a visitor who has chosen none, with the real files. */
import { expect, inject, test } from 'vitest'
import { ask, usePlayground, visit } from '../support/playground.ts'

const open = usePlayground({ isNew: true })

test(
  'SmolLM2 answers a new visitor, and without a network later',
  { tags: ['everyday'], timeout: 600_000 },
  async () => {
    const { page, answer, faults } = await open()
    const strip = page.locator('#loading-text')
    await expect.poll(() => strip.innerText()).toContain("from this page's own server")
    await ask(page, 'What is the capital of France?')
    expect(await answer()).toContain('Paris')
    expect(await page.locator('#model').inputValue()).toBe('@huggingfacetb/smollm2-135m')
    await page.context().setOffline(true)
    await visit(page, inject('demo'))
    await ask(page, 'What is the capital of Italy?')
    expect(await answer()).toContain('Rome')
    expect(faults).toEqual([])
  },
)

test.each([
  [
    'saves data',
    () => Object.defineProperty(navigator, 'connection', { value: { saveData: true } }),
  ],
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
