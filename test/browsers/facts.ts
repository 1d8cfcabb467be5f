/** Prints the facts of `docs/browsers.md` that are measured without inorigin, as JSON. */
import { chromium, type Engine, firefox, webkit } from '../support/engines.ts'
import { serveStatic } from '../support/static.ts'
import { AGENT, openTabs, type Tab, type Tabs } from '../support/tabs.ts'
import {
  FACTS_SCRIPT,
  FACTS_WORKER,
  measureAborts,
  measureIdle,
  measureStorage,
  measureStream,
  readFeatures,
} from './facts-page.ts'

const PAGE = `<!doctype html><meta charset="utf-8"><title>facts</title>${FACTS_SCRIPT}${AGENT}`
const ISOLATION = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
}

/** Chromium says why it loaded a page again. */
interface NavigationTiming extends PerformanceEntry {
  notRestoredReasons?: { reasons: unknown[] } | null
}

/** Opens the page on an origin of its own, whose service worker only this measurement uses. */
async function withPage<Result>(
  tabs: Tabs,
  measure: (page: Tab) => Promise<Result>,
  headers: Record<string, string> = {},
): Promise<Result> {
  const pages = { '/facts.html': PAGE, '/sw.js': FACTS_WORKER, '/empty.js': '' }
  const site = await serveStatic({ folders: {}, pages, headers })
  const page = await tabs.open(`${site.url}/facts.html`)
  const result = await measure(page)
  await page.close()
  await site.close()
  return result
}

/** Goes to another page and back. Says whether the document was kept, and why not, if the browser says it. */
async function isKept(page: Tab, hold: () => void) {
  await page.evaluate(hold)
  await page.evaluate(() => void Object.assign(globalThis, { first: true }))
  await page.leave(() => location.assign(location.href.replace('.html', '.html?2')))
  await page.leave(() => history.back())
  return page.evaluate(() => {
    const [navigation] = performance.getEntriesByType('navigation') as NavigationTiming[]
    return { kept: 'first' in globalThis, reasons: navigation?.notRestoredReasons?.reasons ?? null }
  })
}

async function readFacts(engine: Engine) {
  const tabs = await openTabs(engine)
  try {
    const features = await withPage(tabs, (page) => page.evaluate(readFeatures))
    const isolated = await withPage(tabs, (page) => page.evaluate(readFeatures), ISOLATION)
    const storage = await withPage(tabs, (page) => page.evaluate(measureStorage))
    const aborts = await withPage(tabs, (page) => page.evaluate(measureAborts))
    const keptPlain = await withPage(tabs, (page) => isKept(page, () => undefined))
    const keptWithLock = await withPage(tabs, (page) =>
      isKept(page, () => {
        void navigator.locks.request('held', () => new Promise(() => {}))
      }),
    )
    const stream = (variant: 'silent' | 'pulse' | 'wait') =>
      withPage(tabs, (page) => page.evaluate(measureStream, variant))
    const [idle, silent, pulse, wait] = await Promise.all([
      withPage(tabs, (page) => page.evaluate(measureIdle)),
      stream('silent'),
      stream('pulse'),
      stream('wait'),
    ])
    const { isolated: canIsolate, sharedMemory } = isolated
    const lives = { idle, silent, pulse, wait }
    return {
      features,
      storage,
      isolation: { canIsolate, sharedMemory },
      aborts,
      keptPlain,
      keptWithLock,
      lives,
    }
  } finally {
    await tabs.close()
  }
}

const names = process.argv.slice(2)
for (const engine of [chromium, firefox, webkit]) {
  if (names.length > 0 && !names.includes(engine.name)) continue
  console.log(engine.name, JSON.stringify(await readFacts(engine), null, 2))
}
