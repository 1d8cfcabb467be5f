/** The built playground in a browser profile that has never seen it, and what went wrong in it. */
import type { Browser, BrowserContextOptions, Page } from 'playwright'
import { afterAll, afterEach, beforeAll, inject } from 'vitest'
import type { Server } from '../../src/index.ts'
import { makePatient, openBrowser } from './browser.ts'
import type { ScriptedAnswer, ScriptedWindow } from './fakes.ts'
import { openSite, type Site, type SiteOptions } from './site.ts'

export interface PlaygroundWindow extends Window {
  inorigin?: Server
}

export interface Playground {
  page: Page
  /** Errors of the console, uncaught ones, and violations of the policy, in order. */
  faults: string[]
  /** Asks and waits until the answer has ended, well or not. */
  ask(question: string): Promise<void>
  /** Text of the last answer. */
  answer(): Promise<string>
  close(): Promise<void>
}

export interface PlaygroundOptions extends BrowserContextOptions {
  /** Runs in the page before its own scripts. */
  before?: () => void
}

export async function openPlayground(
  browser: Browser,
  url: string,
  { before, ...options }: PlaygroundOptions = {},
): Promise<Playground> {
  // An animation without end took 0.5 s of CPU while the first model was loaded.
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  const page = makePatient(await context.newPage())
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  await page.exposeFunction('tellViolation', (text: string) => void faults.push(text))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      const { tellViolation } = window as unknown as { tellViolation: (text: string) => void }
      tellViolation(`${violatedDirective} forbids ${blockedURI}`)
    })
  })
  if (before) await page.addInitScript(before)
  await page.goto(url)
  // The first visit is reloaded, unless it cannot be isolated or first has to ask.
  await page.waitForFunction(
    () => crossOriginIsolated || document.querySelector('.notice, dialog[open]') !== null,
  )
  return {
    page,
    faults,
    async ask(question) {
      const ended = page.locator('.turn > :is(.meta, .problem)')
      const count = await ended.count()
      await page.getByLabel('Your question').fill(question)
      await page.getByRole('button', { name: 'Send' }).click()
      await ended.nth(count).waitFor()
    },
    answer: () => page.locator('.answer').last().innerText(),
    close: () => context.close(),
  }
}

/**
 * Opens the browser of a test file. Returns the function that opens the playground of a test, which is
 * closed after the test. Its address is that of the built demo by default.
 */
export function usePlayground(defaults?: PlaygroundOptions) {
  let browser: Browser
  let playground: Playground | undefined
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())
  afterEach(async () => {
    await playground?.close()
    playground = undefined
  })
  return async (url = inject('demo'), options?: PlaygroundOptions): Promise<Playground> => {
    playground = await openPlayground(browser, url, { ...defaults, ...options })
    return playground
  }
}

export interface SiteOpening {
  served?: SiteOptions
  options?: PlaygroundOptions
  /** Entries that the visitor added before. */
  entries?: readonly object[]
}

/** As `usePlayground`, on WASM and on a site of its own for each test. */
export function useSitePlayground() {
  let site: Site | undefined
  afterEach(async () => {
    await site?.close()
    site = undefined
  })
  const open = usePlayground()
  return async ({ served, options, entries = [] }: SiteOpening = {}) => {
    site = await openSite(served)
    const localStorage = [{ name: 'playground:own-catalog', value: JSON.stringify(entries) }]
    const playground = await open(`${site.url}/?device=wasm`, {
      ...options,
      storageState: { cookies: [], origins: [{ origin: site.url, localStorage }] },
    })
    await playground.page.waitForFunction(() => 'inorigin' in window)
    return { ...playground, site }
  }
}

/** Adds answers to those of a page with `scriptedAnswers`. */
export async function scriptAnswers(page: Page, ...answers: ScriptedAnswer[]): Promise<void> {
  await page.evaluate((given) => {
    ;(window as unknown as ScriptedWindow).script.push(...given)
  }, answers)
}
