/** The server of `inorigin bridge` in this process, and tabs that are lent to it. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { vi } from 'vitest'
import { WebSocket } from 'ws'
import { lend as lendTab } from '../../../src/bridge/lend.ts'
import { SUBPROTOCOL } from '../../../src/bridge/protocol.ts'
import { openBridgeServer, type BridgeServer } from '../../../src/cli/bridge/http-server.ts'
import { outsideError } from '../../../src/cli/bridge/refusals.ts'
import type { Bridge, BridgeOptions } from '../../../src/types/index.ts'

export const TOKEN = 'token-of-the-test'
export const ALLOWED = 'https://app.example'

const bridges: BridgeServer[] = []

/** Closes all servers that {@link open} has opened. */
export async function closeAll(): Promise<void> {
  vi.unstubAllGlobals()
  await Promise.all(bridges.splice(0).map((server) => server.close()))
}

export type Fetch = (request: Request) => Promise<Response> | Response
type LendOptions = { cores?: number } & Pick<BridgeOptions, 'reconnect' | 'onChange'>

/** Opens the server of the command, on a free port by default. */
export async function open({
  port = 0,
  token = TOKEN,
  requireKey = false,
  origins = [ALLOWED],
} = {}) {
  vi.stubGlobal('WebSocket', WebSocket)
  const server = await openBridgeServer({
    port,
    token,
    requireKey,
    origins,
    files: {
      send({ method = '' }, _response, path) {
        throw outsideError(method, path)
      },
    },
    onTab: () => {},
  })
  bridges.push(server)
  const models = `${server.url}/v1/models`
  return {
    server,
    models,
    port: Number(new URL(server.url).port),
    ask: (options: AskOptions = {}) => ask(models, options),
    post: (body: string, headers: object = {}) =>
      ask(`${server.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      }),
    /** Lends a tab that answers by the function. Tabs are ranked by their cores. */
    lend(fetch: Fetch, { cores = 1, ...rest }: LendOptions = {}): Promise<Bridge> {
      vi.stubGlobal('crossOriginIsolated', true)
      vi.stubGlobal('navigator', { hardwareConcurrency: cores })
      const { signal: closing } = new AbortController()
      return lendTab(
        server.url,
        { token, ...rest },
        { origin: 'http://localhost:1', fetch: async (request) => fetch(request), closing },
      )
    },
    /** Opens the WebSocket of a tab. */
    connectTab: () =>
      new WebSocket(`${server.url.replace('http', 'ws')}/bridge`, [SUBPROTOCOL, `token.${TOKEN}`]),
  }
}

interface AskOptions {
  method?: string
  headers?: object
  body?: string
  path?: string
}

interface Answered {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Sends a request with headers that `fetch` does not allow. Rejects if the connection breaks. */
function ask(url: string, { headers = {}, body = '', ...rest }: AskOptions): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const options = { ...rest, headers: { ...headers }, agent: false }
    const asked = httpRequest(url, options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => (text += piece))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      )
    })
    asked.on('error', reject)
    asked.end(body)
  })
}
