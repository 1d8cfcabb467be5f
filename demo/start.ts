/** Starts the server in this page, as the address asks for it. */
import { serve, type Device, type Server } from '../src/index.ts'
import { byId } from './dom.ts'
import { notice, wordsOf } from './notice.ts'

declare global {
  interface Window {
    /** The server's handle, for the console; there once the server has started. */
    inorigin?: Server
  }
}

const reload = { label: 'Try again', run: () => location.reload() }

/** The server of this page. `?device=` and `?catalog=` choose; a catalog is loaded with consent only. */
export async function start(): Promise<Server> {
  const query = new URLSearchParams(location.search)
  const device = readDevice(query.get('device'))
  const catalog = await consented(query.get('catalog'))
  try {
    // Beside the page, so that the playground also works in a sub-folder.
    const worker = new URL('sw.js', document.baseURI)
    const server = await serve({ worker, device, catalog })
    window.inorigin = server
    tellDifferences(server)
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
      `There is no device "${wish}": ?device= takes webgpu or wasm. The best one is used.`,
      'mild',
    )
  }
  return 'auto'
}

/** The catalog the address names, if the reader agrees; a catalog decides what is downloaded and run. */
async function consented(wish: string | null): Promise<URL | undefined> {
  if (!wish) return undefined
  const url = URL.canParse(wish, document.baseURI) ? new URL(wish, document.baseURI) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    notice(`"${wish}" is not the address of a catalog. The default catalog is used.`, 'mild')
    return undefined
  }
  const dialog = byId('consent', HTMLDialogElement)
  byId('consent-url', HTMLElement).textContent = url.href
  dialog.returnValue = 'default'
  dialog.showModal()
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }))
  return dialog.returnValue === 'load' ? url : undefined
}

function tellDifferences(server: Server): void {
  if (!server.controlled) {
    const what = 'This browser allows no service worker here, so only this page reaches the models'
    notice(
      `${what} (through server.fetch). Leave the private window to have fetch('/v1/…').`,
      'mild',
    )
  }
  if (server.differences.length > 0) {
    const what = `Another tab hosts the models, with another ${server.differences.join(' and ')}.`
    notice(`${what} Close it and reload this page to have what you asked for.`, 'mild', reload)
  }
}
