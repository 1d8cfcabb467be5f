import { ensureChromium } from './chromium.ts'

/** Runs once, before the browser project starts its browser: `vite.config.ts` reads the variable. */
export default function setup(): void {
  process.env['CHROMIUM_PATH'] = ensureChromium()
}
