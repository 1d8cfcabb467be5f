/** A browser for the tests of a file, and for each test an origin that it has never seen. */
import { afterAll, afterEach, beforeAll } from 'vitest'
import type { ServeOptions } from '../../src/index.ts'
import { chromium, type Engine, firefox, webkit } from '../support/engines.ts'
import { BLANK, serveIn } from '../support/site.ts'
import { serveStatic, type StaticOptions, type StaticServer } from '../support/static.ts'
import { AGENT, openTabs, type Tab, type Tabs } from '../support/tabs.ts'

export const ENGINES: readonly Engine[] = [chromium, firefox, webkit]

export const GUIDE = '@inorigin/guide'

/** A page that imports `serve()` and nothing else. */
export const PAGE = '/blank.html'

const INSTALL_TIMEOUT_MS = 600_000

export interface Setting {
  /** Starts a web server for the pages that are opened next. Without it, one serves the built package. */
  openSite(options?: Partial<StaticOptions>): Promise<StaticServer>
  /** Opens a tab on a page of the site. */
  open(path?: string): Promise<Tab>
  /** Opens a tab and calls `serve()` in it. */
  serve(options?: ServeOptions): Promise<Tab>
}

/** Starts the browser before the tests of a `describe`, and ends it after them. */
export function useEngine(engine: Engine): Setting {
  let tabs: Tabs | undefined
  let sites: StaticServer[] = []

  // The browser may have to be installed first.
  beforeAll(async () => {
    tabs = await openTabs(engine)
  }, INSTALL_TIMEOUT_MS)
  afterEach(async () => {
    await tabs?.closeAll()
    await Promise.all(sites.map((site) => site.close()))
    sites = []
  })
  afterAll(() => tabs?.close())

  async function openSite(options: Partial<StaticOptions> = {}): Promise<StaticServer> {
    const { folders = {}, pages = {}, ...rest } = options
    const site = await serveStatic({
      folders: { ...folders, '/': 'dist-demo' },
      pages: { [PAGE]: BLANK + AGENT, ...pages },
      ...rest,
    })
    sites.push(site)
    return site
  }
  async function open(path = PAGE): Promise<Tab> {
    const { url } = sites.at(-1) ?? (await openSite())
    return tabs!.open(url + path)
  }
  return {
    openSite,
    open,
    async serve(options = {}) {
      const tab = await open()
      // A GPU made of software would only take the tests longer.
      await serveIn(tab, { device: 'wasm', ...options })
      return tab
    },
  }
}
