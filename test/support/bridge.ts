/** Both ends of the bridge in Node: the server of the command, and tabs that are real but for their page. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { vi } from 'vitest'
import { WebSocket } from 'ws'
import { lend } from '../../src/bridge/lend.ts'
import { openBridgeServer, type BridgeServer } from '../../src/cli/bridge/http-server.ts'
import type { Bridge, BridgeOptions } from '../../src/types/index.ts'

export const TOKEN = 'token-of-the-test'

export interface OpenBridge {
  server: BridgeServer
  /** Lends a tab that answers by the function. */
  lend(
    fetch: (request: Request) => Promise<Response> | Response,
    options?: { cores?: number } & Pick<BridgeOptions, 'reconnect' | 'onChange'>,
  ): Promise<Bridge>
}

/** Opens a server, on a free port by default. `cores` of a tab are what it is ranked by. */
export async function openBridge(options: {
  port?: number
  token?: string
  requireKey?: boolean
  origins?: readonly string[]
}): Promise<OpenBridge> {
  vi.stubGlobal('WebSocket', WebSocket)
  const server = await openBridgeServer({
    port: options.port ?? 0,
    token: options.token ?? TOKEN,
    requireKey: options.requireKey ?? false,
    origins: options.origins ?? [],
    files: { send: (_request, response) => void response.writeHead(404).end() },
    onTab: () => {},
  })
  return {
    server,
    lend(fetch, { cores = 1, ...rest } = {}) {
      vi.stubGlobal('crossOriginIsolated', true)
      vi.stubGlobal('navigator', { hardwareConcurrency: cores })
      const { signal: closing } = new AbortController()
      const origin = 'http://localhost:1'
      return lend(
        server.url,
        { token: options.token ?? TOKEN, ...rest },
        { origin, fetch: async (request) => fetch(request), closing },
      )
    },
  }
}

export interface Answered {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Sends a request with headers that `fetch` does not allow. Rejects if the connection breaks. */
export function ask(
  url: string,
  {
    method = 'GET',
    headers = {},
    body = '',
    ...rest
  }: { method?: string; headers?: object; body?: string; path?: string },
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(
      url,
      { method, headers: { ...headers }, agent: false, ...rest },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (piece: string) => (text += piece))
        response.on('error', reject)
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        )
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })
}
