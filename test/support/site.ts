/** The built demo on a server of its own, so that every test begins with an origin nobody has seen. */
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright'
import type { ServeOptions } from '../../src/index.ts'
import { chromiumLaunch, type Gpu } from '../setup/chromium.ts'
import type { AnyPage } from './any-page.ts'
import { makePatient, openBrowser } from './browser.ts'
import { serveStatic, type StaticOptions, type StaticServer } from './static.ts'

/** Nothing but the library: what a page without a bundler imports. */
export const BLANK = `<!doctype html><meta charset="utf-8"><title>blank</title>
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.serve = serve
</script>`

export interface Site extends StaticServer {
  browser: Browser
  /** A tab on an empty page; in the same browser profile unless a context is given. */
  open(path?: string, context?: BrowserContext): Promise<Page>
  /** Ends the web server. The tabs stay open. */
  endServer(): Promise<void>
  context: BrowserContext
}

export interface SiteOptions extends Partial<StaticOptions> {
  /** Path of the demo on the site. */
  base?: string
  /** The adapter of a browser of its own. Default: the software adapter of the run's one browser. */
  gpu?: Gpu
  /** Folder of a profile that outlives the browser; by default nothing does, as in a private window. */
  profile?: string
  /** `true` for a browser of its own: for tests that crash it or measure its memory. Default: `false`. */
  ownBrowser?: boolean
}

/** Starts a server on a port, and so an origin, of its own, and opens a fresh context in the browser. */
export async function openSite(options: SiteOptions = {}): Promise<Site> {
  const { base = '/', folders = {}, pages = {}, gpu, profile, ownBrowser, ...rest } = options
  const server = await serveStatic({
    folders: { ...folders, [base]: 'dist-demo' },
    pages: { [`${base}blank.html`]: BLANK, ...pages },
    ...rest,
  })
  const context = await openContext({ gpu, profile, ownBrowser })
  const browser = context.browser() as Browser
  return {
    ...server,
    browser,
    context,
    async open(path = `${base}blank.html`, where = context) {
      const page = makePatient(await where.newPage())
      await page.goto(server.url + path)
      return page
    },
    endServer: server.close,
    async close() {
      await context.close()
      await browser.close()
      await server.close()
    },
  }
}

async function openContext({
  gpu,
  profile,
  ownBrowser,
}: Pick<SiteOptions, 'gpu' | 'profile' | 'ownBrowser'>): Promise<BrowserContext> {
  const launch = chromiumLaunch(gpu)
  if (profile !== undefined) return chromium.launchPersistentContext(profile, launch)
  const isShared = gpu === undefined && !ownBrowser
  const browser = isShared ? await openBrowser() : await chromium.launch(launch)
  return browser.newContext()
}

/** Calls `serve()` of the built package in that page and leaves the server as `server`. */
export async function serveIn(page: AnyPage, options: ServeOptions = {}): Promise<void> {
  await page.waitForFunction(() => 'serve' in globalThis)
  await page.evaluate(async (given) => {
    const { serve } = globalThis as unknown as typeof import('../../src/index.ts')
    Object.assign(globalThis, { server: await serve(given) })
  }, options)
}
