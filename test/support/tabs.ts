/**
 * Tabs of a browser that nothing is attached to. A debugger or driver keeps service workers alive, so the
 * pages of a test ask for their commands themselves, over a WebSocket, which no service worker sees.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type WebSocket, WebSocketServer } from 'ws'
import { ensureXvfb } from '../setup/webkit.ts'
import type { AnyPage } from './any-page.ts'
import type { Engine } from './engines.ts'

/** Script of every page that a test opens: it runs what the test sends. */
export const AGENT = `<script>
  const connect = () => {
    const socket = new WebSocket(location.hash.slice(1))
    const send = (reply) => socket.readyState === 1 && socket.send(JSON.stringify(reply))
    socket.onmessage = async ({ data }) => {
      const { id, code, argument, untilTrue } = JSON.parse(data)
      try {
        const run = (0, eval)('(' + code + ')')
        let value = await run(argument)
        while (untilTrue && !value) {
          await new Promise((resolve) => setTimeout(resolve, 50))
          value = await run(argument)
        }
        send({ id, value })
      } catch (error) {
        send({ id, error: String(error) })
      }
    }
    // A page in the back/forward cache has no open connection.
    addEventListener('pagehide', () => socket.close(), { once: true })
  }
  connect()
  addEventListener('pageshow', ({ persisted }) => persisted && connect())
</script>`

/** Time in milliseconds that a browser has for its first page, and for each other. */
const OPEN_TIMEOUT_MS = 90_000

export interface Tab extends AnyPage {
  /** Runs a function that leaves this document, and resolves when the tab's next one is there. */
  leave(run: () => void): Promise<void>
  reload(): Promise<void>
  close(): Promise<void>
}

export interface Tabs {
  /** Opens a page that contains {@link AGENT}. */
  open(url: string): Promise<Tab>
  /** Closes all pages that are open. */
  closeAll(): Promise<void>
  /** Ends the browser and deletes its profile. */
  close(): Promise<void>
}

/** Starts a browser with a new profile. */
export async function openTabs(engine: Engine): Promise<Tabs> {
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
  const commands = await listen()
  const { port } = commands.server.address() as AddressInfo
  const first = new AgentTab(`ws://localhost:${port}/0`)
  const tabs = new Map([['/0', first]])
  commands.sockets.on('connection', (socket, { url }) => tabs.get(url ?? '')?.connected(socket))
  const opened = first.connection()
  const end = await launch(engine, profile, `http://localhost:${port}/#${first.address}`)
  const close = async () => {
    await end()
    commands.sockets.close()
    commands.server.closeAllConnections()
    await new Promise((resolve) => commands.server.close(resolve))
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
  await opened.catch(async (error: unknown) => {
    await close()
    throw error
  })
  return {
    async open(url) {
      const path = `/${tabs.size}`
      const tab = new AgentTab(`ws://localhost:${port}${path}`)
      tabs.set(path, tab)
      const connection = tab.connection()
      await first.evaluate(
        (given) => void open(given, '_blank', 'noopener'),
        `${url}#${tab.address}`,
      )
      await connection
      return tab
    },
    async closeAll() {
      for (const tab of tabs.values()) if (tab !== first) await tab.close()
    },
    close,
  }
}

/** Opens the server of the first page, which opens the others, and of all commands. */
async function listen(): Promise<{ server: HttpServer; sockets: WebSocketServer }> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>commands</title>${AGENT}`)
  })
  const sockets = new WebSocketServer({ server })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, sockets }
}

/** Starts the browser, and a display if it needs one. Returns a function that ends both. */
async function launch(engine: Engine, profile: string, url: string): Promise<() => Promise<void>> {
  const ends: (() => Promise<void>)[] = []
  const env: NodeJS.ProcessEnv = { ...process.env, ...engine.env(profile) }
  if (engine.needsDisplay) {
    const display = await openDisplay()
    env['DISPLAY'] = display.name
    ends.push(display.close)
  }
  const options = { stdio: 'ignore', env, detached: true } as const
  const browser = spawn(engine.ensure(), engine.argsFor(profile, url), options)
  ends.unshift(() => killGroup(browser))
  return async () => {
    for (const end of ends) await end()
  }
}

/** Starts a display that nobody sees. It chooses its number and says it. */
async function openDisplay(): Promise<{ name: string; close(): Promise<void> }> {
  const args = ['-displayfd', '3', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp']
  const xvfb = spawn(ensureXvfb(), args, {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    detached: true,
  })
  const number = await new Promise<string>((resolve, reject) => {
    xvfb.stdio[3]?.once('data', (data: Buffer) => resolve(data.toString().trim()))
    xvfb.once('exit', () => reject(new Error('Xvfb ended before it had a display.')))
  })
  return { name: `:${number}`, close: () => killGroup(xvfb) }
}

/** Ends a program with all that it started. Debian's Chromium, for one, is started by a script. */
async function killGroup(program: ChildProcess): Promise<void> {
  const { pid, exitCode, signalCode } = program
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  const ended = new Promise((resolve) => program.once('exit', resolve))
  process.kill(-pid, 'SIGKILL')
  await ended
}

interface Reply {
  id: number
  value?: unknown
  error?: string
}

interface Pending {
  /** Connection that the command was sent over. */
  socket: WebSocket
  resolve: (value: unknown) => void
  reject: (error: Error) => void
}

/** A tab, known by the address that its agent connects to. */
class AgentTab implements Tab {
  readonly address: string
  #socket: WebSocket | undefined
  #onConnection = new Set<() => void>()
  #pending = new Map<number, Pending>()
  #commands = 0

  constructor(address: string) {
    this.address = address
  }

  /** Resolves when a page of this address connects next. */
  connection(): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error(`No page of ${this.address} has opened.`))
      const timer = setTimeout(late, OPEN_TIMEOUT_MS)
      this.#onConnection.add(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  connected(socket: WebSocket): void {
    this.#socket = socket
    socket.on('message', (data) => this.#reply(JSON.parse(String(data)) as Reply))
    socket.on('close', () => {
      // After a reload, the next page may connect before the connection of this one is closed.
      if (this.#socket === socket) this.#socket = undefined
      for (const [id, pending] of this.#pending) {
        if (pending.socket !== socket) continue
        this.#pending.delete(id)
        pending.reject(new Error('The page was left.'))
      }
    })
    for (const resolve of this.#onConnection) resolve()
    this.#onConnection.clear()
  }

  #reply({ id, value, error }: Reply): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (error === undefined) pending?.resolve(value)
    else pending?.reject(new Error(error))
  }

  #run(run: unknown, argument?: unknown, untilTrue = false): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket
      if (!socket) return reject(new Error('The tab is not open.'))
      const id = (this.#commands += 1)
      this.#pending.set(id, { socket, resolve, reject })
      socket.send(JSON.stringify({ id, code: String(run), argument, untilTrue }))
    })
  }

  evaluate = ((run: unknown, argument?: unknown) => this.#run(run, argument)) as AnyPage['evaluate']

  waitForFunction = ((run: unknown, argument?: unknown) =>
    this.#run(run, argument, true)) as AnyPage['waitForFunction']

  async leave(run: () => void): Promise<void> {
    const next = this.connection()
    await this.#run(run).catch(() => undefined)
    await next
  }

  reload(): Promise<void> {
    return this.leave(() => location.reload())
  }

  async close(): Promise<void> {
    const socket = this.#socket
    if (!socket) return
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await this.#run(() => close()).catch(() => undefined)
    await closed
  }
}
