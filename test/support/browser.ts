/** The Chromium of a test run: one for all its files, each with contexts of its own. */
import { chromium, type Browser, type Page } from 'playwright'
import { chromiumLaunch } from '../setup/chromium.ts'

/**
 * Limit in milliseconds of each wait in a page, in place of Playwright's 30 s. It only ends tests that
 * fail: beside the other tests, the first answer of a page may take that long.
 */
const PAGE_TIMEOUT_MS = 120_000

/** Makes a page wait as long as a busy machine needs. */
export function makePatient(page: Page): Page {
  page.setDefaultTimeout(PAGE_TIMEOUT_MS)
  return page
}

/**
 * Connects to the browser that the end-to-end set-up launched. Launches one where there is none, as in a
 * bench. `close()` of the result closes its contexts, and the browser only if it was launched here.
 */
export function openBrowser(): Promise<Browser> {
  const endpoint = process.env['CHROMIUM_ENDPOINT']
  return endpoint ? chromium.connect(endpoint) : chromium.launch(chromiumLaunch())
}
