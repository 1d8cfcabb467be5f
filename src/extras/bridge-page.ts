/**
 * Script of the page that `inorigin bridge` serves: it lends itself to the command. The fragment of
 * its URL has the token, which only a user of the command knows.
 */
import type * as Library from '../index.ts'
import type { BridgeState } from '../types/index.ts'

const state = document.querySelector('#state') as HTMLElement
const stop = document.querySelector('#stop') as HTMLButtonElement

async function lendThisTab(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token')
  if (token === null) throw new Error('Open the URL that `inorigin bridge` printed.')
  // The token must not stay in the history of the browser.
  history.replaceState(null, '', location.pathname)
  const url = new URL('/inorigin/index.js', location.href).href
  const { serve } = (await import(/* @vite-ignore */ url)) as typeof Library
  // The command always has the files of its own version.
  const server = await serve({ offline: false })
  const bridge = await server.bridge(location.origin, { token, reconnect: true, onChange: show })
  stop.disabled = false
  stop.addEventListener('click', bridge.close)
  await bridge.closed
}

function show(bridge: BridgeState): void {
  stop.disabled = bridge.status === 'closed'
  state.textContent = describe(bridge)
}

function describe({ status, requests, answered }: BridgeState): string {
  if (status === 'closed') return `This tab is not lent anymore. It answered ${count(answered)}.`
  if (status === 'reconnecting') return 'The bridge does not answer. This tab waits for it.'
  return `This tab is lent to the programs of this machine. It answers ${count(requests)} now, and answered ${answered} before.`
}

const count = (requests: number): string => (requests === 1 ? '1 request' : `${requests} requests`)

try {
  await lendThisTab()
} catch (error) {
  state.textContent = error instanceof Error ? error.message : String(error)
}
