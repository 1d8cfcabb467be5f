/** Starts the server in this page, with the options that its address names. */
import type { Device, Server } from '../src/index.ts'
import { byId } from './dom.ts'
import { notice, wordsOf } from './notice.ts'
import { ownCatalog } from './own-catalog.ts'

declare global {
  interface Window {
    /** Handle of the server, for the console. It is set once the server has started. */
    inorigin?: Server
  }
}

const reload = { label: 'Try again', run: () => location.reload() }

/** The server of this page. */
export interface PageServer {
  /** Promise of the handle, which stays the same when the server starts again. */
  starting: Promise<Server>
  /**
   * Starts the server again with the catalog of the visitor as it is now. The page is not reloaded, and
   * answers that arrive meanwhile continue.
   */
  restart(): Promise<void>
}

/** Starts the server with `?device=` and `?catalog=`. Loads a catalog only if the user agrees. */
export function start(): PageServer {
  let current: Server | undefined
  const handle = new Proxy({} as Server, {
    get: (_, name): unknown => Reflect.get(current ?? {}, name),
  })
  async function run(): Promise<Server> {
    current = await open()
    window.inorigin = handle
    return handle
  }
  return {
    starting: run(),
    async restart() {
      current?.close()
      await run()
    },
  }
}

async function open(): Promise<Server> {
  const query = new URLSearchParams(location.search)
  const device = readDevice(query.get('device'))
  const wish = query.get('catalog')
  const catalog = (await consented(wish)) ?? (await ownCatalog())
  try {
    // Beside the page, so that the playground also works in a sub-folder.
    const worker = new URL('playground-sw.js', document.baseURI)
    // The page is there before the library, which is half of its script.
    const { serve } = await import('../src/index.ts')
    const server = await serve({ worker, device, catalog, isolate: true })
    // The user's answer holds for the reload that isolates the page, and not for later ones.
    if (wish) sessionStorage.removeItem(wish)
    tellDifferences(server)
    if (server.controlled) void tellUnkept()
    return server
  } catch (error) {
    notice(`The server could not start in this page. ${wordsOf(error)}`, 'bad', reload)
    throw error
  }
}

function readDevice(wish: string | null): Device | 'auto' {
  if (wish === 'webgpu' || wish === 'wasm') return wish
  if (wish !== null && wish !== 'auto') {
    notice(
      `Unknown device "${wish}". Use ?device=webgpu or ?device=wasm. The best device is used now.`,
      'mild',
    )
  }
  return 'auto'
}

/** Returns the catalog that the address names, if the user agrees to load it. */
async function consented(wish: string | null): Promise<URL | undefined> {
  if (!wish) return undefined
  const url = URL.canParse(wish, document.baseURI) ? new URL(wish, document.baseURI) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    notice(`"${wish}" is not the address of a catalog. The default catalog is used.`, 'mild')
    return undefined
  }
  // `serve()` may reload the page to isolate it. The user is not asked again after that.
  const answer = sessionStorage.getItem(wish) ?? (await askFor(url))
  sessionStorage.setItem(wish, answer)
  return answer === 'load' ? url : undefined
}

/** Asks whether to load the catalog. Resolves with `load` or `default`. */
async function askFor(url: URL): Promise<string> {
  const dialog = byId('consent', HTMLDialogElement)
  byId('consent-url', HTMLElement).textContent = url.href
  dialog.returnValue = 'default'
  dialog.showModal()
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }))
  return dialog.returnValue
}

/** Says so if the service worker of a build could not keep this page, which it does before it controls it. */
async function tellUnkept(): Promise<void> {
  const page = new URL('./', document.baseURI)
  const isKept = await caches.match(page, { ignoreVary: true }).catch(() => undefined)
  // A development server serves the sources, and keeps nothing.
  if (isKept || document.querySelector('script[src$=".ts"]')) return
  const what =
    'This browser could not keep the page, so it opens only while its web server answers.'
  notice(`${what} The console says why.`, 'mild')
}

function tellDifferences(server: Server): void {
  if (!server.controlled) {
    const what = 'This browser allows no service worker here.'
    const effect = 'Only this page can use the models, through server.fetch.'
    const remedy = "To use fetch('/v1/…'), open the page outside of a private window."
    notice(`${what} ${effect} ${remedy}`, 'mild')
  }
  if (server.differences.length > 0) {
    const what = `Another tab hosts the models, with another ${server.differences.join(' and ')}.`
    notice(`${what} To use your options, close that tab and reload this page.`, 'mild', reload)
  }
}
