/** An HTTP server in front of a page, so that programs outside of browsers can reach its origin. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright'

export interface Bridge {
  /** Without a trailing slash. */
  url: string
  close(): Promise<void>
}

/** What the page tells of an answer: its head, its bytes in base64, and its end. */
type Told =
  | { type: 'head'; status: number; headers: Record<string, string> }
  | { type: 'bytes'; base64: string }
  | { type: 'end'; broken: boolean }

interface Asked {
  id: number
  method: string
  path: string
  headers: Record<string, string>
  body: string | null
}

interface InPage {
  tellBridge(id: number, told: Told): Promise<void>
  abandoned?: Record<number, AbortController>
}

/** What a page may not set, or must not hand on. */
const OWN = new Set(['host', 'connection', 'content-length', 'accept-encoding', 'user-agent'])

/** Each request is made by the page itself; who hangs up here aborts it there. */
export async function openBridge(page: Page): Promise<Bridge> {
  const waiting = new Map<number, (told: Told) => void>()
  await page.exposeFunction('tellBridge', (id: number, told: Told) => waiting.get(id)?.(told))
  let last = 0
  const server = createServer(async (request, response) => {
    const id = ++last
    const body = await read(request)
    waiting.set(id, (told) => {
      if (told.type === 'head') response.writeHead(told.status, told.headers)
      else if (told.type === 'bytes') response.write(Buffer.from(told.base64, 'base64'))
      else if (told.broken) response.destroy()
      else response.end()
      if (told.type === 'end') waiting.delete(id)
    })
    response.on('close', () => {
      if (waiting.delete(id)) void page.evaluate(abandonInPage, id)
    })
    const headers = Object.fromEntries(
      Object.entries(request.headers).flatMap(([name, value]) =>
        OWN.has(name) || value === undefined ? [] : [[name, String(value)]],
      ),
    )
    const { method = 'GET', url: path = '/' } = request
    await page.evaluate(askInPage, { id, method, path, headers, body })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function read(request: IncomingMessage): Promise<string | null> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return pieces.length > 0 ? Buffer.concat(pieces).toString() : null
}

async function askInPage({ id, method, path, headers, body }: Asked): Promise<void> {
  const bridge = globalThis as unknown as InPage
  const controller = new AbortController()
  const abandoned = (bridge.abandoned ??= {})
  abandoned[id] = controller
  try {
    const response = await fetch(path, { method, headers, body, signal: controller.signal })
    const head = Object.fromEntries(response.headers)
    await bridge.tellBridge(id, { type: 'head', status: response.status, headers: head })
    const reader = response.body?.getReader()
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) break
      const base64 = btoa(Array.from(value ?? [], (byte) => String.fromCharCode(byte)).join(''))
      await bridge.tellBridge(id, { type: 'bytes', base64 })
    }
    await bridge.tellBridge(id, { type: 'end', broken: false })
  } catch {
    await bridge.tellBridge(id, { type: 'end', broken: true })
  }
  delete abandoned[id]
}

function abandonInPage(id: number): void {
  ;(globalThis as unknown as InPage).abandoned?.[id]?.abort()
}
