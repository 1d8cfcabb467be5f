import type { Bridge, BridgeState, Server } from '../src/index.ts'
import { byId } from './dom.ts'
import { wordsOf } from './notice.ts'

/** Lends this tab to programs outside the browser if the user asks for it, and shows that it is lent. */
export function createLending(starting: Promise<Server>): void {
  const form = byId('lend-form', HTMLFormElement)
  const url = byId('lend-url', HTMLInputElement)
  const token = byId('lend-token', HTMLInputElement)
  const start = byId('lend-start', HTMLButtonElement)
  const stop = byId('lend-stop', HTMLButtonElement)
  const said = byId('lend-said', HTMLElement)
  const badge = byId('lent', HTMLElement)
  let bridge: Bridge | undefined

  function show(state: BridgeState): void {
    const isLent = state.status !== 'closed'
    start.disabled = isLent
    stop.hidden = !isLent
    badge.hidden = !isLent
    badge.textContent = `Lent (${state.requests})`
    badge.title = describe(state)
    said.textContent = describe(state)
  }

  async function lend(): Promise<void> {
    start.disabled = true
    said.textContent = 'Connecting …'
    try {
      const server = await starting
      const options = { token: token.value.trim(), reconnect: true, onChange: show }
      bridge = await server.bridge(url.value.trim(), options)
      await bridge.closed
    } catch (error) {
      start.disabled = false
      said.textContent = wordsOf(error)
    }
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void lend()
  })
  stop.addEventListener('click', () => bridge?.close())
}

function describe({ status, requests, answered }: BridgeState): string {
  if (status === 'closed') return `This tab is not lent anymore. It answered ${count(answered)}.`
  if (status === 'reconnecting') return 'The bridge does not answer. This tab waits for it.'
  return `This tab is lent. It answers ${count(requests)} now, and answered ${answered} before.`
}

const count = (requests: number): string => (requests === 1 ? '1 request' : `${requests} requests`)
