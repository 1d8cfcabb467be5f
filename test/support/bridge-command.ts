/** The built command `inorigin bridge` as a process, and tabs that are lent to it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Page } from 'playwright'
import type { Bridge, Server } from '../../src/index.ts'

const CLI = join(import.meta.dirname, '../../dist/cli.js')

export const TOKEN = 'token-of-the-test'

export interface BridgeCommand {
  /** URL without a slash at its end. */
  url: string
  /** Output so far, of both streams. */
  output(): string
  /** Resolves when the output contains the text. */
  prints(text: string): Promise<void>
  /** Interrupts the command and resolves with its exit code. */
  end(): Promise<number | null>
}

/** Starts the command on a free port. Resolves when it listens. */
export async function startBridge(...args: string[]): Promise<BridgeCommand> {
  const env = { ...process.env, INORIGIN_BRIDGE_TOKEN: TOKEN }
  const child = spawn(process.execPath, [CLI, 'bridge', '--port', '0', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const waiting = new Set<() => void>()
  const add = (piece: Buffer) => {
    output += piece.toString()
    for (const check of waiting) check()
  }
  child.stdout.on('data', add)
  child.stderr.on('data', add)
  const exited = once(child, 'exit')
  const prints = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = () => {
        if (!output.includes(text)) return
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
      check()
      void exited.then(() => reject(new Error(`The command ended: ${output}`)))
    })
  await prints('In your own page')
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? []
  return {
    url,
    output: () => output,
    prints,
    async end() {
      child.kill('SIGINT')
      const [code] = (await exited) as [number | null]
      return code
    },
  }
}

/** What a lent page has in `globalThis`. */
export interface LentPage {
  server: Server
  bridge: Bridge
  /** Code of the error that the bridge ended with. */
  ended: string
}

/** Lends a page, whose `serve()` has resolved, to the command at that URL. */
export const lend = (page: Page, url: string, reconnect = false): Promise<void> =>
  page.evaluate(
    async ([address, token, lasts]) => {
      const kept = globalThis as unknown as LentPage
      kept.bridge = await kept.server.bridge(address, { token, reconnect: lasts })
      kept.bridge.closed.catch(({ code }: { code: string }) => (kept.ended = code))
    },
    [url, TOKEN, reconnect] as const,
  )

/** Resolves when the page answers that many requests at the moment. */
export const answers = async (page: Page, count: number): Promise<void> => {
  await page.waitForFunction(
    (expected) => (globalThis as unknown as LentPage).bridge.state.requests === expected,
    count,
  )
}
