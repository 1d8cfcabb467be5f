/** What a tab does when the command ends and starts anew, over a real WebSocket. */
import { afterEach, expect, test, vi } from 'vitest'
import type { BridgeState } from '../../../src/types/index.ts'
import { ask, openBridge, type OpenBridge } from '../../support/bridge.ts'

let bridge: OpenBridge
afterEach(() => bridge.server.close())

/** Opens a bridge with a tab that connects again. */
async function lendLasting() {
  bridge = await openBridge({})
  const states: BridgeState[] = []
  const tab = await bridge.lend(() => new Response('ok'), {
    reconnect: true,
    onChange: (state) => states.push(state),
  })
  const becomes = (status: BridgeState['status']) =>
    vi.waitFor(() => expect(tab.state.status).toBe(status), 20_000)
  return { tab, states, becomes, port: Number(new URL(bridge.server.url).port) }
}

test('a tab connects again to a command with the same token', async () => {
  const { tab, states, becomes, port } = await lendLasting()
  await bridge.server.close()
  await becomes('reconnecting')
  bridge = await openBridge({ port })
  await becomes('connected')
  expect((await ask(`${bridge.server.url}/v1/models`, {})).text).toBe('ok')
  tab.close()
  await tab.closed
  expect(states.map(({ status }) => status)).toEqual(
    expect.arrayContaining(['connected', 'reconnecting', 'closed']),
  )
  expect(tab.state).toMatchObject({ status: 'closed', answered: 1 })
})

test('a tab gives up at a command with another token', async () => {
  const { tab, becomes, port } = await lendLasting()
  const ended = tab.closed.catch(({ code }: { code: string }) => code)
  await bridge.server.close()
  await becomes('reconnecting')
  bridge = await openBridge({ port, token: 'another-token-of-the-test' })
  expect(await ended).toBe('bridge_refused')
  await becomes('closed')
  expect((await ask(`${bridge.server.url}/v1/models`, {})).text).toContain('bridge_no_tab')
})

test('a tab that waits for the command can stop', async () => {
  const { tab, becomes, port } = await lendLasting()
  await bridge.server.close()
  await becomes('reconnecting')
  tab.close()
  await tab.closed
  await becomes('closed')
  bridge = await openBridge({ port })
  expect((await ask(`${bridge.server.url}/v1/models`, {})).text).toContain('bridge_no_tab')
})
