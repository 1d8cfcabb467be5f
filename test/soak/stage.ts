/** The browser of the soak: one origin with three tabs that all can host. */
import { readFileSync } from 'node:fs'
import type { CDPSession, Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { workersOf } from '../support/dying.ts'
import { openSite, type Site } from '../support/site.ts'
import { serveAndWatch, waitForControl } from './control.ts'
import { openDownloadServer, type DownloadServer } from './download-server.ts'

/** Number of tabs. */
const TABS = 3
/** Bound in milliseconds for what is no answer: a tab that opens, an election, a call of the page. */
export const STAGE_TIMEOUT_MS = 60_000

/** Keeps the devices that a model worker opens where the soak finds and destroys them. */
const KEEP_DEVICES = `{
  const { requestDevice } = GPUAdapter.prototype
  GPUAdapter.prototype.requestDevice = async function (...args) {
    const device = await requestDevice.apply(this, args)
    ;(globalThis.devices ??= []).push(device)
    return device
  }
}
`

export interface Stage {
  site: Site
  downloads: DownloadServer
  /** The tabs, in the order in which they were opened. */
  readonly tabs: Page[]
  /** Device of the tabs that are opened from now on. */
  device: 'wasm' | 'webgpu'
  /** Called when the page has received as much as its question says. */
  onReached(): void
  /** Opens tabs until there are three, and resolves with the one that hosts, when all have control. */
  fill(): Promise<Page>
  closeTabs(): Promise<void>
  /** Resolves with the lock that the service worker holds while it lives. */
  serviceWorkerLife(page: Page): Promise<string | null>
  /** Stops the service workers as the browser does when they are idle, without a debugger in them. */
  stopServiceWorkers(): Promise<void>
  close(): Promise<void>
}

export async function openStage(): Promise<Stage> {
  const downloads = await openDownloadServer()
  const modelWorker = readFileSync('dist-demo/inorigin/model-worker.js', 'utf8')
  const site = await openSite({
    ownBrowser: true,
    pages: { '/inorigin/model-worker.js': KEEP_DEVICES + modelWorker },
  })
  let tabs: Page[] = []
  const stage: Stage = {
    site,
    downloads,
    get tabs() {
      return tabs
    },
    device: 'wasm',
    onReached: () => undefined,
    async fill() {
      tabs = tabs.filter((tab) => !tab.isClosed())
      while (tabs.length < TABS) tabs.push(await openTab(stage))
      await Promise.all(tabs.map(waitForControl))
      return waitFor(
        () => tabs.find((tab) => workersOf(tab, 'worker.js').length > 0),
        'a tab that hosts',
      )
    },
    async closeTabs() {
      for (const tab of tabs) await tab.close()
      tabs = []
    },
    serviceWorkerLife: (page) => within(page.evaluate(askLife), 'the status of the service worker'),
    async stopServiceWorkers() {
      const session = await site.browser.newBrowserCDPSession()
      await stopWorkers(session, site.url).finally(() => session.detach())
    },
    async close() {
      await site.close()
      await downloads.close()
    },
  }
  await site.context.exposeFunction('reached', () => stage.onReached())
  return stage
}

async function openTab({ site, downloads, device }: Stage): Promise<Page> {
  const page = await site.open()
  try {
    await within(serveAndWatch(page, { device, catalog: downloads.catalog }), 'serve()')
    return page
  } catch (error) {
    await page.close()
    throw error
  }
}

/** Resolves with the result of `find` as soon as there is one. */
export async function waitFor<T>(find: () => T | undefined, what: string): Promise<T> {
  const deadline = Date.now() + STAGE_TIMEOUT_MS
  for (;;) {
    const found = find()
    if (found !== undefined) return found
    if (Date.now() > deadline) throw new Error(`Timeout of ${STAGE_TIMEOUT_MS} ms: ${what}.`)
    await new Promise<void>((resolve) => setTimeout(() => resolve(), 20))
  }
}

/** Rejects if the promise has not settled after so many milliseconds. */
export async function within<T>(
  promise: Promise<T>,
  what: string,
  timeoutMs = STAGE_TIMEOUT_MS,
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const error = new Error(`Timeout of ${timeoutMs} ms: ${what}.`)
    timer = setTimeout(() => reject(error), timeoutMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Asks again each second, because a message to a service worker that is just being ended is lost. */
async function askLife(): Promise<string | null> {
  return new Promise<string | null>((resolve) => {
    const ask = () => {
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = ({ data }) => {
        clearInterval(timer)
        resolve(data.life)
      }
      navigator.serviceWorker.controller?.postMessage({ type: 'inorigin:status' }, [port2])
    }
    const timer = setInterval(ask, 1_000)
    ask()
  })
}

/** Ends the target of each service worker of the origin, and detaches at once. */
async function stopWorkers(session: CDPSession, origin: string): Promise<void> {
  const { targetInfos } = await session.send('Target.getTargets')
  const found = targetInfos.filter(
    ({ type, url }) => type === 'service_worker' && url.startsWith(origin),
  )
  for (const { targetId } of found) await session.send('Target.closeTarget', { targetId })
}

/** Calls a method of the server handle in a page. */
export function call<Result>(
  page: Page,
  method: (server: Server) => Promise<Result>,
): Promise<Result> {
  const source = `(${method.toString()})(server)`
  return within(page.evaluate(source) as Promise<Result>, source)
}
