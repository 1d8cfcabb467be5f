/** The Chromium of a test run: one for all its files, each with contexts of its own. */
import { chromium, type Browser } from 'playwright'
import { chromiumLaunch } from '../setup/chromium.ts'

/**
 * Connects to the browser that the end-to-end set-up launched. Launches one where there is none, as in a
 * bench. `close()` of the result closes its contexts, and the browser only if it was launched here.
 */
export function openBrowser(): Promise<Browser> {
  const endpoint = process.env['CHROMIUM_ENDPOINT']
  return endpoint ? chromium.connect(endpoint) : chromium.launch(chromiumLaunch())
}
