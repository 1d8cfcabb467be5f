/** The loopback server of `inorigin bridge`: `/v1` for clients, a page, and a WebSocket for tabs. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SOCKET_PATH } from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'
import { shorten } from '../../values/shorten.ts'
import { errorResponse } from '../../wire/errors.ts'
import { id } from '../../wire/id.ts'
import { assertHost, checkOrigin, toPreflightHeaders, type GuardOptions } from './guard.ts'
import type { PageFiles } from './page-files.ts'
import { createRelay } from './relay.ts'
import { openTabSockets } from './tab-sockets.ts'
import type { Tab } from './tab.ts'
import { createTabs } from './tabs.ts'

/** The only address that the server listens at, so no other machine reaches it. */
const LOOPBACK = '127.0.0.1'

/** Maximum number of connections of clients and tabs together. */
const MAX_CONNECTIONS = 256

export interface BridgeServerOptions extends GuardOptions {
  /** Port to listen at; 0 for a free one. */
  port: number
  /** Files of the page that lends itself. */
  files: PageFiles
  onTab(tab: Tab): void
}

export interface BridgeServer {
  /** URL without a slash at its end. */
  readonly url: string
  /** Closes all connections. Resolves when the port is free. */
  close(): Promise<void>
}

/**
 * Starts the server.
 *
 * @throws InoriginError `unavailable` if the port is in use or may not be used.
 */
export async function openBridgeServer(options: BridgeServerOptions): Promise<BridgeServer> {
  const tabs = createTabs()
  const relay = createRelay(tabs, options)
  const sockets = openTabSockets(options.token, (tab) => {
    tabs.add(tab)
    options.onTab(tab)
  })
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => refuse(response, error))
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    assertHost(request)
    const { pathname, search } = parsePath(request)
    if (!pathname.startsWith('/v1/')) return options.files.send(request, response, pathname)
    const cors = checkOrigin(request, options)
    for (const [name, value] of Object.entries(cors)) response.setHeader(name, value)
    if (request.method === 'OPTIONS') {
      return void response.writeHead(204, toPreflightHeaders(request)).end()
    }
    await relay.pass(pathname + search, request, response)
  }

  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    try {
      assertHost(request)
      if (request.url !== SOCKET_PATH) throw new InoriginError('not_found', 'No such path.')
    } catch (error) {
      const { status } = InoriginError.from(error)
      return void socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\n\r\n`)
    }
    sockets.upgrade(request, socket, head)
  })
  server.maxConnections = MAX_CONNECTIONS
  await listen(server, options.port)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${LOOPBACK}:${port}`,
    async close() {
      sockets.close()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Returns the path without dot segments, which would lead a tab out of `/v1`. */
function parsePath({ url = '' }: IncomingMessage): URL {
  const whole = `http://${LOOPBACK}${url}`
  if (url.startsWith('/') && URL.canParse(whole)) return new URL(whole)
  throw new InoriginError('not_found', `There is no ${shorten(url)}. Use a path below /v1.`)
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, LOOPBACK)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const what = `Port ${port} cannot be used: ${InoriginError.from(cause).message}.`
    throw new InoriginError('unavailable', `${what} Choose another one with --port.`, { cause })
  }
}

/** Sends the error, or closes the connection of a response that has started. */
async function refuse(response: ServerResponse, thrown: unknown): Promise<void> {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const requestId = id('req_')
  const error = errorResponse(InoriginError.from(thrown), requestId)
  // OpenAI's clients read the first header, Anthropic's the second.
  response.setHeader('x-request-id', requestId)
  response.setHeader('request-id', requestId)
  // The rest of a body that is too large is not read.
  response.setHeader('connection', 'close')
  response.writeHead(error.status, Object.fromEntries(error.headers))
  response.end(await error.text())
}
