/** The built playground in a browser profile that has never seen it, and what went wrong in it. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright'
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject } from 'vitest'
import type { Server } from '../../src/index.ts'
import { makePatient, openBrowser } from './browser.ts'
import type { PlannedAnswer, ScriptedWindow } from './scripted-fetch.ts'
import { bundleScript } from './sdks.ts'
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
  /** `true` for answers by a script, {@link scriptAnswers}. Default: those of the models. */
  isScripted?: boolean
  /**
   * `true` for a visitor who has chosen nothing, whose device downloads the larger model. Default: the
   * visitor has chosen the guide.
   */
  isNew?: boolean
}

export const PHONE = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
} as const satisfies PlaygroundOptions

export async function openPlayground(
  browser: Browser,
  url: string,
  { before, isScripted, isNew, ...options }: PlaygroundOptions = {},
): Promise<Playground> {
  // An animation without end took 0.5 s of CPU while the first model was loaded.
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  const page = makePatient(await context.newPage())
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  await page.exposeFunction('tellViolation', (found: string) => void faults.push(found))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      const { tellViolation } = window as unknown as { tellViolation: (found: string) => void }
      tellViolation(`${violatedDirective} forbids ${blockedURI}`)
    })
  })
  if (isScripted) await context.addInitScript({ content: await scriptedFetch() })
  if (!isNew) await page.addInitScript(chooseGuide)
  if (before) await page.addInitScript(before)
  await visit(page, url)
  return {
    page,
    faults,
    ask: (question) => ask(page, question),
    answer: () => page.locator('.answer').last().innerText(),
    close: () => context.close(),
  }
}

/** Chooses the guide in a page that is about to open, as a visitor who has chosen it before. */
export function chooseGuide(): void {
  // Frames in a sandbox have no storage.
  if (window !== window.top) return
  const kept = localStorage.getItem('playground:model')
  localStorage.setItem('playground:model', kept ?? '@inorigin/guide')
}

/** Opens an address. The first visit is reloaded, unless it cannot be isolated or first has to ask. */
export async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await page.waitForFunction(
    () => crossOriginIsolated || document.querySelector('.notice, dialog[open]') !== null,
  )
}

/** Asks in the chat and waits until the answer has ended, well or not. */
export async function ask(page: Page, question: string): Promise<void> {
  const ended = page.locator('.turn > :is(.meta, .problem)')
  const count = await ended.count()
  await send(page, question)
  await ended.nth(count).waitFor()
}

export async function send(page: Page, question: string): Promise<void> {
  await page.getByLabel('Your question').fill(question)
  await page.keyboard.press('Enter')
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

/**
 * Opens one playground for all tests of a block. Each test gets it as a visitor sees it who comes again and
 * has chosen nothing. Files and conversations stay stored.
 */
export function sharePlayground(options?: PlaygroundOptions): () => Playground {
  let browser: Browser
  let playground: Playground
  beforeAll(async () => {
    browser = await openBrowser()
    playground = await openPlayground(browser, inject('demo'), options)
  })
  afterAll(() => browser?.close())
  beforeEach(async () => {
    const { page, faults } = playground
    await page.evaluate(() => {
      localStorage.clear()
      sessionStorage.clear()
    })
    await page.goto('about:blank')
    // What the former test left running fails when its page ends.
    faults.length = 0
    await visit(page, inject('demo'))
  })
  return () => playground
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

let bundled: Promise<string> | undefined

/** Resolves with the script that answers the requests of its page from now on. */
export async function scriptedFetch(): Promise<string> {
  bundled ??= bundleScript('./scripted-fetch.ts', 'scripted')
  return `(() => {\n${await bundled}\nscripted.startScript()\n})()`
}

/** Adds answers to the script of a page. */
export async function scriptAnswers(
  page: Page,
  ...answers: (PlannedAnswer | string)[]
): Promise<void> {
  const planned = answers.map((answer) => (typeof answer === 'string' ? { text: answer } : answer))
  await page.evaluate((given) => {
    ;(window as unknown as ScriptedWindow).script.push(...given)
  }, planned)
}

/** Resolves with the bodies of the requests that the script of a page has answered. */
export const bodiesOf = (page: Page): Promise<Record<string, unknown>[]> =>
  page.evaluate(() => (window as unknown as ScriptedWindow).bodies)

export const toolButton = (page: Page, name: string): Locator =>
  page.getByRole('button', { name, exact: true })

/** Opens a part of the page that a button opens and closes. */
async function openPart(page: Page, id: string): Promise<void> {
  const opener = page.locator(`#${id}-open`)
  if ((await opener.getAttribute('aria-expanded')) === 'false') await opener.click()
}

export async function openTab(page: Page, name: string): Promise<void> {
  await openPart(page, 'panel')
  await page.getByRole('tab', { name }).click()
}

/** Opens the history, and waits until its list is there. */
export async function openHistory(page: Page): Promise<void> {
  await openPart(page, 'history')
  await page.getByLabel('Search the history').waitFor()
}

/** Chooses the style in which questions are sent. */
export async function chooseStyle(
  page: Page,
  name: 'Chat' | 'Messages' | 'Responses',
): Promise<void> {
  await openTab(page, 'Requests')
  await page.getByRole('radio', { name }).check()
}

/** Resolves with the pixels by which the page is wider than its window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)

/** Resolves with the text of the file that a click offers, and its name. */
export async function download(
  page: Page,
  opener: Locator,
): Promise<{ name: string; text: string }> {
  const [file] = await Promise.all([page.waitForEvent('download'), opener.click()])
  return { name: file.suggestedFilename(), text: await text(await file.createReadStream()) }
}

/** Fires an event that carries a file, as a drop or a paste does. Resolves with whether the target took it. */
export const give = (target: Locator, how: 'drop' | 'paste', path: string, type: string) =>
  target.evaluate(
    (element, [name, data, media]) => {
      const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
      const files = new DataTransfer()
      files.items.add(new File([bytes], `${name}.file`, { type: media }))
      const init = { bubbles: true, cancelable: true }
      const over = new DragEvent('dragover', { ...init, dataTransfer: files })
      if (name === 'drop' && element.dispatchEvent(over)) return false
      const event =
        name === 'paste'
          ? new ClipboardEvent(name, { ...init, clipboardData: files })
          : new DragEvent(name, { ...init, dataTransfer: files })
      return !element.dispatchEvent(event)
    },
    [how, readFileSync(path, 'base64'), type] as const,
  )

/** A model of 912 MB, or another size, whose file is nowhere. */
export function largeEntry(tag: string, bytes = 912_000_000): object {
  const resource = { type: 'onnx', url: 'https://127.0.0.1:9/model.onnx', name: 'onnx/model.onnx' }
  const implementation = {
    id: 'wasm',
    engine: 'onnx',
    device: 'wasm',
    resources: [{ ...resource, bytes, sha256: '0'.repeat(64) }],
  }
  const created = '2026-01-01T00:00:00Z'
  const about = { type: 'model', tag, name: 'Large', languages: ['en'], created }
  const limits = { maxInputTokens: 2048, maxOutputTokens: 512 }
  return { ...about, ...limits, implementations: [implementation] }
}

/** A camera that films a stroke. `cameraState()` tells whether it is on. Runs in the page. */
export function fakeCamera(): void {
  navigator.mediaDevices.getUserMedia = async () => {
    const canvas = document.createElement('canvas')
    Object.assign(canvas, { width: 200, height: 200 })
    const context = canvas.getContext('2d')!
    const draw = (): void => {
      context.fillStyle = 'white'
      context.fillRect(0, 0, 200, 200)
      context.fillStyle = 'black'
      context.fillRect(92, 30, 16, 140)
      requestAnimationFrame(draw)
    }
    draw()
    const stream = canvas.captureStream()
    const [track] = stream.getTracks()
    Object.assign(window, { cameraState: () => track?.readyState })
    return stream
  }
}

export const cameraState = (page: Page): Promise<string> =>
  page.evaluate(() => Reflect.get(window, 'cameraState')() as string)

/** Expects the answers of the chat to become these. */
export async function expectAnswers(page: Page, ...answers: string[]): Promise<void> {
  await expect.poll(() => page.locator('.answer').allInnerTexts()).toEqual(answers)
}
