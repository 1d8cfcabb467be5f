/** Accepts the WebSockets of tabs that know the token. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import {
  CLOSE_CODES,
  MAX_FRAME_BYTES,
  parseTabFrame,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  type TabCapability,
} from '../../bridge/protocol.ts'
import { isToken } from './guard.ts'
import { createTab, toFrame, type Tab } from './tab.ts'
import { MAX_TABS } from './tabs.ts'

/** Time in milliseconds until a new connection must say what its tab can do. */
const HELLO_TIMEOUT_MS = 10_000

/** Code of connections that close because the command ends. */
const GOING_AWAY = 1001

export interface TabSockets {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes the connections. */
  close(): void
}

export function openTabSockets(token: string, onTab: (tab: Tab) => void): TabSockets {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    handleProtocols: (protocols) => (protocols.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  })
  function welcome(socket: WebSocket, request: IncomingMessage): void {
    // A frame that is too long or no WebSocket frame ends the connection. Its close is handled.
    socket.on('error', () => socket.terminate())
    const refusal = findRefusal(request, token, server.clients.size)
    if (refusal) return socket.close(...refusal)
    const timer = setTimeout(
      () => socket.close(CLOSE_CODES.timeout, 'The page sent no hello.'),
      HELLO_TIMEOUT_MS,
    )
    socket.once('close', () => clearTimeout(timer))
    socket.once('message', (data, isBinary) => {
      clearTimeout(timer)
      const capability = findCapability(toFrame(data, isBinary))
      if (!capability) return socket.close(CLOSE_CODES.invalidMessage, 'The hello is invalid.')
      const tab = createTab(socket, { capability, origin: request.headers.origin ?? 'no page' })
      onTab(tab)
      socket.send(JSON.stringify({ type: 'welcome' }))
    })
  }
  return {
    upgrade: (request, socket, head) =>
      server.handleUpgrade(request, socket, head, (accepted) => welcome(accepted, request)),
    close() {
      for (const client of server.clients) client.close(GOING_AWAY, 'The command ended.')
    },
  }
}

/** Returns why the tab is refused. A page learns it from the close of an accepted connection only. */
function findRefusal(
  { headers }: IncomingMessage,
  token: string,
  count: number,
): [code: number, reason: string] | undefined {
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim())
  const own = offered.find((one) => one.startsWith(TOKEN_PREFIX)) ?? ''
  if (!isToken(own.slice(TOKEN_PREFIX.length), token)) {
    return [CLOSE_CODES.wrongToken, 'Wrong token. Pass the one that `inorigin bridge` printed.']
  }
  if (!offered.includes(SUBPROTOCOL)) {
    const reason = 'The page has another version of inorigin than the command. Update both.'
    return [CLOSE_CODES.wrongVersion, reason]
  }
  if (count > MAX_TABS) return [CLOSE_CODES.tooManyTabs, `More than ${MAX_TABS} tabs.`]
  return undefined
}

function findCapability(frame: string | ArrayBuffer): TabCapability | undefined {
  const message = parseTabFrame(frame)
  return message && 'type' in message && message.type === 'hello' ? message.capability : undefined
}
