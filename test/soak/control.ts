/**
 * Requests that reach the web server. docs/lifetime.md lists when that happens: a page is told of it
 * by `onControlChange`. Anything else is a leak.
 */
import type { Page } from 'playwright'
import type { Server, ServeOptions } from '../../src/index.ts'
import { STAGE_TIMEOUT_MS, type Stage } from './stage.ts'

interface InPage {
  serve(options: ServeOptions): Promise<Server>
  server: Server
  /** Number of times that the page was told that it lost control. */
  losses: number
}

/** Calls `serve()` in a page, leaves the server as `server`, and counts how often control is lost. */
export async function serveAndWatch(page: Page, options: ServeOptions): Promise<void> {
  await page.waitForFunction(() => 'serve' in globalThis)
  await page.evaluate(async (given) => {
    const inPage = globalThis as unknown as InPage
    inPage.losses = 0
    const onControlChange = (controlled: boolean) => void (inPage.losses += controlled ? 0 : 1)
    inPage.server = await inPage.serve({ ...given, onControlChange })
  }, options)
}

/** Resolves when requests of the page reach its service worker, as an app waits for it. */
export async function waitForControl(page: Page): Promise<void> {
  const isControlled = () => (globalThis as unknown as InPage).server.controlled
  await page.waitForFunction(isControlled, undefined, { timeout: STAGE_TIMEOUT_MS })
}

/** How a request reached the web server: not at all, in a way that the page was told of, or else. */
export type Passage = 'none' | 'told' | 'untold'

/** Watches one request of a page. The result resolves with how that request reached the web server. */
export async function watchPassage({ site }: Stage, page: Page): Promise<() => Promise<Passage>> {
  const requestsBefore = site.requests.length
  const lossesBefore = await page.evaluate(() => (globalThis as unknown as InPage).losses)
  return async () => {
    const passed = site.requests.slice(requestsBefore).some((one) => one.startsWith('POST /v1/'))
    if (!passed) return 'none'
    const isTold = (before: number) => (globalThis as unknown as InPage).losses > before
    return page
      .waitForFunction(isTold, lossesBefore, { timeout: STAGE_TIMEOUT_MS })
      .then(() => 'told' as const)
      .catch(() => 'untold' as const)
  }
}
